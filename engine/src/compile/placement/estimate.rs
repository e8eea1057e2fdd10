//! The static cost of a node, from its op and what is known of its shapes (white paper section 3.2.1).
//!
//! A kernel takes as long as its floating-point operations or its memory traffic, whichever is more, and what starting it
//! takes. Dimensions that only feeds decide count as [`UNKNOWN_DIM`].

use crate::compile::{WorkGraph, WorkNode};
use engine_core::device::Speed;
use engine_core::dtype::DType;
use engine_core::graph::Attr;
use engine_core::ops::{OpDef, OpKind as K};
use engine_core::shape::PartialShape;

/// Stands for a dimension that is not known before the step, in most graphs the examples of a batch.
pub const UNKNOWN_DIM: f64 = 32.0;
/// Bytes of an element that lives in no buffer: strings.
const STRING_BYTES: f64 = 64.0;

/// What a node does, whatever runs it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Work {
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes read and written.
    pub bytes: f64,
    /// Whether it only hands on or looks up what is there.
    pub is_free: bool,
}

impl Work {
    /// Nanoseconds on a device.
    pub fn time_ns(&self, speed: Speed) -> f64 {
        if self.is_free {
            return 0.0;
        }
        speed.launch_ns + (self.flops / speed.flops_per_ns).max(self.bytes / speed.bytes_per_ns)
    }
}

/// Bytes of a value; unknown ranks count as a scalar.
pub fn bytes_of(dtype: DType, shape: &PartialShape) -> f64 {
    let size = match dtype {
        DType::Resource => return 0.0,
        other if other.size() == 0 => STRING_BYTES,
        other => other.size() as f64,
    };
    size * elements(shape)
}

fn dim(d: Option<usize>) -> f64 {
    d.map_or(UNKNOWN_DIM, |d| d as f64)
}

fn elements(shape: &PartialShape) -> f64 {
    shape.dims().map_or(1.0, |dims| dims.iter().map(|d| dim(*d)).product())
}

/// Bytes of each output.
pub fn output_bytes(node: &WorkNode) -> impl Iterator<Item = f64> + '_ {
    node.outputs().iter().map(|port| bytes_of(port.dtype, &port.shape))
}

/// Bytes that stay on the node's device between steps: a variable's.
pub fn resident_bytes(node: &WorkNode) -> f64 {
    match (node.def.attrs.get("dtype"), node.def.attrs.get("shape")) {
        (Some(Attr::Type(dtype)), Some(Attr::Shape(shape))) if node.kind().is_variable() => bytes_of(*dtype, shape),
        _ => 0.0,
    }
}

/// The work of a node of a graph.
pub fn work(graph: &WorkGraph, node: &WorkNode) -> Work {
    if is_free(node.def.op) {
        return Work { is_free: true, ..Work::default() };
    }
    let input = |i: usize| node.inputs.get(i).and_then(|source| graph.port(*source));
    let read: f64 = (0..node.inputs.len()).filter_map(input).map(|(dtype, shape)| bytes_of(dtype, shape)).sum();
    let written: f64 = output_bytes(node).sum();
    let shape = |i: usize| input(i).map(|(_, shape)| shape.clone()).unwrap_or_default();
    let out: f64 = node.outputs().iter().map(|port| elements(&port.shape)).sum();
    let flops = match node.op() {
        "MatMul" | "BatchMatMul" | "BatchMatMulV2" | "BatchMatMulV3" | "_FusedMatMul" => {
            2.0 * out * inner(node, &shape(0))
        }
        "Conv2D" | "DepthwiseConv2dNative" => 2.0 * out * window(&shape(1), node.op()),
        // Each makes the input's or the filter's gradient out of as many products as the convolution has.
        "Conv2DBackpropInput" => 2.0 * elements(&shape(2)) * window(&shape(1), "Conv2D"),
        "Conv2DBackpropFilter" => 2.0 * elements(&shape(2)) * window_of_output(node, "Conv2D"),
        "DepthwiseConv2dNativeBackpropInput" => 2.0 * elements(&shape(2)) * window(&shape(1), "DepthwiseConv2dNative"),
        "DepthwiseConv2dNativeBackpropFilter" => {
            2.0 * elements(&shape(2)) * window_of_output(node, "DepthwiseConv2dNative")
        }
        "Exp" | "Log" | "Tanh" | "Sigmoid" | "Softmax" | "LogSoftmax" | "Pow" | "Erf" | "Softplus" => 20.0 * out,
        "RandomUniform" | "RandomStandardNormal" | "TruncatedNormal" => 20.0 * out,
        // Every element that is read or written once.
        _ => (read + written) / 4.0,
    };
    Work { flops, bytes: read + written, is_free: false }
}

/// The dimension that a matrix product sums over.
fn inner(node: &WorkNode, a: &PartialShape) -> f64 {
    let flag = |name: &str| matches!(node.def.attrs.get(name), Some(Attr::Bool(true)));
    let is_transposed = flag("transpose_a") || flag("adj_x");
    let Some(dims) = a.dims().filter(|dims| dims.len() >= 2) else { return UNKNOWN_DIM };
    dim(dims[dims.len() - if is_transposed { 2 } else { 1 }])
}

/// Products per element of a convolution's output: the filter is `[height, width, in, out]`.
fn window(filter: &PartialShape, op: &str) -> f64 {
    let Some(dims) = filter.dims().filter(|dims| dims.len() == 4) else { return UNKNOWN_DIM };
    let channels = if op == "Conv2D" { dim(dims[2]) } else { 1.0 };
    dim(dims[0]) * dim(dims[1]) * channels
}

fn window_of_output(node: &WorkNode, op: &str) -> f64 {
    node.outputs().first().map_or(UNKNOWN_DIM, |filter| window(&filter.shape, op))
}

/// Whether it hands on what is there, or looks it up.
pub fn is_free(op: &OpDef) -> bool {
    let is_of_step = matches!(op.kind, K::Stack | K::StackPush | K::StackPop);
    (op.kind != K::Compute && !is_of_step && !op.kind.is_functional()) || op.view || op.name == "Shape"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_shapes_give_bytes() {
        assert_eq!(bytes_of(DType::F32, &PartialShape::new(&[Some(4), Some(8)])), 128.0);
        assert_eq!(bytes_of(DType::F64, &PartialShape::new(&[None, Some(2)])), 8.0 * 2.0 * UNKNOWN_DIM);
        assert_eq!(bytes_of(DType::Resource, &PartialShape::scalar()), 0.0);
    }

    #[test]
    fn free_ops_are_found() {
        let is_free = |op: &&str| engine_core::ops::lookup(op).is_some_and(is_free);
        assert!(["Const", "VariableV2", "Merge", "Switch", "Enter"].iter().all(is_free));
        assert!(!is_free(&"MatMul") && !is_free(&"Add"));
    }

    #[test]
    fn time_is_flops_or_memory() {
        let speed = Speed { flops_per_ns: 100.0, bytes_per_ns: 10.0, launch_ns: 50.0 };
        assert_eq!(Work { flops: 1e6, bytes: 1e3, is_free: false }.time_ns(speed), 10_050.0);
        assert_eq!(Work { flops: 1e3, bytes: 1e6, is_free: false }.time_ns(speed), 100_050.0);
        assert_eq!(Work { flops: 1e3, bytes: 1e6, is_free: true }.time_ns(speed), 0.0);
    }
}
