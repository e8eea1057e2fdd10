//! Gradients of recurrent cells and layers: of their states and outputs; the gates are kept for the way back only.

use super::{GRADIENT_TABLES, GradientContext, GradientError, GradientSpec, Rule::Function};
use crate::graph::{Attr, Output};
use crate::tensor::Tensor;

type Done = Result<(), GradientError>;
type Added = Result<Output, GradientError>;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static RNN: &[GradientSpec] = &[
    ("LSTMBlockCell", Function(cell)),
    ("BlockLSTM", Function(|c| layer(c, "BlockLSTMGrad"))),
    ("BlockLSTMV2", Function(|c| layer(c, "BlockLSTMGradV2"))),
    ("GRUBlockCell", Function(gru)),
];

fn peephole(c: &GradientContext<'_>) -> [(&'static str, Attr); 1] {
    [("use_peephole", Attr::Bool(c.node().flag("use_peephole").copied().unwrap_or(false)))]
}

fn product(c: &mut GradientContext<'_>, a: Output, b: Output, ta: bool, tb: bool) -> Added {
    c.op_with("MatMul", &[a, b], &[("transpose_a", Attr::Bool(ta)), ("transpose_b", Attr::Bool(tb))])
}

/// `x` and `h` side by side.
fn side_by_side(c: &mut GradientContext<'_>, x: Output, h: Output) -> Added {
    let one = c.constant(Tensor::scalar(1i32))?;
    c.op_of_list("ConcatV2", &[x, h], &[one], &[])
}

/// The columns of `of` below and from the width of `x` on.
fn apart(c: &mut GradientContext<'_>, of: Output, x: Output, h: Output) -> Result<[Output; 2], GradientError> {
    let begin = c.vector(&[0i32, 0])?;
    let (size_x, size_h) = (c.shape_of(x)?, c.shape_of(h)?);
    let mask = c.vector(&[0i32, 1])?;
    let middle = c.op("Mul", &[size_x, mask])?;
    Ok([c.op("Slice", &[of, begin, size_x])?, c.op("Slice", &[of, middle, size_h])?])
}

/// Inputs: x, cs_prev, h_prev, w, wci, wcf, wco, b; outputs: i, cs, f, o, ci, co, h.
fn cell(c: &mut GradientContext<'_>) -> Done {
    let (cs_grad, h_grad) = (c.grad(1)?, c.grad(6)?);
    let mut inputs: Vec<Output> = (0..8).map(|i| c.input(i)).collect();
    inputs.extend((0..6).map(|i| c.output(i)));
    inputs.extend([cs_grad, h_grad]);
    let attrs = peephole(c);
    let back = c.op_with("LSTMBlockCellGrad", &inputs, &attrs)?;
    let port = |port| Output { port, ..back };
    let (x, h, w, gates) = (c.input(0), c.input(2), c.input(3), port(1));
    let xh_grad = product(c, gates, w, false, true)?;
    let [x_grad, h_prev_grad] = apart(c, xh_grad, x, h)?;
    let xh = side_by_side(c, x, h)?;
    let w_grad = product(c, xh, gates, true, false)?;
    let b_grad = c.op("BiasAddGrad", &[gates])?;
    let grads = [x_grad, port(0), h_prev_grad, w_grad, port(2), port(3), port(4), b_grad];
    grads.into_iter().enumerate().for_each(|(i, g)| c.set(i, g));
    Ok(())
}

/// Inputs: seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b; outputs: i, cs, f, o, ci, co, h.
fn layer(c: &mut GradientContext<'_>, op: &str) -> Done {
    let (cs_grad, h_grad) = (c.grad(1)?, c.grad(6)?);
    let mut inputs: Vec<Output> = (0..9).map(|i| c.input(i)).collect();
    inputs.extend((0..7).map(|i| c.output(i)));
    inputs.extend([cs_grad, h_grad]);
    let attrs = peephole(c);
    let back = c.op_with(op, &inputs, &attrs)?;
    (0..8).for_each(|i| c.set(i + 1, Output { port: i as u32, ..back }));
    Ok(())
}

/// Inputs: x, h_prev, w_ru, w_c, b_ru, b_c; outputs: r, u, c, h.
fn gru(c: &mut GradientContext<'_>) -> Done {
    let h_grad = c.grad(3)?;
    let mut inputs: Vec<Output> = (0..6).map(|i| c.input(i)).collect();
    inputs.extend((0..3).map(|i| c.output(i)));
    inputs.push(h_grad);
    let back = c.op("GRUBlockCellGrad", &inputs)?;
    let port = |port| Output { port, ..back };
    let (x, h, r) = (c.input(0), c.input(1), c.output(0));
    let (of_new, of_gates) = (port(2), port(3));
    let xh = side_by_side(c, x, h)?;
    let reset = c.op("Mul", &[h, r])?;
    let xr = side_by_side(c, x, reset)?;
    let w_ru = product(c, xh, of_gates, true, false)?;
    let w_c = product(c, xr, of_new, true, false)?;
    let (b_ru, b_c) = (c.op("BiasAddGrad", &[of_gates])?, c.op("BiasAddGrad", &[of_new])?);
    let grads = [port(0), port(1), w_ru, w_c, b_ru, b_c];
    grads.into_iter().enumerate().for_each(|(i, g)| c.set(i, g));
    Ok(())
}
