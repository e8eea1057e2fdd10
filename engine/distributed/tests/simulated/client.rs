//! Who trains: counts in a variable of each task, and checks after each step that all values are of that step and of no other.

use std::time::Duration;

use distributed::{Cluster, DistributedError, Master, MasterOptions, Session};
use engine::session::Steps;
use engine::{DType, Graph, RunOptions, Tensor};
use threads::simulation;

use super::faults::report;
use super::{Shared, Takeover};

/// The shape of all values.
const SCALAR: [usize; 0] = [];
/// How long a step may take. What is lost is noticed long before.
const STEP: Duration = Duration::from_secs(15);
/// What the master may take beyond that.
const MORE: Duration = Duration::from_secs(4);

/// A value goes from task to task, each adds what was fed; then each counts the step, the even ones as soon as they can, the odd
/// ones when the value has been everywhere.
fn graph(n: usize) -> (Graph, Vec<String>, Vec<String>) {
    let g = Graph::new();
    let on = |task: usize| g.with_device(&format!("/job:worker/task:{task}"));
    let name = |output: engine::graph::Output| format!("{}:{}", g.node(output.node).unwrap().name, output.port);
    let x = g.placeholder("x", DType::F32, SCALAR);
    let saved = g.placeholder("saved", DType::F32, SCALAR);
    let one = g.named_constant("one", 1f32);
    let mut sum = on(0).add_node("Neg").name("first").input(x).value().output();
    for task in 0..n {
        let at = on(task);
        sum = at.add_node("Sub").name(&format!("sum{task}")).input(sum).input(x).value().output();
    }
    let (mut fetches, mut inits) = (vec![name(sum)], Vec::new());
    for task in 0..n {
        let at = on(task);
        let v = at.variable_from(&format!("v{task}"), DType::F32, SCALAR, |g| saved.with(g).identity());
        let count = at.add_node("AssignAddVariableOp").name(&format!("count{task}")).input(v.handle).input(one);
        let count = if task % 2 == 1 { count.after(&[sum.node]) } else { count };
        let count = count.attr("dtype", DType::F32).value().node();
        let read = at.add_node("ReadVariableOp").name(&format!("read{task}")).input(v.handle);
        fetches.push(name(read.attr("dtype", DType::F32).after(&[count]).value().output()));
        inits.push(g.node(v.init).unwrap().name.to_string());
    }
    (g, fetches, inits)
}

/// Trains until the cluster is calm, through losses, unless somebody else takes the cluster.
pub fn train(cluster: &Cluster, shared: &Shared) {
    loop {
        let mut own = None;
        match attempt(cluster, shared, &mut own) {
            Ok(()) => return,
            Err(error) => {
                report(|| format!("client: {error}"));
                check(&error);
            }
        }
        {
            let mut state = shared.state.lock();
            state.n_restarts += 1;
            if own.is_some_and(|own| state.is_void(own)) {
                return;
            }
        }
        threads::sleep(Duration::from_millis(50));
    }
}

/// Only losses are reported, each with the process that it is of, and what another client's takeover causes.
fn check(error: &DistributedError) {
    let text = error.to_string();
    let is_named = text.contains("/job:worker/task:") || text.contains("master");
    let is_other = ["variables were dropped meanwhile", "is not registered", "another client took"]
        .iter()
        .any(|part| text.contains(part));
    assert!((error.is_lost() && is_named) || is_other, "{text}");
}

fn attempt(cluster: &Cluster, shared: &Shared, own: &mut Option<Takeover>) -> Result<(), DistributedError> {
    let options = MasterOptions {
        patience: Duration::from_secs(2),
        registration: Duration::from_secs(40),
        ..MasterOptions::default()
    };
    let n = cluster.tasks.len();
    let (g, fetches, inits) = graph(n);
    let master = Master::new(cluster.clone(), options);
    let begin = shared.state.lock().tick();
    master.reset(&["localhost"])?;
    let (takeover, saved) = {
        let mut state = shared.state.lock();
        (state.take(begin), state.saved)
    };
    *own = Some(takeover);
    let session = master.session(&g)?;
    let inits: Vec<&str> = inits.iter().map(String::as_str).collect();
    let timeout = RunOptions { timeout: Some(STEP), ..RunOptions::default() };
    session.run_step(&timeout, &[("saved", Tensor::scalar(saved as f32))], &[], &inits)?;
    let mut n_calm = 0;
    for step in saved + 1.. {
        one_step(&session, shared, takeover, &fetches, step, n)?;
        let mut state = shared.state.lock();
        if !state.is_void(takeover) && step % 3 == 0 {
            state.saved = step;
        }
        n_calm += usize::from(state.is_calm);
        if n_calm > 5 {
            state.is_done = true;
            return Ok(());
        }
        drop(state);
        if let Some(seat) = simulation::seat() {
            threads::sleep(Duration::from_micros(seat.simulation().random(60_000)));
        }
    }
    Ok(())
}

fn one_step(
    session: &Session,
    shared: &Shared,
    own: Takeover,
    fetches: &[String],
    step: u64,
    n: usize,
) -> Result<(), DistributedError> {
    let (fed, was_void) = {
        let mut state = shared.state.lock();
        state.fed += 1;
        (state.fed as f32, state.is_void(own))
    };
    let fetches: Vec<&str> = fetches.iter().map(String::as_str).collect();
    let begin = threads::now();
    let timeout = RunOptions { timeout: Some(STEP), ..RunOptions::default() };
    let result = session.run_step(&timeout, &[("x", Tensor::scalar(fed))], &fetches, &[]);
    let took = threads::since(begin);
    assert!(took < STEP + MORE, "a step ended after {took:?}: {result:?}");
    report(|| format!("step {step} took {took:?}: {result:?}"));
    let values = result.inspect_err(|error| {
        let mut state = shared.state.lock();
        if error.is_lost() {
            state.reported_after = state.reported_after.max(took);
            state.reported_at.get_or_insert(threads::now());
        }
    })?;
    assert!(!was_void, "step {step} ran after another client took the cluster");
    let values: Vec<f32> = values.iter().map(|value| value.item::<f32>().unwrap()).collect();
    assert_eq!(values[0], -fed * (n + 1) as f32, "the value of another step");
    assert_eq!(values[1..], vec![step as f32; n], "a step was lost, or counted twice");
    if let Some(seat) = simulation::seat() {
        seat.simulation().note(step);
    }
    shared.state.lock().n_steps += 1;
    Ok(())
}
