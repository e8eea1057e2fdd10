//! A node of ONNX's as nodes of this engine's: what the maps of [`super::maps`] see, and how their graph is run.

use std::cell::RefCell;

use engine::buffer::Allocator;
use engine::convert::convert;
use engine::graph::{Attr, NodeBuilder, Value};
use engine::{DType, Graph, Output, Session, SessionOptions, Shape, Tensor};
use formats::onnx::NodeProto;

/// Why a node has no result.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// It has no counterpart here.
    #[error("{0}")]
    Uncovered(String),
    /// Its counterpart failed.
    #[error("{0}")]
    Engine(String),
}

pub type Mapped<'g> = Result<Vec<Value<'g>>, MapError>;
pub type One<'g> = Result<Value<'g>, MapError>;

/// A node with the values of its inputs, and the graph that it becomes.
pub struct Map {
    pub node: NodeProto,
    pub opset: i64,
    pub inputs: Vec<Option<Tensor>>,
    graph: Graph,
    placed: RefCell<Vec<Option<Output>>>,
}

/// Runs a node on the values of its inputs.
pub fn execute(node: &NodeProto, opset: i64, inputs: &[Option<Tensor>]) -> Result<Vec<Tensor>, MapError> {
    let (graph, placed) = (Graph::new(), RefCell::new(vec![None; inputs.len()]));
    let map = Map { node: node.clone(), opset, inputs: inputs.to_vec(), graph, placed };
    let engine = |e: &dyn std::fmt::Display| MapError::Engine(format!("{}: {e}", node.op_type));
    let outputs = super::maps::map(&map);
    // A node that does not fit is no case that is not covered, whatever followed from it.
    map.graph.check().map_err(|e| engine(&e))?;
    let name = |o: Output| format!("{}:{}", map.graph.node(o.node).unwrap().name, o.port);
    let names: Vec<String> = outputs?.iter().map(|o| name(o.output())).collect();
    let options = SessionOptions { threads: Some(1), ..Default::default() };
    let session = Session::new(&map.graph, options).map_err(|e| engine(&e))?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    session.run(&[], &names, &[]).map_err(|e| engine(&e))
}

impl Map {
    /// The error that says that this case has no counterpart.
    pub fn uncovered(&self, case: &str) -> MapError {
        MapError::Uncovered(format!("{} {case}", self.node.op_type).trim().to_owned())
    }

    /// Whether input `i` is there.
    pub fn has(&self, i: usize) -> bool {
        self.inputs.get(i).is_some_and(Option::is_some)
    }

    /// The value of input `i`.
    pub fn value(&self, i: usize) -> Result<&Tensor, MapError> {
        let value = self.inputs.get(i).and_then(Option::as_ref);
        value.ok_or_else(|| self.uncovered(&format!("without input {i}")))
    }

    /// Input `i` in the graph.
    pub fn x(&self, i: usize) -> One<'_> {
        let there = self.placed.borrow().get(i).copied().flatten();
        if let Some(there) = there {
            return Ok(self.graph.value(there));
        }
        let placed = self.constant(self.value(i)?.clone());
        self.placed.borrow_mut()[i] = Some(placed.output());
        Ok(placed)
    }

    /// All inputs in the graph.
    pub fn xs(&self) -> Mapped<'_> {
        (0..self.inputs.len()).map(|i| self.x(i)).collect()
    }

    /// The integers of input `i`.
    pub fn ints(&self, i: usize) -> Result<Vec<i64>, MapError> {
        let wide =
            convert(self.value(i)?, DType::I64, Allocator::host()).map_err(|e| MapError::Engine(e.to_string()))?;
        Ok(wide.slice::<i64>().unwrap_or_default().to_vec())
    }

    /// The dimensions of input `i`.
    pub fn dims(&self, i: usize) -> Result<Vec<usize>, MapError> {
        Ok(self.value(i)?.dims().to_vec())
    }

    pub fn dtype(&self, i: usize) -> Result<DType, MapError> {
        Ok(self.value(i)?.dtype())
    }

    /// What is known of the shape of a value: inputs are constants, so mostly all.
    pub fn shape(&self, of: Value<'_>) -> Result<Vec<usize>, MapError> {
        let shape = of.shape().known();
        shape.map(|s| s.dims().to_vec()).ok_or_else(|| self.uncovered("of a shape that is not inferred"))
    }

    fn attribute(&self, name: &str) -> Option<&formats::onnx::AttributeProto> {
        self.node.attribute.iter().find(|a| a.name == name)
    }

    pub fn has_attr(&self, name: &str) -> bool {
        self.attribute(name).is_some()
    }

    pub fn int(&self, name: &str, default: i64) -> i64 {
        self.attribute(name).map_or(default, |a| a.i)
    }

    pub fn float(&self, name: &str, default: f64) -> f64 {
        self.attribute(name).map_or(default, |a| f64::from(a.f))
    }

    pub fn text(&self, name: &str, default: &str) -> String {
        self.attribute(name).map_or(default.to_owned(), |a| String::from_utf8_lossy(&a.s).into_owned())
    }

    pub fn int_list(&self, name: &str) -> Option<Vec<i64>> {
        self.attribute(name).map(|a| a.ints.clone())
    }

    pub fn attr_tensor(&self, name: &str) -> Option<Result<Tensor, MapError>> {
        Some(super::load::tensor(self.attribute(name)?.t.as_ref()?))
    }

    pub fn attr_floats(&self, name: &str) -> Option<Vec<f32>> {
        self.attribute(name).map(|a| a.floats.clone())
    }

    /// Integers that are an attribute in old operator sets and an input in new ones.
    pub fn ints_of(&self, name: &str, i: usize) -> Result<Option<Vec<i64>>, MapError> {
        match self.int_list(name) {
            Some(list) => Ok(Some(list)),
            None if self.has(i) => self.ints(i).map(Some),
            None => Ok(None),
        }
    }

    pub fn constant(&self, value: Tensor) -> Value<'_> {
        self.graph.constant(value)
    }

    pub fn longs(&self, values: &[i64]) -> Value<'_> {
        self.constant(Tensor::vector(values))
    }

    pub fn scalar(&self, value: i64) -> Value<'_> {
        self.constant(Tensor::scalar(value as i32))
    }

    pub fn op<'g>(&'g self, op: &str, inputs: &[Value<'g>]) -> Value<'g> {
        self.op_with(op, inputs, &[])
    }

    pub fn op_with<'g>(&'g self, op: &str, inputs: &[Value<'g>], attrs: &[(&str, Attr)]) -> Value<'g> {
        let node = inputs.iter().fold(self.graph.add_node(op), |node, input| node.input(*input));
        self.graph.value(with_attrs(node, attrs))
    }

    /// A node whose first input is a list.
    pub fn op_of_list<'g>(
        &'g self,
        op: &str,
        list: &[Value<'g>],
        rest: &[Value<'g>],
        attrs: &[(&str, Attr)],
    ) -> Value<'g> {
        let node = rest.iter().fold(self.graph.add_node(op).inputs(list), |node, input| node.input(*input));
        self.graph.value(with_attrs(node, attrs))
    }

    pub fn reshape<'g>(&'g self, x: Value<'g>, dims: &[usize]) -> Value<'g> {
        x.reshape(self.longs(&longs(dims)))
    }

    pub fn transpose<'g>(&'g self, x: Value<'g>, order: &[usize]) -> Value<'g> {
        x.transpose(self.longs(&longs(order)))
    }

    pub fn reduce<'g>(&'g self, op: &str, x: Value<'g>, axes: &[i64], keep: bool) -> Value<'g> {
        self.op_with(op, &[x, self.longs(axes)], &[("keep_dims", Attr::Bool(keep))])
    }

    /// The slices of `x` at these positions of an axis.
    pub fn gather<'g>(&'g self, x: Value<'g>, at: &[i64], axis: i64) -> Value<'g> {
        self.op("GatherV2", &[x, self.longs(at), self.scalar(axis)])
    }

    pub fn pad<'g>(&'g self, x: Value<'g>, by: &[[usize; 2]], value: f64) -> Value<'g> {
        let by = Tensor::from_vec(Shape::new(&[by.len(), 2]), longs(by.as_flattened())).unwrap();
        self.op("PadV2", &[x, self.constant(by), x.number(value)])
    }
}

fn with_attrs<'g>(node: NodeBuilder<'g>, attrs: &[(&str, Attr)]) -> Value<'g> {
    attrs.iter().fold(node, |node, (name, value)| node.attr(name, value.clone())).value()
}

/// `x` as `to`, if it is not of that type.
pub fn cast(x: Value<'_>, to: DType) -> Value<'_> {
    if x.dtype() == to { x } else { x.cast(to) }
}

pub fn longs(values: &[usize]) -> Vec<i64> {
    values.iter().map(|v| *v as i64).collect()
}

/// The axis that a number means.
pub fn axis(a: i64, rank: usize) -> usize {
    if a < 0 { (a + rank as i64).max(0) as usize } else { a as usize }
}
