//! Values that may be missing, which conditionals of TensorFlow 2 hand from a branch to its gradient.

use super::shapes::{Inferred, none, scalar};
use engine_core::ops::{Attr, InferContext, OP_TABLES, OpKind as K, OpSpec, op};

const COMPONENTS: &str = "output_types: list(type); output_shapes: list(shape)";

#[linkme::distributed_slice(OP_TABLES)]
static OPTIONAL: &[OpSpec] = &[
    op("OptionalFromValue", "components: Toutput_types -> optional: variant", "Toutput_types: list(type)", scalar),
    op("OptionalNone", "-> optional: variant", "", scalar),
    op("OptionalHasValue", "optional: variant -> has_value: bool", "", scalar),
    op("OptionalGetValue", "optional: variant -> components: output_types", COMPONENTS, components),
    op("_SwitchN", "data: T, output_index: int32 -> outputs: num_outs * T", "num_outs: int; T: type", none)
        .kind(K::SwitchN),
];

fn components(c: &mut InferContext<'_>) -> Inferred {
    if let Some(Attr::ListShape(shapes)) = c.attr("output_shapes").cloned() {
        let n = c.n_outputs();
        shapes.into_iter().take(n).enumerate().for_each(|(i, shape)| c.set(i, shape));
    }
    Ok(())
}
