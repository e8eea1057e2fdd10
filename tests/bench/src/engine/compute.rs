//! Kernels by themselves, and training steps of the demo's perceptron.

use ::engine::compile::{PIPELINE, Passes};
use ::engine::graph::Graph;
use ::engine::models::MlpOptions;
use ::engine::{DType, PartialShape, RunOptions, Tensor};

use super::setup::{least, now, placeholder, session, session_with, values};
use crate::report::{BenchError, Report};

/// Square matrix products.
pub(super) fn matmul(report: &mut Report, threads: usize) -> Result<(), BenchError> {
    for n in [64usize, 128, 256, 512, 1024, 2048] {
        let g = Graph::new();
        let (a, b) = (placeholder(&g, "a"), placeholder(&g, "b"));
        g.add_node("MatMul").name("c").input(a).input(b).value();
        let s = session(&g, threads)?;
        let step = s.prepare(&["a", "b"], &["c"], &[])?;
        let feeds = [values(&[n, n])?, values(&[n, n])?];
        let repeats = (4_000_000_000 / (n * n * n)).clamp(10, 400);
        let ns = least(repeats, threads, &mut None, || Ok(step.run(&feeds).map(drop)?))?;
        report.add(format!("matmul {n}, {threads} threads"), 2.0 * (n as f64).powi(3) / ns, "GFLOP/s");
    }
    Ok(())
}

/// What the perceptron runs besides products, at its shapes.
pub(super) fn kernels(report: &mut Report, threads: usize) -> Result<(), BenchError> {
    let g = Graph::new();
    let [x, b, w] = ["x", "b", "w"].map(|name| placeholder(&g, name));
    x.bias_add(b);
    x.op("BiasAddGrad");
    x.relu();
    g.constant(Tensor::string("w")).op_with("HistogramSummary", w);
    let (rate, momentum) = (g.constant(0.01f32), g.constant(0.9f32));
    let shape = PartialShape::from([512, 512]);
    let [var, accum] = ["var", "accum"].map(|name| {
        g.add_node("VarHandleOp").name(name).attr("dtype", DType::F32).attr("shape", shape.clone()).value()
    });
    for (name, handle) in [("init_var", var), ("init_accum", accum)] {
        g.add_node("AssignVariableOp").name(name).input(handle).input(w).value();
    }
    let apply = g.add_node("ResourceApplyMomentum").input(var).input(accum);
    apply.input(rate).input(w).input(momentum).value();
    let s = session(&g, threads)?;
    let (small, bias, large) = (values(&[128, 512])?, values(&[512])?, values(&[512, 512])?);
    for init in ["init_var", "init_accum"] {
        // A tensor of its own: updates happen in place.
        s.run(&[("w", values(&[512, 512])?)], &[], &[init])?;
    }
    let cases = [
        ("BiasAdd", "128x512", vec![("x", small.clone()), ("b", bias)]),
        ("BiasAddGrad", "128x512", vec![("x", small.clone())]),
        ("Relu", "128x512", vec![("x", small)]),
        ("ResourceApplyMomentum", "512x512", vec![("w", large.clone())]),
        ("HistogramSummary", "512x512", vec![("w", large)]),
    ];
    for (name, shape, feeds) in cases {
        let names: Vec<&str> = feeds.iter().map(|(name, _)| *name).collect();
        let feeds: Vec<Tensor> = feeds.into_iter().map(|(_, value)| value).collect();
        let step = s.prepare(&names, &[], &[name])?;
        let ns = least(300, threads, &mut None, || Ok(step.run(&feeds).map(drop)?))?;
        report.add(format!("{name} {shape}, {threads} threads"), ns / 1e3, "us per step");
    }
    Ok(())
}

/// Steps in which the perceptron converges, so that gradients and momentum come near zero.
const CONVERGED: usize = 4_000;

/// Training steps of the demo's perceptron, at first and after it converged.
pub(super) fn mlp(report: &mut Report, threads: usize) -> Result<(), BenchError> {
    let g = Graph::new();
    let model = ::engine::training::mlp(&g, &MlpOptions::default())?;
    let s = session(&g, threads)?;
    let name = |id| g.node(id).map(|node| node.name.to_string());
    let (x, labels, train) = (name(model.x.node)?, name(model.labels.node)?, name(model.train_op)?);
    s.run(&[], &[], &[&name(model.init)?])?;
    let step = s.prepare(&[&x, &labels], &[], &[&train])?;
    let batches = crate::demo::batches()?;
    let options = RunOptions { label: "train", ..RunOptions::default() };
    let mut i = 0;
    let mut train = |n_steps: usize| -> Result<f64, BenchError> {
        let mut ns = Vec::with_capacity(n_steps);
        for _ in 0..n_steps {
            let (x, y) = &batches[i % batches.len()];
            let feeds = [x.clone(), y.clone()];
            let begin = now(threads);
            step.run_step(&options, &feeds)?;
            ns.push(now(threads) - begin);
            i += 1;
        }
        ns.sort_unstable();
        Ok(ns[ns.len() / 2] as f64 / 1e6)
    };
    train(50)?;
    report.add(format!("mlp step, median of 200, {threads} threads"), train(200)?, "ms");
    train(CONVERGED)?;
    report.add(format!("mlp step after {CONVERGED}, median of 200, {threads} threads"), train(200)?, "ms");
    Ok(())
}

/// Training steps of the demo's perceptron with all passes, without each of them, and without any; nodes and time of each pass.
pub(super) fn passes(report: &mut Report) -> Result<(), BenchError> {
    let g = Graph::new();
    let model = ::engine::training::mlp(&g, &MlpOptions::default())?;
    let name = |id| g.node(id).map(|node| node.name.to_string());
    let (x, labels, train, init) =
        (name(model.x.node)?, name(model.labels.node)?, name(model.train_op)?, name(model.init)?);
    let without = PIPELINE.iter().filter(|pass| pass.is_optional);
    let without = without.map(|pass| (format!("without {}", pass.name), Passes::all().without(pass.name)));
    let all = [("all passes".to_owned(), Passes::all()), ("no passes".to_owned(), Passes::none())];
    let sets: Vec<(String, Passes)> = all.into_iter().chain(without).collect();
    let sessions = sets.iter().map(|(_, passes)| session_with(&g, 1, passes.clone())).collect::<Result<Vec<_>, _>>()?;
    let mut steps = Vec::new();
    for s in &sessions {
        s.run(&[], &[], &[&init])?;
        steps.push((s.prepare(&[&x, &labels], &[], &[&train])?, Vec::new()));
    }
    let batches = crate::demo::batches()?;
    for round in 0..300 {
        // In turns: a slow moment of the machine hits all.
        for (step, ns) in &mut steps {
            let (x, y) = &batches[round % batches.len()];
            let begin = now(1);
            step.run(&[x.clone(), y.clone()])?;
            ns.push(now(1) - begin);
        }
    }
    for ((what, _), (step, ns)) in sets.iter().zip(&mut steps) {
        ns.sort_unstable();
        report.add(format!("mlp step, 1 thread, {what}: nodes"), step.n_nodes() as f64, "nodes");
        report.add(format!("mlp step, 1 thread, {what}: median"), ns[ns.len() / 2] as f64 / 1e6, "ms");
    }
    for pass in sessions[0].inspect(&[&x, &labels], &[], &[&train])?.passes {
        report.add(format!("mlp plan, pass {}: nodes left", pass.name), pass.n_after as f64, "nodes");
        report.add(format!("mlp plan, pass {}: time", pass.name), pass.elapsed_ns as f64 / 1e3, "us");
    }
    Ok(())
}

/// The element-wise part of an LSTM cell at several sizes, its nodes fused and each on its own.
pub(super) fn fusion(report: &mut Report, threads: usize) -> Result<(), BenchError> {
    for (rows, columns) in [(8usize, 64usize), (64, 512), (1024, 1024)] {
        let g = Graph::new();
        let names = ["i", "f", "o", "g", "c"];
        let [i, f, o, new, c] = names.map(|name| placeholder(&g, name));
        let b = g.constant(Tensor::vector(&vec![1.0f32; columns]));
        let c = (f + b).sigmoid() * c + (i + b).sigmoid() * (new + b).tanh();
        let h = (o + b).sigmoid() * c.tanh();
        let [c, h] = [c, h].map(|x| g.node(x.node()).map(|node| node.name.to_string()));
        let (c, h) = (c?, h?);
        let feeds = names.iter().map(|_| values(&[rows, columns])).collect::<Result<Vec<_>, _>>()?;
        for (what, passes) in [("fused", Passes::all()), ("not fused", Passes::all().without("fuse"))] {
            let s = session_with(&g, threads, passes)?;
            let step = s.prepare(&names, &[&c, &h], &[])?;
            let ns = least(200, threads, &mut None, || Ok(step.run(&feeds).map(drop)?))?;
            report.add(format!("lstm gates {rows}x{columns}, {threads} threads, {what}"), ns / 1e3, "us per step");
        }
    }
    Ok(())
}
