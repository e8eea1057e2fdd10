//! A node of ONNX's as nodes of this engine's: what the maps of [`super::maps`] see, and how their graph is run.

use std::cell::RefCell;

use engine::buffer::Allocator;
use engine::convert::convert;
use engine::graph::Attr;
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

pub type Mapped = Result<Vec<Output>, MapError>;
pub type One = Result<Output, MapError>;

/// A node with the values of its inputs, and the graph that it becomes.
pub struct Map<'a> {
    pub node: &'a NodeProto,
    pub opset: i64,
    pub inputs: &'a [Option<Tensor>],
    pub graph: Graph,
    placed: RefCell<Vec<Option<Output>>>,
}

/// Runs a node on the values of its inputs.
pub fn execute(node: &NodeProto, opset: i64, inputs: &[Option<Tensor>]) -> Result<Vec<Tensor>, MapError> {
    let placed = RefCell::new(vec![None; inputs.len()]);
    let map = Map { node, opset, inputs, graph: Graph::new(), placed };
    let outputs = super::maps::map(&map)?;
    let engine = |e: &dyn std::fmt::Display| MapError::Engine(format!("{}: {e}", node.op_type));
    let options = SessionOptions { threads: Some(1), ..Default::default() };
    let session = Session::new(&map.graph, options).map_err(|e| engine(&e))?;
    let names: Vec<String> =
        outputs.iter().map(|o| format!("{}:{}", map.graph.node(o.node).unwrap().name, o.port)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    session.run(&[], &names, &[]).map_err(|e| engine(&e))
}

impl<'a> Map<'a> {
    /// The error that says that this case has no counterpart.
    pub fn uncovered(&self, case: &str) -> MapError {
        MapError::Uncovered(format!("{} {case}", self.node.op_type).trim().to_owned())
    }

    /// Whether input `i` is there.
    pub fn has(&self, i: usize) -> bool {
        self.inputs.get(i).is_some_and(Option::is_some)
    }

    /// The value of input `i`.
    pub fn value(&self, i: usize) -> Result<&'a Tensor, MapError> {
        let value = self.inputs.get(i).and_then(Option::as_ref);
        value.ok_or_else(|| self.uncovered(&format!("without input {i}")))
    }

    /// Input `i` in the graph.
    pub fn x(&self, i: usize) -> One {
        if let Some(there) = self.placed.borrow().get(i).copied().flatten() {
            return Ok(there);
        }
        let placed = self.constant(self.value(i)?.clone())?;
        self.placed.borrow_mut()[i] = Some(placed);
        Ok(placed)
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

    /// What is known of the shape of an output: inputs are constants, so mostly all.
    pub fn shape(&self, of: Output) -> Result<Vec<usize>, MapError> {
        let shape = self.graph.shape(of).ok().and_then(|s| s.known());
        shape.map(|s| s.dims().to_vec()).ok_or_else(|| self.uncovered("of a shape that is not inferred"))
    }

    pub fn type_of(&self, of: Output) -> DType {
        self.graph.dtype(of).unwrap_or(DType::F32)
    }

    fn attribute(&self, name: &str) -> Option<&'a formats::onnx::AttributeProto> {
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

    pub fn constant(&self, value: Tensor) -> One {
        self.graph.constant(value).map_err(|e| MapError::Engine(e.to_string()))
    }

    pub fn int_vector(&self, values: &[i64]) -> One {
        self.constant(Tensor::vector(values))
    }

    pub fn scalar(&self, value: i64) -> One {
        self.constant(Tensor::scalar(value as i32))
    }

    /// A scalar of the type of an output.
    pub fn number(&self, value: f64, like: Output) -> One {
        self.constant(Tensor::number(self.type_of(like), value).map_err(|e| MapError::Engine(e.to_string()))?)
    }

    pub fn op(&self, op: &str, inputs: &[Output]) -> One {
        self.op_with(op, inputs, &[])
    }

    pub fn op_with(&self, op: &str, inputs: &[Output], attrs: &[(&str, Attr)]) -> One {
        let mut node = self.graph.add_node(op);
        for input in inputs {
            node = node.input(*input);
        }
        for (name, value) in attrs {
            node = node.attr(name, value.clone());
        }
        node.output().map_err(|e| MapError::Engine(e.to_string()))
    }

    /// A node whose first input is a list.
    pub fn op_of_list(&self, op: &str, list: &[Output], rest: &[Output], attrs: &[(&str, Attr)]) -> One {
        let mut node = self.graph.add_node(op).inputs(list);
        for input in rest {
            node = node.input(*input);
        }
        for (name, value) in attrs {
            node = node.attr(name, value.clone());
        }
        node.output().map_err(|e| MapError::Engine(e.to_string()))
    }

    pub fn cast(&self, x: Output, to: DType) -> One {
        if self.type_of(x) == to { Ok(x) } else { self.op_with("Cast", &[x], &[("DstT", Attr::Type(to))]) }
    }

    pub fn reshape(&self, x: Output, dims: &[usize]) -> One {
        let dims: Vec<i64> = dims.iter().map(|d| *d as i64).collect();
        let shape = self.int_vector(&dims)?;
        self.op("Reshape", &[x, shape])
    }

    pub fn transpose(&self, x: Output, order: &[usize]) -> One {
        let order: Vec<i64> = order.iter().map(|d| *d as i64).collect();
        let order = self.int_vector(&order)?;
        self.op("Transpose", &[x, order])
    }

    pub fn reduce(&self, op: &str, x: Output, axes: &[i64], keep: bool) -> One {
        let axes = self.int_vector(axes)?;
        self.op_with(op, &[x, axes], &[("keep_dims", Attr::Bool(keep))])
    }

    pub fn pad(&self, x: Output, by: &[[usize; 2]], value: Output) -> One {
        let flat: Vec<i64> = by.iter().flatten().map(|v| *v as i64).collect();
        let by = Tensor::from_vec(Shape::new(&[by.len(), 2]), flat).map_err(|e| MapError::Engine(e.to_string()))?;
        let by = self.constant(by)?;
        self.op("PadV2", &[x, by, value])
    }
}

/// The axis that a number means.
pub fn axis(a: i64, rank: usize) -> usize {
    if a < 0 { (a + rank as i64).max(0) as usize } else { a as usize }
}
