//! Layouts compared with scikit-learn's and umap-learn's, of the same handwritten digits. `STEPSCOPE_SKLEARN` is a Python that has
//! both; without it this test says so and passes.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // Tests say what they skip.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use summaries::projection::{Progress, TsneOptions, UmapOptions, Vectors, pca, tsne, umap};

#[track_caller]
fn python() -> Option<PathBuf> {
    test_support::path_in("STEPSCOPE_SKLEARN", "layouts compared with scikit-learn's and umap-learn's")
}

/// Runs the kept script; what it prints.
fn peer(python: &Path, arguments: &[&str]) -> serde_json::Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/scripts/projection_peers.py");
    let out = Command::new(python).arg(script).args(arguments).output().expect("the named Python starts");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap_or_default()
}

fn write(path: &Path, n_columns: usize, values: &[f32]) {
    let mut text = String::new();
    for row in values.chunks(n_columns) {
        let cells: Vec<String> = row.iter().map(ToString::to_string).collect();
        writeln!(text, "{}", cells.join("\t")).unwrap();
    }
    std::fs::write(path, text).unwrap();
}

#[test]
fn layouts_are_as_good_as_the_references() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (data, ours) = (dir.path().join("x.tsv"), dir.path().join("ours.tsv"));
    let (data_text, ours_text) = (data.to_str().unwrap(), ours.to_str().unwrap());
    peer(&python, &["data", data_text]);
    let text = std::fs::read_to_string(&data).unwrap();
    let vectors = Vectors::new(64, text.split_ascii_whitespace().map(|x| x.parse().unwrap()).collect());
    assert_eq!(vectors.len(), 1797);
    let progress = Progress::default();

    write(&ours, 3, &pca(&vectors, 3, &progress).unwrap().coordinates);
    let printed = peer(&python, &["judge", data_text, ours_text, "pca"]);
    assert!(printed["difference"].as_f64().unwrap() < 1e-3, "principal components: {printed}");

    let flat = |places: Vec<[f32; 3]>| -> Vec<f32> { places.iter().flat_map(|p| [p[0], p[1]]).collect() };
    write(&ours, 2, &flat(tsne(&vectors, TsneOptions::default(), &progress, |_| {}).unwrap()));
    let with_tsne = peer(&python, &["judge", data_text, ours_text, "tsne"]);
    write(&ours, 2, &flat(umap(&vectors, UmapOptions::default(), &progress, |_| {}).unwrap()));
    let with_umap = peer(&python, &["judge", data_text, ours_text, "umap"]);
    for (name, printed) in [("t-SNE", with_tsne), ("UMAP", with_umap)] {
        eprintln!("trustworthiness of {name}: {printed}");
        let [ours, theirs] = ["ours", "theirs"].map(|who| printed[who].as_f64().unwrap());
        assert!(ours > theirs - 0.01, "{name}: {printed}");
    }
}
