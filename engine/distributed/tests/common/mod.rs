//! Clusters whose workers are in the test's process and talk through its sockets.
#![allow(dead_code, missing_docs, clippy::unwrap_used, reason = "tests; each file uses a part")]

use std::collections::BTreeMap;
use std::time::Duration;

use distributed::{Cluster, Master, MasterOptions, TaskName, Worker, WorkerOptions};
use engine::graph::{Graph, Output};
use net::Limits;

/// Of those who may lose the processor for a while: what is tested here is not how soon that is noticed.
pub fn limits() -> Limits {
    Limits { hello: Duration::from_secs(20), silence: Duration::from_secs(30), ..Limits::default() }
}

/// Workers and their master.
pub struct Loopback {
    pub workers: Vec<Worker>,
    pub master: Master,
}

pub fn worker(task: &TaskName, address: &str, options: &WorkerOptions) -> Worker {
    Worker::start(task, &address.parse().unwrap(), options).unwrap()
}

pub fn worker_options() -> WorkerOptions {
    WorkerOptions { job_id: "test".into(), threads: Some(1), limits: limits(), ..WorkerOptions::default() }
}

pub fn cluster_of(workers: &[Worker]) -> Cluster {
    let tasks: BTreeMap<_, _> = workers.iter().map(|w| (w.task().clone(), w.address().clone())).collect();
    Cluster { id: "test".into(), master: None, tasks, certificates: None }
}

/// `n` workers with a device each, and a master with these options.
pub fn loopback(n: usize, options: MasterOptions) -> Loopback {
    with_devices(n, 1, options)
}

pub fn with_devices(n: usize, devices: usize, options: MasterOptions) -> Loopback {
    let start = |task: u32| {
        let options = WorkerOptions { devices, ..worker_options() };
        worker(&TaskName::new("worker", task), "127.0.0.1:0", &options)
    };
    let workers: Vec<Worker> = (0..n as u32).map(start).collect();
    let master = Master::new(cluster_of(&workers), MasterOptions { limits: limits(), ..options });
    Loopback { workers, master }
}

pub fn on(g: &Graph, task: usize) -> Graph {
    g.with_device(&format!("/job:worker/task:{task}"))
}

pub fn name(g: &Graph, output: impl Into<Output>) -> String {
    let output = output.into();
    format!("{}:{}", g.node(output.node).unwrap().name, output.port)
}

/// Polls until something is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("not within 20 s: {what}");
}
