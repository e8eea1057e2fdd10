//! `cargo xtask`: starts the checks, tests and benchmarks of the workspace.
//!
//! Nothing is implemented here: each step is a command that can also be run by hand, printed before it starts.

#![allow(clippy::print_stdout, clippy::print_stderr)] // xtask is a program: it talks to the terminal.

mod command;
mod left_out;
mod measured;
mod portable;
mod prepare;
mod python;
mod release;
mod sql_wheel;
mod steps;
mod third_party;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::process::ExitCode;

use steps::{Failed, Steps};

const HELP: &str = "\
cargo xtask COMMAND

  check            fmt, clippy and docs: what an editor's save should pass
  test             everything CI runs: brings what the tests need, then check, unit, doc, tidy, end-to-end and window
                   tests; the last lines say which checks were left out, and why
  bench [NAME...]  benchmarks: a table here, JSON lines appended to tests/bench/bench.jsonl; no name: lists them
  measured         writes docs/measured.md: the newest figure of each benchmark's case
  soak             the long versions of the fault tests (kill -9, damaged files, disturbed networks), and 3,000 random programs
                   against TensorFlow; about two hours
  release          the program as it is released, with SQL, clusters and buckets, for Linux with glibc 2.28 or newer: packed with
                   manual, completions and what a desktop reads, installed and tried there:
                   target folder/released/stepscope-VERSION-MACHINE.tar.gz and .deb
  wheel [--aarch64] [--sql]
                   the Python package with the program in it, for Linux with glibc 2.28 or newer: built, installed into an
                   empty environment and tested there: target folder/wheel/stepscope-VERSION-....whl; --aarch64: for that
                   machine, its program run under QEMU; --sql: also the wheel that brings SQL, which takes much longer
  gpu [--pack]     checks and measures the GPUs of this machine; --pack: makes target folder/gpu-check, which does it without
                   Rust and without a network
  shots [DIR]      screenshots of every tab in both themes of a real run (default target folder/shots)

Examples:
  cargo xtask test
  cargo xtask bench events demo
";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let command = args.next();
    let rest: Vec<String> = args.collect();
    let mut steps = Steps::new();
    let done = match command.as_deref() {
        Some("check") => check(&mut steps),
        Some("test") => test(&mut steps),
        Some("bench") => bench(&mut steps, &rest),
        Some("measured") => measured::write(),
        Some("soak") => soak(&mut steps),
        Some("shots") => shots(&mut steps, &rest),
        Some("release") => release::release(&mut steps),
        Some("wheel") => python::wheel(&mut steps, &rest),
        Some("gpu") => gpu(&mut steps, &rest),
        Some("--help" | "-h" | "help") | None => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Some(other) => {
            eprintln!("xtask: no command '{other}'\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    steps.report();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed(what)) => {
            eprintln!("\nxtask: {what} failed");
            ExitCode::FAILURE
        }
    }
}

/// Features that are checked and tested in addition to the default ones.
const FEATURES: &str =
    "--features=stepscope/s3,engine/s3,stepscope/buckets,summaries/buckets,stepscope/cluster,stepscope-bench/query";

/// Builds the check of a GPU, and runs it or packs it.
fn gpu(steps: &mut Steps, rest: &[String]) -> Result<(), Failed> {
    const BUILD: &[&str] = &["build", "--release", "--package", "cuda", "--example", "gpu_check"];
    let is_packed = match rest {
        [] => false,
        [flag] if flag == "--pack" => true,
        _ => return Err(Failed(format!("gpu takes --pack, not {}", rest.join(" ")))),
    };
    steps.cargo("gpu check", BUILD, &[])?;
    let built = prepare::target_folder().join("release/examples/gpu_check").display().to_string();
    if !is_packed {
        let out = prepare::target_folder().join("gpu_check.json").display().to_string();
        return steps.run("gpu", &built, &[&out], &[]);
    }
    let folder = prepare::target_folder().join("gpu-check");
    let at = folder.display().to_string();
    steps.run("folder", "mkdir", &["-p", &at], &[])?;
    steps.run("copy", "cp", &[&built, "engine/cuda/examples/run.sh", &at], &[])?;
    steps.run("strip", "strip", &[&folder.join("gpu_check").display().to_string()], &[])?;
    steps.run("size", "du", &["-sh", &at], &[])
}

fn check(steps: &mut Steps) -> Result<(), Failed> {
    steps.cargo("fmt", &["fmt", "--all", "--check"], &[])?;
    steps.cargo("clippy", &["clippy", "--workspace", "--all-targets", FEATURES, "--", "-D", "warnings"], &[])?;
    steps.cargo(
        "docs",
        &["doc", "--workspace", "--no-deps", "--document-private-items"],
        &[("RUSTDOCFLAGS", "-D warnings")],
    )
}

/// Checks and tests. What cannot be brought (no registry, no packages, other projects' files) costs the checks that need it,
/// not the run: each is counted and named at the end.
fn test(steps: &mut Steps) -> Result<(), Failed> {
    prepare::own_target_folder(steps)?;
    let mut env = prepare::for_tests(steps);
    check(steps)?;
    let binary = release_binary(steps)?;
    env.push(("STEPSCOPE_BIN", binary.clone()));
    let list = left_out::List::new()?;
    env.push(("STEPSCOPE_LEFT_OUT", list.path()));
    let tested = steps.cargo("tests", &["test", "--workspace", "--no-fail-fast", FEATURES], &borrowed(&env));
    let with_mpi = test_mpi(steps, &list);
    let with_python = python::test(steps, prepare::python, &list);
    steps.close_with(list.report());
    tested.and(with_mpi).and(with_python)
}

/// Bodies by MPI. A build of its own: programs with MPI do not start without it.
fn test_mpi(steps: &mut Steps, list: &left_out::List) -> Result<(), Failed> {
    const TEST: &[&str] = &["test", "--package", "net-mpi", "--features=mpi"];
    match prepare::mpi(steps) {
        Ok(env) => steps.cargo("tests of MPI", TEST, &borrowed(&env)),
        Err(Failed(why)) => {
            list.add("base/mpi/tests/world.rs", &format!("frames by MPI: {why} failed"));
            Ok(())
        }
    }
}

fn borrowed<'a>(env: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    env.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

fn release_binary(steps: &mut Steps) -> Result<String, Failed> {
    steps.cargo("release build", &["build", "--release"], &[])?;
    Ok(prepare::target_folder().join("release/stepscope").display().to_string())
}

fn bench(steps: &mut Steps, names: &[String]) -> Result<(), Failed> {
    let mut args = vec!["run", "--release", "--package", "stepscope-bench"];
    // The window is built without the engine, whose kernels take minutes.
    if !names.is_empty() && names.iter().all(|name| name.split('=').next() == Some("dashboard")) {
        args.extend(["--no-default-features", "--features=window"]);
    } else {
        release_binary(steps)?;
    }
    // Other tracers, one of them in C++: for their own benchmark only.
    if names.iter().any(|name| name == "events") {
        args.push("--features=peers");
    }
    if names.iter().any(|name| name == "sql") {
        args.push("--features=query");
    }
    args.push("--");
    args.extend(names.iter().map(String::as_str));
    let mut env = Vec::new();
    let tensorflow;
    if names
        .iter()
        .any(|name| ["engine", "versus", "tracing", "distributed"].contains(&name.split('=').next().unwrap_or(name)))
    {
        tensorflow = prepare::tensorflow(steps)?;
        env.push(("STEPSCOPE_TENSORFLOW", tensorflow.as_str()));
    }
    let mpi;
    if names.iter().any(|name| name.split('=').next() == Some("distributed")) {
        mpi = prepare::mpi(steps)?;
        env.extend(borrowed(&mpi));
        args.insert(4, "--features=mpi");
    }
    let python;
    if names.iter().any(|name| ["summaries", "import", "sql"].contains(&name.split('=').next().unwrap_or(name))) {
        python = prepare::python(steps)?;
        env.push(("STEPSCOPE_PYTHON", python.as_str()));
    }
    let (tracers, package);
    if names.iter().any(|name| name.split('=').next() == Some("python")) {
        tracers = prepare::tracers(steps)?;
        let maturin = prepare::maturin(steps)?;
        package = python::install(steps, &maturin)?;
        env.extend([("STEPSCOPE_TRACERS", tracers.as_str()), ("STEPSCOPE_PACKAGE", package.as_str())]);
    }
    steps.cargo("bench", &args, &env)
}

/// The long versions. As with the tests, what cannot be brought costs what needs it, and is counted at the end.
fn soak(steps: &mut Steps) -> Result<(), Failed> {
    let mut env = prepare::for_tests(steps);
    let binary = release_binary(steps)?;
    let list = left_out::List::new()?;
    let more = [("STEPSCOPE_BIN", binary.as_str()), ("STEPSCOPE_SOAK", "1"), ("STEPSCOPE_LEFT_OUT", &list.path())];
    env.extend(more.map(|(name, value)| (name, value.to_owned())));
    match prepare::clients(steps) {
        Ok(python) => env.push(("STEPSCOPE_CLIENTS", python)),
        Err(Failed(why)) => {
            list.add("tests/tests/clients/main.rs", &format!("programs that people log with: {why} failed"));
        }
    }
    let result = python::test(steps, prepare::clients, &list).and_then(|()| python::wheel(steps, &[]));
    let result = result.and_then(|()| soak_tests(steps, &borrowed(&env)));
    let result = result.and_then(|()| random_programs(steps, &list)).and_then(|()| soak_mpi(steps, env, &list));
    steps.close_with(list.report());
    result
}

fn soak_tests(steps: &mut Steps, env: &[(&str, &str)]) -> Result<(), Failed> {
    let test = |arguments: &[&'static str]| [&["test", "--release", "--package"], arguments].concat();
    steps.cargo("soak", &test(&["stepscope-tests", "--no-fail-fast"]), env)?;
    steps.cargo("soak: gathering", &test(&["gather", "--test", "kills"]), env)?;
    let simulation = test(&["distributed", "--test", "simulation", "--", "--nocapture"]);
    steps.cargo("soak: simulation", &simulation, env)?;
    steps.cargo("soak: parking", &["test", "--package", "engine", "--test", "sleep_model"], env)
}

/// Random programs with fresh seeds (or those from `STEPSCOPE_SEED` on), which the engine must answer as TensorFlow does.
fn random_programs(steps: &mut Steps, list: &left_out::List) -> Result<(), Failed> {
    const N_PROGRAMS: u64 = 3_000;
    const BATCH: u64 = 250;
    let python = match prepare::tensorflow(steps) {
        Ok(python) => python,
        Err(Failed(why)) => {
            list.add(
                "engine/tests/tensorflow/random_programs.rs",
                &format!("random programs with fresh seeds: {why} failed"),
            );
            return Ok(());
        }
    };
    let given = std::env::var("STEPSCOPE_SEED").ok().and_then(|seed| seed.parse().ok());
    let first: u64 = given.unwrap_or_else(|| RandomState::new().build_hasher().finish() >> 32);
    let file = prepare::target_folder().join("random_programs.bin.gz");
    let file = std::path::absolute(&file).unwrap_or(file).display().to_string();
    let test =
        ["test", "--release", "--package", "engine", "--test", "tensorflow", "random_programs::", "--", "--nocapture"];
    for batch in 0..N_PROGRAMS / BATCH {
        // Some seeds give no program.
        let (seed, count) = ((first + batch * 2 * BATCH).to_string(), BATCH.to_string());
        let make = ["tests/scripts/tf_random_programs.py", &file, "--seed", &seed, "--count", &count];
        steps.run(&format!("soak: programs from seed {seed}"), &python, &make, &[])?;
        let env = [("STEPSCOPE_PROGRAMS", file.as_str())];
        steps.cargo(&format!("soak: random programs from seed {seed}"), &test, &env)?;
    }
    Ok(())
}

/// Last: what starts only with MPI takes the released program's place.
fn soak_mpi(steps: &mut Steps, mut env: Vec<(&'static str, String)>, list: &left_out::List) -> Result<(), Failed> {
    match prepare::mpi(steps) {
        Ok(mpi) => env.extend(mpi),
        Err(Failed(why)) => {
            list.add("tests/tests/distributed_mpi.rs", &format!("training by MPI: {why} failed"));
            return Ok(());
        }
    }
    env.push(("STEPSCOPE_MPI_BIN", prepare::target_folder().join("release/stepscope").display().to_string()));
    let env = borrowed(&env);
    steps.cargo("soak: program with MPI", &["build", "--release", "--features=mpi"], &env)?;
    let test = ["test", "--release", "--package", "stepscope-tests", "--test", "distributed_mpi", "--", "--nocapture"];
    steps.cargo("soak: MPI", &test, &env)
}

fn shots(steps: &mut Steps, rest: &[String]) -> Result<(), Failed> {
    prepare::window_packages(steps)?;
    let binary = release_binary(steps)?;
    let folder = rest.first().cloned().unwrap_or_else(|| prepare::target_folder().join("shots").display().to_string());
    let env = [("STEPSCOPE_BIN", binary.as_str()), ("STEPSCOPE_WINDOW", "1"), ("STEPSCOPE_SHOTS", folder.as_str())];
    steps.cargo("shots", &["test", "--package", "stepscope-tests", "--test", "window", "--", "--nocapture"], &env)
}
