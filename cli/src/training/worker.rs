//! `stepscope worker`: runs a task of a cluster, until Ctrl-C or SIGTERM.

use std::io::Read;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;

use anyhow::Context;
use train::{WorkerTask, mpi};

use super::events::observer;
use crate::args::{self, Verbosity};
use crate::outcome::{Failure, Outcome};
use crate::{out, signals};

/// Runs the task until Ctrl-C or SIGTERM, or, if the options say so, until the end of standard input.
pub fn run(args: &args::Worker, verbosity: Verbosity) -> Outcome {
    let task = WorkerTask::start(&options(args)?, observer())?;
    let stopped = stop_events(args.until_stdin_ends, &task)?;
    if args.json {
        out::announce(1, serde_json::json!({ "task": task.name(), "address": task.address() }))?;
    }
    if verbosity > Verbosity::Quiet {
        note!("stepscope: {} listens at {}; Ctrl-C ends it", task.name(), task.address());
    }
    // Fails only if all senders have ended.
    let _ = stopped.recv();
    Ok(task.end()?)
}

fn options(args: &args::Worker) -> Result<train::WorkerTaskOptions, Failure> {
    let address = match (&args.cluster, &args.job, args.task) {
        (Some(file), Some(job), Some(task)) => train::TaskAddress::File { file: file.clone(), job: job.clone(), task },
        (Some(file), ..) if mpi::is_requested(file) => train::TaskAddress::Mpi,
        (Some(_), ..) => return Err(Failure::wrong_use("--cluster FILE needs --job NAME and --task N")),
        _ => train::TaskAddress::Environment,
    };
    let input = args.input.map(|model| train::TaskSpec { model, data: args.data.clone(), seed: args.seed });
    Ok(train::WorkerTaskOptions {
        address,
        devices: args.devices.into(),
        threads: args.threads.map(usize::from),
        memory_limit: args.memory_limit,
        input,
    })
}

/// Returns a channel that receives a message when the task shall end.
fn stop_events(with_stdin: bool, task: &WorkerTask) -> anyhow::Result<mpsc::Receiver<()>> {
    let (stop, stopped) = mpsc::channel();
    let send = |stop: &mpsc::Sender<()>| {
        // Fails where the task is already ending.
        let _ = stop.send(());
    };
    let (on_signal, n_signals) = (stop.clone(), AtomicU32::new(0));
    let n_ignored = u32::from(task.ignores_first_signal());
    let count = move || {
        if n_signals.fetch_add(1, Ordering::Relaxed) >= n_ignored {
            send(&on_signal);
        }
    };
    signals::on_stop(count)?;
    let on_end = stop.clone();
    task.on_client_end(move || send(&on_end))?;
    if with_stdin {
        let wait = move || {
            let mut buffer = [0; 64];
            while std::io::stdin().lock().read(&mut buffer).is_ok_and(|n| n > 0) {}
            send(&stop);
        };
        std::thread::Builder::new().name("stdin".into()).spawn(wait).context("watching standard input")?;
    }
    Ok(stopped)
}
