//! Events of ONNX Runtime's profiler in our words.
//!
//! An event of category `Node` is one execution of a node: its name with an ending for the phase, the op type among the
//! arguments. A `model_run` is one run of the model.

use super::json::{elements, members, text};

/// The ending of the event of a node's kernel.
const KERNEL: &str = "_kernel_time";

/// An execution of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeRun {
    /// The node's name in the model.
    pub(super) name: String,
    pub(super) op: String,
    /// The execution provider other than the CPU's; else empty.
    pub(super) device: String,
    /// Dimensions and types of the inputs, as PyTorch's profiler writes them; empty where they are not recorded.
    pub(super) dims: String,
    pub(super) types: String,
}

/// The execution that an event stands for.
pub(super) fn node_run(category: &[u8], name: &[u8], args: &[u8]) -> Option<NodeRun> {
    if category != b"Node" || !name.ends_with(KERNEL.as_bytes()) {
        return None;
    }
    let name = super::json::unescape(name);
    let mut run = NodeRun { name: name.strip_suffix(KERNEL)?.to_owned(), ..NodeRun::default() };
    for (key, value) in members(args) {
        match key {
            b"op_name" => run.op = text(value),
            b"provider" => run.device = text(value),
            b"input_type_shape" => (run.dims, run.types) = shapes(value),
            _ => {}
        }
    }
    if run.device == "CPUExecutionProvider" {
        run.device.clear();
    }
    (!run.op.is_empty()).then_some(run)
}

/// Whether an event is one run of the model.
pub(super) fn is_model_run(category: &[u8], name: &[u8]) -> bool {
    (category, name) == (b"Session", b"model_run")
}

/// `[[8,64],[64]]` and `["float","float"]` of `[{"float":[8,64]},{"float":[64]}]`.
fn shapes(inputs: &[u8]) -> (String, String) {
    let inputs = elements(inputs).filter_map(|input| members(input).next());
    let (dims, types): (Vec<_>, Vec<_>) = inputs
        .map(|(kind, dims)| {
            let kind = serde_json::Value::from(String::from_utf8_lossy(kind));
            (String::from_utf8_lossy(dims).into_owned(), kind.to_string())
        })
        .unzip();
    let list = |parts: Vec<String>| format!("[{}]", parts.join(","));
    (list(dims), list(types))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_of_nodes() {
        let args = br#"{"node_index": "0", "op_name": "MatMul", "provider": "CUDAExecutionProvider",
                        "input_type_shape": [{"float": [8, 64]}, {"float16": []}]}"#;
        let run = node_run(b"Node", b"layer1/MatMul_kernel_time", args).unwrap();
        assert_eq!((&*run.name, &*run.op, &*run.device), ("layer1/MatMul", "MatMul", "CUDAExecutionProvider"));
        assert_eq!((&*run.dims, &*run.types), ("[[8, 64],[]]", r#"["float","float16"]"#));
        assert_eq!(node_run(b"Node", b"layer1/MatMul_fence_before", args), None);
        assert_eq!(node_run(b"Session", b"a_kernel_time", args), None);
        assert_eq!(node_run(b"Node", b"a_kernel_time", b"{}"), None);
        assert!(is_model_run(b"Session", b"model_run") && !is_model_run(b"Session", b"model_loading_array"));
    }
}
