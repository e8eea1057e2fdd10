//! Lookup tables: keys to values, between steps.
//!
//! The first versions of the ops, whose handles TensorFlow passes as references to strings, take resources here too.

use super::shapes::{Inferred, none, scalar};
use engine_core::ops::{Attr, InferContext, OP_TABLES, OpSpec, reads, stateful};
use engine_core::shape::PartialShape;

const MAKE: &str = "-> table_handle: resource";
const MAKE_DENSE: &str = "empty_key: key_dtype, deleted_key: key_dtype -> table_handle: resource";
const SHARED: &str = "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; \
                      key_dtype: type; value_dtype: type";
const OF_TENSORS: &str = "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; \
                          key_dtype: type; value_dtype: type; value_shape: shape = []";
const DENSE: &str = "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; \
                     key_dtype: type; value_dtype: type; value_shape: shape = []; initial_num_buckets: int = 131072; \
                     max_load_factor: float = 0.8";
const ANONYMOUS: &str = "key_dtype: type; value_dtype: type";
const ANONYMOUS_OF_TENSORS: &str = "key_dtype: type; value_dtype: type; value_shape: shape = []";
const ANONYMOUS_DENSE: &str = "key_dtype: type; value_dtype: type; value_shape: shape = []; \
                               initial_num_buckets: int = 131072; max_load_factor: float = 0.8";
const FIND: &str = "table_handle: resource, keys: Tin, default_value: Tout -> values: Tout";
const PUT: &str = "table_handle: resource, keys: Tin, values: Tout ->";
const REMOVE: &str = "table_handle: resource, keys: Tin ->";
const SIZE: &str = "table_handle: resource -> size: int64";
const EXPORT: &str = "table_handle: resource -> keys: Tkeys, values: Tvalues";
const INITIALIZE: &str = "table_handle: resource, keys: Tkey, values: Tval ->";
const FROM_FILE: &str = "table_handle: resource, filename: string ->";
const LINES: &str = "key_index: int; value_index: int; vocab_size: int = -1; delimiter: string = '\t'; offset: int = 0";
const IN_OUT: &str = "Tin: type; Tout: type";
const KEYS_VALUES: &str = "Tkeys: type; Tvalues: type";
const KEY_VAL: &str = "Tkey: type; Tval: type";

#[linkme::distributed_slice(OP_TABLES)]
static TABLES: &[OpSpec] = &[
    stateful("HashTable", MAKE, SHARED, scalar),
    stateful("HashTableV2", MAKE, SHARED, scalar),
    stateful("MutableHashTable", MAKE, SHARED, scalar),
    stateful("MutableHashTableV2", MAKE, SHARED, scalar),
    stateful("MutableHashTableOfTensors", MAKE, OF_TENSORS, scalar),
    stateful("MutableHashTableOfTensorsV2", MAKE, OF_TENSORS, scalar),
    stateful("MutableDenseHashTable", MAKE_DENSE, DENSE, scalar),
    stateful("MutableDenseHashTableV2", MAKE_DENSE, DENSE, scalar),
    stateful("AnonymousHashTable", MAKE, ANONYMOUS, scalar),
    stateful("AnonymousMutableHashTable", MAKE, ANONYMOUS, scalar),
    stateful("AnonymousMutableHashTableOfTensors", MAKE, ANONYMOUS_OF_TENSORS, scalar),
    stateful("AnonymousMutableDenseHashTable", MAKE_DENSE, ANONYMOUS_DENSE, scalar),
    reads("LookupTableFind", FIND, IN_OUT, found),
    reads("LookupTableFindV2", FIND, IN_OUT, found),
    stateful("LookupTableInsert", PUT, IN_OUT, none),
    stateful("LookupTableInsertV2", PUT, IN_OUT, none),
    stateful("LookupTableRemoveV2", REMOVE, "Tin: type", none),
    reads("LookupTableSize", SIZE, "", scalar),
    reads("LookupTableSizeV2", SIZE, "", scalar),
    reads("LookupTableExport", EXPORT, KEYS_VALUES, exported),
    reads("LookupTableExportV2", EXPORT, KEYS_VALUES, exported),
    stateful("LookupTableImport", PUT, IN_OUT, none),
    stateful("LookupTableImportV2", PUT, IN_OUT, none),
    stateful("InitializeTable", INITIALIZE, KEY_VAL, none),
    stateful("InitializeTableV2", INITIALIZE, KEY_VAL, none),
    stateful("InitializeTableFromTextFile", FROM_FILE, LINES, none),
    stateful("InitializeTableFromTextFileV2", FROM_FILE, LINES, none),
];

/// The shape of a value and whether keys are scalars, where the handle comes straight from the table's node.
fn value_shape(c: &InferContext<'_>) -> Option<PartialShape> {
    match c.source_op(0)? {
        "HashTable" | "HashTableV2" | "AnonymousHashTable" => Some(PartialShape::scalar()),
        "MutableHashTable" | "MutableHashTableV2" | "AnonymousMutableHashTable" => Some(PartialShape::scalar()),
        "MutableHashTableOfTensors" | "MutableHashTableOfTensorsV2" | "AnonymousMutableHashTableOfTensors" => {
            match c.source_attr(0, "value_shape") {
                Some(Attr::Shape(shape)) => Some(shape.clone()),
                _ => None,
            }
        }
        // Keys of a dense table may be tensors too.
        _ => None,
    }
}

fn found(c: &mut InferContext<'_>) -> Inferred {
    if let (Some(value), Some(keys)) = (value_shape(c), c.input(1).dims())
        && let Some(value) = value.dims()
    {
        c.set(0, PartialShape::new(&[keys, value].concat()));
    }
    Ok(())
}

fn exported(c: &mut InferContext<'_>) -> Inferred {
    if let Some(value) = value_shape(c)
        && let Some(value) = value.dims()
    {
        c.set(0, PartialShape::new(&[None]));
        c.set(1, PartialShape::new(&[&[None], value].concat()));
    }
    Ok(())
}
