//! Recurrent operators, step by step, with this engine's cells.

use engine::Tensor;
use engine::graph::{Attr, Value};

use super::super::map::{Map, MapError, Mapped, One, longs};

pub fn map(m: &Map) -> Option<Mapped<'_>> {
    let n_gates = match m.node.op_type.as_str() {
        "RNN" => 1,
        "GRU" => 3,
        "LSTM" => 4,
        _ => return None,
    };
    Some(layer(m, n_gates))
}

/// What a layer reads at each step: weights with inputs and state above each other, gates next to each other.
#[derive(Clone, Copy)]
struct Weights<'g> {
    w: Value<'g>,
    bias: Value<'g>,
    /// How much of the cell's state each of input, forget and output gate sees.
    peepholes: [Value<'g>; 3],
    hidden: usize,
}

fn layer(m: &Map, n_gates: usize) -> Mapped<'_> {
    let plain = m.text("direction", "forward") == "forward" && !m.has_attr("activations") && !m.has_attr("clip");
    let variant = m.int("linear_before_reset", 0) != 0 || m.int("input_forget", 0) != 0;
    if !plain || variant || m.has(4) {
        return Err(m.uncovered("of other directions, activations, lengths or variants"));
    }
    let by_batch = m.int("layout", 0) != 0;
    let dims = m.dims(0)?;
    let (steps, batch) = if by_batch { (dims[1], dims[0]) } else { (dims[0], dims[1]) };
    let weights = weights(m, n_gates, dims[2])?;
    let state = [batch, weights.hidden];
    let initial = |i: usize| -> One<'_> { Ok(if m.has(i) { m.reshape(m.x(i)?, &state) } else { zeros(m, &state) }) };
    let (mut h, mut c) = (initial(5)?, initial(6)?);
    let time = m.scalar(i64::from(by_batch));
    let mut all = Vec::new();
    for t in 0..steps {
        let x = m.op("GatherV2", &[m.x(0)?, m.scalar(t as i64), time]);
        (h, c) = step(m, weights, x, h, c);
        all.push(h);
    }
    let at = ("axis", Attr::Int(i64::from(by_batch)));
    let y = m.op_of_list("Pack", &all, &[], &[at]).expand_dims(if by_batch { 2 } else { 1 });
    Ok(vec![y, h.expand_dims(time), c.expand_dims(time)])
}

fn zeros<'g>(m: &'g Map, dims: &[usize]) -> Value<'g> {
    m.op("Fill", &[m.longs(&longs(dims)), m.constant(Tensor::scalar(0f32))])
}

/// The blocks `order` of input `i` `[1, n * hidden, ...]`, one after the other.
fn blocks<'g>(m: &'g Map, i: usize, order: &[usize], hidden: usize) -> One<'g> {
    let rows: Vec<usize> = order.iter().flat_map(|g| g * hidden..(g + 1) * hidden).collect();
    Ok(m.gather(m.reshape(m.x(i)?, &m.dims(i)?[1..]), &longs(&rows), 0))
}

/// ONNX's gates are z r h and i o f c; the cells' are r z h and i c f o.
fn weights(m: &Map, n_gates: usize, n_inputs: usize) -> Result<Weights<'_>, MapError> {
    let order: &[usize] = match n_gates {
        1 => &[0],
        3 => &[1, 0, 2],
        _ => &[0, 3, 2, 1],
    };
    let hidden = m.dims(2)?[2];
    let above =
        m.op_of_list("ConcatV2", &[blocks(m, 1, order, hidden)?, blocks(m, 2, order, hidden)?], &[m.scalar(1)], &[]);
    let w = m.transpose(above, &[1, 0]);
    debug_assert_eq!(m.shape(w)?, [n_inputs + hidden, n_gates * hidden]);
    let bias = if m.has(3) {
        let of_state: Vec<usize> = order.iter().map(|g| g + n_gates).collect();
        blocks(m, 3, order, hidden)? + blocks(m, 3, &of_state, hidden)?
    } else {
        zeros(m, &[n_gates * hidden])
    };
    let peephole = |g: usize| if m.has(7) { blocks(m, 7, &[g], hidden) } else { Ok(zeros(m, &[hidden])) };
    Ok(Weights { w, bias, peepholes: [peephole(0)?, peephole(2)?, peephole(1)?], hidden })
}

fn step<'g>(m: &'g Map, weights: Weights<'g>, x: Value<'g>, h: Value<'g>, c: Value<'g>) -> (Value<'g>, Value<'g>) {
    let Weights { w, bias, peepholes: [wci, wcf, wco], hidden } = weights;
    match m.node.op_type.as_str() {
        "LSTM" => {
            let attrs = [
                ("forget_bias", Attr::Float(0.0)),
                ("cell_clip", Attr::Float(-1.0)),
                ("use_peephole", Attr::Bool(m.has(7))),
            ];
            let cell = m.op_with("LSTMBlockCell", &[x, c, h, w, wci, wcf, wco, bias], &attrs);
            (cell.port(6), cell.port(1))
        }
        "GRU" => {
            let columns =
                |of: Value<'g>, from: usize, to: usize| m.gather(of, &(from as i64..to as i64).collect::<Vec<_>>(), -1);
            let (gates, all) = (2 * hidden, 3 * hidden);
            let (w_ru, w_c) = (columns(w, 0, gates), columns(w, gates, all));
            let (b_ru, b_c) = (columns(bias, 0, gates), columns(bias, gates, all));
            (m.op("GRUBlockCell", &[x, h, w_ru, w_c, b_ru, b_c]).port(3), c)
        }
        _ => {
            let both = m.op_of_list("ConcatV2", &[x, h], &[m.scalar(1)], &[]);
            ((both.matmul(w) + bias).tanh(), c)
        }
    }
}
