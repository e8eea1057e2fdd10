//! The graphs in a `RunMetadata`: those of each function before and after optimisation, or, without any, the partitions
//! that ran.
//!
//! Graphs of several functions are merged as in TensorBoard: the nodes of the n-th are in the scope `graph_n`, its
//! library's functions are called `graph_n_NAME`.

use formats::{
    proto::{AttrValue, GraphDef, NameAttrList, NodeDef, attr_value::Value as Attr},
    wire::{Fields, Value},
};
use prost::Message;
use rustc_hash::FxHashMap;

/// One graph of a [`TaggedGraph`](super::TaggedGraph).
#[derive(Debug, Clone, PartialEq)]
pub struct NamedGraph {
    /// The name of this graph among those of its tag; empty for the main one.
    pub part: &'static str,
    /// The graph.
    pub graph: GraphDef,
}

/// Field numbers of `RunMetadata`.
const STEP_STATS: u32 = 1;
const PARTITION_GRAPHS: u32 = 3;
const FUNCTION_GRAPHS: u32 = 4;
/// Field numbers of `RunMetadata.FunctionGraphs`: `pre_optimization_graph` and `post_optimization_graph`.
const BEFORE: u32 = 2;
const AFTER: u32 = 3;

/// Whether a `RunMetadata` has `step_stats`: the times at which nodes ran.
pub fn has_step_stats(run_metadata: &[u8]) -> bool {
    let has_any = |field| matches!(field, (STEP_STATS, Value::Bytes(stats)) if !stats.is_empty());
    Fields::new(run_metadata).map_while(Result::ok).any(has_any)
}

/// Decodes all graphs that are not empty; an error names the part that cannot be decoded.
pub fn graphs(run_metadata: &[u8]) -> Result<Vec<NamedGraph>, String> {
    let (mut before, mut after, mut partitions) = (Vec::new(), Vec::new(), Vec::new());
    for field in Fields::new(run_metadata) {
        match field.map_err(|e| e.to_string())? {
            (PARTITION_GRAPHS, Value::Bytes(graph)) => push(&mut partitions, graph)?,
            (FUNCTION_GRAPHS, Value::Bytes(function)) => {
                for field in Fields::new(function) {
                    match field.map_err(|e| e.to_string())? {
                        (BEFORE, Value::Bytes(graph)) => push(&mut before, graph)?,
                        (AFTER, Value::Bytes(graph)) => push(&mut after, graph)?,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    // Next to function graphs the partitions are redundant: they are the optimised graphs, cut by device.
    let function_graphs = [("", before), ("optimised", after)];
    let mut all: Vec<(&'static str, Vec<GraphDef>)> =
        function_graphs.into_iter().filter(|(_, g)| !g.is_empty()).collect();
    if all.is_empty() && !partitions.is_empty() {
        all.push(("", partitions));
    }
    Ok(all.into_iter().map(|(part, graphs)| NamedGraph { part, graph: merge(graphs) }).collect())
}

fn push(graphs: &mut Vec<GraphDef>, bytes: &[u8]) -> Result<(), String> {
    let graph = GraphDef::decode(bytes).map_err(|e| e.to_string())?;
    if !graph.node.is_empty() {
        graphs.push(graph);
    }
    Ok(())
}

/// Merges graphs whose nodes and functions may share names.
fn merge(mut graphs: Vec<GraphDef>) -> GraphDef {
    if graphs.len() == 1 {
        return graphs.swap_remove(0);
    }
    let mut all = GraphDef { versions: graphs.first().and_then(|g| g.versions.clone()), ..GraphDef::default() };
    for (i, graph) in graphs.into_iter().enumerate() {
        let prefix = format!("graph_{}", i + 1);
        let library = graph.library.unwrap_or_default();
        let names = library.function.iter().filter_map(|f| Some(f.signature.as_ref()?.name.clone()));
        let renamed: FxHashMap<String, String> = names.map(|name| (name.clone(), format!("{prefix}_{name}"))).collect();
        for mut node in graph.node {
            node.name = format!("{prefix}/{}", node.name);
            for input in &mut node.input {
                *input = match input.strip_prefix('^') {
                    Some(control) => format!("^{prefix}/{control}"),
                    None => format!("{prefix}/{input}"),
                };
            }
            rename_calls(&mut node, &renamed);
            all.node.push(node);
        }
        let into = all.library.get_or_insert_default();
        for mut function in library.function {
            if let Some(signature) = &mut function.signature {
                rename(&mut signature.name, &renamed);
            }
            function.node_def.iter_mut().for_each(|node| rename_calls(node, &renamed));
            into.function.push(function);
        }
        for mut gradient in library.gradient {
            rename(&mut gradient.function_name, &renamed);
            rename(&mut gradient.gradient_func, &renamed);
            into.gradient.push(gradient);
        }
    }
    all
}

fn rename(name: &mut String, renamed: &FxHashMap<String, String>) {
    if let Some(new) = renamed.get(name) {
        name.clone_from(new);
    }
}

/// Renames the functions that a node calls, in its op and all its attributes.
fn rename_calls(node: &mut NodeDef, renamed: &FxHashMap<String, String>) {
    rename(&mut node.op, renamed);
    node.attr.values_mut().for_each(|attr| rename_in_attr(attr, renamed));
}

fn rename_in_attr(attr: &mut AttrValue, renamed: &FxHashMap<String, String>) {
    let rename_in_function = |function: &mut NameAttrList| {
        rename(&mut function.name, renamed);
        function.attr.values_mut().for_each(|attr| rename_in_attr(attr, renamed));
    };
    match &mut attr.value {
        Some(Attr::Func(function)) => rename_in_function(function),
        Some(Attr::List(list)) => list.func.iter_mut().for_each(rename_in_function),
        _ => {}
    }
}
