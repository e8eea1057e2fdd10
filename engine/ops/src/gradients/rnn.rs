//! Gradients of recurrent cells and layers: of their states and outputs; the gates are kept for the way back only.

use super::rule::RuleResult;
use super::{GRADIENT_TABLES, GradientContext, GradientSpec, Rule::Function};
use engine_core::graph::{NodeBuilder, Value};
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static RNN: &[GradientSpec] = &[
    ("LSTMBlockCell", Function(cell)),
    ("BlockLSTM", Function(|c| layer(c, "BlockLSTMGrad"))),
    ("BlockLSTMV2", Function(|c| layer(c, "BlockLSTMGradV2"))),
    ("GRUBlockCell", Function(gru)),
];

/// Begins the node `op` of this node's first inputs and outputs, and `grads`.
fn way_back<'a>(
    c: &GradientContext<'a>,
    op: &'static str,
    (n_inputs, n_outputs): (usize, usize),
    grads: &[Value<'a>],
) -> NodeBuilder<'a> {
    let kept = (0..n_inputs).map(|i| c.input(i)).chain((0..n_outputs).map(|i| c.output(i)));
    kept.chain(grads.iter().copied()).fold(c.add_node(op), NodeBuilder::input)
}

fn has_peephole(c: &GradientContext<'_>) -> bool {
    c.node().flag("use_peephole").copied().unwrap_or(false)
}

/// The gradient of the weights that `x` is multiplied with, from that of the product.
fn of_weights<'a>(x: Value<'a>, grad: Value<'a>) -> Value<'a> {
    x.graph().add_node("MatMul").input(x).input(grad).attr("transpose_a", true).value()
}

fn side_by_side<'a>(c: &GradientContext<'a>, x: Value<'a>, h: Value<'a>) -> Value<'a> {
    let axis = c.graph().constant(Tensor::scalar(1i32));
    c.add_node("ConcatV2").inputs(&[x.output(), h.output()]).input(axis).value()
}

/// The columns of `of` below and from the width of `x` on.
fn apart<'a>(c: &GradientContext<'a>, of: Value<'a>, x: Value<'a>, h: Value<'a>) -> [Value<'a>; 2] {
    let (size_x, size_h) = (c.shape_of(x), c.shape_of(h));
    let (begin, middle) = (c.graph().ints(&[0, 0]), size_x * c.graph().ints(&[0, 1]));
    [c.op("Slice", &[of, begin, size_x]), c.op("Slice", &[of, middle, size_h])]
}

/// Inputs: x, cs_prev, h_prev, w, wci, wcf, wco, b; outputs: i, cs, f, o, ci, co, h.
fn cell(c: &GradientContext<'_>) -> RuleResult {
    let node = way_back(c, "LSTMBlockCellGrad", (8, 6), &[c.grad(1), c.grad(6)]);
    let back = node.attr("use_peephole", has_peephole(c)).value();
    let (x, h, w, gates) = (c.input(0), c.input(2), c.input(3), back.port(1));
    let xh_grad = c.add_node("MatMul").input(gates).input(w).attr("transpose_b", true).value();
    let [x_grad, h_prev_grad] = apart(c, xh_grad, x, h);
    c.set(0, x_grad);
    c.set(1, back);
    c.set(2, h_prev_grad);
    c.set(3, of_weights(side_by_side(c, x, h), gates));
    c.set(4, back.port(2));
    c.set(5, back.port(3));
    c.set(6, back.port(4));
    c.set(7, gates.op("BiasAddGrad"));
    Ok(())
}

/// Inputs: seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b; outputs: i, cs, f, o, ci, co, h.
fn layer(c: &GradientContext<'_>, op: &'static str) -> RuleResult {
    let node = way_back(c, op, (9, 7), &[c.grad(1), c.grad(6)]);
    let back = node.attr("use_peephole", has_peephole(c)).value();
    (0..8).for_each(|i| c.set(i + 1, back.port(i as u32)));
    Ok(())
}

/// Inputs: x, h_prev, w_ru, w_c, b_ru, b_c; outputs: r, u, c, h.
fn gru(c: &GradientContext<'_>) -> RuleResult {
    let back = way_back(c, "GRUBlockCellGrad", (6, 3), &[c.grad(3)]).value();
    let (x, h, r) = (c.input(0), c.input(1), c.output(0));
    let (of_new, of_gates) = (back.port(2), back.port(3));
    c.set(0, back);
    c.set(1, back.port(1));
    c.set(2, of_weights(side_by_side(c, x, h), of_gates));
    c.set(3, of_weights(side_by_side(c, x, h * r), of_new));
    c.set(4, of_gates.op("BiasAddGrad"));
    c.set(5, of_new.op("BiasAddGrad"));
    Ok(())
}
