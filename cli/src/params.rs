//! `stepscope params`: how many numbers a graph's variables hold, scope by scope (white paper, section 6: "tools to
//! gain insight into the exact number of parameters in a given model").

use std::collections::{BTreeMap, BTreeSet};

use formats::proto::{GraphDef, NodeDef, attr_value::Value};
use serde_json::json;

use crate::args;
use crate::graph;
use crate::out;
use crate::outcome::Outcome;

/// The purpose of a variable, found from its uses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Role {
    /// An optimizer updates it; in a graph without training, every variable.
    Trained,
    /// The state of an optimizer for a trained variable, such as momentum.
    Slot,
    /// Anything else: counters, moving averages.
    Other,
}

struct Variable {
    name: String,
    role: Role,
    dtype: &'static str,
    /// `None` where a dimension is unknown.
    shape: Option<Vec<u64>>,
    bytes_per_number: u64,
}

impl Variable {
    fn n_numbers(&self) -> u64 {
        self.shape.as_ref().map_or(0, |dims| dims.iter().fold(1, |n: u64, d| n.saturating_mul(*d)))
    }
}

/// A line of the printed table: a variable with its dtype and shape, or a scope with the sum of its variables.
struct ScopeRow {
    name: String,
    n_numbers: u64,
    details: String,
}

/// Counts the numbers of a graph's variables and prints them.
pub fn run(args: &args::Params) -> Outcome {
    let def = graph::read(&args.graph)?;
    let variables = variables(&def);
    if args.json {
        print_json(&variables);
    } else {
        print(&variables, args.depth.unwrap_or(usize::MAX));
    }
    Ok(())
}

fn is_variable(node: &NodeDef) -> bool {
    ["Variable", "VariableV2", "VarHandleOp"].contains(&node.op.as_str())
}

fn variables(def: &GraphDef) -> Vec<Variable> {
    let names: BTreeSet<&str> =
        def.node.iter().filter(|node| is_variable(node)).map(|node| node.name.as_str()).collect();
    let (mut trained, mut slots) = (BTreeSet::new(), BTreeSet::new());
    for node in def.node.iter().filter(|node| node.op.contains("Apply")) {
        for (i, input) in node.input.iter().enumerate() {
            let name = input.strip_suffix(":0").unwrap_or(input);
            if let Some(name) = names.get(name) {
                if i == 0 { &mut trained } else { &mut slots }.insert(*name);
            }
        }
    }
    let role = |name: &str| match () {
        () if trained.is_empty() || trained.contains(name) => Role::Trained,
        () if slots.contains(name) => Role::Slot,
        () => Role::Other,
    };
    let mut variables: Vec<Variable> =
        def.node.iter().filter(|node| is_variable(node)).map(|node| variable(node, role(&node.name))).collect();
    variables.sort_by(|a, b| a.name.cmp(&b.name));
    variables
}

fn variable(node: &NodeDef, role: Role) -> Variable {
    let value = |name: &str| node.attr.get(name).and_then(|attr| attr.value.as_ref());
    let dtype = match value("dtype") {
        Some(Value::Type(number)) => engine::DType::from_number_or_reference(*number),
        _ => None,
    };
    let shape = match value("shape") {
        Some(Value::Shape(shape)) if !shape.unknown_rank => {
            shape.dim.iter().map(|dim| u64::try_from(dim.size).ok()).collect()
        }
        _ => None,
    };
    let (dtype, bytes_per_number) = dtype.map_or(("?", 0), |dtype| (dtype.name(), dtype.size() as u64));
    Variable { name: node.name.clone(), role, dtype, shape, bytes_per_number }
}

/// Numbers and bytes of all variables of a role.
fn total(variables: &[Variable], role: Role) -> (u64, u64) {
    let of_role = variables.iter().filter(|v| v.role == role);
    of_role.fold((0, 0), |(n, bytes), v| (n + v.n_numbers(), bytes + v.n_numbers() * v.bytes_per_number))
}

fn print_json(variables: &[Variable]) {
    let each: Vec<_> = variables
        .iter()
        .map(|v| {
            let role = format!("{:?}", v.role).to_lowercase();
            json!({ "name": v.name, "role": role, "dtype": v.dtype, "shape": v.shape, "numbers": v.shape.as_ref().map(|_| v.n_numbers()) })
        })
        .collect();
    let sum = |role| total(variables, role).0;
    let (trained, slots, other) = (sum(Role::Trained), sum(Role::Slot), sum(Role::Other));
    let bytes: u64 = variables.iter().map(|v| v.n_numbers() * v.bytes_per_number).sum();
    out::object(1, json!({ "trained": trained, "slots": slots, "other": other, "bytes": bytes, "variables": each }));
}

fn print(variables: &[Variable], depth: usize) {
    let mut rows: Vec<ScopeRow> = Vec::new();
    let trained: Vec<&Variable> = variables.iter().filter(|v| v.role == Role::Trained).collect();
    scope_rows(&trained, 0, "", depth, &mut rows);
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).max(20);
    for ScopeRow { name, n_numbers, details } in &rows {
        say!("{name:width$}  {:>15}  {details}", text::count(*n_numbers));
    }
    for (role, name) in
        [(Role::Trained, "trained"), (Role::Slot, "optimizer's slots"), (Role::Other, "other variables")]
    {
        let (n, bytes) = total(variables, role);
        if n > 0 || role == Role::Trained {
            say!("{name:width$}  {:>15}  {}", text::count(n), text::bytes(bytes));
        }
    }
    for v in variables.iter().filter(|v| v.shape.is_none()) {
        note!("warning: {}: its shape is not known before it is assigned; not counted", v.name);
    }
    if variables.is_empty() {
        note!("warning: the graph has no variables (a frozen graph keeps its weights in constants)");
    }
}

/// One row per scope with its sum, and per variable with its shape, down to `depth` levels.
fn scope_rows(variables: &[&Variable], level: usize, prefix: &str, depth: usize, rows: &mut Vec<ScopeRow>) {
    if level >= depth {
        return;
    }
    let mut parts: BTreeMap<&str, Vec<&Variable>> = BTreeMap::new();
    for v in variables {
        parts.entry(v.name[prefix.len()..].split('/').next().unwrap_or_default()).or_default().push(v);
    }
    for (part, members) in parts {
        let indent = "  ".repeat(level);
        let full_name = format!("{prefix}{part}");
        if let Some(v) = members.iter().find(|v| v.name == full_name) {
            let shape = v.shape.as_ref().map_or("[?]".to_owned(), |dims| format!("{dims:?}"));
            let details = format!("{} {shape}", v.dtype);
            rows.push(ScopeRow { name: format!("{indent}{part}"), n_numbers: v.n_numbers(), details });
        }
        let below: Vec<&Variable> = members.into_iter().filter(|v| v.name != full_name).collect();
        if !below.is_empty() {
            let n_numbers = below.iter().map(|v| v.n_numbers()).sum();
            rows.push(ScopeRow { name: format!("{indent}{part}/"), n_numbers, details: String::new() });
            scope_rows(&below, level + 1, &format!("{full_name}/"), depth, rows);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Graph;
    use engine::models::MlpOptions;
    use engine::training::mlp;

    #[test]
    fn the_demos_perceptron() {
        let g = Graph::new();
        mlp(&g, &MlpOptions::default()).unwrap();
        let variables = variables(&g.to_def());
        let sum = |role| total(&variables, role).0;
        let exact = 64 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10;
        assert_eq!((sum(Role::Trained), sum(Role::Slot), sum(Role::Other)), (exact, exact, 0));
        let trained: Vec<&Variable> = variables.iter().filter(|v| v.role == Role::Trained).collect();
        let mut rows = Vec::new();
        scope_rows(&trained, 0, "", 1, &mut rows);
        let scopes: Vec<(&str, u64)> = rows.iter().map(|row| (row.name.as_str(), row.n_numbers)).collect();
        assert_eq!(scopes, [("layer1/", 33_280), ("layer2/", 262_656), ("layer3/", 5_130)]);
    }
}
