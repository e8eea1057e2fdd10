//! Damaged, truncated, empty and foreign files given to `view` and `train`: one clear line each, exit code 2, no panic.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use stepscope_tests::{root, stepscope_binary};

/// Runs the binary without a display, so that `view` checks its paths and cannot hang in a window.
fn run(binary: &Path, args: &[&str]) -> Output {
    Command::new(binary)
        .args(args)
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", binary.display()))
}

/// One line on stderr that names the file, exit code 2, nothing on stdout, no panic.
fn check_refused(output: &Output, args: &[&str], file: &str, says: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let context = format!("stepscope {}: {stderr}", args.join(" "));
    assert_eq!(output.status.code(), Some(2), "{context}");
    assert_eq!(stderr.lines().count(), 1, "one line: {context}");
    assert!(stderr.contains(file), "names the file: {context}");
    assert!(stderr.contains(says), "says '{says}': {context}");
    assert!(output.stdout.is_empty(), "{context}");
}

struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, bytes).expect("the scratch folder is writable");
        path
    }
}

fn digits() -> Vec<u8> {
    fs::read(root().join("engine/data/digits.csv.gz")).expect("the bundled digits")
}

#[test]
fn view_refuses_what_it_cannot_show() {
    let Some(binary) = stepscope_binary("damaged files given to view") else { return };
    let files = Files { folder: tempfile::tempdir().expect("a scratch folder") };
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0";
    let cases: Vec<(PathBuf, &str)> = vec![
        (files.folder.path().join("not-there"), "no such file"),
        (files.write("empty.pb", b""), "empty"),
        (files.write("picture.png", png), "PNG"),
        (files.write("noise.bin", &[0xa7; 4096]), "not"),
        (files.write("text.txt", b"hello, this is no graph\n"), "not"),
        (files.write("broken.pbtxt", b"node { name: \"a\" op: "), "broken.pbtxt"),
        (files.write("cut.pb.gz", &digits()[..2000]), "cut.pb.gz"),
    ];
    for (path, says) in cases {
        let shown = path.display().to_string();
        let args = ["view", shown.as_str()];
        check_refused(&run(&binary, &args), &args, path.file_name().unwrap().to_str().unwrap(), says);
    }
}

#[test]
fn train_refuses_bad_data() {
    let Some(binary) = stepscope_binary("damaged files given to train") else { return };
    let files = Files { folder: tempfile::tempdir().expect("a scratch folder") };
    let mut flipped = digits();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x55;
    let cases: Vec<(PathBuf, &str)> = vec![
        (files.folder.path().join("not-there.csv"), "o such file"),
        (files.write("empty.csv", b""), "empty"),
        (files.write("short.csv", b"1,2,3\n"), "line 1"),
        (files.write("word.csv", format!("{}7\n{}x\n", "3,".repeat(64), "3,".repeat(64)).as_bytes()), "line 2"),
        (files.write("label.csv", format!("{}77\n", "3,".repeat(64)).as_bytes()), "label"),
        (files.write("cut.csv.gz", &digits()[..20_000]), "cut.csv.gz"),
        (files.write("flipped.csv.gz", &flipped), "flipped.csv.gz"),
        (files.write("noise.csv", &[0xa7; 4096]), "noise.csv"),
    ];
    for (path, says) in cases {
        let shown = path.display().to_string();
        let run_folder = files.folder.path().join("run").display().to_string();
        let args = ["train", "mlp", "--data", shown.as_str(), "--steps", "5", "--logdir", run_folder.as_str()];
        check_refused(&run(&binary, &args), &args, path.file_name().unwrap().to_str().unwrap(), says);
        assert!(!Path::new(&run_folder).exists(), "no run folder is made for {shown}");
    }
}
