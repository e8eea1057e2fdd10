//! What must hold of a [`WorkGraph`] between passes: a table of rules.

use rustc_hash::FxHashSet;

use super::{Source, WorkGraph, WorkId, WorkNode};
use crate::compile::CompileError;

/// What a rule finds wrong.
type Finding = Option<String>;

/// A rule about one node, with its name.
type NodeRule = (&'static str, fn(&WorkGraph, WorkId, &WorkNode) -> Finding);
/// A rule about the whole graph, with its name.
type GraphRule = (&'static str, fn(&WorkGraph) -> Finding);

/// Rules about each node.
const NODE_RULES: &[NodeRule] = &[
    ("inputs come from outputs that exist", inputs_exist),
    ("control inputs exist, each once", controls_exist),
    ("inputs have the types that the op asks for", input_types),
    ("a name belongs to one node", name_is_own),
];

/// Rules about the graph.
const GRAPH_RULES: &[GraphRule] = &[
    ("fetches come from outputs that exist", fetches_exist),
    ("targets exist", targets_exist),
    ("nothing waits for itself", no_cycle),
];

/// Checks all rules, after `pass`.
///
/// # Errors
/// One does not hold: the pass is wrong.
pub fn verify(graph: &WorkGraph, pass: &'static str) -> Result<(), CompileError> {
    let error = |rule: &str, problem: String| CompileError::Pass { pass, problem: format!("{rule}: {problem}") };
    for (id, node) in graph.iter() {
        for (rule, holds) in NODE_RULES {
            if let Some(problem) = holds(graph, id, node) {
                return Err(error(rule, format!("node {} (op {}): {problem}", node.name(), node.op())));
            }
        }
    }
    for (rule, holds) in GRAPH_RULES {
        if let Some(problem) = holds(graph) {
            return Err(error(rule, problem));
        }
    }
    Ok(())
}

fn inputs_exist(graph: &WorkGraph, _: WorkId, node: &WorkNode) -> Finding {
    let missing = node.inputs.iter().position(|source| graph.port(*source).is_none())?;
    Some(format!("input {missing} is {:?}", node.inputs[missing]))
}

fn controls_exist(graph: &WorkGraph, id: WorkId, node: &WorkNode) -> Finding {
    let mut seen = FxHashSet::default();
    let bad = node.control_inputs.iter().find(|b| graph.get(**b).is_none() || **b == id || !seen.insert(**b))?;
    Some(format!("control input {bad:?}"))
}

fn input_types(graph: &WorkGraph, _: WorkId, node: &WorkNode) -> Finding {
    let Ok(expected) = node.def.op.port_types(&node.def.op.inputs, &node.def.attrs) else {
        return Some("its attributes do not determine its inputs".into());
    };
    if expected.len() != node.inputs.len() {
        return Some(format!("{} inputs, the op asks for {}", node.inputs.len(), expected.len()));
    }
    let got = |source: &Source| graph.port(*source).map(|(dtype, _)| dtype);
    let bad = (0..expected.len()).find(|i| got(&node.inputs[*i]).is_some_and(|dtype| dtype != expected[*i]))?;
    Some(format!("input {bad} is not {}", expected[bad]))
}

fn name_is_own(graph: &WorkGraph, id: WorkId, node: &WorkNode) -> Finding {
    (graph.find(node.name()) != Some(id)).then(|| "another node has it too".into())
}

fn fetches_exist(graph: &WorkGraph) -> Finding {
    let missing = graph.fetches.iter().position(|source| graph.port(*source).is_none())?;
    Some(format!("fetch {}", graph.fetch_names.get(missing).map_or("?", String::as_str)))
}

fn targets_exist(graph: &WorkGraph) -> Finding {
    graph.targets.iter().find(|id| graph.get(**id).is_none()).map(|id| format!("target {id:?}"))
}

fn no_cycle(graph: &WorkGraph) -> Finding {
    graph.order().err().map(|error| error.to_string())
}
