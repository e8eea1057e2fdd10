//! Checkpoints of a model whose tasks are several processes: Save and Restore nodes on the tasks that hold the state (white paper,
//! section 3.3: "each Variable node is connected to a Save node").
//!
//! Each task that holds any writes what it holds as a part, and the first one makes the parts a checkpoint: the one that
//! [`crate::checkpoint::Saver`] would write of the same state in one process, under the same names. What the nodes' kernels
//! hold themselves (the generators of dropout) is in it; what queues hold is not: that follows from the step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine_core::dtype::DType;
use engine_core::graph::{Attr, Graph, Node, NodeId, Output, Value};
use engine_core::resources::ResourceManager;
use engine_core::shape::PartialShape;
use engine_core::tensor::Tensor;

/// The nodes that save and restore.
#[derive(Debug, Clone)]
pub struct Saving {
    /// What the prefixes of the parts are fed to: strings, one for each task that holds state.
    pub parts: Vec<Output>,
    /// What the checkpoint's prefix is fed to, a string.
    pub prefix: Output,
    /// Writes the parts, and makes them the checkpoint.
    pub save: NodeId,
    /// Gives everything the values that the checkpoint has.
    pub restore: NodeId,
}

/// A variable, as it is saved.
struct Saved {
    name: String,
    handle: Output,
    dtype: DType,
}

/// The state that the tasks hold, by their devices.
#[derive(Default)]
struct TaskState {
    variables: BTreeMap<Arc<str>, Vec<Saved>>,
    /// Nodes whose kernels hold random generators.
    generators: BTreeMap<Arc<str>, Vec<Vec<u8>>>,
}

/// Adds the nodes that save and restore all variables, and the generators that any of the `steps` needs.
pub(super) fn saving(home: &Graph, steps: &[NodeId]) -> Saving {
    let state = task_state(home, steps);
    let g = home.scope("save");
    let prefix = g.placeholder("prefix", DType::String, PartialShape::scalar()).output();
    let (mut parts, mut saves, mut restores) = (Vec::new(), Vec::new(), Vec::new());
    let mut part = |at: &Graph| {
        let part = at.placeholder(&format!("part{}", parts.len()), DType::String, PartialShape::scalar()).output();
        parts.push(part);
        part
    };
    for (device, variables) in &state.variables {
        let at = g.with_device(device);
        saves.push(save(&at, part(&at), variables));
        restores.extend(restore(&at, prefix, variables));
    }
    for (device, nodes) in state.generators {
        let at = g.with_device(&device);
        let save = at.add_node("_SaveStates").name("SaveStates").input(part(&at));
        saves.push(save.attr("nodes", Attr::ListStr(nodes.clone())).value().node());
        let restore = at.add_node("_RestoreStates").name("RestoreStates").input(prefix);
        restores.push(restore.attr("nodes", Attr::ListStr(nodes)).value().node());
    }
    let all = g.add_node("Pack").name("parts").inputs(&parts).value();
    let merge = g.add_node("MergeV2Checkpoints").name("merge").input(all).input(prefix).after(&saves);
    let save = merge.attr("delete_old_dirs", false).value().node();
    Saving { parts, prefix, save, restore: g.group("restore_all", &restores) }
}

fn task_state(g: &Graph, steps: &[NodeId]) -> TaskState {
    let mut state = TaskState::default();
    let nodes = g.nodes();
    for node in nodes.iter().filter(|node| node.op.name == "VarHandleOp") {
        let container = node.text("container").unwrap_or_default();
        // Variables of other containers are not the model's.
        if !container.is_empty() && container != ResourceManager::DEFAULT_CONTAINER {
            continue;
        }
        let shared = node.text("shared_name").ok().filter(|name| !name.is_empty());
        let Some(Attr::Type(dtype)) = node.attrs.get("dtype") else { continue };
        let name = shared.unwrap_or_else(|| node.name.to_string());
        let saved = Saved { name, handle: Output::from(node.id), dtype: *dtype };
        state.variables.entry(Arc::clone(&node.device)).or_default().push(saved);
    }
    let mut found = BTreeSet::new();
    let mut open: Vec<NodeId> = steps.to_vec();
    while let Some(id) = open.pop() {
        let Some(node) = nodes.get(id).filter(|_| found.insert(id)) else { continue };
        open.extend(node.inputs.iter().map(|input| input.node).chain(node.control_inputs.iter().copied()));
        if is_generator(node) {
            let own = state.generators.entry(Arc::clone(&node.device)).or_default();
            own.push(node.name.as_bytes().to_vec());
        }
    }
    state
}

/// Whether its kernel goes on from execution to execution by a generator of its own.
fn is_generator(node: &Node) -> bool {
    let is_seeded = ["seed", "seed2"].iter().all(|seed| node.attrs.contains_key(*seed));
    // A queue that shuffles is an object of a container.
    is_seeded && node.outputs.iter().all(|output| output.dtype != DType::Resource)
}

/// The names as an input of Save and Restore nodes, and a "whole tensor" for each.
fn names<'g>(at: &'g Graph, name: &str, variables: &[Saved]) -> [Value<'g>; 2] {
    let names = Tensor::string_vector(variables.iter().map(|v| v.name.as_bytes().to_vec()).collect());
    let whole = Tensor::string_vector(vec![Vec::new(); variables.len()]);
    [at.named_constant(&format!("{name}/names"), names), at.named_constant(&format!("{name}/slices"), whole)]
}

fn save(at: &Graph, part: Output, variables: &[Saved]) -> NodeId {
    let read = |v: &Saved| at.add_node("ReadVariableOp").name("value").input(v.handle).attr("dtype", v.dtype).value();
    let values: Vec<Value<'_>> = variables.iter().map(read).collect();
    let types = Attr::ListType(variables.iter().map(|v| v.dtype).collect());
    let node = at.add_node("SaveV2").name("Save").input(part).inputs(&names(at, "Save", variables));
    node.inputs(&values).attr("dtypes", types).value().node()
}

fn restore(at: &Graph, prefix: Output, variables: &[Saved]) -> Vec<NodeId> {
    let types = Attr::ListType(variables.iter().map(|v| v.dtype).collect());
    let node = at.add_node("RestoreV2").name("Restore").input(prefix).inputs(&names(at, "Restore", variables));
    let restored = node.attr("dtypes", types).value();
    let assign = |(port, v): (usize, &Saved)| {
        let value = restored.port(port as u32);
        at.add_node("AssignVariableOp").name("assign").input(v.handle).input(value).value().node()
    };
    variables.iter().enumerate().map(assign).collect()
}
