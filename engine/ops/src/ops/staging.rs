//! Staging areas and barriers: where steps leave rows for others without a handle, and where rows are put together.

use super::shapes::{Inferred, none, scalar};
use engine_core::ops::{InferContext, OP_TABLES, OpSpec, stateful};
use engine_core::shape::PartialShape;

const AREA: &str = "capacity: int = 0; memory_limit: int = 0; dtypes: list(type); container: string = ''; \
                    shared_name: string = ''";
const BARRIER: &str = "component_types: list(type); shapes: list(shape) = []; capacity: int = -1; \
                       container: string = ''; shared_name: string = ''";
const INSERT: &str = "handle: resource, keys: string, values: T ->";
const TAKE: &str = "handle: resource, num_elements: int32 -> indices: int64, keys: string, values: component_types";
const TAKEN: &str = "component_types: list(type); allow_small_batch: bool = false; \
                     wait_for_incomplete: bool = false; timeout_ms: int = -1";

#[linkme::distributed_slice(OP_TABLES)]
static STAGING: &[OpSpec] = &[
    stateful("Stage", "values: dtypes ->", AREA, none),
    stateful("Unstage", "-> values: dtypes", AREA, none),
    stateful("StagePeek", "index: int32 -> values: dtypes", AREA, none),
    stateful("StageSize", "-> size: int32", AREA, scalar),
    stateful("StageClear", "->", AREA, none),
    stateful("Barrier", "-> handle: resource", BARRIER, scalar),
    stateful("BarrierInsertMany", INSERT, "T: type; component_index: int", none),
    stateful("BarrierTakeMany", TAKE, TAKEN, taken),
    stateful("BarrierClose", "handle: resource ->", "cancel_pending_enqueues: bool = false", none),
    stateful("BarrierReadySize", "handle: resource -> size: int32", "", scalar),
    stateful("BarrierIncompleteSize", "handle: resource -> size: int32", "", scalar),
];

fn taken(c: &mut InferContext<'_>) -> Inferred {
    c.set(0, PartialShape::of_rank(1));
    c.set(1, PartialShape::of_rank(1));
    Ok(())
}
