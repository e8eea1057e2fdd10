//! Graphs under tags of event files compared with what TensorBoard's graphs plugin shows of the same files
//! (`tests/scripts/graph_summary_fixtures.py`).

// Clippy's exceptions for tests do not reach the helpers of an integration test.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeMap, path::Path};

use formats::proto::{GraphDef, NodeDef, attr_value::Value as Attr};
use prost::Message;
use serde_json::{Value, json};
use summaries::{Logdir, Run, TaggedGraph};

fn logdir() -> Logdir {
    let mut logdir = Logdir::open(&[Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/graphs")]).unwrap();
    logdir.read_all();
    logdir
}

fn shown() -> BTreeMap<String, BTreeMap<String, Value>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/graphs/shown.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn main_graph(graph: &TaggedGraph) -> Option<GraphDef> {
    graph.read().unwrap().into_iter().find(|graph| graph.part.is_empty()).map(|graph| graph.graph)
}

/// TensorBoard writes a control input of a merged graph as `graph_1/^name`.
fn input(text: &str) -> String {
    text.split_once("/^").map_or_else(|| text.to_owned(), |(graph, name)| format!("^{graph}/{name}"))
}

fn row(name: &str, op: &str, inputs: impl IntoIterator<Item = String>) -> Value {
    json!([name, op, inputs.into_iter().collect::<Vec<_>>()])
}

fn rows_of(nodes: &[NodeDef]) -> Vec<Value> {
    nodes.iter().map(|node| row(&node.name, &node.op, node.input.iter().cloned())).collect()
}

/// Rows of the plugin; the op of a Keras layer is its class, which the plugin has among the attributes.
fn their_rows(rows: &Value) -> Vec<Value> {
    let of_row = |their: &Value| {
        let op = their[3]["keras_class"].as_str().or(their[1].as_str()).unwrap();
        let inputs = their[2].as_array().unwrap().iter().map(|text| input(text.as_str().unwrap()));
        row(their[0].as_str().unwrap(), op, inputs)
    };
    rows.as_array().unwrap().iter().map(of_row).collect()
}

fn check_attributes(rows: &Value, graph: &GraphDef) {
    for (their, node) in rows.as_array().unwrap().iter().zip(&graph.node) {
        let dtype = match node.attr.get("dtype").and_then(|attr| attr.value.as_ref()) {
            Some(Attr::Type(dtype)) => Value::from(*dtype),
            _ => Value::Null,
        };
        assert_eq!(dtype, *their[3].get("dtype").unwrap_or(&Value::Null), "{}", node.name);
    }
}

fn check_functions(their: &Value, graph: &GraphDef) {
    let functions = graph.library.iter().flat_map(|library| &library.function);
    let ours: BTreeMap<String, Vec<Value>> = functions
        .map(|function| {
            let mut rows = rows_of(&function.node_def);
            rows.sort_by_key(ToString::to_string);
            (function.signature.as_ref().unwrap().name.clone(), rows)
        })
        .collect();
    let sorted = |rows: &Value| {
        let mut rows = rows.as_array().unwrap().clone();
        rows.sort_by_key(ToString::to_string);
        rows
    };
    let theirs: BTreeMap<String, Vec<Value>> =
        their.as_object().unwrap().iter().map(|(name, rows)| (name.clone(), sorted(rows))).collect();
    assert_eq!(ours, theirs);
}

fn check_run(run: &Run, shown: &BTreeMap<String, Value>) -> usize {
    let graphs: BTreeMap<String, TaggedGraph> = run.tagged_graphs().map(|graph| (graph.tag.clone(), graph)).collect();
    let mut n = 0;
    for (tag, their) in shown {
        if their.get("error").is_some() {
            continue;
        }
        let Some(rows) = their.get("conceptual").or(their.get("op")).filter(|rows| rows[0].is_array()) else {
            continue;
        };
        let graph = main_graph(&graphs[tag]).unwrap();
        assert_eq!(rows_of(&graph.node), their_rows(rows), "{} {tag}", run.name);
        check_functions(&their["functions"], &graph);
        if their.get("conceptual").is_some() {
            check_attributes(rows, &graph);
        }
        n += 1;
    }
    n
}

#[test]
fn nodes_edges_and_functions_are_tensorboards() {
    let logdir = logdir();
    let runs = logdir.runs();
    let shown = shown();
    let checked: usize = shown.iter().map(|(run, tags)| check_run(&runs.by_name[run.as_str()], tags)).sum();
    assert_eq!(checked, 8, "five models, and functions traced three times");
}

/// The plugin fails on a functional model in a sequential one: its edges by hand.
#[test]
fn a_functional_model_in_a_sequential_one_is_joined() {
    let logdir = logdir();
    let runs = logdir.runs();
    let graph = runs.by_name["models/functional_in_sequential"].tagged_graphs().next().unwrap();
    let graph = main_graph(&graph).unwrap();
    let edges: Vec<String> = graph.node.iter().map(|n| format!("{} < {}", n.name, n.input.join(" "))).collect();
    let expected = [
        "sequential/input_layer < ",
        "sequential/before < sequential/input_layer",
        "sequential/block/entry < sequential/before",
        "sequential/block/d < sequential/block/entry",
        "sequential/after < sequential/block/d",
    ];
    assert_eq!(edges, expected);
}

#[test]
fn calls_name_functions_of_their_own_graph_and_optimised_graphs_are_parts() {
    let logdir = logdir();
    let runs = logdir.runs();
    let graph = runs.by_name["functions"].tagged_graphs().find(|graph| graph.tag == "two").unwrap();
    let parts = graph.read().unwrap();
    assert_eq!(parts.iter().map(|part| part.part).collect::<Vec<_>>(), ["", "optimised"]);
    for part in parts {
        let library = part.graph.library.iter().flat_map(|library| &library.function);
        let names: Vec<&str> = library.map(|f| &*f.signature.as_ref().unwrap().name).collect();
        for node in &part.graph.node {
            for attr in node.attr.values() {
                if let Some(Attr::Func(function)) = &attr.value {
                    assert!(names.contains(&&*function.name), "{} calls {}", node.name, function.name);
                    assert_eq!(function.name[..7], node.name[..7], "a function of its own graph");
                }
            }
        }
    }
}

#[test]
fn profiles_have_the_nodes_that_tensorboard_shows() {
    let logdir = logdir();
    let runs = logdir.runs();
    let shown = shown();
    let mut ours = Vec::new();
    for profile in runs.by_name["functions"].profiles() {
        let bytes = profile.read().unwrap().expect("times of nodes");
        let stats = formats::profile::RunMetadata::decode(&bytes[..]).unwrap().step_stats.unwrap();
        let of_device = |d: &formats::profile::DeviceStepStats| {
            d.node_stats.iter().map(|node| json!([d.device, node.node_name])).collect::<Vec<_>>()
        };
        ours.push((profile.step(), stats.dev_stats.iter().flat_map(of_device).collect::<Vec<_>>()));
    }
    ours.sort_by_key(|(step, _)| *step);
    let theirs = ["profiled", "session"].map(|tag| shown["functions"][tag]["profile"].as_array().unwrap().clone());
    assert_eq!(ours, [(2, theirs[0].clone()), (3, theirs[1].clone())]);
}
