//! Kernels that wait without a thread: ended from elsewhere, inside of loops, cancelled, timed out, dropped.

use std::sync::Arc;
use std::time::Duration;

use engine::graph::{Graph, GraphError, ShapeError, Value, WhileOptions};
use engine::kernels::{
    ASYNC_KERNEL_TABLES, AsyncKernel, AsyncKernelDef, Completion, KernelContext, KernelError, Registration,
};
use engine::ops::{OpSpec, stateful};
use engine::session::CancelToken;
use engine::{PartialShape, RunOptions, Session, SessionOptions, Tensor};
use parking_lot::{Condvar, Mutex};
use smallvec::smallvec;

fn scalar(c: &mut engine::graph::InferContext<'_>) -> Result<(), ShapeError> {
    c.set(0, PartialShape::scalar());
    Ok(())
}

#[linkme::distributed_slice(engine::ops::OP_TABLES)]
static OPS: &[OpSpec] = &[
    // Gives its input once somebody opens the gate of this name.
    stateful("TestGate", "x: int32 -> y: int32", "gate: string", scalar),
    // Gives its input, at once.
    stateful("TestAtOnce", "x: int32 -> y: int32", "", scalar),
    stateful("TestAbandon", "x: int32 -> y: int32", "", scalar),
];

#[linkme::distributed_slice(ASYNC_KERNEL_TABLES)]
static KERNELS: &[AsyncKernelDef] = &[
    AsyncKernelDef {
        op: "TestGate",
        device: "CPU",
        dtypes: ("", &[]),
        build: |node| Ok(Box::new(Gate(gate(&node.text("gate")?)))),
    },
    AsyncKernelDef { op: "TestAtOnce", device: "CPU", dtypes: ("", &[]), build: |_| Ok(Box::new(AtOnce)) },
    AsyncKernelDef { op: "TestAbandon", device: "CPU", dtypes: ("", &[]), build: |_| Ok(Box::new(Abandon)) },
];

/// Those that wait at a gate.
#[derive(Default)]
struct Waiting {
    list: Mutex<Vec<Option<(Completion, Tensor, Registration)>>>,
    came: Condvar,
}

fn gate(name: &str) -> Arc<Waiting> {
    static GATES: Mutex<Vec<(String, Arc<Waiting>)>> = Mutex::new(Vec::new());
    let mut gates = GATES.lock();
    if let Some((_, gate)) = gates.iter().find(|(n, _)| n == name) {
        return Arc::clone(gate);
    }
    gates.push((name.to_owned(), Arc::default()));
    Arc::clone(&gates.last().unwrap().1)
}

impl Waiting {
    /// Lets through whoever comes next.
    fn open(&self) {
        let mut list = self.list.lock();
        loop {
            if let Some(waiting) = list.iter_mut().find_map(Option::take) {
                drop(list);
                waiting.0.finish(Ok(smallvec![Some(waiting.1)]));
                return;
            }
            self.came.wait(&mut list);
        }
    }

    /// Returns when somebody waits.
    fn until_waiting(&self) {
        let mut list = self.list.lock();
        while list.iter().flatten().next().is_none() {
            self.came.wait(&mut list);
        }
    }
}

struct Gate(Arc<Waiting>);

impl AsyncKernel for Gate {
    fn start(&self, ctx: &mut KernelContext<'_>, done: Completion) {
        let value = match ctx.take(0) {
            Ok(value) => value,
            Err(error) => return done.finish(Err(error)),
        };
        let cancellation = ctx.cancellation();
        let at = {
            let mut list = self.0.list.lock();
            list.push(None);
            list.len() - 1
        };
        let gate = Arc::clone(&self.0);
        let registration = cancellation.register(move || {
            let waiting = gate.list.lock()[at].take();
            if let Some((done, ..)) = waiting {
                done.finish(Err(KernelError::Cancelled));
            }
        });
        self.0.list.lock()[at] = Some((done, value, registration));
        self.0.came.notify_all();
        // The callback may have been called before there was something to take.
        if cancellation.is_cancelled() {
            let waiting = self.0.list.lock()[at].take();
            if let Some((done, ..)) = waiting {
                done.finish(Err(KernelError::Cancelled));
            }
        }
    }
}

struct AtOnce;

impl AsyncKernel for AtOnce {
    fn start(&self, ctx: &mut KernelContext<'_>, done: Completion) {
        done.finish(ctx.take(0).map(|value| smallvec![Some(value)]));
    }
}

struct Abandon;

impl AsyncKernel for Abandon {
    fn start(&self, _: &mut KernelContext<'_>, done: Completion) {
        drop(done);
    }
}

fn int(graph: &Graph, value: i32) -> Value<'_> {
    graph.constant(Tensor::scalar(value))
}

fn session(graph: &Graph, threads: usize) -> Session {
    Session::new(graph, SessionOptions { threads: Some(threads), ..Default::default() }).unwrap()
}

#[test]
fn a_step_goes_on_when_its_kernel_ends() {
    for threads in [1, 2] {
        let graph = Graph::new();
        let name = format!("goes-on-{threads}");
        let x = int(&graph, 7);
        let y = graph.add_node("TestGate").input(x).attr("gate", name.as_str()).value();
        graph.add_node("AddV2").name("sum").input(y).input(x).value();
        let session = session(&graph, threads);
        std::thread::scope(|scope| {
            scope.spawn(|| (0..5).for_each(|_| gate(&name).open()));
            for _ in 0..5 {
                assert_eq!(session.run(&[], &["sum"], &[]).unwrap(), [Tensor::scalar(14)]);
            }
        });
    }
}

#[test]
fn kernels_that_end_at_once_and_that_never_do() {
    let graph = Graph::new();
    let mut x = int(&graph, 1);
    for _ in 0..50 {
        x = x.op("TestAtOnce");
    }
    graph.add_node("Identity").name("y").input(x).value();
    graph.add_node("TestAbandon").name("abandoned").input(x).value();
    let session = session(&graph, 1);
    assert_eq!(session.run(&[], &["y"], &[]).unwrap(), [Tensor::scalar(1)]);
    let error = session.run(&[], &["abandoned"], &[]).unwrap_err().to_string();
    assert_eq!(error, "node abandoned (op TestAbandon): the kernel dropped its completion");
}

#[test]
fn cancelling_wakes_a_step_that_waits() {
    for threads in [1, 2] {
        let graph = Graph::new();
        let name = format!("cancelled-{threads}");
        let x = int(&graph, 7);
        graph.add_node("TestGate").name("y").input(x).attr("gate", name.as_str()).value();
        let session = session(&graph, threads);
        let token = CancelToken::new();
        let options = RunOptions { cancel: Some(&token), ..Default::default() };
        std::thread::scope(|scope| {
            let step = scope.spawn(|| session.run_step(&options, &[], &["y"], &[]));
            gate(&name).until_waiting();
            token.cancel();
            let error = step.join().unwrap().unwrap_err().to_string();
            assert!(error.starts_with("the step was cancelled"), "{error}");
        });
    }
}

#[test]
fn deadlines_and_failures_elsewhere_end_a_wait() {
    let graph = Graph::new();
    let x = int(&graph, 7);
    graph.add_node("TestGate").name("y").input(x).attr("gate", "deadline").value();
    let bad = x.op("TestAbandon").node();
    let session = session(&graph, 2);
    let options = RunOptions { timeout: Some(Duration::from_millis(10)), ..Default::default() };
    let error = session.run_step(&options, &[], &["y"], &[]).unwrap_err().to_string();
    assert!(error.starts_with("the deadline passed"), "{error}");
    let bad = graph.node(bad).unwrap().name.to_string();
    let error = session.run(&[], &["y"], &[&bad]).unwrap_err().to_string();
    assert!(error.contains("dropped its completion"), "the first error: {error}");
}

#[test]
fn kernels_wait_inside_of_loops_and_are_cancelled_there() {
    for threads in [1, 2] {
        let graph = Graph::new();
        let name = format!("loop-{threads}");
        let exits = graph
            .while_loop::<GraphError>(
                &[int(&graph, 0).output()],
                |g, vars| Ok(g.value(vars[0]).less(6.0).output()),
                |g, vars| {
                    let gated = g.add_node("TestGate").input(vars[0]).attr("gate", name.as_str()).value();
                    Ok(vec![(gated.op("TestAtOnce") + 1.0).output()])
                },
                &WhileOptions::default(),
            )
            .unwrap();
        let fetch = graph.node(exits[0].node).unwrap().name.to_string();
        let session = session(&graph, threads);
        let token = CancelToken::new();
        let options = RunOptions { cancel: Some(&token), ..Default::default() };
        std::thread::scope(|scope| {
            scope.spawn(|| (0..6).for_each(|_| gate(&name).open()));
            assert_eq!(session.run(&[], &[&fetch], &[]).unwrap(), [Tensor::scalar(6)]);
            let step = scope.spawn(|| session.run_step(&options, &[], &[&fetch], &[]));
            gate(&name).open();
            gate(&name).until_waiting();
            token.cancel();
            assert!(step.join().unwrap().unwrap_err().to_string().starts_with("the step was cancelled"));
        });
        std::thread::scope(|scope| {
            scope.spawn(|| (0..6).for_each(|_| gate(&name).open()));
            assert_eq!(session.run(&[], &[&fetch], &[]).unwrap(), [Tensor::scalar(6)], "the session stays usable");
        });
    }
}
