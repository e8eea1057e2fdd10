//! The library in a program that knows nothing of it, with a stand-in for CUPTI, and without one.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use profiler::{Store, TraceReader};

/// The library, which cargo builds beside the tests.
fn library() -> PathBuf {
    let beside = std::env::current_exe().unwrap();
    let deps = beside.parent().unwrap();
    let found = [deps.join("libstepscope_inject.so"), deps.with_file_name("libstepscope_inject.so")];
    found.into_iter().find(|path| path.is_file()).expect("cargo built the library")
}

fn compiled(folder: &Path, out: &str, options: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/standin.c");
    let out = folder.join(out);
    let done = Command::new("cc").arg(source).arg("-o").arg(&out).args(options).output().ok()?;
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(out)
}

/// Runs the program with the library in it, recording into `trace`; `None`, said, without a C compiler.
fn run(folder: &Path, trace: &Path, has_cupti: bool) -> Option<Output> {
    let Some(program) = compiled(folder, "program", &["-ldl"]) else {
        eprintln!("skipped: the injected library, for there is no C compiler (cc)");
        return None;
    };
    let libraries = folder.join("libraries");
    std::fs::create_dir_all(&libraries).unwrap();
    if has_cupti {
        compiled(&libraries, "libcupti.so", &["-DCUPTI", "-shared", "-fPIC"])?;
    }
    let mut command = Command::new(program);
    command.arg(library()).env(events::control::ENV, trace).env("LD_LIBRARY_PATH", &libraries);
    Some(command.output().unwrap())
}

fn store(trace: &Path) -> Store {
    let mut store = Store::default();
    TraceReader::open(trace).unwrap().read_all(&mut store).unwrap();
    store
}

#[test]
fn calls_of_a_program_that_knows_nothing_are_in_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let Some(output) = run(folder.path(), &trace, true) else { return };
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1 1 1\n", "{output:?}");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let store = store(&trace);
    let range = store.range();
    let slices = store.tracks().iter().flat_map(|track| track.lanes.iter().flat_map(|lane| lane.slices(&range)));
    let names: Vec<&str> = slices.map(|slice| store.sites()[slice.site as usize].name.as_str()).collect();
    assert_eq!(names, ["cudaLaunchKernel"]);
    assert!(store.tracks().iter().any(|track| track.name.starts_with("CUDA calls of")), "{:?}", store.tracks());
}

#[test]
fn a_program_without_cupti_runs_and_its_trace_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let Some(output) = run(folder.path(), &trace, false) else { return };
    assert!(output.status.success(), "{output:?}");
    if cupti::Loaded::find().is_err() {
        assert_eq!(String::from_utf8_lossy(&output.stdout), "1 1 0\n");
        let store = store(&trace);
        let told = store.warnings().iter().find(|warning| warning.source.contains("CUDA (CUPTI)"));
        assert!(told.is_some_and(|warning| warning.text.contains("libcupti")), "{:?}", store.warnings());
    }
}
