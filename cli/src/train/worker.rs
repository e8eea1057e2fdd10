//! `stepscope worker`: a task of a cluster, until it is told to end.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, mpsc};

use anyhow::Context;
use distributed::{Cluster, TaskName, Worker, WorkerOptions};
use engine::tasks::NextBatch;
use engine::training::tower_queue;
use engine::{Graph, Session, SessionOptions};
use net::NetError;

use super::cluster::JOB;
use super::feeder::Feeder;
use super::trainer::{EnqueueNames, QUEUED};
use crate::args::{self, Verbosity};
use crate::outcome::{Failure, Outcome};

/// Works until Ctrl-C or SIGTERM, or the end of standard input where that is wanted.
pub fn run(args: &args::Worker, verbosity: Verbosity) -> Outcome {
    let (cluster, task) = cluster(args)?;
    let address = cluster.address(&task).map_err(Failure::wrong_use)?;
    let options = WorkerOptions {
        job_id: cluster.id.clone(),
        devices: args.devices.into(),
        threads: args.threads.map(usize::from),
        security: cluster.security(Some(address)).map_err(Failure::wrong_use)?,
        ..WorkerOptions::default()
    };
    let worker = Worker::start(&task, address, &options).map_err(|error| match error {
        NetError::Address(_) => Failure::wrong_use(format_args!("{task}: {error}")),
        error => Failure::Work(anyhow::Error::new(error).context(format!("{task}: listening at {address}"))),
    })?;
    let feeder = args.input.map(|model| feeder(args, model, &cluster, &worker)).transpose()?;
    let stopped = told_to_end(args.until_stdin_ends)?;
    if args.json {
        let line = serde_json::json!({ "task": task.to_string(), "address": worker.address().to_string() });
        // Whoever waits for it may have gone.
        let _ = writeln!(std::io::stdout().lock(), "{line}");
    }
    if verbosity > Verbosity::Quiet {
        eprintln!("stepscope: {task} listens at {}; Ctrl-C ends it", worker.address());
    }
    // Fails only where nobody is left who could tell.
    let _ = stopped.recv();
    let fed = feeder.map_or(Ok(()), Feeder::end);
    drop(worker);
    Ok(fed?)
}

fn cluster(args: &args::Worker) -> Result<(Cluster, TaskName), Failure> {
    match (&args.cluster, &args.job, args.task) {
        (Some(file), Some(job), Some(task)) => {
            Ok((Cluster::read(file).map_err(Failure::wrong_use)?, TaskName::new(job, task)))
        }
        _ => Cluster::from_environment(|name| std::env::var(name).ok())
            .map_err(|error| Failure::wrong_use(format_args!("{error}; or give --job NAME --task N --cluster FILE"))),
    }
}

/// Fills the queue of this task's tower with the task's share of the batches: of N tasks, each N-th.
fn feeder(args: &args::Worker, model: args::Model, cluster: &Cluster, worker: &Worker) -> Result<Feeder, Failure> {
    let towers: Vec<&TaskName> = cluster.tasks.keys().filter(|task| task.job == JOB).collect();
    let Some(tower) = towers.iter().position(|task| *task == worker.task()) else {
        return Err(Failure::wrong_use(format_args!(
            "--input is for tasks of the job {JOB}, not for {}",
            worker.task()
        )));
    };
    let task = super::task(model, args.data.as_deref().map(Path::new), args.seed)?;
    let graph = Graph::new();
    let (_, enqueue) = tower_queue(&graph, task.network.as_ref(), tower, QUEUED).context("building the input")?;
    let names = EnqueueNames::of(&graph, &enqueue).context("naming the input's nodes")?;
    let options =
        SessionOptions { devices: worker.devices()[..1].to_vec(), threads: Some(1), ..SessionOptions::default() };
    let session = Session::new(&graph, options).context("starting the input's session")?;
    Ok(Feeder::start(Arc::new(session), names, share(task.next_batch, tower, towers.len()))?)
}

/// Each `n`-th batch, from the `first` on.
fn share(mut all: NextBatch, first: usize, n: usize) -> NextBatch {
    Box::new(move || {
        (0..first).for_each(|_| drop(all()));
        let own = all();
        (first + 1..n).for_each(|_| drop(all()));
        own
    })
}

/// Tells when it is time to end.
fn told_to_end(with_stdin: bool) -> anyhow::Result<mpsc::Receiver<()>> {
    let (stop, stopped) = mpsc::channel();
    let on_signal = stop.clone();
    let tell = |stop: &mpsc::Sender<()>| {
        // It may be ending already.
        let _ = stop.send(());
    };
    ctrlc::set_handler(move || tell(&on_signal)).context("taking over signals")?;
    if with_stdin {
        let wait = move || {
            let mut scrap = [0; 64];
            while std::io::stdin().lock().read(&mut scrap).is_ok_and(|n| n > 0) {}
            tell(&stop);
        };
        std::thread::Builder::new().name("stdin".into()).spawn(wait).context("watching standard input")?;
    }
    Ok(stopped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Tensor;

    #[test]
    fn shares_are_disjoint_and_complete() {
        let numbers = || {
            let mut next = 0i32;
            let batches: NextBatch = Box::new(move || {
                next += 1;
                vec![Tensor::scalar(next - 1)]
            });
            batches
        };
        let mut shares: Vec<NextBatch> = (0..3).map(|first| share(numbers(), first, 3)).collect();
        let got: Vec<i32> = (0..12).map(|i| shares[i % 3]()[0].item::<i32>().unwrap()).collect();
        assert_eq!(got, (0..12).collect::<Vec<_>>());
    }
}
