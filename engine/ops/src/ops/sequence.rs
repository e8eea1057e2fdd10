//! Ops that parse examples with lists of features, one for each step of time.

use super::shapes::Inferred;
use engine_core::ops::{Attr, InferContext, OP_TABLES, OpSpec, op};
use engine_core::shape::PartialShape;

/// What features and values may be.
macro_rules! kinds {
    ($($more:literal)*) => {
        concat!(
            "Ncontext_sparse: int = 0; Nfeature_list_sparse: int = 0; Nfeature_list_dense: int = 0; \
             context_sparse_types: list(type) = []; Tcontext_dense: list(type) = []; \
             feature_list_dense_types: list(type) = []; context_dense_shapes: list(shape) = []; \
             feature_list_sparse_types: list(type) = []; feature_list_dense_shapes: list(shape) = []",
            $($more)*
        )
    };
}

const BY_ATTRIBUTES: &str = kinds!(
    "; feature_list_dense_missing_assumed_empty: list(string); context_sparse_keys: list(string); \
     context_dense_keys: list(string); feature_list_sparse_keys: list(string); feature_list_dense_keys: list(string); \
     Ncontext_dense: int = 0"
);
const BY_INPUTS: &str = kinds!(
    "; context_ragged_value_types: list(type) = []; context_ragged_split_types: list(type) = []; \
     feature_list_ragged_value_types: list(type) = []; feature_list_ragged_split_types: list(type) = []"
);
const SINGLE: &str = kinds!("; Ncontext_dense: int = 0");

#[linkme::distributed_slice(OP_TABLES)]
static SEQUENCE: &[OpSpec] = &[
    op(
        "ParseSequenceExample",
        "serialized: string, debug_name: string, context_dense_defaults: Tcontext_dense -> \
         context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: context_sparse_types, \
         context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: Tcontext_dense, \
         feature_list_sparse_indices: Nfeature_list_sparse * int64, \
         feature_list_sparse_values: feature_list_sparse_types, \
         feature_list_sparse_shapes: Nfeature_list_sparse * int64, \
         feature_list_dense_values: feature_list_dense_types, feature_list_dense_lengths: Nfeature_list_dense * int64",
        BY_ATTRIBUTES,
        |c| {
            let batch = c.of_rank(0, 1)?;
            shapes(c, batch.dims().and_then(|d| d.first().copied()))
        },
    ),
    op(
        "ParseSequenceExampleV2",
        "serialized: string, debug_name: string, context_sparse_keys: string, context_dense_keys: string, \
         context_ragged_keys: string, feature_list_sparse_keys: string, feature_list_dense_keys: string, \
         feature_list_ragged_keys: string, feature_list_dense_missing_assumed_empty: bool, \
         context_dense_defaults: Tcontext_dense -> \
         context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: context_sparse_types, \
         context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: Tcontext_dense, \
         context_ragged_values: context_ragged_value_types, context_ragged_row_splits: context_ragged_split_types, \
         feature_list_sparse_indices: Nfeature_list_sparse * int64, \
         feature_list_sparse_values: feature_list_sparse_types, \
         feature_list_sparse_shapes: Nfeature_list_sparse * int64, \
         feature_list_dense_values: feature_list_dense_types, \
         feature_list_dense_lengths: Nfeature_list_dense * int64, \
         feature_list_ragged_values: feature_list_ragged_value_types, \
         feature_list_ragged_outer_splits: feature_list_ragged_split_types, \
         feature_list_ragged_inner_splits: feature_list_ragged_split_types",
        BY_INPUTS,
        |c| match c.input(0).dims().map(<[_]>::to_vec) {
            None => Ok(()),
            Some(dims) => shapes(c, dims.first().copied()),
        },
    ),
    op(
        "ParseSingleSequenceExample",
        "serialized: string, feature_list_dense_missing_assumed_empty: string, \
         context_sparse_keys: Ncontext_sparse * string, context_dense_keys: Ncontext_dense * string, \
         feature_list_sparse_keys: Nfeature_list_sparse * string, \
         feature_list_dense_keys: Nfeature_list_dense * string, context_dense_defaults: Tcontext_dense, \
         debug_name: string -> \
         context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: context_sparse_types, \
         context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: Tcontext_dense, \
         feature_list_sparse_indices: Nfeature_list_sparse * int64, \
         feature_list_sparse_values: feature_list_sparse_types, \
         feature_list_sparse_shapes: Nfeature_list_sparse * int64, \
         feature_list_dense_values: feature_list_dense_types",
        SINGLE,
        |c| {
            c.of_rank(0, 0)?;
            shapes(c, None)
        },
    ),
];

fn n_types(c: &InferContext<'_>, attr: &str) -> usize {
    match c.attr(attr) {
        Some(Attr::ListType(types)) => types.len(),
        _ => 0,
    }
}

/// Gives outputs their shapes, one after the other.
struct Outputs {
    next: usize,
    /// The number of examples, where there is a dimension for it.
    batch: Vec<Option<usize>>,
}

impl Outputs {
    fn set(&mut self, c: &mut InferContext<'_>, n: usize, shape: &PartialShape) {
        (self.next..self.next + n).for_each(|i| c.set(i, shape.clone()));
        self.next += n;
    }

    /// Indices, values and shapes; `rank` of one example.
    fn sparse(&mut self, c: &mut InferContext<'_>, n: usize, rank: usize) {
        let rank = Some(self.batch.len() + rank);
        for shape in [PartialShape::new(&[None, rank]), PartialShape::of_rank(1), PartialShape::new(&[rank])] {
            self.set(c, n, &shape);
        }
    }

    /// Dense values, with the `steps` between the examples and the shapes in an attribute.
    fn dense(&mut self, c: &mut InferContext<'_>, n: usize, shapes: &str, steps: &[Option<usize>]) {
        let shapes = match c.attr(shapes) {
            Some(Attr::ListShape(shapes)) => shapes.clone(),
            _ => Vec::new(),
        };
        for i in 0..n {
            let inner = shapes.get(i).and_then(PartialShape::dims);
            let whole = inner.map(|inner| PartialShape::new(&[&self.batch, steps, inner].concat()));
            self.set(c, 1, &whole.unwrap_or_default());
        }
    }
}

/// `batch`: how many examples there are, if the first dimension says so.
fn shapes(c: &mut InferContext<'_>, batch: Option<Option<usize>>) -> Inferred {
    let mut at = Outputs { next: 0, batch: batch.into_iter().collect() };
    let n = n_types(c, "context_sparse_types");
    at.sparse(c, n, 1);
    let n = n_types(c, "Tcontext_dense");
    at.dense(c, n, "context_dense_shapes", &[]);
    let n = n_types(c, "context_ragged_value_types");
    at.set(c, 2 * n, &PartialShape::of_rank(1));
    let n = n_types(c, "feature_list_sparse_types");
    at.sparse(c, n, 2);
    let n = n_types(c, "feature_list_dense_types");
    at.dense(c, n, "feature_list_dense_shapes", &[None]);
    // One example parsed alone by the older op has no lengths.
    if c.n_outputs() >= at.next + n {
        let lengths = PartialShape::new(&at.batch);
        at.set(c, n, &lengths);
    }
    let n = n_types(c, "feature_list_ragged_value_types");
    at.set(c, 3 * n, &PartialShape::of_rank(1));
    Ok(())
}
