//! The nodes that take a collective's place.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::groups::{Group, Member, Merge};
use crate::compile::CompileError;
use crate::compile::{NewNode, Source, WorkGraph};
use engine_core::dtype::{DType, bf16, f16};
use engine_core::graph::{Attr, Node, Port};
use engine_core::shape::{PartialShape, Shape};
use engine_core::tensor::Tensor;

/// Values of this size are exchanged rather than sent around.
pub const SMALL_BYTES: usize = 32 << 10;

/// A value of a member.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub source: Source,
    /// Whose it is: where it was computed.
    pub member: usize,
    shape: PartialShape,
}

/// Adds nodes for a group.
pub(super) struct Builder<'a> {
    graph: &'a mut WorkGraph,
    group: &'a Group,
}

/// A tensor in an attribute, and attributes by name.
type Attrs = BTreeMap<String, Attr>;

fn attrs<const N: usize>(list: [(&str, Attr); N]) -> Attrs {
    list.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

impl<'a> Builder<'a> {
    pub fn new(graph: &'a mut WorkGraph, group: &'a Group) -> Builder<'a> {
        Builder { graph, group }
    }

    fn member(&self, member: usize) -> &'a Member {
        &self.group.members[member]
    }

    /// The member's own value. A receiver's, which has none, is never asked for.
    pub fn input(&self, member: usize) -> Piece {
        let source = self.member(member).input.unwrap_or(Source::Port(self.member(member).node, 0));
        let shape = self.graph.port(source).map_or_else(PartialShape::unknown, |(_, shape)| shape.clone());
        Piece { source, member, shape }
    }

    fn known_shape(&self, member: usize) -> Option<Shape> {
        self.input(member).shape.known()
    }

    /// Whether all values are known to be small.
    pub fn is_small(&self) -> bool {
        let bytes = |member| self.known_shape(member)?.checked_n_elements()?.checked_mul(self.group.dtype.size());
        (0..self.group.len()).all(|member| bytes(member).is_some_and(|bytes| bytes <= SMALL_BYTES))
    }

    /// A node on the member's device.
    fn add(
        &mut self,
        member: usize,
        op: &str,
        attrs: Attrs,
        inputs: SmallVec<[Source; 3]>,
        outputs: Vec<Port>,
    ) -> Result<Source, CompileError> {
        let Member { name, device, node, .. } = self.member(member);
        // What the collective waits for, all of this does; a constant is in the iteration of the value, too.
        let mut control_inputs = self.graph.get(*node).map(|node| node.control_inputs.clone()).unwrap_or_default();
        if inputs.is_empty() {
            control_inputs.extend(self.member(member).input.and_then(Source::node));
        }
        let (name, n) = (format!("{name}/{op}"), self.graph.get(*node).map_or(0, |node| node.device));
        let id = self.graph.add_new(NewNode { name: &name, op, attrs, inputs, control_inputs, outputs, device: n })?;
        if let Some(node) = self.graph.get(id) {
            let def = Node { device: Arc::clone(device), ..Node::clone(&node.def) };
            self.graph.redefine(id, Arc::new(def));
        }
        Ok(Source::Port(id, 0))
    }

    fn constant(&mut self, member: usize, value: Tensor) -> Result<Source, CompileError> {
        let outputs = vec![Port { dtype: value.dtype(), shape: PartialShape::from(value.shape()) }];
        let attrs = attrs([("dtype", Attr::Type(value.dtype())), ("value", Attr::Tensor(value))]);
        self.add(member, "Const", attrs, smallvec![], outputs)
    }

    fn port(&self, shape: PartialShape) -> Vec<Port> {
        vec![Port { dtype: self.group.dtype, shape }]
    }

    fn dtype(&self) -> Attr {
        Attr::Type(self.group.dtype)
    }

    /// The shape of the member's value, a vector of 64-bit integers.
    pub fn shape(&mut self, member: usize) -> Result<Source, CompileError> {
        if let Some(shape) = self.known_shape(member) {
            let dims: Vec<i64> = shape.dims().iter().map(|dim| *dim as i64).collect();
            return self.constant(member, Tensor::vector(&dims));
        }
        let (attrs, input) =
            (attrs([("T", self.dtype()), ("out_type", Attr::Type(DType::I64))]), self.input(member).source);
        let outputs = vec![Port { dtype: DType::I64, shape: PartialShape::of_rank(1) }];
        self.add(member, "Shape", attrs, smallvec![input], outputs)
    }

    /// A value in another shape.
    pub fn reshape(&mut self, member: usize, value: Source, shape: Source) -> Result<Source, CompileError> {
        let attrs = attrs([("T", self.dtype()), ("Tshape", Attr::Type(DType::I64))]);
        let known =
            self.graph.get(self.member(member).node).and_then(|node| Some(node.outputs().first()?.shape.clone()));
        let outputs = self.port(known.unwrap_or_else(PartialShape::unknown));
        self.add(member, "Reshape", attrs, smallvec![value, shape], outputs)
    }

    /// The member's value as N vectors whose lengths differ by one at most.
    pub fn split_flat(&mut self, member: usize) -> Result<Vec<Piece>, CompileError> {
        let n = self.group.len();
        let flat_shape = self.constant(member, Tensor::vector(&[-1i64]))?;
        let (value, known) = (self.input(member).source, self.known_shape(member));
        let attrs_of = attrs([("T", self.dtype()), ("Tshape", Attr::Type(DType::I64))]);
        let length = known.and_then(|shape| shape.checked_n_elements());
        let outputs = self.port(PartialShape::new(&[length]));
        let flat = self.add(member, "Reshape", attrs_of, smallvec![value, flat_shape], outputs)?;
        let lengths: Option<Vec<i64>> =
            length.map(|length| (0..n).map(|i| (length / n + usize::from(i < length % n)) as i64).collect());
        let sizes = match &lengths {
            Some(lengths) => self.constant(member, Tensor::vector(lengths))?,
            None => self.lengths(member, flat)?,
        };
        let axis = self.constant(member, Tensor::scalar(0i32))?;
        let attrs = attrs([("T", self.dtype()), ("Tlen", Attr::Type(DType::I64)), ("num_split", Attr::Int(n as i64))]);
        let shape = |i: usize| {
            let length = lengths.as_ref().and_then(|lengths| usize::try_from(lengths[i]).ok());
            PartialShape::new(&[length])
        };
        let outputs = (0..n).map(|i| Port { dtype: self.group.dtype, shape: shape(i) }).collect();
        let split = self.add(member, "SplitV", attrs, smallvec![flat, sizes, axis], outputs)?;
        Ok(self.outputs_of(member, split, shape))
    }

    /// The lengths of N pieces of a vector whose length only the step knows.
    fn lengths(&mut self, member: usize, flat: Source) -> Result<Source, CompileError> {
        let n = self.group.len() as i64;
        let int = |rank: usize| vec![Port { dtype: DType::I64, shape: PartialShape::of_rank(rank) }];
        let long = || attrs([("T", Attr::Type(DType::I64))]);
        let attrs_of = attrs([("T", self.dtype()), ("out_type", Attr::Type(DType::I64))]);
        let length = self.add(member, "Size", attrs_of, smallvec![flat], int(0))?;
        let count = self.constant(member, Tensor::scalar(n))?;
        let number = self.constant(member, Tensor::vector(&(0..n).collect::<Vec<i64>>()))?;
        let least = self.add(member, "FloorDiv", long(), smallvec![length, count], int(0))?;
        let rest = self.add(member, "FloorMod", long(), smallvec![length, count], int(0))?;
        let bools = vec![Port { dtype: DType::Bool, shape: PartialShape::of_rank(1) }];
        let is_longer = self.add(member, "Less", long(), smallvec![number, rest], bools)?;
        let attrs_of = attrs([("SrcT", Attr::Type(DType::Bool)), ("DstT", Attr::Type(DType::I64))]);
        let longer = self.add(member, "Cast", attrs_of, smallvec![is_longer], int(1))?;
        self.add(member, "AddV2", long(), smallvec![longer, least], int(1))
    }

    /// The member's value in N parts of equally many rows.
    pub fn split_rows(&mut self, member: usize) -> Result<Vec<Piece>, CompileError> {
        let n = self.group.len();
        let axis = self.constant(member, Tensor::scalar(0i32))?;
        let attrs = attrs([("T", self.dtype()), ("num_split", Attr::Int(n as i64))]);
        let known =
            self.graph.get(self.member(member).node).and_then(|node| Some(node.outputs().first()?.shape.clone()));
        let shape = known.unwrap_or_else(PartialShape::unknown);
        let outputs = vec![Port { dtype: self.group.dtype, shape: shape.clone() }; n];
        let value = self.input(member).source;
        let split = self.add(member, "Split", attrs, smallvec![axis, value], outputs)?;
        Ok(self.outputs_of(member, split, |_| shape.clone()))
    }

    fn outputs_of(&self, member: usize, node: Source, shape: impl Fn(usize) -> PartialShape) -> Vec<Piece> {
        let port = |i: usize| match node {
            Source::Port(node, _) => Source::Port(node, i as u32),
            feed => feed,
        };
        (0..self.group.len()).map(|i| Piece { source: port(i), member, shape: shape(i) }).collect()
    }

    /// Two values merged, on the device of the second.
    fn merge(&mut self, merge: Merge, value: &Piece, own: &Piece) -> Result<Piece, CompileError> {
        let shape = own.shape.clone();
        let (attrs, outputs) = (attrs([("T", self.dtype())]), self.port(shape.clone()));
        let source = self.add(own.member, merge, attrs, smallvec![value.source, own.source], outputs)?;
        Ok(Piece { source, member: own.member, shape })
    }

    /// All values merged in order, on the member's device.
    pub fn merge_all(&mut self, member: usize, merge: Merge, all: &[Piece]) -> Result<Piece, CompileError> {
        let mut sum = Piece { member, ..all[0].clone() };
        for value in &all[1..] {
            sum = self.merge(merge, &sum, &Piece { member, ..value.clone() })?;
        }
        Ok(sum)
    }

    /// A value by the number of members, where it is.
    pub fn divide(&mut self, value: &Piece) -> Result<Piece, CompileError> {
        let n = self.group.len();
        let count = match self.group.dtype {
            DType::F64 => Tensor::scalar(n as f64),
            DType::F16 => Tensor::scalar(f16::from_f32(n as f32)),
            DType::BF16 => Tensor::scalar(bf16::from_f32(n as f32)),
            DType::I32 => Tensor::scalar(n as i32),
            DType::I64 => Tensor::scalar(n as i64),
            _ => Tensor::scalar(n as f32),
        };
        let count = self.constant(value.member, count)?;
        let (attrs, outputs) = (attrs([("T", self.dtype())]), self.port(value.shape.clone()));
        let source = self.add(value.member, "Div", attrs, smallvec![value.source, count], outputs)?;
        Ok(Piece { source, ..value.clone() })
    }

    /// From the pieces of each member: piece c of all, merged, at member c.
    pub fn reduce_ring(
        &mut self,
        merge: Merge,
        divides: bool,
        pieces: &[Vec<Piece>],
    ) -> Result<Vec<Piece>, CompileError> {
        let n = self.group.len();
        let mut whole = Vec::with_capacity(n);
        for c in 0..n {
            let mut sum = pieces[(c + 1) % n][c].clone();
            for k in 2..=n {
                sum = self.merge(merge, &sum, &pieces[(c + k) % n][c])?;
            }
            whole.push(if divides { self.divide(&sum)? } else { sum });
        }
        Ok(whole)
    }

    /// From a value of each member: all of them at each member.
    pub fn gather_ring(&mut self, own: &[Piece]) -> Result<Vec<Vec<Piece>>, CompileError> {
        let n = self.group.len();
        let mut all: Vec<Vec<Option<Piece>>> = vec![vec![None; n]; n];
        for (from, value) in own.iter().enumerate() {
            let mut value = value.clone();
            for k in 0..n {
                let at = (from + k) % n;
                if k > 0 {
                    value = self.hand_on(at, &value)?;
                }
                all[at][from] = Some(value.clone());
            }
        }
        Ok(all.into_iter().map(|values| values.into_iter().flatten().collect()).collect())
    }

    /// The value at another member.
    fn hand_on(&mut self, member: usize, value: &Piece) -> Result<Piece, CompileError> {
        let (attrs, outputs) = (attrs([("T", self.dtype())]), self.port(value.shape.clone()));
        let source = self.add(member, "Identity", attrs, smallvec![value.source], outputs)?;
        Ok(Piece { source, member, shape: value.shape.clone() })
    }

    /// The value of one member at each: the k-th from it, counted around, has it from the one half as far.
    pub fn broadcast(&mut self, from: usize) -> Result<Vec<Source>, CompileError> {
        let n = self.group.len();
        let mut values = vec![self.input(from)];
        for k in 1..n {
            let above = values[(k - 1) / 2].clone();
            values.push(self.hand_on((from + k) % n, &above)?);
        }
        let at = |member: usize| values[(member + n - from) % n].source;
        Ok((0..n).map(at).collect())
    }

    /// Values one after the other.
    pub fn concat(&mut self, member: usize, values: &[Piece]) -> Result<Source, CompileError> {
        let axis = self.constant(member, Tensor::scalar(0i32))?;
        let attrs =
            attrs([("T", self.dtype()), ("N", Attr::Int(values.len() as i64)), ("Tidx", Attr::Type(DType::I32))]);
        let inputs = values.iter().map(|value| value.source).chain([axis]).collect();
        let outputs = self.port(PartialShape::unknown());
        self.add(member, "ConcatV2", attrs, inputs, outputs)
    }

    /// Makes the collective the value's name.
    pub fn finish(&mut self, member: usize, value: Source) -> Result<(), CompileError> {
        let attrs = attrs([("T", self.dtype())]);
        self.graph.turn_into(self.member(member).node, "Identity", attrs, smallvec![value])
    }
}
