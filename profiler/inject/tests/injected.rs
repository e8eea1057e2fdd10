//! The library in a program that knows nothing of it, with a stand-in for CUPTI, and without one.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use trace_store::{Store, testkit};

/// The library, which cargo builds next to the tests.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let deps = test.parent().unwrap();
    let found = [deps.join("libstepscope_inject.so"), deps.with_file_name("libstepscope_inject.so")];
    found.into_iter().find(|path| path.is_file()).expect("cargo built the library")
}

fn compiled(folder: &Path, out: &str, options: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/standin.c");
    let out = folder.join(out);
    let done = Command::new("cc").arg(source).arg("-o").arg(&out).args(options).arg("-ldl").output().ok()?;
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(out)
}

/// Runs the program with the library in it, recording into `folder/trace`; `None`, said, without a C compiler.
fn run(folder: &Path, how: &str, has_cupti: bool) -> Option<Output> {
    let Some(program) = compiled(folder, "program", &[]) else {
        test_support::left_out("the injected library: there is no C compiler (cc)");
        return None;
    };
    let libraries = folder.join("libraries");
    std::fs::create_dir_all(&libraries).unwrap();
    if has_cupti {
        compiled(&libraries, "libcupti.so", &["-DCUPTI", "-shared", "-fPIC"])?;
    }
    let mut command = Command::new(program);
    command.arg(how).env("CUDA_INJECTION64_PATH", library()).env(events::control::ENV, folder.join("trace"));
    // The stand-in comes before a CUPTI that this machine may have.
    command.env("STEPSCOPE_CUDA_LIBRARIES", &libraries).env("LD_LIBRARY_PATH", &libraries);
    Some(command.output().unwrap())
}

/// The names of all slices of the trace in `folder`.
fn slices(folder: &Path) -> (Store, Vec<String>) {
    let store = testkit::read(&folder.join("trace"));
    let names = testkit::slices(&store).map(|slice| store.slice_name(&slice).to_owned()).collect();
    (store, names)
}

/// The call of a program that ends so is in the trace.
fn check(how: &str, printed: &str, calls: std::ops::RangeInclusive<usize>) {
    let folder = tempfile::tempdir().unwrap();
    let Some(output) = run(folder.path(), how, true) else { return };
    assert!(output.status.success(), "{how}: {output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), printed, "{how}: {output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let expected = if how == "fork" { 1 } else { 0 };
    assert_eq!(said.lines().filter(|line| line.contains("it was forked from")).count(), expected, "{how}: {said}");
    assert_eq!(said.lines().count(), expected, "{how}: {said}");
    let (store, names) = slices(folder.path());
    let are_calls = names.iter().all(|name| name == "cudaLaunchKernel");
    assert!(are_calls && calls.contains(&names.len()), "{how}: {names:?} {:?}", store.warnings());
    assert!(store.tracks().iter().any(|track| track.name.starts_with("CUDA calls of")), "{how}: {:?}", store.tracks());
}

#[test]
fn calls_of_a_program_that_knows_nothing_are_in_the_trace() {
    check("return", "1 1 1\n", 1..=1);
}

#[test]
fn ranges_may_come_before_cuda() {
    check("nvtx first", "1 1 1\n", 1..=1);
}

#[test]
fn a_program_that_ends_without_exit_handlers_loses_the_last_moment_only() {
    check("_exit", "1 1 1\n", 1..=1);
}

#[test]
fn a_program_that_another_one_becomes_records_as_itself() {
    // What the first one had not been asked for is lost with it; where it takes long to become another, it was asked.
    check("exec", "1 1 1\n1 1 1\n", 1..=2);
}

#[test]
fn a_forked_child_ends_as_it_would_alone() {
    check("fork", "1 1 1\n", 1..=1);
}

#[test]
fn a_program_without_cupti_runs_and_its_trace_says_once_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(output) = run(folder.path(), "return", false) else { return };
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    if cupti::CuptiLibrary::find().is_err() {
        assert_eq!(String::from_utf8_lossy(&output.stdout), "1 1 0\n");
        let (store, _) = slices(folder.path());
        let warning: Vec<_> = store.warnings().iter().filter(|warning| warning.source == "CUDA (CUPTI)").collect();
        assert!(
            matches!(&warning[..], [warning] if warning.text.contains("install the CUDA toolkit")),
            "{:?}",
            store.warnings()
        );
    }
}
