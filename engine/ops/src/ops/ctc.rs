//! Connectionist temporal classification: labels of a sequence whose alignment with the input is not known.

use super::shapes::Inferred;
use engine_core::ops::{InferContext, OP_TABLES, OpSpec, op};
use engine_core::shape::PartialShape;

const LOSS_IN: &str =
    "inputs: T, labels_indices: int64, labels_values: int32, sequence_length: int32 -> loss: T, gradient: T";
const LOSS_V2_IN: &str = "inputs: float, labels_indices: int64, labels_values: int32, sequence_length: int32 -> loss: float, gradient: float";
const LOSS: &str = "preprocess_collapse_repeated: bool = false; ctc_merge_repeated: bool = true; \
                    ignore_longer_outputs_than_inputs: bool = false; T: {float, double} = float";
const LOSS_V2: &str = "preprocess_collapse_repeated: bool = false; ctc_merge_repeated: bool = true; \
                       ignore_longer_outputs_than_inputs: bool = false";
const GREEDY_IN: &str = "inputs: T, sequence_length: int32 -> decoded_indices: int64, decoded_values: int64, \
                         decoded_shape: int64, log_probability: T";

#[linkme::distributed_slice(OP_TABLES)]
static CTC: &[OpSpec] = &[
    op("CTCLoss", LOSS_IN, LOSS, loss),
    op("CTCLossV2", LOSS_V2_IN, LOSS_V2, loss),
    op(
        "CTCGreedyDecoder",
        GREEDY_IN,
        "merge_repeated: bool = false; blank_index: int = -1; T: {float, double} = float",
        decoded,
    ),
];

fn loss(c: &mut InferContext<'_>) -> Inferred {
    let inputs = c.of_rank(0, 3)?;
    c.set(0, [inputs.dims().and_then(|d| d[1])]);
    c.set(1, inputs);
    Ok(())
}

fn decoded(c: &mut InferContext<'_>) -> Inferred {
    let inputs = c.of_rank(0, 3)?;
    c.set(0, [None, Some(2)]);
    c.set(1, PartialShape::of_rank(1));
    c.set(2, [Some(2)]);
    c.set(3, [inputs.dims().and_then(|d| d[1]), Some(1)]);
    Ok(())
}
