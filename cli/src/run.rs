//! `stepscope run`: runs one or several steps of a graph that TensorFlow or this engine wrote.

use std::fs::File;
use std::path::Path;

use anyhow::Context;
use engine::{RunOptions, Tensor};
use formats::npy::{Array, write_npz};
use serde_json::json;

use crate::args;
use crate::graph::{self, DeviceChoice, Runnable};
use crate::out;
use crate::outcome::{Failure, Outcome};
use train::{TraceRecorder, devices};

/// Runs the graph and prints each fetch's name, type and shape.
pub fn run(args: &args::Run) -> Outcome {
    if let Some(out) = args.out.as_deref().filter(|out| out.exists()) {
        return Err(graph::fault(out, "it exists already; give a new file, or remove it first"));
    }
    if args.fetch.is_empty() && args.target.is_empty() {
        return Err(Failure::wrong_use("nothing to do: give --fetch NAME[:PORT] or --target NAME"));
    }
    let feeds = graph::feeds(&args.step)?;
    let runnable = Runnable::open(&args.graph, &args.step, DeviceChoice::FromOptions, args.dump_graphs.as_deref())?;
    let mut tracing = args.trace.as_deref().map(start_trace).transpose()?;
    if let Some(tracing) = tracing.as_mut().filter(|_| devices::has_gpu(&args.step.device)) {
        tracing.record_cuda();
    }
    let values = run_steps(&runnable, args, &feeds);
    let mut warnings = Vec::new();
    let collector_report = tracing.map(|tracing| tracing.end(&mut warnings));
    let values = values?;
    if let Some(out) = &args.out {
        write_npz_file(out, &args.fetch, &values)?;
    }
    print_result(args, &values);
    for note in runnable.notes() {
        note!("note: {note}");
    }
    if let Some(dropped) = collector_report.map(|c| c.dropped).filter(|n| *n > 0) {
        warnings.push(format!("{dropped} events were dropped; the trace has gaps"));
    }
    for warning in warnings {
        note!("warning: {warning}");
    }
    Ok(())
}

fn start_trace(folder: &Path) -> Result<TraceRecorder, Failure> {
    if std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(graph::fault(folder, "the folder is not empty; give a new one, or remove it first"));
    }
    Ok(TraceRecorder::start(folder)?)
}

/// Runs the steps; returns the fetches of the last one.
fn run_steps(runnable: &Runnable, args: &args::Run, feeds: &[(&str, Tensor)]) -> Result<Vec<Tensor>, Failure> {
    let session = runnable.session();
    let fetches: Vec<&str> = args.fetch.iter().map(String::as_str).collect();
    let targets: Vec<&str> = args.target.iter().map(String::as_str).collect();
    let mut values = Vec::new();
    for step in 0..args.steps {
        let options = RunOptions { label: "run", summary_step: i64::try_from(step).ok(), ..RunOptions::default() };
        let result = session.run_step(&options, feeds, &fetches, &targets);
        values = result.map_err(|error| graph::step_failure(session, error))?;
    }
    Ok(values)
}

fn write_npz_file(out: &Path, names: &[String], values: &[Tensor]) -> Result<(), Failure> {
    let arrays: Vec<Array> =
        values.iter().map(Tensor::to_npy).collect::<Result<_, _>>().map_err(|error| graph::fault(out, error))?;
    let file = File::create_new(out).with_context(|| format!("writing {}", out.display()))?;
    let named = names.iter().map(String::as_str).zip(&arrays);
    Ok(write_npz(std::io::BufWriter::new(file), named).with_context(|| format!("writing {}", out.display()))?)
}

fn print_result(args: &args::Run, values: &[Tensor]) {
    if args.json {
        let fetch = |(name, value): (&String, &Tensor)| json!({ "name": name, "dtype": value.dtype().name(), "shape": value.dims() });
        let fetches: Vec<_> = args.fetch.iter().zip(values).map(fetch).collect();
        out::object(1, json!({ "fetches": fetches, "out": args.out, "trace": args.trace, "steps": args.steps }));
        return;
    }
    let width = args.fetch.iter().map(String::len).max().unwrap_or(0);
    for (name, value) in args.fetch.iter().zip(values) {
        say!("{name:width$}  {value:?}");
    }
    if let Some(trace) = &args.trace {
        note!("Open the trace: stepscope view {}", trace.display());
    }
}
