//! `stepscope ops`: what the engine knows.

use serde_json::json;

use crate::args;
use crate::outcome::Outcome;

/// Lists every op with its inputs, outputs, attributes, and whether it has a kernel and a gradient.
pub fn run(args: &args::Ops) -> Outcome {
    let ops = engine::ops::all();
    for op in &ops {
        let kernel = engine::kernels::has_kernel(op.name, "CPU");
        let gradient = engine::gradients::rule(op.name).is_some();
        if args.json {
            println!("{}", describe(op, kernel, gradient));
        } else {
            let mark = |has: bool, word: &'static str| if has { word } else { "" };
            let attrs: Vec<&str> = op.attrs.iter().map(|attr| attr.name).collect();
            println!(
                "{:<38} {:<6} {:<8} {}",
                op.name,
                mark(kernel, "cpu"),
                mark(gradient, "gradient"),
                attrs.join(" ")
            );
        }
    }
    if !args.json {
        eprintln!("{} ops", ops.len());
    }
    Ok(())
}

fn describe(op: &engine::ops::OpDef, kernel: bool, gradient: bool) -> serde_json::Value {
    let names = |args: &[engine::ops::ArgDef]| args.iter().map(|arg| arg.name).collect::<Vec<_>>();
    let attrs: Vec<_> = op
        .attrs
        .iter()
        .map(|attr| {
            let allowed: Vec<&str> = attr.allowed.iter().map(|dtype| dtype.name()).collect();
            json!({ "name": attr.name, "kind": format!("{:?}", attr.kind), "dtypes": allowed })
        })
        .collect();
    json!({
        "name": op.name,
        "inputs": names(&op.inputs),
        "outputs": names(&op.outputs),
        "attrs": attrs,
        "stateful": op.stateful,
        "devices": if kernel { vec!["cpu"] } else { vec![] },
        "gradient": gradient,
    })
}
