//! A cluster whose connections are encrypted: its members work together, and nobody else joins.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use common::{cluster_of, limits, name, on, worker, worker_options};
use distributed::{Master, MasterOptions, TaskName, Worker, WorkerOptions};
use engine::session::Steps;
use engine::{Graph, Tensor};
use net::{Security, certify};
use std::time::Duration;

/// What the members of a job have, as files of one host.
fn member(job: &str) -> (tempfile::TempDir, Security) {
    let dir = tempfile::tempdir().unwrap();
    certify(dir.path(), job, &["127.0.0.1".into()]).unwrap();
    let file = |name: &str| dir.path().join(name);
    let security = Security::from_files(&file("ca.pem"), &file("127.0.0.1.pem"), &file("127.0.0.1.key")).unwrap();
    (dir, security)
}

fn start(task: u32, security: &Security) -> Worker {
    let options = WorkerOptions { security: Some(security.clone()), ..worker_options() };
    worker(&TaskName::new("worker", task), "127.0.0.1:0", &options)
}

fn options(security: Option<&Security>) -> MasterOptions {
    MasterOptions { security: security.cloned(), patience: Duration::from_millis(300), ..MasterOptions::default() }
}

#[test]
fn members_compute_together_and_strangers_do_not_join() {
    let (_files, security) = member("job");
    let (_others, stranger) = member("job");
    let workers = [start(0, &security), start(1, &security)];
    let graph = Graph::new();
    let (here, there) = (on(&graph, 0), on(&graph, 1));
    let x = here.named_constant("x", Tensor::vector(&[1f32; 50_000]));
    let z = -(-x.with(&there)).with(&here);
    let (fetch, expected) = (name(&graph, z), [Tensor::vector(&[1f32; 50_000])]);
    // Who is to join has the time that it takes.
    let patient = MasterOptions { patience: Duration::from_secs(20), limits: limits(), ..options(Some(&security)) };
    let master = Master::new(cluster_of(&workers), patient);
    let session = master.session(&graph).unwrap();
    assert_eq!(session.run(&[], &[&fetch], &[]).unwrap(), expected);
    for (who, other) in [("another authority", Some(&stranger)), ("nothing", None)] {
        let refused = Master::new(cluster_of(&workers), options(other)).session(&graph).err().map(|e| e.to_string());
        assert!(refused.as_ref().is_some_and(|text| text.contains("/job:worker/task:")), "{who}: {refused:?}");
    }
    // A worker of strangers gets no values, and the step says whose.
    let mixed = [start(0, &security), start(1, &stranger)];
    let refused = Master::new(cluster_of(&mixed), options(Some(&security))).session(&graph).err().unwrap().to_string();
    assert!(refused.contains("/job:worker/task:1") && refused.contains("certificate"), "{refused}");
    assert_eq!(session.run(&[], &[&fetch], &[]).unwrap(), expected);
}
