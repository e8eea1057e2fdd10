"""Fetches other projects' files that the tests read but that this project does not ship (tests/data/elsewhere.tsv).

    python fetch_data.py FOLDER [--from URL]

Each file must have the hash of the table. What is there already is left alone, so that a second run asks nobody. URL has
{repository}, {commit} and {path} in it; the default is where GitHub serves files. Exit code 1 when a file is missing.
"""

import argparse
import gzip
import hashlib
import pathlib
import sys
import urllib.request

GITHUB = "https://raw.githubusercontent.com/{repository}/{commit}/{path}"
TABLE = pathlib.Path(__file__).resolve().parent.parent / "data" / "elsewhere.tsv"


def rows():
    for line in TABLE.read_text().splitlines():
        if line and not line.startswith("#"):
            yield line.split("\t")


def fetch(url, sha256):
    """The bytes at `url`, if they are those that the table means."""
    with urllib.request.urlopen(url, timeout=30) as answer:
        content = answer.read()
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise ValueError(f"its hash is {found[:12]}, not {sha256[:12]}")
    return content


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--from", dest="source", default=GITHUB, metavar="URL")
    arguments = parser.parse_args()
    for name, repository, commit, path, sha256 in rows():
        target = arguments.folder / name
        if target.exists():
            continue
        try:
            content = fetch(arguments.source.format(repository=repository, commit=commit, path=path), sha256)
        except (OSError, ValueError) as error:
            # The first one decides: each of the others would wait for the same answer.
            sys.exit(f"{name} of {repository}: {error}")
        target.parent.mkdir(parents=True, exist_ok=True)
        # Whole or not at all.
        part = target.with_name(target.name + ".part")
        part.write_bytes(gzip.compress(content) if name.endswith(".gz") and not path.endswith(".gz") else content)
        part.replace(target)


if __name__ == "__main__":
    main()
