//! Kernels against those of the CPU: the same graph on the CPU and on a device that the processor plays (`emulator`), which
//! runs the very sources that a GPU gets.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod cases;
mod emulator;

use std::cell::RefCell;
use std::sync::Arc;

use cases::{difference, numbers};
use cuda::attribution::Listener;
use emulator::Library;
use engine::compile::partition::TransferOptions;
use engine::compile::placement::PlacementOptions;
use engine::device::Device;
use engine::graph::{Output, Value};
use engine::{DType, Graph, Session, SessionOptions, Tensor};

fn check(group: &str) {
    let Some(gpu) = emulator::device(1 << 30) else { return };
    let (_, cases) = cases::all().into_iter().find(|(name, _)| *name == group).unwrap();
    let wrong: Vec<String> = cases.iter().filter_map(|case| case.check(&gpu).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn element_wise_ops_of_one_and_two_values() {
    check("element wise ops of one and two values");
}

#[test]
fn broadcasts_types_and_selections() {
    check("broadcasts types and selections");
}

#[test]
fn products() {
    check("products");
}

#[test]
fn reductions() {
    check("reductions");
}

#[test]
fn layouts() {
    check("layouts");
}

#[test]
fn rows_and_indices() {
    check("rows and indices");
}

#[test]
fn convolutions_and_their_gradients() {
    check(cases::CONVOLUTIONS);
}

fn convolutions() -> Vec<cases::Case> {
    let (_, cases) = cases::all().into_iter().find(|(name, _)| *name == cases::CONVOLUTIONS).unwrap();
    cases
}

/// What a library is given describes what the node means: a convolution that knows only the description comes to the same.
#[test]
fn convolutions_by_a_library() {
    let Some(device) = emulator::device_with(1 << 30, Library::Plain) else { return };
    let gpu = cuda::device::gpu_of(&device).unwrap();
    let (cases, mut n_own) = (convolutions(), 0);
    for case in &cases {
        let before = gpu.n_convolved();
        case.check(&device).unwrap_or_else(|why| panic!("{why}"));
        n_own += usize::from(gpu.n_convolved() == before);
    }
    // Those of f64, six, and the two that do not fit.
    assert_eq!((n_own, gpu.complaint()), (6 + 2, None), "of {}", cases.len());
    gpu.let_library_convolve(false);
    let before = gpu.n_convolved();
    cases[0].check(&device).unwrap();
    assert_eq!(gpu.n_convolved(), before);
}

#[test]
fn a_library_that_fails_is_done_without_and_said_once() {
    for (library, says) in [(Library::Refuses, "cudnnCreate"), (Library::Breaks, "cudnnConvolutionForward")] {
        let Some(device) = emulator::device_with(1 << 30, library) else { return };
        let gpu = cuda::device::gpu_of(&device).unwrap();
        for case in convolutions().iter().take(6) {
            case.check(&device).unwrap_or_else(|why| panic!("{why}"));
        }
        let complaint = gpu.complaint().unwrap();
        assert!(complaint.starts_with(says) && complaint.ends_with("own kernels instead"), "{complaint}");
        assert_eq!(gpu.n_convolved(), 0);
    }
}

#[test]
fn convolutions_by_channel_and_their_gradients() {
    check("convolutions by channel and their gradients");
}

#[test]
fn local_response_normalisation() {
    check("local response normalisation");
}

#[test]
fn pools_and_their_gradients() {
    check("pools and their gradients");
}

#[test]
fn batch_normalisation() {
    check("batch normalisation");
}

#[test]
fn random_numbers() {
    check("random numbers");
}

/// An array that is scattered into, written, read and gathered; its gradients, added up where there are two; parts of rows.
fn arrays(g: &Graph) -> Vec<Value<'_>> {
    let [x, y] = ["x", "y"].map(|name| g.value(g.output(name).unwrap()));
    let int = |v: i32| g.constant(Tensor::scalar(v));
    let array = |size: i32| {
        let array = g.add_node("TensorArrayV3").input(int(size)).attr("dtype", DType::F32);
        let array = array.attr("clear_after_read", false).value();
        (array, array.port(1))
    };
    let write = |array: Value<'_>, i: i32, value: Value<'_>, flow: Value<'_>| {
        g.add_node("TensorArrayWriteV3").input(array).input(int(i)).input(value).input(flow).value()
    };
    let read = |array: Value<'_>, i: i32, flow: Value<'_>| {
        let node = g.add_node("TensorArrayReadV3").input(array).input(int(i)).input(flow);
        node.attr("dtype", DType::F32).value()
    };
    let gather = |array: Value<'_>, which: &[i32], flow: Value<'_>| {
        let node = g.add_node("TensorArrayGatherV3").input(array).input(g.ints(which)).input(flow);
        node.attr("dtype", DType::F32).value()
    };
    let (a, flow) = array(6);
    let scattered = g.add_node("TensorArrayScatterV3").input(a).input(g.ints(&[3, 1, 0, 2])).input(x).input(flow);
    let flow = write(a, 5, y, write(a, 4, y, scattered.value()));
    let mut outputs = vec![read(a, 2, flow), gather(a, &[5, 0, 3], flow)];

    let b = g.add_node("TensorArrayGradV3").input(a).input(flow).attr("source", "test").value();
    let flow = b.port(1);
    let row = read(a, 1, flow);
    let flow = write(b, 1, y, write(b, 1, row, write(b, 5, y, flow)));
    outputs.push(gather(b, &[0, 1, 2, 5], flow));

    let (c, flow) = array(3);
    let lengths = g.constant(Tensor::vector(&[1i64, 0, 3]));
    let split = g.add_node("TensorArraySplitV3").input(c).input(x).input(lengths).input(flow).value();
    let size = g.add_node("TensorArraySizeV3").input(c).input(split).value();
    let concat = g.add_node("TensorArrayConcatV3").input(c).input(split).attr("dtype", DType::F32).value();
    outputs.extend([size, concat, concat.port(1)]);
    outputs
}

#[test]
fn arrays_of_tensors_keep_values_on_the_device() {
    let Some(gpu) = emulator::device(1 << 30) else { return };
    let run = |device: &str, options: SessionOptions| {
        let g = Graph::new();
        for (name, dims) in [("x", &[Some(4), Some(90)][..]), ("y", &[Some(90)])] {
            g.placeholder(name, DType::F32, dims);
        }
        let fetches: Vec<String> = arrays(&g.with_device(device))
            .into_iter()
            .map(|value| format!("{}:{}", g.node(value.node()).unwrap().name, value.output().port))
            .collect();
        let fetches: Vec<&str> = fetches.iter().map(String::as_str).collect();
        let session = Session::new(&g, options).unwrap();
        let feeds = [("x", numbers(&[4, 90], 1)), ("y", numbers(&[90], 2))];
        session.run(&feeds, &fetches, &[]).unwrap()
    };
    let expected = run("", SessionOptions::default());
    let before = cuda::device::gpu_of(&gpu).unwrap().stats().n_allocs;
    let devices = vec![Arc::new(Device::cpu(0, usize::MAX)), Arc::clone(&gpu)];
    // Not soft: an op without a kernel there is an error.
    let got = run("/device:GPU:0", SessionOptions { devices, ..SessionOptions::default() });
    for (i, (expected, got)) in expected.iter().zip(&got).enumerate() {
        assert_eq!((expected.dtype(), expected.shape()), (got.dtype(), got.shape()), "output {i}");
        assert_eq!(difference(expected, got, 1e-6), None, "output {i}: {expected:?} {got:?}");
    }
    let stats = cuda::device::gpu_of(&gpu).unwrap().stats();
    // The rows that were scattered, the parts that were split, and what was joined of them.
    assert!(stats.n_allocs >= before + 4 + 2 + 3, "{stats:?}");
}

/// To and from the host, as between CPUs: sign, exponent and 7 bits of the mantissa arrive; NaNs stay NaNs, infinities infinities.
#[test]
fn lossy_transfers_are_those_between_cpus() {
    let Some(gpu) = emulator::device(1 << 30) else { return };
    let odd = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::from_bits(0x7f80_0001), -0.0, f32::MIN_POSITIVE / 8.0];
    let values: Vec<f32> = (1..2000).map(|i| (i as f32).sin() * 10f32.powi(i % 60 - 30)).chain(odd).collect();
    let run = |there: &str, other: Arc<Device>| {
        let g = Graph::new();
        let (here, there) = (g.with_device("/device:CPU:0"), g.with_device(there));
        let x = -here.value(g.placeholder("x", DType::F32, [None]));
        let y = -x.with(&there);
        here.add_node("Neg").name("out").input(-y).value();
        let transfers = TransferOptions { is_lossy: true, ..TransferOptions::default() };
        let devices = vec![Arc::new(Device::cpu(0, usize::MAX)), other];
        let session = Session::new(&g, SessionOptions { devices, transfers, ..SessionOptions::default() }).unwrap();
        let got = session.run(&[("x", Tensor::vector(&values))], &["out"], &[]).unwrap().remove(0);
        got.slice::<f32>().unwrap().to_vec()
    };
    let expected = run("/device:CPU:1", Arc::new(Device::cpu(1, usize::MAX)));
    let got = run("/device:GPU:0", gpu);
    assert_eq!(expected.len(), values.len());
    for ((value, expected), got) in values.iter().zip(&expected).zip(&got) {
        let is_same = expected.to_bits() == got.to_bits() || expected.is_nan() && got.is_nan();
        assert!(is_same, "{value}: {expected} between CPUs, {got} by the device");
    }
}

/// Who records what the device does is notified which node a thread works for, in traced steps, and when that ends.
#[test]
fn launches_are_reported_with_their_node() {
    // Of this thread alone: other tests run at the same time.
    thread_local! { static NODES: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) }; }
    struct NodeRecorder;
    impl Listener for NodeRecorder {
        fn begins(&self, node: u32) {
            NODES.with_borrow_mut(|nodes| nodes.push(node));
        }
        fn ends(&self) {
            NODES.with_borrow_mut(|nodes| nodes.push(0));
        }
    }
    let Some(gpu) = emulator::device(1 << 30) else { return };
    let listen = || cuda::attribution::listen(Box::new(NodeRecorder));
    assert!(listen() && !listen());
    let g = Graph::new();
    let there = g.with_device("/device:GPU:0");
    let x = there.value(g.placeholder("x", DType::F32, [Some(20), Some(30)]));
    there.add_node("Softmax").name("out").input(x.matmul(x.transpose([1, 0]))).value();
    let devices = vec![Arc::new(Device::cpu(0, usize::MAX)), gpu];
    let session = Session::new(&g, SessionOptions { devices, threads: Some(1), ..SessionOptions::default() }).unwrap();
    let step = || session.run(&[("x", numbers(&[20, 30], 1))], &["out"], &[]).unwrap();
    step();
    assert_eq!(NODES.take(), [0u32; 0], "nothing is traced");
    let folder = tempfile::tempdir().unwrap();
    let recording = events::start(folder.path(), events::Options::default()).unwrap();
    step();
    drop(recording);
    let reported = NODES.take();
    let nodes: Vec<u32> = reported.iter().copied().filter(|node| *node != 0).collect();
    let mut distinct = nodes.clone();
    distinct.sort_unstable();
    distinct.dedup();
    // What is fed is copied there; then kernels.
    assert!(distinct.len() >= 3 && 2 * nodes.len() == reported.len(), "{reported:?}");
}

/// Chains that the fusion pass makes one node: parts of wider values, results side by side, rows and scalars.
#[test]
fn fused_chains() {
    let Some(gpu) = emulator::device(1 << 30) else { return };
    let build = |g: &Graph| {
        let [x, y, b] = ["x", "y", "b"].map(|name| g.output(name).unwrap());
        let parts = |v: Output| {
            let axis = g.constant(Tensor::scalar(1i32));
            let split = g.add_node("Split").input(axis).input(v).attr("num_split", 2i64).value();
            [split, split.port(1)]
        };
        let ([x0, x1], [y0, y1]) = (parts(x), parts(y));
        let c = (x0 + y1).sigmoid() * x1.tanh();
        let d = c.square() - y0 * b;
        g.add_node("Relu").name("out").input(g.concat(&[c, d], 1)).value();
    };
    let run = |device: &str, options: SessionOptions| {
        let g = Graph::new();
        g.placeholder("x", DType::F32, [6, 80]);
        g.placeholder("y", DType::F32, [6, 80]);
        g.placeholder("b", DType::F32, [40]);
        build(&g.with_device(device));
        let session = Session::new(&g, options).unwrap();
        let inspected = session.inspect(&["x", "y", "b"], &["out"], &[]).unwrap();
        let fused = inspected.graph.node.iter().filter(|n| n.op == "_FusedElementwise").count();
        let feeds = [("x", numbers(&[6, 80], 1)), ("y", numbers(&[6, 80], 2)), ("b", numbers(&[40], 3))];
        (session.run(&feeds, &["out"], &[]).unwrap().remove(0), fused)
    };
    let (expected, _) = run("", SessionOptions::default());
    let devices = vec![Arc::new(Device::cpu(0, usize::MAX)), gpu];
    let placement = PlacementOptions { is_soft: true, ..PlacementOptions::default() };
    let (got, fused) = run("/device:GPU:0", SessionOptions { devices, placement, ..SessionOptions::default() });
    assert!(fused > 0, "nothing was fused");
    assert_eq!(difference(&expected, &got, 1e-5), None);
}
