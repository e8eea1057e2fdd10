//! `include/stepscope.h` is what cbindgen makes of the sources, followed by `helpers.h`.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::Path;

/// Written instead of compared where this is set.
const BLESS: &str = "STEPSCOPE_BLESS";

#[test]
fn the_header_is_that_of_the_sources() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    config.trailer = Some(std::fs::read_to_string(folder.join("helpers.h")).unwrap());
    // Each source file by itself: cbindgen would ask cargo for the crate, and lib.rs has but their names.
    let mut files: Vec<_> = std::fs::read_dir(folder.join("src")).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|file| !file.ends_with("lib.rs"));
    files.sort();
    let builder = files.iter().fold(cbindgen::Builder::new().with_config(config), cbindgen::Builder::with_src);
    let mut header = Vec::new();
    builder.generate().unwrap().write(&mut header);
    // The heading that Rust asks for.
    let header = String::from_utf8(header).unwrap().replace(" * # Safety\n", " * Requires:\n");

    let path = folder.join("include/stepscope.h");
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(&path, &header).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let first = kept.lines().zip(header.lines()).position(|(kept, new)| kept != new);
    let first = first.unwrap_or(kept.lines().count().min(header.lines().count())) + 1;
    assert!(kept == header, "{} differs from line {first} on; {BLESS}=1 writes it anew", path.display());
}
