//! Saving and restoring tensors (white paper, section 3.3).

use super::shapes::{Inferred, none, scalar};
use engine_core::ops::{InferContext, OP_TABLES, OpSpec, op, stateful};

const SHARDED: &str = "basename: string, shard: int32, num_shards: int32 -> filename: string";
const RESTORE: &str = "file_pattern: string, tensor_name: string -> tensor: dt";
const RESTORE_SLICE: &str = "file_pattern: string, tensor_name: string, shape_and_slice: string -> tensor: dt";

#[linkme::distributed_slice(OP_TABLES)]
static CHECKPOINT: &[OpSpec] = &[
    stateful("Save", "filename: string, tensor_names: string, data: T ->", "T: list(type)", none),
    stateful(
        "SaveSlices",
        "filename: string, tensor_names: string, shapes_and_slices: string, data: T ->",
        "T: list(type)",
        none,
    ),
    stateful(
        "SaveV2",
        "prefix: string, tensor_names: string, shape_and_slices: string, tensors: dtypes ->",
        "dtypes: list(type)",
        none,
    ),
    stateful("Restore", RESTORE, "dt: type; preferred_shard: int = -1", none),
    stateful("RestoreSlice", RESTORE_SLICE, "dt: type; preferred_shard: int = -1", none),
    stateful(
        "RestoreV2",
        "prefix: string, tensor_names: string, shape_and_slices: string -> tensors: dtypes",
        "dtypes: list(type)",
        restored,
    ),
    stateful(
        "MergeV2Checkpoints",
        "checkpoint_prefixes: string, destination_prefix: string ->",
        "delete_old_dirs: bool = true; allow_missing_files: bool = false",
        none,
    ),
    // What nodes' kernels hold themselves, of the task that runs this: as `Saver` has it in its checkpoints.
    stateful("_SaveStates", "prefix: string ->", "nodes: list(string)", none),
    stateful("_RestoreStates", "prefix: string ->", "nodes: list(string)", none),
    op("ShardedFilename", SHARDED, "", scalar),
    op("ShardedFilespec", "basename: string, num_shards: int32 -> filename: string", "", scalar),
];

/// The shapes of those that a spec names a part of, where the specs are constant.
fn restored(c: &mut InferContext<'_>) -> Inferred {
    let Some(specs) = c.value(2) else { return Ok(()) };
    for (i, spec) in specs.strings().unwrap_or_default().iter().enumerate().take(c.n_outputs()) {
        if let Ok(Some(spec)) = engine_core::checkpoint::SliceSpec::parse(&String::from_utf8_lossy(spec)) {
            c.set(i, spec.slice.shape());
        }
    }
    Ok(())
}
