//! Graphs on the tasks of a cluster give what they give in one process.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use common::{Loopback, loopback, name, on, with_devices};
use distributed::{DistributedError, MasterOptions};
use engine::compile::partition::TransferOptions;
use engine::compile::placement::PlacementOptions;
use engine::dtype::Complex32;
use engine::graph::{Attr, Graph, Output};
use engine::models::MlpOptions;
use engine::optimizer::Optimizer;
use engine::session::{CancelToken, OnStall, Steps};
use engine::training::mlp;
use engine::training::{InputMode, Parallelism, TrainingOptions, build, tower_queue};
use engine::{DType, RunOptions, Session, SessionOptions, Tensor};
use proptest::prelude::*;

fn local(g: &Graph) -> Session {
    let placement = PlacementOptions { is_soft: true, ..PlacementOptions::default() };
    Session::new(g, SessionOptions { placement, threads: Some(1), ..SessionOptions::default() }).unwrap()
}

/// Where whatever does not fit gives way.
fn soft() -> MasterOptions {
    MasterOptions {
        placement: PlacementOptions { is_soft: true, ..PlacementOptions::default() },
        ..MasterOptions::default()
    }
}

fn vector(g: &Graph, name: &str, n: usize) -> Output {
    let values: Vec<f32> = (0..n).map(|i| i as f32 / 7.0).collect();
    g.named_constant(name, Tensor::from_vec([n], values).unwrap()).output()
}

#[test]
fn values_of_all_types_cross_between_tasks() {
    let cluster = loopback(3, MasterOptions::default());
    let values = [
        Tensor::scalar(3.5f32),
        Tensor::vector(&[1i64 << 40, -3]),
        Tensor::from_vec([2, 0, 3], Vec::<f64>::new()).unwrap(),
        Tensor::vector(&[true, false, true]),
        Tensor::scalar(true),
        Tensor::vector(&[Complex32::new(1.0, -2.0)]),
        Tensor::from_strings([2, 2], vec![b"a".to_vec(), vec![], vec![0xff, 0], vec![b'x'; 300_000]]).unwrap(),
        Tensor::string("one"),
        Tensor::from_vec([600, 700], (0..420_000).map(|i| i as f32).collect()).unwrap(),
        Tensor::vector(&[engine::dtype::bf16::from_f32(1.5)]),
    ];
    for (i, value) in values.iter().enumerate() {
        let g = Graph::new();
        let mut at = g.placeholder("x", value.dtype(), engine::PartialShape::unknown()).output();
        for task in [1, 2, 0] {
            at = on(&g, task).add_node("Identity").name(&format!("hop{task}")).input(at).value().output();
        }
        let s = cluster.master.session(&g).unwrap();
        for _ in 0..3 {
            // The feed itself may be fetched, too.
            let got = s.run(&[("x", value.clone())], &["hop0", "x", "hop1"], &[]).unwrap();
            assert!(got.iter().all(|got| got == value), "value {i}: {got:?}");
        }
    }
    common::until("all steps are over", || cluster.workers.iter().all(|w| w.n_steps() == 0));
}

#[test]
fn devices_have_the_names_of_their_tasks() {
    let cluster = with_devices(2, 2, MasterOptions::default());
    let names = |task| [0, 1].map(|i| format!("/job:worker/replica:0/task:{task}/device:CPU:{i}"));
    assert_eq!(cluster.master.devices().unwrap(), [names(0), names(1)].concat());
    let g = Graph::new();
    let x = vector(&g.with_device("/job:worker/task:1/cpu:1"), "x", 5);
    g.with_device("/job:worker/task:1/cpu:0").add_node("Neg").name("y").input(x).value();
    let s = cluster.master.session(&g).unwrap();
    assert_eq!(s.run(&[], &["y"], &[]).unwrap(), local(&g).run(&[], &["y"], &[]).unwrap());
    let p = g.placeholder("p", DType::F32, [None]);
    g.with_device("/job:worker/task:2").add_node("Neg").name("z").input(p).value();
    let error = s.run(&[("p", Tensor::vector(&[1f32]))], &["z"], &[]).unwrap_err().to_string();
    assert!(error.contains("node z (op Neg) asks for /job:worker/task:2"), "{error}");
}

#[test]
fn variables_live_in_their_tasks_and_outlive_sessions() {
    let cluster = loopback(2, MasterOptions::default());
    let g = Graph::new();
    let v = on(&g, 0).variable("v", Tensor::vector(&[1f32, 2.0]));
    let w = on(&g, 1).variable("w", Tensor::vector(&[10f32, 20.0]));
    g.group("init", &[v.init, w.init]);
    let sum = on(&g, 1).add_node("AddV2").name("sum").input(v.value).input(w.value).value().output();
    let at = on(&g, 0);
    let assign = at.add_node("AssignAddVariableOp").name("step").input(v.handle).input(sum);
    assign.attr("dtype", DType::F32).value();
    let s = cluster.master.session(&g).unwrap();
    let error = s.run(&[], &["sum"], &[]).unwrap_err();
    assert!(error.to_string().contains("is not initialised"), "{error}");
    s.run(&[], &[], &["init"]).unwrap();
    s.run(&[], &[], &["step"]).unwrap();
    let expected = [Tensor::vector(&[22f32, 44.0])];
    assert_eq!(s.run(&[], &["sum"], &[]).unwrap(), expected);
    s.close();
    assert!(matches!(s.run(&[], &["sum"], &[]), Err(DistributedError::Closed)));
    let second = cluster.master.session(&g).unwrap();
    assert_eq!(second.run(&[], &["sum"], &[]).unwrap(), expected, "they outlive sessions");
    cluster.master.reset(&["localhost"]).unwrap();
    assert!(second.run(&[], &["sum"], &[]).is_err(), "but not a reset");
    second.run(&[], &[], &["init"]).unwrap();
    second.run(&[], &["sum"], &[]).unwrap();
}

#[test]
fn kernels_with_state_are_shared_by_the_signatures_of_a_session() {
    let cluster = loopback(2, MasterOptions::default());
    let g = Graph::new();
    let shape = g.named_constant("shape", Tensor::vector(&[4i32]));
    let at = on(&g, 1);
    let random = at.add_node("RandomUniform").name("r").input(shape).attr("dtype", DType::F32);
    let r = random.attr("seed", 7i64).attr("seed2", 8i64).value();
    on(&g, 0).add_node("Neg").name("n").input(r).value();
    let (far, near) = (cluster.master.session(&g).unwrap(), local(&g));
    for fetches in [&["r"][..], &["n"], &["r", "n"], &["r"]] {
        assert_eq!(far.run(&[], fetches, &[]).unwrap(), near.run(&[], fetches, &[]).unwrap(), "{fetches:?}");
    }
}

/// A random graph of element-wise ops: each node takes two earlier ones, on a task by chance (or wherever).
#[derive(Debug, Clone)]
struct Recipe(Vec<(u8, usize, usize, Option<usize>)>);

impl Recipe {
    fn build(&self, g: &Graph) -> Vec<String> {
        let mut made = vec![g.placeholder("x", DType::F32, [Some(17)]).output(), vector(g, "c", 17)];
        for (i, (op, a, b, task)) in self.0.iter().enumerate() {
            let (a, b) = (made[a % made.len()], made[b % made.len()]);
            let handle = task.map_or_else(|| g.clone(), |task| on(g, task));
            let op = ["AddV2", "Sub", "Maximum", "Mul", "Neg", "Tanh"][*op as usize % 6];
            let node = handle.add_node(op).name(&format!("n{i}")).input(a);
            // Every third waits for the first besides.
            let node = if i % 3 == 2 { node.after(&[made[2].node]) } else { node };
            let node = if matches!(op, "Neg" | "Tanh") { node } else { node.input(b) };
            made.push(node.value().output());
        }
        (0..self.0.len()).map(|i| format!("n{i}")).collect()
    }
}

fn any_recipe() -> impl Strategy<Value = Recipe> {
    let node = (any::<u8>(), any::<usize>(), any::<usize>(), proptest::option::of(0usize..3));
    proptest::collection::vec(node, 1..30).prop_map(Recipe)
}

static SHARED: std::sync::LazyLock<Loopback> =
    std::sync::LazyLock::new(|| with_devices(3, 2, MasterOptions::default()));

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn random_graphs_give_the_same_in_one_process_and_in_three_tasks(recipe in any_recipe(), picked in any::<u32>()) {
        let g = Graph::new();
        let names = recipe.build(&g);
        let picked = |i: usize| picked >> (i % 32) & 1 == 1 || i + 1 == names.len();
        let fetches: Vec<&str> = names.iter().enumerate().filter(|(i, _)| picked(*i)).map(|(_, n)| n.as_str()).collect();
        let feed = [("x", Tensor::from_vec([17], (0..17).map(|i| i as f32 / 3.0).collect()).unwrap())];
        let used = recipe.0.len();
        let expected = local(&g).run(&feed, &fetches, &names[used - 1..].iter().map(String::as_str).collect::<Vec<_>>());
        let s = SHARED.master.session(&g).unwrap();
        let expected = expected.unwrap();
        for _ in 0..2 {
            prop_assert_eq!(&s.run(&feed, &fetches, &[]).unwrap(), &expected);
        }
    }
}

#[test]
fn errors_name_the_task_and_the_node_and_end_the_step_everywhere() {
    let cluster = loopback(3, MasterOptions::default());
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [None]);
    let two = g.named_constant("two", Tensor::vector(&[2i32]));
    let bad = on(&g, 1).add_node("Reshape").name("bad").input(x).input(two).value().output();
    let far = on(&g, 2).add_node("Neg").name("far").input(bad).value().output();
    on(&g, 0).add_node("Neg").name("farther").input(far).value();
    let s = cluster.master.session(&g).unwrap();
    for _ in 0..10 {
        let error = s.run(&[("x", Tensor::vector(&[1f32, 2.0, 3.0]))], &["farther"], &[]).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("/job:worker/task:1: node bad (op Reshape"), "{text}");
        assert!(!error.is_lost() && !error.is_end_of_data());
        assert!(s.run(&[("x", Tensor::vector(&[1f32, 2.0]))], &["farther"], &[]).is_ok());
    }
    let error = s.run(&[("x", Tensor::scalar(1i32))], &["far"], &[]).unwrap_err().to_string();
    assert!(error.contains("feed x:0: expected float"), "{error}");
    assert!(s.run(&[], &["nowhere"], &[]).unwrap_err().to_string().contains("nowhere"));
    // What failed is forgotten when a later step runs.
    s.run(&[("x", Tensor::vector(&[1f32, 2.0]))], &["farther"], &[]).unwrap();
    common::until("failed steps are forgotten", || cluster.workers.iter().all(|w| w.n_steps() == 0));
}

/// A queue in task 0, and what waits for it in task 1.
fn queue(g: &Graph) {
    let at = on(g, 0);
    let queue = at.add_node("FIFOQueueV2").name("q").attr("component_types", Attr::ListType(vec![DType::F32]));
    let queue = queue.attr("capacity", 4i64).value();
    let x = g.placeholder("x", DType::F32, engine::PartialShape::scalar());
    at.add_node("QueueEnqueueV2").name("put").input(queue).inputs(&[x]).value();
    at.add_node("QueueCloseV2").name("close").input(queue).value();
    let take = at.add_node("QueueDequeueV2").name("take").input(queue);
    let taken = take.attr("component_types", Attr::ListType(vec![DType::F32])).value();
    on(g, 1).add_node("Neg").name("taken").input(taken).value();
}

#[test]
fn steps_wait_for_each_other_and_end_on_request() {
    let cluster = loopback(2, MasterOptions::default());
    let g = Graph::new();
    queue(&g);
    let s = cluster.master.session(&g).unwrap();
    std::thread::scope(|scope| {
        let taking = scope.spawn(|| s.run(&[], &["taken"], &[]).unwrap());
        std::thread::sleep(Duration::from_millis(20));
        s.run(&[("x", Tensor::scalar(3f32))], &[], &["put"]).unwrap();
        assert_eq!(taking.join().unwrap(), [Tensor::scalar(-3f32)]);
    });
    let options = RunOptions { timeout: Some(Duration::from_millis(50)), ..RunOptions::default() };
    let late = s.run_step(&options, &[], &["taken"], &[]).unwrap_err();
    assert!(matches!(late, DistributedError::DeadlineExceeded(_)), "{late}");
    let token = CancelToken::new();
    std::thread::scope(|scope| {
        let options = RunOptions { cancel: Some(&token), ..RunOptions::default() };
        let s = &s;
        let taking = scope.spawn(move || s.run_step(&options, &[], &["taken"], &[]).unwrap_err());
        std::thread::sleep(Duration::from_millis(20));
        token.cancel();
        assert!(matches!(taking.join().unwrap(), DistributedError::Cancelled));
    });
    s.run(&[("x", Tensor::scalar(4f32))], &[], &["put"]).unwrap();
    assert_eq!(s.run(&[], &["taken"], &[]).unwrap(), [Tensor::scalar(-4f32)], "nothing was taken by those that ended");
    s.run(&[], &[], &["close"]).unwrap();
    assert!(s.run(&[], &["taken"], &[]).unwrap_err().is_end_of_data());
}

#[test]
fn a_step_that_waits_says_for_what() {
    let cluster = loopback(2, MasterOptions::default());
    let g = Graph::new();
    queue(&g);
    let s = cluster.master.session(&g).unwrap();
    let (token, reported) = (CancelToken::new(), Mutex::new(BTreeSet::new()));
    let report = |waiting: &[String]| {
        let mut reported = reported.lock().unwrap();
        reported.extend(waiting.iter().cloned());
        if reported.len() >= 2 {
            token.cancel();
        }
    };
    let on_stall = Some(OnStall { after: Duration::from_secs(1), report: &report });
    let options = RunOptions { cancel: Some(&token), on_stall, ..RunOptions::default() };
    let ended = s.run_step(&options, &[], &["taken"], &[]).unwrap_err();
    assert!(matches!(ended, DistributedError::Cancelled), "{ended}");
    let reported: Vec<String> = reported.into_inner().unwrap().into_iter().collect();
    assert_eq!(reported[0], "/job:worker/task:0: node take (QueueDequeueV2) at FIFOQueue q");
    let (task, value) = reported[1].split_once(": value ").unwrap();
    assert_eq!(task, "/job:worker/task:1");
    assert!(value.contains("take:0"), "{value}");
}

#[test]
fn concurrent_steps_do_not_mix_their_values() {
    let cluster = loopback(3, MasterOptions::default());
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Some(64)]);
    let mut last = x.output();
    for i in 0..12 {
        last = on(&g, i % 3).add_node("AddV2").name(&format!("n{i}")).input(last).input(x).value().output();
    }
    let s = cluster.master.session(&g).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let s = &s;
            scope.spawn(move || {
                let step = s.prepare(&["x"], &["n11"], &[]).unwrap();
                for i in 0..25 {
                    let feed = (thread * 1000 + i) as f32;
                    let got = step.run(&[Tensor::from_vec([64], vec![feed; 64]).unwrap()]).unwrap();
                    assert_eq!(got[0].slice::<f32>().unwrap(), &[feed * 13.0; 64]);
                }
            });
        }
    });
}

#[test]
fn extending_the_graph_keeps_what_runs() {
    let cluster = loopback(2, MasterOptions::default());
    let g = Graph::new();
    vector(&on(&g, 0), "x", 3);
    let s = cluster.master.session(&g).unwrap();
    let before = s.run(&[], &["x"], &[]).unwrap();
    let more = Graph::new();
    more.import(&g.to_def(), "").unwrap();
    on(&more, 1).add_node("Neg").name("y").input(more.output("x").unwrap()).value();
    let mut def = more.to_def();
    def.node.retain(|node| node.name == "y");
    assert!(s.extend(&def, Some(99)).is_err());
    assert_eq!(s.extend(&def, Some(1)).unwrap(), 2);
    assert_eq!(s.run(&[], &["x"], &[]).unwrap(), before);
    assert_eq!(s.run(&[], &["y"], &[]).unwrap(), local(&more).run(&[], &["y"], &[]).unwrap());
}

#[test]
fn lossy_transfers_drop_the_lower_half() {
    let transfers = TransferOptions { is_lossy: true, ..TransferOptions::default() };
    let cluster = loopback(2, MasterOptions { transfers, ..MasterOptions::default() });
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [None]);
    let a = on(&g, 0).add_node("Neg").name("a").input(x).value().output();
    on(&g, 1).add_node("Neg").name("b").input(a).value();
    let values: Vec<f32> = (1..500).map(|i| (i as f32).sin() * 1e3).collect();
    let got = cluster.master.session(&g).unwrap().run(&[("x", Tensor::vector(&values))], &["b"], &[]).unwrap();
    let shortened: Vec<f32> = values.iter().map(|v| f32::from_bits(v.to_bits() & 0xffff_0000)).collect();
    assert_eq!(got[0].slice::<f32>().unwrap(), shortened);
}

#[test]
fn sparse_gradients_cross_as_slices() {
    let cluster = loopback(2, MasterOptions::default());
    let g = Graph::new();
    let table = Tensor::from_vec([1000, 8], (0..8000).map(|i| (i % 97) as f32 / 97.0).collect()).unwrap();
    let v = on(&g, 0).variable("table", table);
    let words = g.placeholder("words", DType::I32, [None]);
    let far = on(&g, 1);
    let rows = far.add_node("ResourceGather").name("rows").input(v.handle).input(words).attr("dtype", DType::F32);
    // The handle means something where the variable is.
    let rows = rows.device("/job:worker/task:0").value();
    let loss = far.add_node("Mul").name("square").input(rows).input(rows).value().sum_all().output();
    let update = Optimizer::Momentum { momentum: 0.0 };
    let grads = engine::gradients::gradients(&far, &[loss], &[v.value], &[]).unwrap();
    let rate = g.named_constant("rate", 0.1f32);
    let mut slots = engine::optimizer::Slots::default();
    let applied = update.apply(&on(&g, 0), &[v], &grads, rate, &mut slots).unwrap();
    let mut init = vec![v.init];
    init.extend(applied.init);
    g.group("init", &init);
    let (step, loss, value) = (g.node(applied.op).unwrap().name.to_string(), name(&g, loss), name(&g, v.value));
    let feed = [("words", Tensor::vector(&[3i32, 500, 3, 999]))];
    let (s, l) = (cluster.master.session(&g).unwrap(), local(&g));
    s.run(&[], &[], &["init"]).unwrap();
    l.run(&[], &[], &["init"]).unwrap();
    for _ in 0..3 {
        assert_eq!(s.run(&feed, &[&loss], &[&step]).unwrap(), l.run(&feed, &[&loss], &[&step]).unwrap());
    }
    assert_eq!(s.run(&[], &[&value], &[]).unwrap(), l.run(&[], &[&value], &[]).unwrap());
}

type Run<'a> = &'a mut dyn FnMut(&[(&str, Tensor)], &[&str], &[&str]) -> Vec<Tensor>;

fn losses(run: Run<'_>, m: [&str; 5]) -> Vec<f32> {
    let data = engine::data::digits();
    run(&[], &[], &[m[3]]);
    let mut batches = engine::data::Batches::new(data.train_y.len(), 32, 7);
    let n = data.train_x.dims()[1];
    (0..8)
        .map(|_| {
            let rows = batches.draw();
            let x = data.train_x.slice::<f32>().unwrap();
            let x: Vec<f32> = rows.iter().flat_map(|r| x[r * n..(r + 1) * n].iter().copied()).collect();
            let y: Vec<i64> = rows.iter().map(|r| data.train_y.slice::<i64>().unwrap()[*r]).collect();
            let feeds = [(m[0], Tensor::from_vec([rows.len(), n], x).unwrap()), (m[1], Tensor::vector(&y))];
            run(&feeds, &[m[2]], &[m[4]])[0].item::<f32>().unwrap()
        })
        .collect()
}

#[test]
fn a_perceptron_on_three_tasks_learns_bit_by_bit_the_same() {
    let cluster = loopback(3, soft());
    let g = Graph::new();
    let m = mlp(&g, &MlpOptions { hidden: vec![32, 16], ..MlpOptions::default() }).unwrap();
    let node = |id| g.node(id).unwrap().name.to_string();
    let (x, labels, loss) = (node(m.x.node), node(m.labels.node), node(m.loss.node));
    let (init, train) = (node(m.init), node(m.train_op));
    let names = [x.as_str(), &labels, &loss, &init, &train];
    let near = local(&g);
    let expected = losses(&mut |feeds, fetches, targets| near.run(feeds, fetches, targets).unwrap(), names);
    assert!(expected[7] < expected[0], "{expected:?}");
    // The simulation decides; round robin.
    for round_robin in [false, true] {
        let mut def = g.to_def();
        for (i, node) in def.node.iter_mut().enumerate().filter(|_| round_robin) {
            node.device = format!("/job:worker/task:{}", i % 3);
        }
        let assigned = Graph::new();
        assigned.import(&def, "").unwrap();
        cluster.master.reset(&["localhost"]).unwrap();
        let s = cluster.master.session(&assigned).unwrap();
        let got = losses(&mut |feeds, fetches, targets| s.run(feeds, fetches, targets).unwrap(), names);
        assert_eq!(got, expected, "round robin: {round_robin}");
    }
}

/// Four batches per step, by one tower after the other in one process, or by four towers in as many tasks, each of which fills its
/// own queue with its share.
#[test]
fn synchronous_data_parallel_training_is_that_of_one_process() {
    type Step<'a> = &'a dyn Fn(&[&str], &[&str]) -> Vec<Tensor>;
    let train = |run: Step<'_>, built: &engine::training::TrainingGraph, g: &Graph| {
        let node = |id| g.node(id).unwrap().name.to_string();
        run(&[], &[&node(built.init)]);
        let (loss, step) = (name(g, built.losses[0]), node(built.train_ops[0]));
        (0..5).map(|_| run(&[&loss], &[&step])[0].item::<f32>().unwrap()).collect::<Vec<f32>>()
    };
    let task = || engine::tasks::mlp(engine::data::digits(), 1).unwrap();
    let n = 4usize;
    // In one process: batches come from one queue.
    let mut one = task();
    let g = Graph::new();
    let options = TrainingOptions { towers: n, input: InputMode::Queue { capacity: 64 }, ..one.training.clone() };
    let built = build(&g, one.network.as_ref(), &options).unwrap();
    let near = Session::new(&g, SessionOptions::devices(n)).unwrap();
    let fill = |session: &Session, g: &Graph, enqueue: &engine::training::Enqueue, batch: Vec<Tensor>| {
        let names: Vec<String> = enqueue.feeds.iter().map(|feed| name(g, *feed)).collect();
        let feeds: Vec<(&str, Tensor)> = names.iter().map(String::as_str).zip(batch).collect();
        session.run(&feeds, &[], &[&g.node(enqueue.op).unwrap().name]).unwrap();
    };
    for _ in 0..5 * n {
        fill(&near, &g, &built.enqueues[0], (one.next_batch)());
    }
    let expected = train(&|fetches, targets| near.run(&[], fetches, targets).unwrap(), &built, &g);

    for parallelism in [Parallelism::Synchronous, Parallelism::AllReduce] {
        let cluster = loopback(n, MasterOptions::default());
        let other = task();
        let g = Graph::new();
        let devices = (0..n).map(|i| format!("/job:worker/task:{i}/device:CPU:0")).collect();
        let options = TrainingOptions {
            devices,
            parallelism,
            input: InputMode::QueuePerTower { capacity: 64 },
            ..other.training.clone()
        };
        let built = build(&g, other.network.as_ref(), &options).unwrap();
        let far = cluster.master.session(&g).unwrap();
        // Each worker's own session on its own device: no batch goes through the master.
        for (i, worker) in cluster.workers.iter().enumerate() {
            let own = Graph::new();
            let (_, enqueue) = tower_queue(&own, other.network.as_ref(), i, 64).unwrap();
            let options = SessionOptions { devices: worker.devices().to_vec(), ..SessionOptions::default() };
            let session = Session::new(&own, options).unwrap();
            let mut shard = task();
            for k in 0..5 * n {
                let batch = (shard.next_batch)();
                if k % n == i {
                    fill(&session, &own, &enqueue, batch);
                }
            }
        }
        let got = train(&|fetches, targets| far.run(&[], fetches, targets).unwrap(), &built, &g);
        for (got, expected) in got.iter().zip(&expected) {
            assert!((got - expected).abs() <= 2e-5 * expected.abs(), "{parallelism:?}: {got} {expected}");
        }
    }
}
