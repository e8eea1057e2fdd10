//! Tasks that are lost end the steps that they take part in, and nothing else; what comes late is refused.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{cluster_of, limits, loopback, on, worker, worker_options};
use distributed::{DistributedError, Master, MasterOptions, ResetWatcher, TaskName, WorkerOptions};
use engine::device::Device;
use engine::graph::Attr;
use engine::resources::Variable;
use engine::session::Steps;
use engine::{DType, Graph, Tensor};
use net::{Connection, Handler, Identity, Incoming, Limits, NetError};

/// A value that never comes, in task 0, and what waits for it in task 1 and 2.
fn waiting(g: &Graph) {
    let at = on(g, 0);
    let queue = at.add_node("FIFOQueueV2").name("q").attr("component_types", Attr::ListType(vec![DType::F32]));
    let queue = queue.value();
    let take = at.add_node("QueueDequeueV2").name("take").input(queue);
    let taken = take.attr("component_types", Attr::ListType(vec![DType::F32])).value();
    let far = on(g, 1).add_node("Neg").name("far").input(taken).value().output();
    on(g, 2).add_node("Neg").name("farther").input(far).value();
    let x = on(g, 1).named_constant("x", Tensor::scalar(1f32)).output();
    on(g, 2).add_node("Neg").name("fine").input(x).value();
}

#[test]
fn a_lost_task_ends_the_step_everywhere_and_is_named() {
    for lost in 0..3 {
        let mut cluster = loopback(3, MasterOptions::default());
        let g = Graph::new();
        waiting(&g);
        let s = cluster.master.session(&g).unwrap();
        s.run(&[], &["fine"], &[]).unwrap();
        let error = std::thread::scope(|scope| {
            let run = scope.spawn(|| s.run(&[], &["farther"], &[]).unwrap_err());
            common::until("the step runs", || cluster.workers.iter().all(|w| w.n_steps() == 1));
            let gone = cluster.workers.remove(lost);
            let (task, address) = (gone.task().clone(), gone.address().clone());
            drop(gone);
            let error = run.join().unwrap();
            cluster.workers.push(worker(&task, &address.to_string(), &worker_options()));
            error
        });
        assert!(error.is_lost(), "{error}");
        assert!(error.to_string().contains(&format!("/job:worker/task:{lost} was lost")), "{error}");
        assert!(error.to_string().contains("open a new session"), "{error}");
        // The old session stays unusable: variables are gone. A new one reaches the task's next life.
        assert!(s.run(&[], &["fine"], &[]).unwrap_err().is_lost());
        let again = cluster.master.session(&g).unwrap();
        assert_eq!(again.run(&[], &["fine"], &[]).unwrap(), [Tensor::scalar(-1f32)]);
        common::until("the step is over in all tasks", || cluster.workers.iter().all(|w| w.n_steps() <= 1));
    }
}

#[test]
fn a_master_that_goes_takes_its_steps_along() {
    let cluster = loopback(3, MasterOptions::default());
    let g = Graph::new();
    waiting(&g);
    let second = Master::new(cluster_of(&cluster.workers), MasterOptions::default());
    let s = second.session(&g).unwrap();
    std::thread::scope(|scope| {
        let short = engine::RunOptions { timeout: Some(Duration::from_millis(300)), ..Default::default() };
        scope.spawn(move || s.run_step(&short, &[], &["farther"], &[]).unwrap_err());
        common::until("the step runs", || cluster.workers.iter().all(|w| w.n_steps() == 1));
    });
    drop(second);
    common::until("no step is left", || cluster.workers.iter().all(|w| w.n_steps() == 0));
    // Others go on.
    let s = cluster.master.session(&g).unwrap();
    assert_eq!(s.run(&[], &["fine"], &[]).unwrap(), [Tensor::scalar(-1f32)]);
}

/// What happens around a reset, in order.
struct ResetLog(Arc<Mutex<Vec<(&'static str, usize)>>>, Arc<Device>);

impl ResetLog {
    fn record(&self, what: &'static str) {
        let is_there = self.1.resources().find::<Variable>(&"localhost".into(), &"v".into()).unwrap().is_some();
        self.0.lock().unwrap().push((what, usize::from(is_there)));
    }
}

impl ResetWatcher for ResetLog {
    fn before_reset(&self) {
        self.record("before");
    }

    fn after_reset(&self) {
        self.record("after");
    }
}

/// A master that was cut off holds steps open; the next one takes the tasks for itself, and nothing of the first one reaches what it makes.
#[test]
fn a_reset_ends_the_steps_of_other_masters_first() {
    let cluster = loopback(3, MasterOptions::default());
    let log = Arc::new(Mutex::new(Vec::new()));
    let watcher = ResetLog(Arc::clone(&log), Arc::clone(&cluster.workers[0].devices()[0]));
    cluster.workers[0].watch_resets(Arc::new(watcher));
    let g = Graph::new();
    waiting(&g);
    let v = on(&g, 0).variable("v", Tensor::scalar(1f32));
    let value = common::name(&g, v.value);
    let read = |s: &distributed::Session| s.run(&[], &[&value], &[]);
    let init = g.node(v.init).unwrap().name.to_string();
    let old = cluster.master.session(&g).unwrap();
    old.run(&[], &[], &[&init]).unwrap();
    assert_eq!(read(&old).unwrap(), [Tensor::scalar(1f32)]);
    let next = Master::new(cluster_of(&cluster.workers), MasterOptions::default());
    let error = std::thread::scope(|scope| {
        let run = scope.spawn(|| old.run(&[], &["farther"], &[]).unwrap_err());
        common::until("the step runs", || cluster.workers.iter().all(|w| w.n_steps() == 1));
        next.reset(&["localhost"]).unwrap();
        run.join().unwrap()
    });
    assert!(error.to_string().contains("variables were dropped"), "{error}");
    assert_eq!(*log.lock().unwrap(), [("before", 1), ("after", 0)]);
    // What the old one prepared is void; it sees that it is.
    let error = read(&old).unwrap_err().to_string();
    assert!(error.contains("is not registered"), "{error}");
    let new = next.session(&g).unwrap();
    assert!(read(&new).unwrap_err().to_string().contains("is not initialised"));
    new.run(&[], &[], &[&init]).unwrap();
    assert_eq!(read(&new).unwrap(), [Tensor::scalar(1f32)]);
}

#[test]
fn a_worker_that_is_not_there_is_reported_in_time() {
    let cluster = loopback(1, MasterOptions::default());
    let mut spec = cluster_of(&cluster.workers);
    let address = "127.0.0.1:9".parse().unwrap();
    spec.tasks.insert(TaskName::new("worker", 1), address);
    let patience = Duration::from_millis(200);
    let master = Master::new(spec, MasterOptions { patience, ..MasterOptions::default() });
    let error = master.session(&Graph::new()).err().unwrap();
    assert!(error.is_lost(), "{error}");
    assert!(error.to_string().starts_with("/job:worker/task:1 at 127.0.0.1:9 cannot be reached: "), "{error}");
}

#[test]
fn another_job_and_another_task_are_not_let_in() {
    let cluster = loopback(1, MasterOptions::default());
    let mut spec = cluster_of(&cluster.workers);
    spec.id = "another".into();
    let error = Master::new(spec, MasterOptions::default()).session(&Graph::new()).err().unwrap().to_string();
    assert!(error.contains("refused: another job"), "{error}");
    let mut spec = cluster_of(&cluster.workers);
    let address = spec.tasks[&TaskName::new("worker", 0)].clone();
    spec.tasks = [(TaskName::new("ps", 0), address)].into();
    let error = Master::new(spec, MasterOptions::default()).session(&Graph::new()).err().unwrap().to_string();
    assert!(error.contains("this is /job:worker/task:0, not /job:ps/task:0"), "{error}");
}

struct Quiet;

impl Handler for Quiet {
    fn frame(&mut self, _: Incoming<'_>) -> Result<(), NetError> {
        Ok(())
    }

    fn on_end(&mut self, _: NetError) {}
}

/// What a task of the job sends that is no sense, or that it may not send, costs it its connection and nobody else anything.
#[test]
fn what_may_not_be_sent_ends_the_connection() {
    let cluster = loopback(2, MasterOptions::default());
    let g = Graph::new();
    let x = on(&g, 0).named_constant("x", Tensor::vector(&[1f32; 100])).output();
    on(&g, 1).add_node("Neg").name("y").input(x).value();
    let s = cluster.master.session(&g).unwrap();
    let to = cluster.workers[0].address();
    for (sender, n) in [("/job:worker/task:1", 0u8), ("master", 1), ("somebody", 2)] {
        let own = Identity { job_id: "test".into(), name: sender.into(), incarnation: u64::from(n) };
        for kind in 0..255u8 {
            let channel = Connection::open(to, &own, "", &limits(), None).unwrap().start(|_| Quiet).unwrap();
            let head = vec![kind.wrapping_mul(37); usize::from(kind) % 50];
            let body: net::Body = Box::new(vec![kind; 77]);
            channel.outbox().send(net::Frame { kind, head, body: vec![body] }).unwrap();
            if kind % 16 == 0 {
                assert_eq!(s.run(&[], &["y"], &[]).unwrap(), [Tensor::vector(&[-1f32; 100])], "{sender} {kind}");
            }
        }
    }
}

#[test]
fn a_tensor_over_the_limit_fails_the_step_and_loses_nobody() {
    let limits = Limits { body: 10_000, ..limits() };
    let start = |task| {
        let options = WorkerOptions { limits, ..worker_options() };
        worker(&TaskName::new("worker", task), "127.0.0.1:0", &options)
    };
    let workers = [start(0), start(1)];
    let master = Master::new(cluster_of(&workers), MasterOptions::default());
    let g = Graph::new();
    let n = g.placeholder("n", DType::I32, [Some(1)]);
    let zero = on(&g, 0).named_constant("zero", 1f32).output();
    let x = on(&g, 0).add_node("Fill").name("x").input(n).input(zero).value().output();
    on(&g, 1).add_node("Neg").name("y").input(x).value();
    let s = master.session(&g).unwrap();
    let run = |n: i32| s.run(&[("n", Tensor::vector(&[n]))], &["y"], &[]);
    assert_eq!(run(100).unwrap()[0].len(), 100);
    let error = run(10_000).unwrap_err();
    assert!(matches!(error, DistributedError::Failed { .. }), "{error}");
    assert!(error.to_string().contains("a tensor of 40000 bytes is over the limit of 10000"), "{error}");
    assert_eq!(run(100).unwrap()[0].len(), 100);
}
