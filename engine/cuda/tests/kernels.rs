//! Kernels against those of the CPU: the same graph on the CPU and on a device that the processor plays (`emulator`), which
//! runs the very sources that a GPU gets.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod cases;
mod emulator;

use std::sync::Arc;

use cases::{difference, numbers};
use engine::device::Device;
use engine::graph::{Attr, Output};
use engine::placement::PlacementOptions;
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
    check("convolutions and their gradients");
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

/// Chains that the fusion pass makes one node: parts of wider values, results side by side, rows and scalars.
#[test]
fn fused_chains() {
    let Some(gpu) = emulator::device(1 << 30) else { return };
    let build = |g: &Graph| -> Output {
        let [x, y, b] = ["x", "y", "b"].map(|name| g.output(name).unwrap());
        let parts = |v: Output| {
            let axis = g.constant(Tensor::scalar(1i32)).unwrap();
            let split = g.add_node("Split").input(axis).input(v).attr("num_split", 2i64).build().unwrap();
            [0, 1].map(|port| Output { node: split, port })
        };
        let ([x0, x1], [y0, y1]) = (parts(x), parts(y));
        let op2 = |op: &str, a: Output, b: Output| g.add_node(op).input(a).input(b).output().unwrap();
        let op1 = |op: &str, a: Output| g.add_node(op).input(a).output().unwrap();
        let c = op2("Mul", op1("Sigmoid", op2("AddV2", x0, y1)), op1("Tanh", x1));
        let d = op2("Sub", op1("Square", c), op2("Mul", y0, b));
        let axis = g.constant(Tensor::scalar(1i32)).unwrap();
        let both = g.add_node("ConcatV2").inputs(&[c, d]).input(axis).output().unwrap();
        g.add_node("Relu").name("out").input(both).output().unwrap()
    };
    let run = |device: &str, options: SessionOptions| {
        let g = Graph::new();
        for (name, dims) in [("x", [Some(6), Some(80)]), ("y", [Some(6), Some(80)])] {
            g.add_node("Placeholder")
                .name(name)
                .attr("dtype", DType::F32)
                .attr("shape", Attr::Shape(engine::PartialShape::new(&dims)))
                .build()
                .unwrap();
        }
        g.add_node("Placeholder")
            .name("b")
            .attr("dtype", DType::F32)
            .attr("shape", Attr::Shape(engine::PartialShape::new(&[Some(40)])))
            .build()
            .unwrap();
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
