//! `stepscope compare`: where the values of two graphs, or of one graph on one and on several devices, diverge
//! (white paper, section 6: "ensure that ... implementations match").

use engine::Tensor;
use engine::graph::Nodes;
use serde_json::json;

use crate::args;
use crate::graph::{self, DeviceChoice, Runnable};
use crate::out;
use crate::outcome::{Failure, Outcome};

/// How two values of one output differ.
struct Difference {
    name: String,
    /// The dtype and shape of both values.
    types: (String, String),
    /// `None` where the values cannot be compared number by number.
    numbers: Option<NumericDifference>,
}

/// How the numbers of two values differ.
#[derive(Default)]
struct NumericDifference {
    /// The largest difference of two numbers.
    largest: f64,
    /// The largest difference, divided by the largest magnitude in the first value.
    relative: f64,
    /// The index of the largest difference, in row-major order.
    largest_idx: usize,
    /// The number of elements of which at least one is not finite and that are not the same (two NaNs are).
    n_non_finite_mismatches: usize,
}

impl Difference {
    fn is_equal(&self, tolerance: f64) -> bool {
        self.numbers.as_ref().is_some_and(|n| n.n_non_finite_mismatches == 0 && n.relative <= tolerance)
    }
}

/// Runs both graphs and prints a line per output; exit code 1 when any differs.
pub fn run(args: &args::Compare) -> Outcome {
    let feeds = graph::feeds(&args.step)?;
    let a = Runnable::open(&args.a, &args.step, DeviceChoice::Single, None)?;
    let b = Runnable::open(&args.b, &args.step, DeviceChoice::FromOptions, None)?;
    let names = if args.every_node { common_outputs(&a, &b, &args.fetch)? } else { args.fetch.clone() };
    let fetches: Vec<&str> = names.iter().map(String::as_str).collect();
    let (in_a, in_b) = (a.run(&feeds, &fetches, &[])?, b.run(&feeds, &fetches, &[])?);
    let values = names.iter().zip(in_a.iter().zip(&in_b));
    let differences: Vec<Difference> = values.map(|(name, (a, b))| difference(name, a, b)).collect();
    print_result(args, &differences);
    let unequal = differences.iter().filter(|d| !d.is_equal(args.tolerance)).count();
    if unequal > 0 {
        let n = differences.len();
        return Err(Failure::Work(anyhow::anyhow!("{unequal} of {n} outputs differ by more than {}", args.tolerance)));
    }
    Ok(())
}

/// Finds the outputs that both graphs have and that the fetches need, in the order of computation.
fn common_outputs(a: &Runnable, b: &Runnable, fetches: &[String]) -> Result<Vec<String>, Failure> {
    let (nodes_a, nodes_b) = (a.session().graph().nodes(), b.session().graph().nodes());
    let needed = needed_nodes(&nodes_a, fetches)?;
    let mut names = Vec::new();
    for node in nodes_a.iter().filter(|node| needed[node.id.index()]) {
        let Some(node_b) = nodes_b.find(&node.name) else { continue };
        let ports = node.outputs.iter().zip(&node_b.outputs).enumerate();
        let same = ports.filter(|(_, (a, b))| a.dtype == b.dtype && a.dtype.size() > 0);
        names.extend(same.map(|(port, _)| format!("{}:{port}", node.name)));
    }
    Ok(names)
}

/// Returns for each node whether the outputs need it; their own nodes are needed.
fn needed_nodes(nodes: &Nodes, outputs: &[String]) -> Result<Vec<bool>, Failure> {
    let mut needed = vec![false; nodes.len()];
    let mut stack = Vec::new();
    for name in outputs {
        let node = name.rsplit_once(':').map_or(name.as_str(), |(node, _)| node);
        let found =
            nodes.find(node).ok_or_else(|| Failure::wrong_use(format_args!("the first graph has no node {node}")))?;
        stack.push(found.id);
    }
    while let Some(id) = stack.pop() {
        if std::mem::replace(&mut needed[id.index()], true) {
            continue;
        }
        let Some(node) = nodes.get(id) else { continue };
        stack.extend(node.inputs.iter().map(|input| input.node).chain(node.control_inputs.iter().copied()));
    }
    Ok(needed)
}

fn difference(name: &str, a: &Tensor, b: &Tensor) -> Difference {
    let types = |t: &Tensor| format!("{}{}", t.dtype(), t.shape());
    let same_kind = a.dtype() == b.dtype() && a.shape() == b.shape();
    let numbers = match (a.to_f64(), b.to_f64()) {
        (Ok(x), Ok(y)) if same_kind => Some(compare_numbers(&x, &y)),
        // Strings and other types without numbers are equal or not.
        _ if same_kind && a == b => Some(NumericDifference::default()),
        _ => None,
    };
    Difference { name: name.to_owned(), types: (types(a), types(b)), numbers }
}

fn compare_numbers(x: &[f64], y: &[f64]) -> NumericDifference {
    let mut found = NumericDifference::default();
    let mut magnitude = 0f64;
    for (i, (x, y)) in x.iter().zip(y).enumerate() {
        if !x.is_finite() || !y.is_finite() {
            found.n_non_finite_mismatches += usize::from(!(x == y || x.is_nan() && y.is_nan()));
            continue;
        }
        magnitude = magnitude.max(x.abs());
        if (x - y).abs() > found.largest {
            (found.largest, found.largest_idx) = ((x - y).abs(), i);
        }
    }
    found.relative = if found.largest == 0.0 { 0.0 } else { found.largest / magnitude.max(f64::MIN_POSITIVE) };
    found
}

fn print_result(args: &args::Compare, differences: &[Difference]) {
    let first = differences.iter().find(|d| !d.is_equal(args.tolerance));
    if args.json {
        let each = |d: &Difference| {
            let n = d.numbers.as_ref();
            json!({
                "name": d.name, "a": d.types.0, "b": d.types.1, "equal": d.is_equal(args.tolerance),
                "largest": n.map(|n| n.largest), "relative": n.map(|n| n.relative), "at": n.map(|n| n.largest_idx),
                "unlike": n.map(|n| n.n_non_finite_mismatches),
            })
        };
        let outputs: Vec<_> = differences.iter().map(each).collect();
        out::object(1, json!({ "outputs": outputs, "first_difference": first.map(|d| &d.name) }));
        return;
    }
    let width = differences.iter().map(|d| d.name.len()).max().unwrap_or(0);
    for d in differences {
        say!("{:width$}  {}", d.name, difference_line(d, args.tolerance));
    }
    if let Some(first) = first.filter(|_| args.every_node) {
        say!("first difference at {}", first.name);
    }
}

fn difference_line(d: &Difference, tolerance: f64) -> String {
    let (a, b) = &d.types;
    let Some(n) = &d.numbers else {
        return if a == b { format!("{a}  DIFFERS") } else { format!("DIFFERS: {a} against {b}") };
    };
    let mark = if d.is_equal(tolerance) { "equal" } else { "DIFFERS" };
    let mut line = format!("{a}  {mark}  largest {:.3e}, relative {:.3e}", n.largest, n.relative);
    if n.largest > 0.0 {
        line += &format!(", at element {}", n.largest_idx);
    }
    if n.n_non_finite_mismatches > 0 {
        line += &format!(", {} non-finite elements differ", n.n_non_finite_mismatches);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_found() {
        let n = compare_numbers(&[1.0, -4.0, f64::NAN, f64::INFINITY], &[1.0, -4.5, f64::NAN, f64::NEG_INFINITY]);
        assert_eq!((n.largest, n.relative, n.largest_idx, n.n_non_finite_mismatches), (0.5, 0.125, 1, 1));
        let d = difference("x", &Tensor::scalar(1f32), &Tensor::vector(&[1f32]));
        assert!(!d.is_equal(1.0) && d.numbers.is_none());
        assert!(difference("s", &Tensor::string("a"), &Tensor::string("a")).is_equal(0.0));
        assert!(!difference("s", &Tensor::string("a"), &Tensor::string("b")).is_equal(1.0));
    }
}
