//! Several devices in one process: the same graph gives the same results wherever its nodes are.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use crate::common::{source, sum, value};
use engine::compile::Passes;
use engine::compile::partition::TransferOptions;
use engine::compile::placement::PlacementOptions;
use engine::data::{Batches, digits};
use engine::device::Device;
use engine::graph::{Graph, GraphError, NodeId, Output, WhileOptions};
use engine::kernels::{ASYNC_KERNEL_TABLES, AsyncKernel, AsyncKernelDef, Completion, KernelContext, KernelError};
use engine::models::MlpOptions;
use engine::ops::{OP_TABLES, OpSpec, stateful};
use engine::session::CancelToken;
use engine::training::mlp;
use engine::{DType, RunOptions, Session, SessionOptions, Tensor};
use formats::proto::GraphDef;
use parking_lot::Mutex;
use proptest::prelude::*;

#[linkme::distributed_slice(OP_TABLES)]
static OPS: &[OpSpec] = &[stateful("TestNever", "-> y: float", "", |c| {
    c.set(0, engine::PartialShape::scalar());
    Ok(())
})];

#[linkme::distributed_slice(ASYNC_KERNEL_TABLES)]
static KERNELS: &[AsyncKernelDef] =
    &[AsyncKernelDef { op: "TestNever", device: "CPU", dtypes: ("", &[]), build: |_| Ok(Box::new(Never)) }];

/// Ends only when its step does.
struct Never;

impl AsyncKernel for Never {
    fn start(&self, ctx: &mut KernelContext<'_>, done: Completion) {
        let done = Mutex::new(Some(done));
        let finish = move || {
            if let Some(done) = done.lock().take() {
                done.finish(Err(KernelError::Cancelled));
            }
        };
        std::mem::forget(ctx.cancellation().register(finish));
    }
}

fn on(g: &Graph, device: usize) -> Graph {
    g.with_device(&format!("/device:CPU:{device}"))
}

fn options(n_devices: usize) -> SessionOptions {
    SessionOptions { threads: Some(2), ..SessionOptions::devices(n_devices) }
}

/// As it is written: nothing folded or merged.
fn plain(n_devices: usize) -> SessionOptions {
    SessionOptions { passes: Passes::none(), ..options(n_devices) }
}

/// One device, whatever the nodes ask for.
fn single() -> SessionOptions {
    let placement = PlacementOptions { is_soft: true, ..PlacementOptions::default() };
    SessionOptions { placement, ..options(1) }
}

fn session(g: &Graph, options: SessionOptions) -> Session {
    Session::new(g, options).unwrap()
}

fn ops(def: &GraphDef, op: &str) -> Vec<String> {
    let mut names: Vec<String> = def.node.iter().filter(|n| n.op == op).map(|n| n.name.clone()).collect();
    names.sort();
    names
}

#[test]
fn a_value_crosses_once_for_all_its_consumers_on_a_device() {
    let g = Graph::new();
    let x = source(&on(&g, 0), "x", 2.0);
    let b = sum(&on(&g, 1), "b", &[x]);
    let c = sum(&on(&g, 1), "c", &[x, b]);
    sum(&on(&g, 2), "d", &[x, c]);
    let s = session(&g, plain(3));
    assert_eq!(value(&s.run(&[], &["d"], &[]).unwrap()), 6.0);
    let def = s.inspect(&[], &["d"], &[]).unwrap().graph;
    assert_eq!(ops(&def, "_Send"), ["c/_0/_send_2", "x/_0/_send_1", "x/_0/_send_2"]);
    assert_eq!(ops(&def, "_Recv"), ["c/_0/_recv_2", "x/_0/_recv_1", "x/_0/_recv_2"]);
}

#[test]
fn control_edges_cross_devices() {
    let g = Graph::new();
    let s = session(&g, plain(2));
    let mut last: Vec<NodeId> = Vec::new();
    for i in 0..10 {
        last = vec![crate::common::note_node(&on(&g, i % 2), &format!("note{i}"), &last)];
    }
    s.run(&[], &[], &["note9"]).unwrap();
    // Each device keeps its own notes; together they came in order.
    let notes = |device: usize| {
        let resources = s.devices()[device].resources();
        let found = resources.find_or_create(&"notes".into(), &"notes".into(), crate::common::Notes::default);
        found.unwrap().0.lock().clone()
    };
    assert_eq!(notes(0), ["note0", "note2", "note4", "note6", "note8"]);
    assert_eq!(notes(1), ["note1", "note3", "note5", "note7", "note9"]);
    let def = s.inspect(&[], &[], &["note9"]).unwrap().graph;
    assert_eq!(ops(&def, "_Send").len(), 9);
}

fn vector(g: &Graph, name: &str, n: usize) -> Output {
    let values: Vec<f32> = (0..n).map(|i| i as f32 / 7.0).collect();
    g.named_constant(name, Tensor::from_vec([n], values).unwrap()).output()
}

#[test]
fn each_device_counts_and_limits_its_own_memory() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Some(1000)]);
    let a = on(&g, 0).add_node("Neg").name("a").input(x).value().output();
    on(&g, 1).add_node("Exp").name("b").input(a).value();
    let feed = || Tensor::from_vec([1000], vec![0.5f32; 1000]).unwrap();
    let s = session(&g, plain(3));
    s.run(&[("x", feed())], &["b"], &[]).unwrap();
    let allocs = |i: usize| s.devices()[i].allocator().stats().n_allocs;
    assert!(allocs(0) >= 1 && allocs(1) >= 1, "{} {}", allocs(0), allocs(1));
    assert_eq!(allocs(2), 0);
    let devices = vec![Arc::new(Device::cpu(0, usize::MAX)), Arc::new(Device::cpu(1, 2000))];
    let s = session(&g, SessionOptions { devices, ..plain(0) });
    let error = s.run(&[("x", feed())], &["b"], &[]).unwrap_err().to_string();
    assert!(error.contains("out of memory on /job:localhost/device:cpu:1"), "{error}");
}

#[test]
fn variables_stay_where_they_are_from_step_to_step() {
    let g = Graph::new();
    let start = |by: f32| Tensor::from_vec([100], (0..100).map(|i| i as f32 * by).collect()).unwrap();
    let (v, w) = (g.variable("v", start(1.0)), g.variable("w", start(2.0)));
    g.group("init", &[v.init, w.init]);
    let both = g.add_node("AddV2").name("both").input(v.value).input(w.value).value();
    let axis = g.named_constant("axis", Tensor::scalar(0i32));
    g.add_node("Sum").name("total").input(both).input(axis).value();
    for n_devices in [1, 2, 4] {
        let s = session(&g, options(n_devices));
        s.run(&[], &[], &["init"]).unwrap();
        let expected = 3.0 * 99.0 * 50.0;
        let got = s.run(&[], &["total"], &[]).unwrap()[0].item::<f32>().unwrap();
        assert!((got - expected).abs() < 1e-2, "{n_devices}: {got} {expected}");
        s.reset("localhost");
        assert!(s.run(&[], &["total"], &[]).is_err());
    }
}

/// A random graph of element-wise ops: each node takes two earlier ones, on a device by chance (or wherever).
#[derive(Debug, Clone)]
struct Recipe(Vec<(u8, usize, usize, Option<usize>)>);

impl Recipe {
    fn build(&self, g: &Graph) -> Vec<String> {
        let mut made = vec![vector(g, "x", 17)];
        for (i, (op, a, b, device)) in self.0.iter().enumerate() {
            let (a, b) = (made[a % made.len()], made[b % made.len()]);
            let handle = device.map_or_else(|| g.clone(), |d| on(g, d));
            let op = ["AddV2", "Sub", "Maximum", "Mul", "Neg", "Tanh"][*op as usize % 6];
            let node = handle.add_node(op).name(&format!("n{i}")).input(a);
            let node = if matches!(op, "Neg" | "Tanh") { node } else { node.input(b) };
            made.push(node.value().output());
        }
        (0..self.0.len()).map(|i| format!("n{i}")).collect()
    }
}

fn any_recipe() -> impl Strategy<Value = Recipe> {
    let node = (any::<u8>(), any::<usize>(), any::<usize>(), proptest::option::of(0usize..4));
    proptest::collection::vec(node, 1..40).prop_map(Recipe)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn random_graphs_give_the_same_on_one_and_on_four_devices(
        recipe in any_recipe(), delays_receives in any::<bool>(), threads in 1usize..3,
    ) {
        let g = Graph::new();
        let names = recipe.build(&g);
        let fetches: Vec<&str> = names.iter().map(String::as_str).collect();
        let expected = session(&g, single()).run(&[], &fetches, &[]).unwrap();
        let transfers = TransferOptions { delays_receives, ..TransferOptions::default() };
        let four = session(&g, SessionOptions { transfers, threads: Some(threads), ..options(4) });
        for _ in 0..3 {
            prop_assert_eq!(&four.run(&[], &fetches, &[]).unwrap(), &expected);
        }
        for device in four.devices() {
            prop_assert!(device.allocator().stats().in_use < 100_000);
        }
    }
}

/// The graph with its nodes' devices chosen by `device_of`, by name and position.
fn assigned(g: &Graph, device_of: impl Fn(usize, &str) -> Option<usize>) -> Graph {
    let mut def = g.to_def();
    for (i, node) in def.node.iter_mut().enumerate() {
        if let Some(device) = device_of(i, &node.name) {
            node.device = format!("/device:CPU:{device}");
        }
    }
    let assigned = Graph::new();
    assigned.import(&def, "").unwrap();
    assigned
}

fn losses(g: &Graph, names: [&str; 3], targets: [&str; 2], options: SessionOptions) -> Vec<f32> {
    let data = digits();
    let s = session(g, options);
    s.run(&[], &[], &[targets[0]]).unwrap();
    let step = s.prepare(&names[..2], &names[2..], &targets[1..]).unwrap();
    let mut batches = Batches::new(data.train_y.len(), 32, 7);
    let n = data.train_x.dims()[1];
    (0..20)
        .map(|_| {
            let rows = batches.draw();
            let x = data.train_x.slice::<f32>().unwrap();
            let x: Vec<f32> = rows.iter().flat_map(|r| x[r * n..(r + 1) * n].iter().copied()).collect();
            let y: Vec<i64> = rows.iter().map(|r| data.train_y.slice::<i64>().unwrap()[*r]).collect();
            let feeds = [Tensor::from_vec([rows.len(), n], x).unwrap(), Tensor::vector(&y)];
            step.run(&feeds).unwrap()[0].item::<f32>().unwrap()
        })
        .collect()
}

#[test]
fn a_perceptron_on_several_devices_learns_bit_by_bit_the_same() {
    let g = Graph::new();
    let m = mlp(&g, &MlpOptions { hidden: vec![32, 16], ..MlpOptions::default() }).unwrap();
    let name = |id: NodeId| g.node(id).unwrap().name.to_string();
    let (x, labels, loss) = (name(m.x.node), name(m.labels.node), name(m.loss.node));
    let (init, train) = (name(m.init), name(m.train_op));
    let run = |g: &Graph, options| losses(g, [&x, &labels, &loss], [&init, &train], options);
    let expected = run(&g, options(1));
    assert!(expected[19] < expected[0], "{expected:?}");
    // The simulation decides; each layer on its device; round robin.
    assert_eq!(run(&g, options(4)), expected);
    let by_layer = assigned(&g, |_, name| {
        let layer = ["layer1", "layer2", "layer3"].iter().position(|layer| name.starts_with(layer))?;
        Some(layer + 1)
    });
    assert_eq!(run(&by_layer, options(4)), expected);
    let round_robin = assigned(&g, |i, _| Some(i % 4));
    let placement = PlacementOptions { is_soft: true, ..PlacementOptions::default() };
    assert_eq!(run(&round_robin, SessionOptions { placement, ..options(4) }), expected);
}

#[test]
fn colocated_nodes_are_together_or_say_why_not() {
    let g = Graph::new();
    let x = source(&on(&g, 1), "x", 1.0);
    let class = engine::graph::Attr::ListStr(vec![b"loc:@x".to_vec()]);
    let with = |g: &Graph, name: &str| {
        g.add_node("TestSum").name(name).inputs(&[x]).attr("_class", class.clone()).value();
    };
    with(&g, "near");
    let s = session(&g, plain(3));
    let def = s.inspect(&[], &["near"], &[]).unwrap().graph;
    assert!(ops(&def, "_Send").is_empty());
    with(&on(&g, 2), "far");
    // As in TensorFlow, also where no step needs the node.
    for fetch in ["far", "near"] {
        let error = s.run(&[], &[fetch], &[]).unwrap_err().to_string();
        assert_eq!(
            error,
            "nodes x and far must be on one device (they are colocated), but their requests contradict each other: \
             /device:CPU:1 and /device:CPU:2 differ in index"
        );
    }
    // Softly, neither gets its way.
    let placement = PlacementOptions { is_soft: true, ..PlacementOptions::default() };
    assert_eq!(value(&session(&g, SessionOptions { placement, ..plain(3) }).run(&[], &["far"], &[]).unwrap()), 1.0);
}

#[test]
fn who_uses_a_resource_goes_where_it_is() {
    let g = Graph::new();
    let s = session(&g, plain(3));
    let v = on(&g, 0).variable("v", Tensor::vector(&[1f32, 2.0]));
    on(&g, 1).add_node("ReadVariableOp").name("read").input(v.handle).attr("dtype", DType::F32).value();
    // Whatever it asks for; TensorFlow says so in its log.
    let init = g.node(v.init).unwrap().name.clone();
    s.run(&[], &[], &[&*init]).unwrap();
    assert_eq!(s.run(&[], &["read"], &[]).unwrap()[0].slice::<f32>().unwrap(), [1.0, 2.0]);
    let relaxed = s.relaxed_requests();
    let requests: Vec<_> = relaxed.iter().map(|one| (one.node.as_str(), &*one.asked)).collect();
    assert_eq!(requests, [("read", "/device:CPU:1")]);
}

#[test]
fn requests_that_nothing_fits_are_errors() {
    let cases = [
        ("/device:GPU:0", "node odd (op TestSource) asks for /device:GPU:0, which none of the session's devices is"),
        ("/job:worker/task:3", "node odd (op TestSource) asks for /job:worker/task:3, which none"),
        ("/device CPU", "node odd: \"/device CPU\" is not a device"),
    ];
    for (device, text) in cases {
        let g = Graph::new();
        source(&g.with_device(device), "odd", 1.0);
        source(&g, "other", 1.0);
        // As in TensorFlow, also where no step needs the node.
        for (n, name) in [(1, "odd"), (1, "other"), (2, "odd"), (2, "other")] {
            let error = session(&g, plain(n)).run(&[], &[name], &[]).unwrap_err().to_string();
            assert!(error.starts_with(text), "{error}");
        }
        if device != "/device CPU" {
            assert_eq!(value(&session(&g, single()).run(&[], &["odd"], &[]).unwrap()), 1.0);
        }
    }
    let g = Graph::new();
    source(&g.with_device("/job:localhost/cpu:0").with_device("/cpu:1"), "second", 1.0);
    assert_eq!(&*g.node(g.output("second").unwrap().node).unwrap().device, "/job:localhost/device:CPU:1");
    assert!(session(&g, plain(1)).run(&[], &["second"], &[]).is_err());
    assert_eq!(value(&session(&g, plain(2)).run(&[], &["second"], &[]).unwrap()), 1.0);
    let twice = vec![Arc::new(Device::cpu(0, 1 << 20)), Arc::new(Device::cpu(0, 1 << 20))];
    let error = Session::new(&g, SessionOptions { devices: twice, ..plain(0) }).err().unwrap().to_string();
    assert_eq!(error, "two devices are named /job:localhost/device:cpu:0");
}

#[test]
fn lossy_transfers_keep_sign_exponent_and_seven_bits() {
    let g = Graph::new();
    let (cpu0, cpu1) = (on(&g, 0), on(&g, 1));
    let x = g.placeholder("x", DType::F32, [None]);
    let a = cpu0.add_node("Neg").name("a").input(x).value();
    cpu1.add_node("Neg").name("b").input(a).value();
    let ports = engine::graph::Attr::ListInt(vec![0]);
    let c = cpu0.add_node("Neg").name("c").input(x).attr("_lossy_outputs", ports).value();
    cpu1.add_node("Neg").name("d").input(c).value();
    let values: Vec<f32> = (1..2000).map(|i| (i as f32).sin() * 10f32.powi(i % 60 - 30)).collect();
    let feed = || Tensor::vector(&values);
    let run = |options: SessionOptions, name: &str| {
        session(&g, options).run(&[("x", feed())], &[name], &[]).unwrap()[0].slice::<f32>().unwrap().to_vec()
    };
    let shortened: Vec<f32> = values.iter().map(|v| f32::from_bits(v.to_bits() & 0xffff_0000)).collect();
    let lossy =
        || SessionOptions { transfers: TransferOptions { is_lossy: true, ..TransferOptions::default() }, ..plain(2) };
    assert_eq!(run(plain(2), "b"), values, "exact unless asked otherwise");
    assert_eq!(run(lossy(), "b"), shortened);
    assert_eq!(run(plain(2), "d"), shortened, "one edge");
    let worst = values.iter().zip(&shortened).map(|(v, s)| ((v - s) / v).abs()).fold(0.0, f32::max);
    assert!(worst < 1.0 / 128.0 && worst > 1.0 / 300.0, "{worst}");
    // Other types travel whole.
    let n = cpu0.named_constant("n", Tensor::vector(&[1i64 << 40, 3]));
    cpu1.add_node("Neg").name("m").input(n).value();
    let got = session(&g, lossy()).run(&[], &["m"], &[]).unwrap();
    assert_eq!(got[0].slice::<i64>().unwrap(), &[-(1i64 << 40), -3]);
}

#[test]
fn a_failure_on_one_device_ends_the_receives_on_the_others() {
    let g = Graph::new();
    let x = source(&on(&g, 0), "x", 1.0);
    let fails = on(&g, 0).add_node("TestFail").name("fails").input(x).value().output();
    let far = sum(&on(&g, 1), "far", &[fails]);
    sum(&on(&g, 2), "farther", &[far]);
    sum(&on(&g, 1), "fine", &[x]);
    for threads in [1, 2] {
        let s = session(&g, SessionOptions { threads: Some(threads), ..plain(3) });
        for _ in 0..20 {
            let error = s.run(&[], &["farther"], &[]).unwrap_err().to_string();
            assert!(error.starts_with("node fails (op TestFail"), "{error}");
            assert_eq!(value(&s.run(&[], &["fine"], &[]).unwrap()), 1.0);
        }
    }
}

#[test]
fn a_step_is_cancelled_while_its_receives_wait() {
    let g = Graph::new();
    let never = on(&g, 0).add_node("TestNever").name("never").value().output();
    let far = sum(&on(&g, 1), "far", &[never]);
    sum(&on(&g, 2), "farther", &[far]);
    let s = session(&g, plain(3));
    let options = RunOptions { timeout: Some(Duration::from_millis(30)), ..RunOptions::default() };
    let error = s.run_step(&options, &[], &["farther"], &[]).unwrap_err().to_string();
    assert!(error.starts_with("the deadline passed"), "{error}");
    let token = CancelToken::new();
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        let (token, barrier, s) = (&token, &barrier, &s);
        let run = scope.spawn(move || {
            let options = RunOptions { cancel: Some(token), ..RunOptions::default() };
            barrier.wait();
            s.run_step(&options, &[], &["farther"], &[]).unwrap_err().to_string()
        });
        barrier.wait();
        std::thread::sleep(Duration::from_millis(20));
        token.cancel();
        let error = run.join().unwrap();
        assert!(error.starts_with("the step was cancelled"), "{error}");
    });
}

#[test]
fn concurrent_steps_do_not_mix_their_values() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Some(64)]).output();
    let mut last = x;
    for i in 0..24 {
        let handle = on(&g, i % 4);
        last = handle.add_node("AddV2").name(&format!("n{i}")).input(last).input(x).value().output();
    }
    let s = session(&g, plain(4));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let s = &s;
            scope.spawn(move || {
                let step = s.prepare(&["x"], &["n23"], &[]).unwrap();
                for i in 0..50 {
                    let feed = (thread * 1000 + i) as f32;
                    let got = step.run(&[Tensor::from_vec([64], vec![feed; 64]).unwrap()]).unwrap();
                    assert_eq!(got[0].slice::<f32>().unwrap(), &[feed * 25.0; 64]);
                }
            });
        }
    });
}

/// A chain of matrix products on device 1, each with a matrix from device 0.
#[test]
fn delayed_receives_keep_less_in_memory() {
    let g = Graph::new();
    let (cpu0, cpu1) = (on(&g, 0), on(&g, 1));
    let matrix = || Tensor::from_vec([64, 64], vec![0.01f32; 64 * 64]).unwrap();
    let mut x = cpu1.constant(matrix());
    for i in 0..24 {
        let w = cpu0.constant(matrix());
        x = cpu1.add_node("MatMul").name(&format!("p{i}")).input(x).input(w).value();
    }
    let peak = |delays_receives: bool| {
        let transfers = TransferOptions { delays_receives, ..TransferOptions::default() };
        let s = session(&g, SessionOptions { transfers, threads: Some(1), ..plain(2) });
        let result = s.run(&[], &["p23"], &[]).unwrap();
        (s.devices()[1].allocator().stats().peak, result)
    };
    let ((eager, expected), (delayed, got)) = (peak(false), peak(true));
    assert_eq!(got, expected);
    println!("peak of the receiving device: {eager} bytes eager, {delayed} bytes delayed");
    assert!(eager >= 24 * 64 * 64 * 4 && delayed * 3 < eager, "{eager} {delayed}");
}

#[test]
fn measured_costs_are_saved_and_place_the_next_session() {
    let g = Graph::new();
    let x = source(&g, "x", 1.0);
    let work =
        |name: &str, work: i64| g.add_node("TestSum").name(name).inputs(&[x]).attr("work", work).value().output();
    let heavy: Vec<Output> = (0..4).map(|i| work(&format!("heavy{i}"), 2_000_000)).collect();
    sum(&g, "y", &heavy);
    // Nothing says beforehand that these nodes are expensive.
    let s = session(&g, plain(4));
    s.run(&[], &["y"], &[]).unwrap();
    let model = s.cost_model();
    assert_eq!((model.n_steps(), model.node("heavy0", "CPU").unwrap().count), (1, 1));
    assert!(model.node_ns("heavy0", "CPU").unwrap() > 100_000.0, "{model:?}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("costs.json");
    model.save(&path).unwrap();
    let loaded = engine::compile::placement::CostModel::load(&path).unwrap();
    assert_eq!(loaded, model);
    let placement = PlacementOptions { cost_model: Some(Arc::new(loaded)), ..PlacementOptions::default() };
    let s = session(&g, SessionOptions { placement, ..plain(4) });
    let def = s.inspect(&[], &["y"], &[]).unwrap().graph;
    // The heavy nodes share no device: three of them receive x, and three send their sum.
    assert_eq!(ops(&def, "_Send").len(), 6, "{:?}", ops(&def, "_Send"));
    assert_eq!(value(&s.run(&[], &["y"], &[]).unwrap()), value(&session(&g, plain(1)).run(&[], &["y"], &[]).unwrap()));
}

/// The white paper's Inception has 36,000 nodes: towers of layers, with some nodes that ask for a device.
#[test]
fn a_graph_of_36_000_nodes_is_placed_and_divided() {
    let g = Graph::new();
    let x = vector(&g, "x", 64);
    let mut ends = Vec::new();
    for tower in 0..60 {
        let mut last = x;
        for i in 0..598 {
            let handle = if i % 50 == 7 { on(&g, (tower + i) % 4) } else { g.clone() };
            let op = ["AddV2", "Mul", "Maximum"][i % 3];
            last = handle.add_node(op).name(&format!("t{tower}/n{i}")).input(last).input(x).value().output();
        }
        ends.push(last);
    }
    g.add_node("AddN").name("y").inputs(&ends).value();
    let s = session(&g, plain(4));
    let inspection = s.inspect(&[], &["y"], &[]).unwrap();
    let (def, reports) = (inspection.graph, inspection.passes);
    assert!(def.node.len() > 35_880 && ops(&def, "_Send").len() > 60);
    for report in reports {
        println!(
            "{}: {} nodes, {} changes, {:.1} ms",
            report.name,
            report.n_after,
            report.n_changes,
            report.elapsed_ns as f64 / 1e6
        );
    }
    let expected = session(&g, single()).run(&[], &["y"], &[]).unwrap();
    assert_eq!(s.run(&[], &["y"], &[]).unwrap(), expected);
}

/// Softly: what must be together stays together.
fn soft(n_devices: usize, threads: usize) -> SessionOptions {
    let placement = PlacementOptions { is_soft: true, ..PlacementOptions::default() };
    SessionOptions { placement, threads: Some(threads), ..options(n_devices) }
}

/// Runs a definition on one device and, its nodes dealt out in several ways, on four: the results must be equal.
fn same_on_four(def: &GraphDef, feeds: &[(&str, Tensor)], fetches: &[&str], what: &str) {
    let whole = Graph::new();
    whole.import(def, "").unwrap();
    let expected = session(&whole, single()).run(feeds, fetches, &[]).unwrap();
    let ways: [&dyn Fn(usize) -> usize; 3] = [&|i| i % 4, &|i| i / 3 % 4, &|i| i.wrapping_mul(0x9e37_79b9) >> 13 & 3];
    for (way, device_of) in ways.iter().enumerate() {
        let divided = assigned(&whole, |i, _| Some(device_of(i)));
        for threads in [1, 2] {
            let s = session(&divided, soft(4, threads));
            for _ in 0..2 {
                let got =
                    s.run(feeds, fetches, &[]).unwrap_or_else(|e| panic!("{what}, way {way}, {threads} threads: {e}"));
                assert_eq!(got, expected, "{what}, way {way}, {threads} threads");
            }
        }
    }
}

#[test]
fn loops_and_branches_span_devices() {
    let g = Graph::new();
    let n = g.placeholder("n", DType::F32, engine::PartialShape::scalar());
    let options = WhileOptions::default();
    let [zero, one] = [0f32, 1.0].map(|v| g.constant(v).output());
    // An outer loop with an inner one and a conditional in it: i from 0 to n; the sum of i * j over j < i where i > 2.
    let sums = g.while_loop::<GraphError>(
        &[zero, one],
        |g, v| Ok(g.value(v[0]).less(n).output()),
        |g, v| {
            let i = g.value(v[0]);
            let inner = g.while_loop::<GraphError>(
                &[g.constant(0f32).output(), v[1]],
                |g, w| Ok(g.value(w[0]).less(i).output()),
                |g, w| {
                    let j = g.value(w[0]);
                    let product = j * i;
                    Ok(vec![(j + 1.0).output(), (g.value(w[1]) + product).output()])
                },
                &options,
            )?;
            let chosen = g.cond::<GraphError>(
                i.greater(2.0),
                |g| Ok(vec![(g.value(inner[1]) + 0.5).output()]),
                |g| Ok(vec![(g.value(v[1]) - 0.25).output()]),
            )?;
            Ok(vec![(i + 1.0).output(), chosen[0]])
        },
        &options,
    );
    let last = sums.unwrap()[1];
    g.add_node("Neg").name("y").input(last).value();
    for n in [0.0f32, 1.0, 4.0, 7.0] {
        same_on_four(&g.to_def(), &[("n", Tensor::scalar(n))], &["y"], &format!("n = {n}"));
    }
}

#[test]
fn dead_values_cross_devices() {
    for taken in [false, true] {
        let g = Graph::new();
        let [cpu0, cpu1, cpu2, cpu3] = [0, 1, 2, 3].map(|device| on(&g, device));
        let pred = cpu0.constant(Tensor::scalar(taken));
        let x = source(&cpu1, "x", 3.0);
        let switch = cpu1.add_node("Switch").name("switch").input(x).input(pred).value();
        let a = cpu2.add_node("Neg").name("a").input(switch).value();
        let b = cpu3.add_node("Square").name("b").input(switch.port(1)).value();
        cpu0.add_node("Merge").name("y").inputs(&[a, b]).value();
        // A control edge from a branch that is not taken makes its consumer dead, there too.
        let after = cpu3.add_node("Neg").name("after").input(x).after(&[a.node()]).value();
        cpu1.add_node("Neg").name("always").input(x).value();
        cpu2.add_node("Merge").name("z").inputs(&[after, b]).value();
        let s = session(&g, plain(4));
        let got = s.run(&[], &["y:0", "y:1", "z:1"], &[]).unwrap();
        assert_eq!(got[0].item::<f32>().unwrap(), if taken { 9.0 } else { -3.0 });
        assert_eq!(
            (got[1].item::<i32>().unwrap(), got[2].item::<i32>().unwrap()),
            (i32::from(taken), i32::from(taken))
        );
    }
}

#[test]
fn tensorflow_graphs_with_loops_span_devices() {
    let mut n = 0;
    for entry in std::fs::read_dir(test_support::data_folder().join("graphdef_cases")).unwrap() {
        let folder = entry.unwrap().path();
        let Ok(bytes) = std::fs::read(folder.join("graph.pb")) else { continue };
        let def = <GraphDef as prost::Message>::decode(&*bytes).unwrap();
        let arrays = formats::npy::read_npz(std::fs::File::open(folder.join("io.npz")).unwrap()).unwrap();
        let x = &arrays.iter().find(|(name, _)| name == "x").unwrap().1;
        let values: Vec<f32> = x.data.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        for part in values.chunks(values.len() / x.shape[0]) {
            let feed = Tensor::from_vec(&x.shape[1..], part.to_vec()).unwrap();
            same_on_four(&def, &[("x:0", feed)], &["y:0"], &folder.display().to_string());
            n += 1;
        }
    }
    assert!(n >= 15, "{n} runs");
}
