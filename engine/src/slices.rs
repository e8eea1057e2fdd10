//! Gradients of a few rows of a variable, as those of embeddings are; clipping of gradients, dense and of rows.

use crate::graph::{Graph, GraphError, Output, Var};
use crate::ops::AttrError;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// The gradient of a variable of which only some rows were read: row `indices[i]` has the gradient `values[i]`, rows
/// may come more than once.
///
/// The gradient of a gather is a node that sums the slices into a dense tensor, `UnsortedSegmentSum`; whoever takes
/// slices reads that node's inputs instead, and the node itself never runs.
#[derive(Debug, Clone, Copy)]
pub struct IndexedSlices {
    /// `[n, ...]`.
    pub values: Output,
    /// `[n]`.
    pub indices: Output,
    /// The number of rows of the variable, a scalar.
    pub n_rows: Output,
}

impl IndexedSlices {
    /// The slices that `gradient`, of the variable `var`, is made of; `None` where it is dense, as a scalar's is. Adds
    /// nodes to `g`.
    ///
    /// # Errors
    /// The gradient or the variable is another graph's, or the variable's shape is not known.
    pub fn of(g: &Graph, gradient: Output, var: Var) -> Result<Option<IndexedSlices>, GraphError> {
        let node = g.node(gradient.node)?;
        match node.op.name {
            "UnsortedSegmentSum" => {
                let shape = known_shape(g, var)?;
                let Some((_, row)) = shape.dims().split_first() else { return Ok(None) };
                let flat = g.int_vector(&[-1])?;
                let indices = g.reshape(node.inputs[1], flat)?;
                let shape: Vec<i32> = std::iter::once(-1).chain(row.iter().map(|d| *d as i32)).collect();
                let values = g.reshape(node.inputs[0], g.int_vector(&shape)?)?;
                Ok(Some(IndexedSlices { values, indices, n_rows: node.inputs[2] }))
            }
            "AddN" => {
                let parts = node.inputs.iter().map(|part| IndexedSlices::of(g, *part, var));
                let Some(parts) = parts.collect::<Result<Option<Vec<_>>, _>>()? else { return Ok(None) };
                let axis = g.constant(Tensor::scalar(0i32))?;
                let join = |of: fn(&IndexedSlices) -> Output| {
                    let all: Vec<Output> = parts.iter().map(of).collect();
                    g.add_node("ConcatV2").inputs(&all).input(axis).output()
                };
                let Some(first) = parts.first() else { return Ok(None) };
                let (values, indices) = (join(|p| p.values)?, join(|p| p.indices)?);
                Ok(Some(IndexedSlices { values, indices, n_rows: first.n_rows }))
            }
            _ => Ok(None),
        }
    }

    /// The dense gradient.
    ///
    /// # Errors
    /// None with a sound graph.
    pub fn to_dense(&self, g: &Graph) -> Result<Output, GraphError> {
        g.add_node("UnsortedSegmentSum").input(self.values).input(self.indices).input(self.n_rows).output()
    }

    /// The same gradient with each row once, in which rules that are not linear in the gradient want it.
    pub(crate) fn distinct(self, g: &Graph) -> Result<IndexedSlices, GraphError> {
        let unique = g.add_node("Unique").input(self.indices).output()?;
        let places = Output { port: 1, ..unique };
        let n = g.size_of(unique)?;
        let values = g.add_node("UnsortedSegmentSum").input(self.values).input(places).input(n).output()?;
        Ok(IndexedSlices { values, indices: unique, n_rows: self.n_rows })
    }
}

/// The variable's shape.
///
/// # Errors
/// Not all of it is known.
pub(crate) fn known_shape(g: &Graph, var: Var) -> Result<Shape, GraphError> {
    let (node, shape) = (g.node(var.handle.node)?, g.shape(var.value)?);
    shape.known().ok_or_else(|| {
        let problem = format!("{shape}, expected a shape that is known in full").into();
        let source = AttrError::Value { name: "shape".into(), problem };
        GraphError::Attr { node: node.name.to_string(), op: node.op.name, source }
    })
}

/// The mean of gradients of the variable `var` from several towers. Slices stay slices.
///
/// # Errors
/// The gradients are of different types, or those of rows of a variable whose shape is not known.
pub fn mean_gradient(g: &Graph, gradients: &[Output], var: Var) -> Result<Output, GraphError> {
    if let [one] = gradients {
        return Ok(*one);
    }
    let sum = g.add_n(gradients)?;
    let share = g.number(g.dtype(sum)?, 1.0 / gradients.len() as f64)?;
    match IndexedSlices::of(g, sum, var)? {
        Some(slices) => IndexedSlices { values: g.mul(slices.values, share)?, ..slices }.to_dense(g),
        None => g.mul(sum, share),
    }
}

/// Scales `gradients` of `variables`, in the same order, so that the root of the sum of all squares is at most `limit`;
/// gives them with that root before. Slices stay slices.
///
/// # Errors
/// A gradient is no float, or one of rows of a variable whose shape is not known.
pub fn clip_by_global_norm(
    g: &Graph,
    variables: &[Var],
    gradients: &[Output],
    limit: f64,
) -> Result<(Vec<Output>, Output), GraphError> {
    let g = g.scope("clip");
    let part = |(var, whole): (&Var, &Output)| IndexedSlices::of(&g, *whole, *var).map(|slices| (*whole, slices));
    let parts = variables.iter().zip(gradients).map(part).collect::<Result<Vec<_>, _>>()?;
    let Some((first, _)) = parts.first() else { return Ok((Vec::new(), g.constant(0f32)?)) };
    let dtype = g.dtype(*first)?;
    let halves = parts.iter().map(|(whole, slices)| g.l2_loss(slices.as_ref().map_or(*whole, |s| s.values)));
    let halves = halves.collect::<Result<Vec<_>, _>>()?;
    let norm = g.sqrt(g.mul(g.add_n(&halves)?, g.number(dtype, 2.0)?)?)?;
    let limit = g.number(dtype, limit)?;
    let scale = g.div(limit, g.maximum(norm, limit)?)?;
    let scaled = |(whole, slices): &(Output, Option<IndexedSlices>)| match slices {
        Some(s) => IndexedSlices { values: g.mul(s.values, scale)?, ..*s }.to_dense(&g),
        None => g.mul(*whole, scale),
    };
    Ok((parts.iter().map(scaled).collect::<Result<_, _>>()?, norm))
}
