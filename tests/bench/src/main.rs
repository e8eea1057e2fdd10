//! All benchmarks; `cargo xtask bench` starts them.
//!
//! `stepscope-bench NAME...` runs the named ones, prints a table of each on stdout and appends one JSON object per figure to
//! `docs/bench.jsonl`: `date`, `commit`, `cpu`, `bench`, `case`, `value`, `unit`. Without a name it lists them.
//! `versus=lstm` runs only the cases whose names contain `lstm`, of the benchmarks that take their cases one by one.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program whose output is its result")]

mod demo;
mod engine;
mod events;
mod nn;
mod peer;
mod profiler;
mod report;
mod sealed;
mod summaries;
#[cfg(feature = "window")]
mod timeline;
mod tracing_cost;

use report::Report;
use std::process::ExitCode;

/// What a benchmark may fail with: it says so and the others run.
type BenchError = Box<dyn std::error::Error>;

/// A benchmark: one file.
struct Bench {
    name: &'static str,
    about: &'static str,
    run: fn(&mut Report) -> Result<(), BenchError>,
}

const BENCHES: &[Bench] = &[
    Bench { name: "events", about: "ns per slice, against the bare time stamps that it needs", run: events::run },
    Bench { name: "demo", about: "what tracing costs the demo, in interleaved blocks of steps", run: demo::run },
    Bench {
        name: "nn",
        about: "convolutions, pools and recurrent cells, against a matrix product's rate",
        run: nn::run,
    },
    Bench { name: "engine", about: "ns per node, us per trivial step, gemm rates", run: engine::run },
    Bench { name: "loops", about: "ns per node execution in while loops", run: engine::loops },
    Bench {
        name: "versus",
        about: "the part of engine that is measured side by side with TensorFlow",
        run: engine::versus,
    },
    Bench { name: "ops", about: "where the time of the models' training steps goes, by op", run: engine::ops },
    Bench { name: "tracing", about: "what tracing costs a perceptron, a convnet, an LSTM", run: engine::tracing },
    Bench {
        name: "summaries",
        about: "event files: delay from write to read, cost of a call, loading beside TensorBoard's data server",
        run: summaries::run,
    },
    Bench {
        name: "sealed",
        about: "sealed traces: writing, size, opening, frames, scans; STEPSCOPE_BENCH_SLICES sets how many",
        run: sealed::run,
    },
    Bench { name: "profiler", about: "collecting, reading, the store, and frames of the timeline", run: profiler::run },
    #[cfg(feature = "window")]
    Bench { name: "timeline", about: "CPU ms per frame of the timeline, UI and tessellation", run: timeline::run },
];

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    if let [option, logdir] = &names[..]
        && option == summaries::load::LOAD
    {
        return load_logdir(logdir);
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
fn load_logdir(logdir: &str) -> ExitCode {
    match summaries::load::load(logdir.into()) {
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
