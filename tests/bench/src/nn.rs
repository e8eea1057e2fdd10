//! Neural-net kernels at the shapes of a small convnet, of Inception layers and of an LSTM: GFLOP/s, and the share of
//! what a matrix product reaches in the same run.
//!
//! One thread: least CPU time of many runs. Two threads: least wall time.

use ::engine::graph::{Attr, Graph, Padding};
use ::engine::{Callable, DType, Shape, Tensor};

use crate::engine::setup::{now, placeholder, session, values};
use crate::report::{BenchError, Report};

/// A convolution: images, filter side or sides, outputs, stride.
struct Conv {
    name: &'static str,
    images: [usize; 4],
    window: [usize; 2],
    outputs: usize,
    stride: usize,
}

const CONVS: &[Conv] = &[
    Conv { name: "convnet 1", images: [64, 28, 28, 1], window: [5, 5], outputs: 32, stride: 1 },
    Conv { name: "convnet 2", images: [64, 14, 14, 32], window: [5, 5], outputs: 64, stride: 1 },
    Conv { name: "stem", images: [4, 224, 224, 3], window: [7, 7], outputs: 64, stride: 2 },
    Conv { name: "reduce", images: [8, 28, 28, 192], window: [1, 1], outputs: 96, stride: 1 },
    Conv { name: "3x3", images: [8, 28, 28, 96], window: [3, 3], outputs: 128, stride: 1 },
    Conv { name: "5x5", images: [8, 14, 14, 48], window: [5, 5], outputs: 64, stride: 1 },
    Conv { name: "1x7", images: [8, 17, 17, 128], window: [1, 7], outputs: 192, stride: 1 },
    Conv { name: "3x3 / 2", images: [8, 17, 17, 192], window: [3, 3], outputs: 320, stride: 2 },
    Conv { name: "last", images: [8, 7, 7, 832], window: [1, 1], outputs: 384, stride: 1 },
];

/// Runs all of them.
pub fn run(report: &mut Report) -> Result<(), BenchError> {
    for threads in [1, 2] {
        let peak = matmul(threads)?;
        report.add(format!("matmul 1024, {threads} threads"), peak, "GFLOP/s");
        for conv in CONVS {
            convolution(report, conv, threads, peak)?;
        }
        pools(report, threads)?;
        lstm(report, threads, peak)?;
    }
    Ok(())
}

/// Least nanoseconds of a step.
fn least(step: &Callable<'_>, feeds: &[Tensor], threads: usize) -> Result<f64, BenchError> {
    let mut least = f64::INFINITY;
    let (mut spent, mut n) = (0.0, 0);
    while n < 5 || (spent < 4e8 && n < 200) {
        let begin = now(threads);
        step.run(feeds)?;
        let ns = (now(threads) - begin) as f64;
        (least, spent, n) = (least.min(ns), spent + ns, n + 1);
    }
    Ok(least)
}

fn ints(shape: &[usize]) -> Tensor {
    Tensor::vector(&shape.iter().map(|d| *d as i32).collect::<Vec<_>>())
}

fn matmul(threads: usize) -> Result<f64, BenchError> {
    let g = Graph::new();
    let (a, b) = (placeholder(&g, "a"), placeholder(&g, "b"));
    g.add_node("MatMul").name("c").input(a).input(b).value();
    let s = session(&g, threads)?;
    let feeds = [values(&[1024, 1024])?, values(&[1024, 1024])?];
    let ns = least(&s.prepare(&["a", "b"], &["c"], &[])?, &feeds, threads)?;
    Ok(2.0 * 1024f64.powi(3) / ns)
}

fn convolution(report: &mut Report, conv: &Conv, threads: usize, peak: f64) -> Result<(), BenchError> {
    let [batch, height, width, channels] = conv.images;
    let [ky, kx] = conv.window;
    let filter = [ky, kx, channels, conv.outputs];
    let out = [batch, height.div_ceil(conv.stride), width.div_ceil(conv.stride), conv.outputs];
    let g = Graph::new();
    let [x, w, dy] = ["x", "w", "dy"].map(|name| placeholder(&g, name));
    let strides = Attr::ListInt(vec![1, conv.stride as i64, conv.stride as i64, 1]);
    let (x_sizes, w_sizes) = (g.constant(ints(&conv.images)), g.constant(ints(&filter)));
    let ops = [
        ("forward", "Conv2D", [x, w, w], 2),
        ("to input", "Conv2DBackpropInput", [x_sizes, w, dy], 3),
        ("to filter", "Conv2DBackpropFilter", [x, w_sizes, dy], 3),
    ];
    for (name, op, inputs, n) in ops {
        let node = g.add_node(op).name(&name.replace(' ', "_"));
        let node = inputs[..n].iter().fold(node, |node, input| node.input(*input));
        node.attr("strides", strides.clone()).attr("padding", "SAME").value();
    }
    let s = session(&g, threads)?;
    let (x, w, dy) = (values(&conv.images)?, values(&filter)?, values(&out)?);
    let flops = 2.0 * (out.iter().product::<usize>() * ky * kx * channels) as f64;
    let cases = [
        ("forward", ["x", "w"], [x.clone(), w.clone()]),
        ("to input", ["w", "dy"], [w, dy.clone()]),
        ("to filter", ["x", "dy"], [x, dy]),
    ];
    for (name, names, feeds) in cases {
        let ns = least(&s.prepare(&names, &[], &[&name.replace(' ', "_")])?, &feeds, threads)?;
        let case = format!("{} {:?} {ky}x{kx} -> {} {name}, {threads} threads", conv.name, conv.images, conv.outputs);
        report.add(format!("{case} (share of peak {:.2})", flops / ns / peak), flops / ns, "GFLOP/s");
    }
    Ok(())
}

/// The convnet's pools and rectifiers.
fn pools(report: &mut Report, threads: usize) -> Result<(), BenchError> {
    for shape in [[64, 28, 28, 32], [64, 14, 14, 64]] {
        let half = [shape[0], shape[1] / 2, shape[2] / 2, shape[3]];
        let g = Graph::new();
        let [x, y, dy, b, dx] = ["x", "y", "dy", "b", "dx"].map(|name| placeholder(&g, name));
        x.max_pool([2, 2], [2, 2], Padding::Same);
        let two = Attr::ListInt(vec![1, 2, 2, 1]);
        let node = g.add_node("MaxPoolGrad").input(x).input(y).input(dy);
        node.attr("ksize", two.clone()).attr("strides", two).attr("padding", "SAME").value();
        x.relu();
        dx.op_with("ReluGrad", x);
        x.bias_add(b);
        x.op("BiasAddGrad");
        let s = session(&g, threads)?;
        let (x, bias) = (values(&shape)?, values(&[shape[3]])?);
        let y = s.run(&[("x", x.clone())], &["MaxPool"], &[])?.remove(0);
        let dy = values(&half)?;
        let cases = [
            ("MaxPool", vec![("x", x.clone())]),
            ("MaxPoolGrad", vec![("x", x.clone()), ("y", y), ("dy", dy)]),
            ("Relu", vec![("x", x.clone())]),
            ("ReluGrad", vec![("x", x.clone()), ("dx", x.clone())]),
            ("BiasAdd", vec![("x", x.clone()), ("b", bias)]),
            ("BiasAddGrad", vec![("x", x)]),
        ];
        for (name, feeds) in cases {
            let names: Vec<&str> = feeds.iter().map(|(name, _)| *name).collect();
            let feeds: Vec<Tensor> = feeds.into_iter().map(|(_, value)| value).collect();
            let ns = least(&s.prepare(&names, &[], &[name])?, &feeds, threads)?;
            report.add(format!("{name} {shape:?}, {threads} threads"), ns / 1e3, "us");
        }
    }
    Ok(())
}

/// A cell of 256 units on 32 examples of 256 numbers, forward and back.
fn lstm(report: &mut Report, threads: usize, peak: f64) -> Result<(), BenchError> {
    let (batch, n) = (32, 256);
    let g = Graph::new();
    let shapes: [&[usize]; 8] = [&[batch, n], &[batch, n], &[batch, n], &[2 * n, 4 * n], &[n], &[n], &[n], &[4 * n]];
    let named = shapes.iter().enumerate().map(|(i, shape)| (format!("in{i}"), Shape::new(shape)));
    let inputs: Vec<_> = named.map(|(name, shape)| g.placeholder(&name, DType::F32, &shape)).collect();
    let node = g.add_node("LSTMBlockCell").name("cell");
    let cell = inputs.iter().fold(node, |node, input| node.input(*input)).value();
    let wanted = [0, 1, 2, 3, 7].map(|i: usize| inputs[i].output());
    let grads = ::engine::gradients::gradients(&g, &[cell.port(6).output()], &wanted, &[])?;
    let grads: Vec<_> = grads.iter().map(|o| o.node).collect();
    g.group("back", &grads);
    let s = session(&g, threads)?;
    let names: Vec<String> = (0..8).map(|i| format!("in{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let feeds = shapes.iter().map(|s| values(s)).collect::<Result<Vec<_>, _>>()?;
    let flops = 2.0 * (batch * 2 * n * 4 * n) as f64;
    for (name, target, times) in [("forward", "cell", 1.0), ("forward and back", "back", 3.0)] {
        let ns = least(&s.prepare(&names, &[], &[target])?, &feeds, threads)?;
        let rate = times * flops / ns;
        let case = format!("LSTM cell 32x256 {name}, {threads} threads (share of peak {:.2})", rate / peak);
        report.add(case, ns / 1e3, "us");
    }
    Ok(())
}
