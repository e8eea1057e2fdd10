//! Gradients of rounding that stays in floats: they pass as if nothing had been rounded, within the range.

use super::{GRADIENT_TABLES, GradientContext, GradientError, GradientSpec, Rule::Function, Rule::Zero};
use crate::graph::{Attr, Output};

type Done = Result<(), GradientError>;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static QUANTIZED: &[GradientSpec] = &[
    ("QuantizeAndDequantizeV2", Function(straight)),
    ("QuantizeAndDequantizeV3", Function(straight)),
    ("QuantizeAndDequantizeV4", Function(within_range)),
    ("FakeQuantWithMinMaxArgs", Function(fake_args)),
    ("FakeQuantWithMinMaxVars", Function(|c| fake_vars(c, "FakeQuantWithMinMaxVarsGradient"))),
    ("FakeQuantWithMinMaxVarsPerChannel", Function(|c| fake_vars(c, "FakeQuantWithMinMaxVarsPerChannelGradient"))),
    ("QuantizeV2", Zero),
    ("RequantizationRange", Zero),
];

fn straight(c: &mut GradientContext<'_>) -> Done {
    let g = c.grad(0)?;
    c.set(0, g);
    Ok(())
}

/// The values of a node's attributes, for its gradient's node.
fn attrs(c: &GradientContext<'_>, names: &[&'static str]) -> Vec<(&'static str, Attr)> {
    names.iter().filter_map(|name| Some((*name, c.node().attrs.get(*name)?.clone()))).collect()
}

fn within_range(c: &mut GradientContext<'_>) -> Done {
    let g = c.grad(0)?;
    let attrs = attrs(c, &["axis"]);
    let first = c.op_with("QuantizeAndDequantizeV4Grad", &[g, c.input(0), c.input(1), c.input(2)], &attrs)?;
    (0..3).for_each(|i| c.set(i as usize, Output { port: i, ..first }));
    Ok(())
}

fn fake_args(c: &mut GradientContext<'_>) -> Done {
    let g = c.grad(0)?;
    let attrs = attrs(c, &["min", "max", "num_bits", "narrow_range"]);
    let of_inputs = c.op_with("FakeQuantWithMinMaxArgsGradient", &[g, c.input(0)], &attrs)?;
    c.set(0, of_inputs);
    Ok(())
}

fn fake_vars(c: &mut GradientContext<'_>, op: &str) -> Done {
    let g = c.grad(0)?;
    let attrs = attrs(c, &["num_bits", "narrow_range"]);
    let first = c.op_with(op, &[g, c.input(0), c.input(1), c.input(2)], &attrs)?;
    (0..3).for_each(|i| c.set(i as usize, Output { port: i, ..first }));
    Ok(())
}
