//! Clients in other processes: over gRPC, ours and TensorFlow's.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that prints what it skips")]

mod common;

use std::process::Command;
use std::time::Duration;

use common::{Loopback, loopback, on};
use distributed::{ClientSession, DistributedError, MasterOptions, Server};
use engine::compile::placement::PlacementOptions;
use engine::graph::Attr;
use engine::session::{CancelToken, Steps};
use engine::{DType, Graph, RunOptions, Tensor};

fn served(n: usize) -> (Loopback, Server, String) {
    let placement = PlacementOptions { is_soft: true, ..PlacementOptions::default() };
    let cluster = loopback(n, MasterOptions { placement, ..MasterOptions::default() });
    let server = Server::start(cluster.master.clone(), &"127.0.0.1:0".parse().unwrap()).unwrap();
    let address = server.address().to_string();
    (cluster, server, address)
}

fn counter(g: &Graph) {
    let at = on(g, 0);
    let v = at.variable("v", Tensor::vector(&[1f32, 2.0]));
    g.group("init", &[v.init]);
    let x = g.placeholder("x", DType::F32, [None]);
    let far = on(g, 1).add_node("Neg").name("far").input(x).value().output();
    let step = at.add_node("AssignAddVariableOp").name("step").input(v.handle).input(far).attr("dtype", DType::F32);
    step.value();
    at.add_node("ReadVariableOp").name("read").input(v.handle).attr("dtype", DType::F32).value();
    g.check().unwrap();
}

#[test]
fn several_clients_share_what_the_tasks_hold() {
    let (_cluster, server, address) = served(2);
    let g = Graph::new();
    counter(&g);
    let (a, b) = (ClientSession::connect(&address, &g.to_def()), ClientSession::connect(&address, &g.to_def()));
    let (a, b) = (a.unwrap(), b.unwrap());
    assert_eq!(server.n_sessions(), 2);
    let error = a.run(&[], &["read"], &[]).unwrap_err();
    assert!(matches!(error, DistributedError::Master { code: tonic::Code::FailedPrecondition, .. }), "{error}");
    a.run(&[], &[], &["init"]).unwrap();
    let feed = [("x", Tensor::vector(&[10f32, 20.0]))];
    b.run(&feed, &[], &["step"]).unwrap();
    let got = a.run(&feed, &["read", "x", "far:0"], &[]).unwrap();
    assert_eq!(got[0], Tensor::vector(&[-9f32, -18.0]));
    assert_eq!(got[1..], [Tensor::vector(&[10f32, 20.0]), Tensor::vector(&[-10f32, -20.0])]);
    assert_eq!(b.devices().unwrap().len(), 2);
    b.reset(&[]).unwrap();
    assert!(a.run(&[], &["read"], &[]).is_err());
    a.close().unwrap();
    assert_eq!(server.n_sessions(), 1);
    let error = ClientSession::connect("127.0.0.1:9", &g.to_def()).err().unwrap().to_string();
    assert!(error.starts_with("no master at 127.0.0.1:9: "), "{error}");
}

#[test]
fn graphs_grow_by_what_clients_send() {
    let (_cluster, _server, address) = served(2);
    let g = Graph::new();
    counter(&g);
    let s = ClientSession::connect(&address, &g.to_def()).unwrap();
    let before = g.n_nodes();
    on(&g, 1).add_node("Neg").name("twice").input(g.output("far").unwrap()).value();
    let mut more = g.to_def();
    more.node.retain(|node| node.name == "twice");
    let error = s.extend(&more, before + 7).unwrap_err();
    assert!(matches!(error, DistributedError::Master { code: tonic::Code::Aborted, .. }), "{error}");
    assert_eq!(s.extend(&more, before).unwrap(), before + 1);
    let x = Tensor::vector(&[1f32, -2.0]);
    assert_eq!(s.run(&[("x", x.clone())], &["twice"], &[]).unwrap(), [x]);
    let error = s.run(&[], &["nowhere"], &[]).unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
}

#[test]
fn steps_end_with_their_deadline_and_with_who_asked_for_them() {
    let (cluster, _server, address) = served(2);
    let g = Graph::new();
    let at = on(&g, 0);
    let types = || Attr::ListType(vec![DType::F32]);
    let queue = at.add_node("FIFOQueueV2").name("q").attr("component_types", types()).value();
    let take = at.add_node("QueueDequeueV2").name("take").input(queue).attr("component_types", types());
    on(&g, 1).add_node("Neg").name("taken").input(take.value()).value();
    let s = ClientSession::connect(&address, &g.to_def()).unwrap();
    let options = RunOptions { timeout: Some(Duration::from_millis(50)), ..RunOptions::default() };
    let late = s.run_step(&options, &[], &["taken"], &[]).unwrap_err();
    assert!(matches!(late, DistributedError::Master { code: tonic::Code::DeadlineExceeded, .. }), "{late}");
    let token = CancelToken::new();
    std::thread::scope(|scope| {
        let (s, token) = (&s, &token);
        let waiting = scope.spawn(move || {
            let options = RunOptions { cancel: Some(token), ..RunOptions::default() };
            s.run_step(&options, &[], &["taken"], &[]).unwrap_err()
        });
        common::until("the step runs", || cluster.workers.iter().all(|w| w.n_steps() > 0));
        token.cancel();
        assert!(matches!(waiting.join().unwrap(), DistributedError::Cancelled));
    });
    // At the workers, too: the next step finds nothing left of it.
    let x = Graph::new();
    on(&x, 1).named_constant("x", Tensor::scalar(1f32));
    common::until("the step is over", || {
        let other = ClientSession::connect(&address, &x.to_def()).unwrap();
        other.run(&[], &["x"], &[]).unwrap();
        cluster.workers[1].n_steps() == 0
    });
}

/// `tests/scripts/tf_client.py` has TensorFlow train, loop and fail on this cluster, and compares with its own session.
#[test]
fn tensorflow_clients_run_their_graphs_here() {
    let Some(python) = test_support::variable("STEPSCOPE_TENSORFLOW", "TensorFlow as a client") else { return };
    let (_cluster, server, address) = served(2);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts/tf_client.py");
    let out = Command::new(python).arg(script).arg(&address).output().unwrap();
    let (printed, problems) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{printed}\n{problems}");
    assert!(printed.contains("all equal"), "{printed}");
    drop(server);
}
