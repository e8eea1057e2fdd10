//! All benchmarks; `cargo xtask bench` starts them.
//!
//! `stepscope-bench NAME...` runs the named ones, prints a table of each on stdout and appends one JSON object per figure to
//! `tests/bench/bench.jsonl`: `date`, `commit`, `cpu`, `bench`, `case`, `value`, `unit`. Without a name it lists them.
//! `versus=lstm` runs only the cases whose names contain `lstm`, of the benchmarks that take their cases one by one.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program whose output is its result")]

#[cfg(feature = "window")]
mod dashboard;
#[cfg(feature = "engine")]
mod demo;
#[cfg(feature = "engine")]
mod distributed;
#[cfg(feature = "engine")]
mod engine;
mod events;
mod hostile;
mod import;
#[cfg(feature = "engine")]
mod nn;
#[cfg(feature = "engine")]
mod peer;
mod profiler;
mod python;
mod report;
mod sealed;
#[cfg(feature = "query")]
mod sql;
mod stats;
mod summaries;
#[cfg(feature = "engine")]
mod tracing_cost;
mod watched;

use report::{BenchError, Report};
use std::process::ExitCode;

/// A benchmark: one file.
struct Bench {
    name: &'static str,
    about: &'static str,
    run: fn(&mut Report) -> Result<(), BenchError>,
}

const BENCHES: &[Bench] = &[
    Bench { name: "events", about: "ns per slice, against bare time stamps and other tracers", run: events::run },
    Bench { name: "python", about: "ns per slice in Python, against other tracers of Python", run: python::run },
    #[cfg(feature = "engine")]
    Bench { name: "demo", about: "what tracing costs the demo, in interleaved blocks of steps", run: demo::run },
    #[cfg(feature = "engine")]
    Bench {
        name: "nn",
        about: "convolutions, pools and recurrent cells, against a matrix product's rate",
        run: nn::run,
    },
    #[cfg(feature = "engine")]
    Bench { name: "engine", about: "ns per node, us per trivial step, gemm rates", run: engine::run },
    #[cfg(feature = "engine")]
    Bench { name: "loops", about: "ns per node execution in while loops", run: engine::loops },
    #[cfg(feature = "engine")]
    Bench {
        name: "versus",
        about: "the part of engine that is measured side by side with TensorFlow",
        run: engine::versus,
    },
    #[cfg(feature = "engine")]
    Bench { name: "ops", about: "where the time of the models' training steps goes, by op", run: engine::ops },
    #[cfg(feature = "engine")]
    Bench { name: "tracing", about: "what tracing costs a perceptron, a convnet, an LSTM", run: engine::tracing },
    #[cfg(feature = "engine")]
    Bench {
        name: "distributed",
        about: "steps and values between processes, compared with TensorFlow's servers, Open MPI and bare sockets",
        run: distributed::run,
    },
    Bench {
        name: "summaries",
        about: "event files: delay from write to read, cost of a call, loading compared with TensorBoard's data server",
        run: summaries::run,
    },
    Bench {
        name: "sealed",
        about: "sealed traces: writing, size, opening, frames, scans; STEPSCOPE_BENCH_SLICES sets how many",
        run: sealed::run,
    },
    Bench {
        name: "import",
        about: "Kineto traces of 1 M and 5 M events, opened compared with trace_processor and serde_json",
        run: import::run,
    },
    Bench {
        name: "hostile",
        about: "six shapes of traces that nobody meant to be read, at 1 M and 10 M events: opened, analysed",
        run: hostile::run,
    },
    Bench { name: "profiler", about: "collecting, reading, the store, and frames of the timeline", run: profiler::run },
    #[cfg(feature = "query")]
    Bench { name: "sql", about: "SQL over a sealed trace, compared with DuckDB on the same files", run: sql::run },
    #[cfg(feature = "window")]
    Bench {
        name: "dashboard",
        about: "CPU ms per frame of each panel, time to pictures; STEPSCOPE_BENCH_SLICES sets the trace's size",
        run: dashboard::run,
    },
];

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    match &names[..] {
        [option, way, logdir] if option == summaries::load::LOAD => return load_logdir(way, logdir),
        [option, file, how] if option == import::OPEN => return import::open(file, how),
        #[cfg(feature = "engine")]
        [option, what, address] if option == distributed::PROCESS => return distributed::process(what, address),
        #[cfg(feature = "window")]
        [option, path] if option == dashboard::window::WINDOW => return dashboard::window::show(path),
        #[cfg(feature = "peers")]
        [option, tracer, folder] if option == events::others::EMIT => return events::others::emit_with(tracer, folder),
        _ => {}
    }
    if names.is_empty() {
        for bench in BENCHES {
            println!("{:10} {}", bench.name, bench.about);
        }
        return ExitCode::SUCCESS;
    }
    let mut failed = false;
    for name in &names {
        let (name, cases) = name.split_once('=').unwrap_or((name, ""));
        let Some(bench) = BENCHES.iter().find(|b| b.name == name) else {
            eprintln!("no benchmark is called {name}; without a name they are listed");
            return ExitCode::from(2);
        };
        if let Err(e) = run(bench, cases) {
            eprintln!("{name}: {e}");
            failed = true;
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The part of `summaries` that has a process of its own.
fn load_logdir(way: &str, logdir: &str) -> ExitCode {
    match summaries::load::load(way, logdir.into()) {
        Ok(cost) => println!("{cost}"),
        Err(e) => {
            eprintln!("{logdir}: {e}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn run(bench: &Bench, cases: &str) -> Result<(), BenchError> {
    let mut report = Report::new(bench.name, cases);
    (bench.run)(&mut report)?;
    print!("{}", report.table());
    Ok(report.append()?)
}
