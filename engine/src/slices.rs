//! Gradients of a few rows of a variable, as those of embeddings are; clipping of gradients, dense and of rows.

use engine_core::graph::{Graph, GraphError, Operand, Output, Value, Var};
use engine_core::ops::AttrError;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

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
        g.check()?;
        let node = g.node(gradient.node)?;
        match node.op.name {
            "UnsortedSegmentSum" => {
                let shape = known_shape(g, var)?;
                let Some((_, row)) = shape.dims().split_first() else { return Ok(None) };
                let shape: Vec<i64> = std::iter::once(-1).chain(row.iter().map(|d| *d as i64)).collect();
                let indices = g.value(node.inputs[1]).reshape([-1]).output();
                let values = g.value(node.inputs[0]).reshape(&shape[..]).try_output()?;
                Ok(Some(IndexedSlices { values, indices, n_rows: node.inputs[2] }))
            }
            "AddN" => {
                let parts = node.inputs.iter().map(|part| IndexedSlices::of(g, *part, var));
                let Some(parts) = parts.collect::<Result<Option<Vec<_>>, _>>()? else { return Ok(None) };
                let axis = g.constant(Tensor::scalar(0i32));
                let join = |of: fn(&IndexedSlices) -> Output| {
                    let all: Vec<Output> = parts.iter().map(of).collect();
                    g.add_node("ConcatV2").inputs(&all).input(axis).value().try_output()
                };
                let Some(first) = parts.first() else { return Ok(None) };
                let (values, indices) = (join(|p| p.values)?, join(|p| p.indices)?);
                Ok(Some(IndexedSlices { values, indices, n_rows: first.n_rows }))
            }
            _ => Ok(None),
        }
    }

    /// The dense gradient.
    pub fn to_dense<'g>(&self, g: &'g Graph) -> Value<'g> {
        g.add_node("UnsortedSegmentSum").input(self.values).input(self.indices).input(self.n_rows).value()
    }

    /// The same gradient times a scalar.
    pub(crate) fn scaled(self, g: &Graph, by: impl Operand) -> IndexedSlices {
        IndexedSlices { values: (g.value(self.values) * by).output(), ..self }
    }

    /// The same gradient with each row once, in which rules that are not linear in the gradient want it.
    pub(crate) fn distinct(self, g: &Graph) -> IndexedSlices {
        let unique = g.add_node("Unique").input(self.indices).value();
        let (places, n) = (unique.port(1), unique.size_tensor());
        let values = g.add_node("UnsortedSegmentSum").input(self.values).input(places).input(n).value();
        IndexedSlices { values: values.output(), indices: unique.output(), n_rows: self.n_rows }
    }
}

/// The variable's shape.
///
/// # Errors
/// The shape is not known in full.
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
    let sum = g.add_n(gradients);
    let share = sum.number(1.0 / gradients.len() as f64);
    let mean = match IndexedSlices::of(g, sum.output(), var)? {
        Some(slices) => slices.scaled(g, share).to_dense(g),
        None => sum * share,
    };
    mean.try_output()
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
    if parts.is_empty() {
        return Ok((Vec::new(), g.constant(0f32).try_output()?));
    }
    let halves = parts.iter().map(|(whole, slices)| g.value(slices.map_or(*whole, |s| s.values)).l2_loss());
    let norm = (g.add_n(&halves.collect::<Vec<_>>()) * 2.0).sqrt();
    let limit = norm.number(limit);
    let scale = limit / norm.maximum(limit);
    let scaled = |(whole, slices): &(Output, Option<IndexedSlices>)| match slices {
        Some(slices) => slices.scaled(&g, scale).to_dense(&g).output(),
        None => (g.value(*whole) * scale).output(),
    };
    let gradients = parts.iter().map(scaled).collect();
    Ok((gradients, norm.try_output()?))
}
