//! ONNX's own node tests: each node of a model becomes a graph of this engine's ops, run by a session.
//!
//! The vectors are those of the `onnx` package (1.16.2), packed by `tests/scripts/onnx_vectors.py`; with STEPSCOPE_ONNX set
//! to `onnx/backend/test/data`, those of the package itself, the large ones included. A test is covered where every
//! node of it has a counterpart here ([`map`]); covered tests must pass.

mod load;
mod map;
mod maps;

use std::collections::{BTreeMap, HashMap};

use engine::{DType, Tensor};
use formats::onnx::{GraphProto, ModelProto};
use load::Vectors;

/// How many tests of the packed file pass.
const PASSING: usize = 974;

/// Tests, by the beginning of their names, whose vectors are not what the operator's text says, and why.
const WRONG: [(&str, &str); 2] = [
    ("test_qlinearmatmul_2D_int8", "QLinearMatMul of int8: the vectors wrap where the text saturates"),
    ("test_qlinearmatmul_3D_int8", "QLinearMatMul of int8: the vectors wrap where the text saturates"),
];

/// What became of a test.
enum Outcome {
    Passed,
    Failed(String),
    /// The op that has no counterpart, or the case of it.
    Uncovered(String),
}

/// Runs the nodes of a graph one after the other.
fn run(graph: &GraphProto, opset: i64, inputs: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>, map::MapError> {
    let mut values: HashMap<&str, Tensor> = HashMap::new();
    for initial in &graph.initializer {
        values.insert(&initial.name, load::tensor(initial)?);
    }
    for (input, value) in graph.input.iter().zip(inputs) {
        if let Some(value) = value {
            values.insert(&input.name, value.clone());
        }
    }
    for node in &graph.node {
        let inputs: Vec<Option<Tensor>> = node.input.iter().map(|name| values.get(name.as_str()).cloned()).collect();
        let outputs = map::execute(node, opset, &inputs)?;
        for (name, value) in node.output.iter().zip(outputs) {
            values.insert(name, value);
        }
    }
    Ok(graph.output.iter().map(|output| values.get(output.name.as_str()).cloned()).collect())
}

fn close(got: &Tensor, want: &Tensor) -> bool {
    if (got.dtype(), got.shape()) != (want.dtype(), want.shape()) {
        return false;
    }
    if !got.dtype().has_gradient() {
        return got == want;
    }
    let relative = match got.dtype() {
        DType::BF16 => 1e-2,
        _ => 1e-3,
    };
    // As ONNX's runner compares; numbers near zero of 16 bits cannot be closer than this.
    let absolute = if got.dtype().size() == 2 { 1e-3 } else { 1e-6 };
    let (got, want) = (got.to_f64().unwrap(), want.to_f64().unwrap());
    let near =
        |(g, w): (&f64, &f64)| (g - w).abs() <= absolute + relative * w.abs() || g == w || (g.is_nan() && w.is_nan());
    got.iter().zip(&want).all(near)
}

fn test(vectors: &Vectors) -> Outcome {
    if let Some((_, why)) = WRONG.iter().find(|(name, _)| vectors.name.starts_with(name)) {
        return Outcome::Uncovered((*why).to_owned());
    }
    let model: &ModelProto = &vectors.model;
    let graph = model.graph.as_ref().unwrap();
    let opset = model.opset_import.iter().find(|o| o.domain.is_empty()).map_or(1, |o| o.version);
    for set in &vectors.sets {
        let (inputs, wanted) =
            match (load::values(&set.inputs, &graph.input), load::values(&set.outputs, &graph.output)) {
                (Ok(inputs), Ok(wanted)) => (inputs, wanted),
                (Err(e), _) | (_, Err(e)) => return Outcome::Uncovered(e.to_string()),
            };
        let got = match run(graph, opset, &inputs) {
            Ok(got) => got,
            Err(map::MapError::Uncovered(what)) => return Outcome::Uncovered(what),
            Err(map::MapError::Engine(what)) => return Outcome::Failed(what),
        };
        for (i, (got, want)) in got.iter().zip(&wanted).enumerate() {
            match (got, want) {
                (Some(got), Some(want)) if close(got, want) => {}
                (got, want) => return Outcome::Failed(format!("output {i}: got {got:?}, expected {want:?}")),
            }
        }
    }
    Outcome::Passed
}

/// The operator that a test is of; an expanded one is of those of its function.
fn operator(vectors: &Vectors) -> &str {
    match vectors.model.graph.as_ref().unwrap().node.as_slice() {
        [node] => &node.op_type,
        _ => "several nodes",
    }
}

#[test]
fn covered_tests_pass() {
    let tests = load::all();
    let mut failed = Vec::new();
    let mut by_operator: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut uncovered: BTreeMap<String, usize> = BTreeMap::new();
    for vectors in &tests {
        let counts = by_operator.entry(operator(vectors)).or_default();
        match test(vectors) {
            Outcome::Passed => counts[0] += 1,
            Outcome::Failed(why) => {
                counts[1] += 1;
                failed.push(format!("{}: {why}", vectors.name));
            }
            Outcome::Uncovered(what) => {
                counts[2] += 1;
                *uncovered.entry(what).or_default() += 1;
            }
        }
    }
    println!("passed failed uncovered");
    for (operator, [passed, failed, uncovered]) in &by_operator {
        println!("{passed:6} {failed:6} {uncovered:9}  {operator}");
    }
    for (what, n) in &uncovered {
        println!("  uncovered {n:3}  {what}");
    }
    let total = |i: usize| by_operator.values().map(|counts| counts[i]).sum::<usize>();
    let passed = total(0);
    println!("{passed} of {} tests passed, {} failed, {} uncovered", tests.len(), total(1), total(2));
    assert!(failed.is_empty(), "{} failed\n{}", failed.len(), failed.join("\n"));
    assert!(passed >= PASSING, "{passed} passed, fewer than the {PASSING} that did");
}
