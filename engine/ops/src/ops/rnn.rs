//! Recurrent cells and layers, fused: long short-term memory and gated recurrent units.

use super::shapes::Inferred;
use engine_core::ops::{InferContext, OP_TABLES, OpSpec, ShapeError, op};
use engine_core::shape::PartialShape;

const CELL: &str = "forget_bias: float = 1; cell_clip: float = 3; use_peephole: bool = false; T: {floats}";
const LAYER_V2: &str = "cell_clip: float = 0; use_peephole: bool = false; T: {floats}";
const GRAD: &str = "use_peephole: bool; T: {floats}";
const GRU: &str = "T: {floats}";
const LAYER_IN: &str = "seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T -> \
                        i: T, cs: T, f: T, o: T, ci: T, co: T, h: T";
const LAYER_GRAD: &str = "seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T, \
                          i: T, cs: T, f: T, o: T, ci: T, co: T, h: T, cs_grad: T, h_grad: T -> x_grad: T, \
                          cs_prev_grad: T, h_prev_grad: T, w_grad: T, wci_grad: T, wcf_grad: T, wco_grad: T, \
                          b_grad: T";

#[linkme::distributed_slice(OP_TABLES)]
static RNN: &[OpSpec] = &[
    op(
        "LSTMBlockCell",
        "x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T -> \
         i: T, cs: T, f: T, o: T, ci: T, co: T, h: T",
        CELL,
        |c| {
            let state = c.merge(&c.of_rank(1, 2)?, &c.of_rank(2, 2)?)?;
            c.of_rank(0, 2)?;
            (0..7).for_each(|i| c.set(i, state.clone()));
            Ok(())
        },
    ),
    op(
        "LSTMBlockCellGrad",
        "x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T, i: T, cs: T, f: T, o: T, ci: T, co: T, \
         cs_grad: T, h_grad: T -> cs_prev_grad: T, dicfo: T, wci_grad: T, wcf_grad: T, wco_grad: T",
        GRAD,
        cell_grad,
    ),
    op("BlockLSTM", LAYER_IN, CELL, layer),
    op("BlockLSTMV2", LAYER_IN, LAYER_V2, layer),
    op("BlockLSTMGrad", LAYER_GRAD, GRAD, layer_grad),
    op("BlockLSTMGradV2", LAYER_GRAD, GRAD, layer_grad),
    op("GRUBlockCell", "x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T -> r: T, u: T, c: T, h: T", GRU, |c| {
        let state = c.of_rank(1, 2)?;
        (0..4).for_each(|i| c.set(i, state.clone()));
        Ok(())
    }),
    op(
        "GRUBlockCellGrad",
        "x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T, r: T, u: T, c: T, d_h: T -> \
         d_x: T, d_h_prev: T, d_c_bar: T, d_r_bar_u_bar: T",
        GRU,
        |c| {
            let (x, state) = (c.of_rank(0, 2)?, c.of_rank(1, 2)?);
            let dims = state.dims().map_or([None, None], |d| [d[0], d[1].and_then(|n| n.checked_mul(2))]);
            c.set(0, x);
            c.set(1, state.clone());
            c.set(2, state);
            c.set(3, dims);
            Ok(())
        },
    ),
];

fn cell_grad(c: &mut InferContext<'_>) -> Inferred {
    let state = c.of_rank(1, 2)?;
    let gates = state.dims().map_or([None, None], |d| [d[0], d[1].and_then(|n| n.checked_mul(4))]);
    c.set(0, state);
    c.set(1, gates);
    for (output, input) in [(2, 4), (3, 5), (4, 6)] {
        let shape = c.of_rank(input, 1)?;
        c.set(output, shape);
    }
    Ok(())
}

fn layer(c: &mut InferContext<'_>) -> Inferred {
    let (x, state) = (c.of_rank(1, 3)?, c.of_rank(2, 2)?);
    let x = x.dims().map_or([None; 3], |d| [d[0], d[1], d[2]]);
    let units = state.dims().and_then(|d| d[1]);
    if let (Some(rows), Some(inputs), Some(units)) = (c.of_rank(4, 2)?.dims().and_then(|d| d[0]), x[2], units)
        && Some(rows) != inputs.checked_add(units)
    {
        return Err(ShapeError(format!("w has {rows} rows for {inputs} inputs and {units} units")));
    }
    (0..7).for_each(|i| c.set(i, [x[0], x[1], units]));
    Ok(())
}

fn layer_grad(c: &mut InferContext<'_>) -> Inferred {
    for (output, input) in (1..9).enumerate() {
        let shape: PartialShape = c.input(input);
        c.set(output, shape);
    }
    Ok(())
}
