//! Programs in C and C++ with the library: they are compiled with every warning as an error, and their traces are read.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use trace_store::{Store, testkit};

fn in_member(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The folder in which cargo built the library for the tests.
fn libraries() -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    assert!(folder.join("libstepscope.so").is_file() && folder.join("libstepscope.a").is_file(), "cargo built both");
    folder
}

/// Compiles `source` with the compiler `how` and links the library; runs it, recording into `folder/trace`. `None`,
/// said, without the compiler.
fn run(folder: &Path, how: &[&str], source: &str, is_static: bool) -> Option<Output> {
    let (program, libraries) = (folder.join("program"), libraries());
    let mut compile = Command::new(how[0]);
    compile.args(&how[1..]).args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread", "-I"]);
    compile.arg(in_member("include")).arg(in_member(source)).arg("-o").arg(&program);
    if is_static {
        compile.arg(libraries.join("libstepscope.a")).args(["-ldl", "-lm"]);
    } else {
        compile.arg("-L").arg(&libraries).arg("-lstepscope");
    }
    let Ok(compiled) = compile.output() else {
        test_support::left_out(format!("{source}: there is no compiler ({})", how[0]));
        return None;
    };
    assert!(compiled.status.success(), "{source}: {}", String::from_utf8_lossy(&compiled.stderr));
    let mut command = Command::new(program);
    command.arg(folder.join("trace")).env_remove(events::control::ENV).env("LD_LIBRARY_PATH", libraries);
    Some(command.output().unwrap())
}

const C: &[&str] = &["cc", "-std=c11", "-D_POSIX_C_SOURCE=200809L"];
const CPP: &[&str] = &["c++", "-std=c++17"];

/// Each slice as `track/category/name depth`, with how many there are.
fn slices(store: &Store) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for track in store.tracks() {
        for (depth, lane) in track.lanes.iter().enumerate() {
            for slice in (0..lane.len() as u32).filter_map(|i| lane.slice(i)) {
                let category = &store.sites()[slice.site as usize].category_name;
                let text = format!("{}/{category}/{} {depth}", track.name, store.slice_name(&slice));
                *found.entry(text).or_default() += 1;
            }
        }
    }
    found
}

fn expected(slices: &[(&str, usize)]) -> BTreeMap<String, usize> {
    slices.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect()
}

/// Texts of instants: `name: text`.
fn instants(store: &Store) -> Vec<String> {
    let all = store.tracks().iter().flat_map(|track| &track.instants);
    let mut texts: Vec<String> = all
        .map(|instant| {
            let name = &store.sites()[instant.site as usize].name;
            format!("{name}: {}", store.args().get(instant.args).unwrap_or_default())
        })
        .collect();
    texts.sort();
    texts
}

/// The arguments of all slices with this name.
fn args(store: &Store, name: &str) -> Vec<String> {
    let named = testkit::slices(store).filter(|slice| store.slice_name(slice) == name);
    named.map(|slice| store.args().get(slice.args).unwrap_or_default().into_owned()).collect()
}

fn check_hello(is_static: bool) {
    let folder = tempfile::tempdir().unwrap();
    let Some(output) = run(folder.path(), C, "examples/hello.c", is_static) else { return };
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0 events were dropped\n");
    let store = testkit::read(&folder.path().join("trace"));
    assert!(store.warnings().is_empty() && !store.is_live(), "{:?}", store.warnings());
    let all = [
        ("main/step/train 0", 3),
        ("main/hello/load 1", 3),
        ("main/hello/read 2", 3),
        ("worker/hello/work 0", 3),
        ("stream 7/copy/to the device 0", 1),
    ];
    assert_eq!(slices(&store), expected(&all));
    let steps: Vec<_> = store.steps().iter().map(|step| (step.id, step.summary_step)).collect();
    assert_eq!(steps, [(1, 100), (2, 101), (3, 102)]);
    let [counter] = store.counters() else { panic!("{:?}", store.counters()) };
    assert_eq!(store.sites()[counter.site as usize].name, "rows");
    assert_eq!(counter.value, [0.0, 10.0, 20.0]);
    let flows: Vec<_> = store.flows().collect();
    assert!(flows.len() == 3 && flows.iter().all(|flow| flow.from.is_some() && flow.to.is_some()), "{flows:?}");
    assert_eq!(
        instants(&store),
        ["loaded: ", "loaded: ", "loaded: ", r#"message: {"message":"all three batches are done"}"#]
    );
    let mut work = args(&store, "work");
    work.sort();
    let expected = |batch: u32| format!(r#"{{"batch":{batch},"share":0.5,"by":"a \"worker\""}}"#);
    assert_eq!(work, [0, 1, 2].map(expected));
    assert_eq!(args(&store, "to the device"), [r#"{"bytes":4096}"#]);
    let stream = store.tracks().iter().find(|track| track.name == "stream 7").unwrap();
    assert_eq!((stream.device.as_str(), stream.stream), ("GPU 0", Some(7)));
}

#[test]
fn hello_in_c_with_the_shared_library() {
    check_hello(false);
}

#[test]
fn hello_in_c_with_the_static_library() {
    check_hello(true);
}

#[test]
fn hello_in_cpp_until_its_exit() {
    let folder = tempfile::tempdir().unwrap();
    let Some(output) = run(folder.path(), CPP, "examples/hello.cpp", false) else { return };
    assert!(output.status.success() && output.stderr.is_empty() && output.stdout.is_empty(), "{output:?}");
    let store = testkit::read(&folder.path().join("trace"));
    assert!(store.warnings().is_empty() && !store.is_live(), "{:?}", store.warnings());
    let mut found = slices(&store);
    // The first thread has no name of its own.
    let second: Vec<_> = found.extract_if(.., |name, _| name.starts_with("second/")).collect();
    assert_eq!(second, [("second/c++/read 0".to_owned(), 1), ("second/c/parse 1".to_owned(), 2)]);
    let first: Vec<_> = found.iter().map(|(name, n)| (name.split_once('/').unwrap().1, *n)).collect();
    assert_eq!(first, [("c++/read 0", 1), ("c/parse 1", 4)]);
    assert_eq!(instants(&store), [r#"error: {"message":"a bad line"}"#]);
    let mut lines = args(&store, "read");
    lines.sort();
    assert_eq!(lines, [r#"{"lines":2}"#, r#"{"lines":4}"#]);
}

#[test]
fn misuse_is_an_error_and_a_fork_a_process_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let Some(output) = run(folder.path(), C, "tests/misuse.c", false) else { return };
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    let store = testkit::read(&folder.path().join("trace"));
    assert!(!store.is_live());
    let mut counts = BTreeMap::<&str, usize>::new();
    for slice in testkit::slices(&store) {
        *counts.entry(store.slice_name(&slice)).or_default() += 1;
    }
    let all = [
        ("around the fork", 1),
        ("bad arguments", 3),
        ("child", 1),
        ("deep", 65_536),
        ("forgotten", 1),
        ("long argument", 1),
        ("outer", 1),
    ];
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), all);
    assert_eq!(store.processes().len(), 2);
    assert_eq!(args(&store, "long argument"), [r#"{"infinite":"inf"}"#]);
    assert_eq!(instants(&store), ["request: "]);
}

/// What it measures depends on the machine: docs/use/c.md has figures of
/// `cargo test --release -p stepscope-c -- --nocapture the_program_that_measures_runs`.
#[test]
fn the_program_that_measures_runs() {
    let folder = tempfile::tempdir().unwrap();
    let how = [C, &["-O2"]].concat();
    let Some(output) = run(folder.path(), &how, "examples/cost.c", false) else { return };
    assert!(output.status.success(), "{output:?}");
    println!("{}", String::from_utf8_lossy(&output.stdout));
}
