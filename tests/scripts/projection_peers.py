"""The handwritten digits of scikit-learn (1,797 of 64 pixels), and how well a layout of them keeps neighbours.

    projection_peers.py data OUT.tsv            the vectors
    projection_peers.py judge VECTORS.tsv OURS.tsv NAME    ours and theirs, as JSON

NAME: pca (the greatest difference of coordinates), tsne, umap (trustworthiness with 12 neighbours, van der Maaten 2009).
Needs scikit-learn and umap-learn.
"""

import json
import sys

import numpy as np


def theirs(name, x):
    if name == "pca":
        from sklearn.decomposition import PCA

        return PCA(n_components=3, svd_solver="full").fit_transform(x)
    if name == "tsne":
        from sklearn.manifold import TSNE

        return TSNE(random_state=0).fit_transform(x)
    import umap

    return umap.UMAP(random_state=0).fit_transform(x)


def main():
    if sys.argv[1] == "data":
        from sklearn.datasets import load_digits

        np.savetxt(sys.argv[2], load_digits().data, delimiter="\t", fmt="%g")
        return
    _, _, vectors, ours, name = sys.argv
    x, ours = np.loadtxt(vectors), np.loadtxt(ours)
    other = theirs(name, x)
    if name == "pca":
        print(json.dumps({"difference": float(np.abs(ours - other).max())}))
        return
    from sklearn.manifold import trustworthiness

    score = lambda y: float(trustworthiness(x, y, n_neighbors=12))
    print(json.dumps({"ours": score(ours), "theirs": score(other)}))


main()
