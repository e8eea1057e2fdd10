//! Files next to a log: what is read, and what is not.

use std::{fs, path::Path};

use trackers::{Batch, Bucket, Value};

use super::{
    made::Log,
    read::{scalars, whats, whole},
};

/// Reads a log with one value and a number.
fn read(folder: &Path, json: &str) -> Batch {
    let path = folder.join("run-x.wandb");
    Log::new().row(0, &[("m", json), ("x", "1")]).write(&path);
    let batch = whole(&path);
    assert_eq!(scalars(&batch, "x"), [(0, 1.0)]);
    batch
}

fn html(path: &str) -> String {
    serde_json::json!({"_type": "html-file", "path": path}).to_string()
}

#[test]
fn paths_stay_in_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    fs::create_dir_all(run.join("files/media")).unwrap();
    fs::write(run.join("files/media/inside.html"), "inside").unwrap();
    fs::write(folder.path().join("outside.html"), "outside").unwrap();
    assert_eq!(read(&run, &html("media/inside.html")).entries[1].value, Value::Text("inside".to_owned()));
    let outside = folder.path().join("outside.html");
    let leaves = "a path of a media file that leaves the run's folder";
    for path in ["../../outside.html", "media/../../../outside.html", "/etc/hostname", outside.to_str().unwrap()] {
        assert_eq!(whats(&read(&run, &html(path))), [leaves], "{path}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&outside, run.join("files/link.html")).unwrap();
        std::os::unix::fs::symlink(folder.path(), run.join("files/up")).unwrap();
        std::os::unix::fs::symlink("media/inside.html", run.join("files/within.html")).unwrap();
        for path in ["link.html", "up/outside.html"] {
            assert_eq!(whats(&read(&run, &html(path))), [leaves], "{path}");
        }
        assert!(read(&run, &html("within.html")).problems.is_empty());
    }
    for path in ["media/missing.html", "\0"] {
        assert_eq!(whats(&read(&run, &html(path))), ["a media file that is missing"], "{path:?}");
    }
    for path in ["media", ""] {
        assert_eq!(whats(&read(&run, &html(path))), ["a media file that is no plain file"], "{path:?}");
    }
}

#[test]
fn large_files_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    fs::create_dir(&files).unwrap();
    let large = fs::File::create(files.join("large.html")).unwrap();
    // Without data: it takes no space.
    large.set_len((64 << 20) + 1).unwrap();
    assert_eq!(whats(&read(folder.path(), &html("large.html"))), ["a media file of more than 64 MiB"]);
    fs::File::create(files.join("half.html")).unwrap().set_len(60 << 20).unwrap();
    let page = serde_json::json!({"path": "half.html"});
    let list = serde_json::json!({"_type": "html", "html": vec![page; 5]}).to_string();
    let batch = read(folder.path(), &list);
    assert_eq!(whats(&batch), ["a media file of a step whose files have more than 256 MiB"]);
}

#[test]
fn what_is_not_shown_is_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    fs::create_dir(&files).unwrap();
    fs::write(files.join("file"), "text").unwrap();
    let cases = [
        ("image-file", "an image that is not PNG, JPEG, GIF or WebP"),
        ("audio-file", "a sound that is not WAV"),
        ("table-file", "a table that cannot be read"),
        ("plotly-file", "a chart of another library, which is not shown"),
        ("video-file", "a video, which is not shown"),
        ("molecule-file", "a 3D object, which is not shown"),
        ("joined-table", "a table in several files, which is not shown"),
        ("of the future", "a kind of media that is not shown"),
        ("histogram", "a histogram without bins or values"),
        ("images/separated", "media files without paths"),
    ];
    for (kind, what) in cases {
        let json = serde_json::json!({"_type": kind, "path": "file", "size": 4}).to_string();
        let batch = read(folder.path(), &json);
        assert_eq!(whats(&batch), [what], "{kind}");
        assert_eq!(batch.entries.len(), 1, "{kind}");
    }
}

#[test]
fn long_lists_and_tables_have_an_end() {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    fs::create_dir(&files).unwrap();
    fs::write(files.join("page"), "page").unwrap();
    let page = serde_json::json!({"path": "page"});
    let batch = read(folder.path(), &serde_json::json!({"_type": "html", "html": vec![page; 200]}).to_string());
    assert_eq!((batch.entries.len(), whats(&batch)), (109, vec!["a list of more than 108 media files"]));
    let table = serde_json::json!({"columns": ["a"], "data": vec![[1]; 2000]});
    fs::write(files.join("table"), table.to_string()).unwrap();
    let batch = read(folder.path(), r#"{"_type": "table-file", "path": "table"}"#);
    assert!(matches!(&batch.entries[1].value, Value::Table { n_columns: 1, cells } if cells.len() == 1001));
}

#[test]
fn a_histogram_by_the_width_of_its_bins() {
    let folder = tempfile::tempdir().unwrap();
    let json = r#"{"_type": "histogram", "values": [1, 2], "packedBins": {"min": -1, "size": 0.5, "count": 2}}"#;
    let buckets = vec![Bucket { left: -1.0, right: -0.5, count: 1.0 }, Bucket { left: -0.5, right: 0.0, count: 2.0 }];
    assert_eq!(read(folder.path(), json).entries[1].value, Value::Histogram(buckets));
}
