//! `stepscope ops`: lists the engine's ops.

use serde_json::json;

use crate::args;
use crate::out;
use crate::outcome::Outcome;

/// Lists every op with its inputs, outputs, attributes, the element types and devices of its kernels, and whether it
/// has a gradient.
pub fn run(args: &args::Ops) -> Outcome {
    let ops = engine::ops::all();
    for op in &ops {
        let registered = Registrations::for_op(op.name);
        if args.json {
            out::object(1, describe(op, &registered));
        } else {
            let attrs: Vec<&str> = op.attrs.iter().map(|attr| attr.name).collect();
            say!(
                "{:<38} {:<6} {:<8} {:<40} {}",
                op.name,
                registered.devices.join(","),
                registered.gradient,
                registered.dtypes.join(","),
                attrs.join(" ")
            );
        }
    }
    if !args.json {
        note!("{} ops", ops.len());
    }
    Ok(())
}

/// The kernels and the gradient that are registered for an op.
struct Registrations {
    devices: Vec<String>,
    /// The dtypes by which kernels are chosen; empty where a kernel takes any dtype.
    dtypes: Vec<&'static str>,
    /// `gradient`; `zero` where the gradient is zero; empty where there is none.
    gradient: &'static str,
}

impl Registrations {
    fn for_op(op: &str) -> Registrations {
        let kernels = engine::kernels::registered(op);
        let mut devices: Vec<String> = kernels.iter().map(|kernel| kernel.device.to_lowercase()).collect();
        devices.sort();
        devices.dedup();
        let mut dtypes: Vec<_> = kernels.iter().flat_map(|kernel| kernel.dtypes).copied().collect();
        if kernels.iter().any(|kernel| kernel.dtypes.is_empty()) {
            dtypes.clear();
        }
        dtypes.sort_unstable();
        dtypes.dedup();
        let gradient = match engine::gradients::rule(op) {
            Some(engine::gradients::Rule::Zero) => "zero",
            Some(_) => "gradient",
            None => "",
        };
        Registrations { devices, dtypes: dtypes.iter().map(|dtype| dtype.name()).collect(), gradient }
    }
}

fn describe(op: &engine::ops::OpDef, registered: &Registrations) -> serde_json::Value {
    let names = |args: &[engine::ops::ArgDef]| args.iter().map(|arg| arg.name).collect::<Vec<_>>();
    let attrs: Vec<_> = op
        .attrs
        .iter()
        .map(|attr| {
            let allowed: Vec<&str> = attr.allowed.iter().map(|dtype| dtype.name()).collect();
            let default = attr.default.as_ref().map(ToString::to_string);
            json!({ "name": attr.name, "kind": format!("{:?}", attr.kind), "dtypes": allowed, "default": default })
        })
        .collect();
    json!({
        "name": op.name,
        "inputs": names(&op.inputs),
        "outputs": names(&op.outputs),
        "attrs": attrs,
        "stateful": op.is_stateful(),
        "devices": registered.devices,
        "dtypes": registered.dtypes,
        "gradient": !registered.gradient.is_empty(),
    })
}
