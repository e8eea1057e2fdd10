//! Kernels, gradients, random numbers and training against TensorFlow's own results, in `data/tensorflow.json`
//! (made by `tests/scripts/tf_kernel_fixtures.py`); and every gradient against finite differences.

use crate::cases::{attr, floats, list, name, number, tensor};
use engine::gradients::{gradients, rule};
use engine::graph::Var;
use engine::optimizer::Optimizer;
use engine::{DType, Graph, Output, Session, SessionOptions, Tensor};
use serde_json::Value;

fn fixture() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tensorflow.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Equal, floats within a tolerance relative to the larger of the value and 1.
fn same(what: &str, got: &Tensor, want: &Tensor) {
    assert_eq!((got.dtype(), got.shape()), (want.dtype(), want.shape()), "{what}");
    if !got.dtype().is_float() {
        return assert_eq!(got, want, "{what}");
    }
    let tolerance = if got.dtype() == DType::F32 { 4e-6 } else { 1e-12 };
    for (g, w) in floats(got).iter().zip(floats(want)) {
        let close = (g - w).abs() <= tolerance * w.abs().max(1.0) || g == &w || (g.is_nan() && w.is_nan());
        assert!(close, "{what}: got {g}, TensorFlow has {w}\n{got:?}\n{want:?}");
    }
}

struct Case {
    graph: Graph,
    feeds: Vec<(String, Tensor)>,
    outputs: Vec<Output>,
    what: String,
}

/// The case's graph; `known` says whether shapes are known when it is built.
fn build(case: &Value, known: bool) -> Case {
    let graph = Graph::new();
    let op = case["op"].as_str().unwrap();
    let what = format!(
        "{op} {} {}",
        case["attrs"],
        list(&case["inputs"]).iter().map(|i| i[1].to_string()).collect::<String>()
    );
    let mut feeds = Vec::new();
    let mut inputs = Vec::new();
    for (i, v) in list(&case["inputs"]).iter().enumerate() {
        let value = tensor(v);
        // Integer inputs are axes and shapes: constants, as programs write them.
        if known && !value.dtype().is_float() {
            inputs.push(graph.constant(value));
            continue;
        }
        let rank = value.shape().rank();
        let dims: Vec<_> = value.dims().iter().map(|d| known.then_some(*d)).collect();
        assert_eq!(dims.len(), rank);
        let p = graph.placeholder(&format!("in{i}"), value.dtype(), dims.as_slice());
        feeds.push((name(&graph, p), value));
        inputs.push(p);
    }
    let mut node = graph.add_node(op);
    let lists: Vec<usize> = list(&case["lists"]).iter().map(|n| n.as_u64().unwrap() as usize).collect();
    let lists = if lists.is_empty() { vec![0; inputs.len()] } else { lists };
    let mut rest = inputs.as_slice();
    for n in lists {
        let (now, later) = rest.split_at(n.max(1));
        node = if n == 0 { node.input(now[0]) } else { node.inputs(now) };
        rest = later;
    }
    for (k, v) in case["attrs"].as_object().unwrap() {
        node = node.attr(if (op, k.as_str()) == ("Squeeze", "axis") { "squeeze_dims" } else { k }, attr(v));
    }
    let id = node.build().unwrap_or_else(|e| panic!("{what}: {e}"));
    let n = graph.node(id).unwrap().outputs.len();
    let outputs = (0..n as u32).map(|port| Output { node: id, port }).collect();
    Case { graph, feeds, outputs, what }
}

impl Case {
    fn run(&self, fetches: &[Output]) -> Vec<Tensor> {
        let session = Session::new(&self.graph, SessionOptions { threads: Some(2), ..Default::default() }).unwrap();
        let feeds: Vec<_> = self.feeds.iter().map(|(n, t)| (n.as_str(), t.clone())).collect();
        let fetches: Vec<_> = fetches.iter().map(|o| name(&self.graph, *o)).collect();
        let fetches: Vec<_> = fetches.iter().map(String::as_str).collect();
        session.run(&feeds, &fetches, &[]).unwrap_or_else(|e| panic!("{}: {e}", self.what))
    }

    fn gradients(&self, weights: &Tensor) -> Vec<Output> {
        let weights = self.graph.constant(weights.clone()).output();
        let xs: Vec<Output> = self.float_inputs().iter().map(|(n, _)| self.graph.output(n).unwrap()).collect();
        let got = gradients(&self.graph, &self.outputs[..1], &xs, &[weights]);
        got.unwrap_or_else(|e| panic!("{}: {e}", self.what))
    }

    fn float_inputs(&self) -> Vec<&(String, Tensor)> {
        self.feeds.iter().filter(|(_, t)| t.dtype().is_float()).collect()
    }
}

#[test]
fn kernels_agree() {
    let fixture = fixture();
    let cases = list(&fixture["cases"]);
    assert!(cases.len() > 200);
    for v in cases {
        for known in [true, false] {
            let case = build(v, known);
            let got = case.run(&case.outputs);
            for (port, (got, want)) in got.iter().zip(list(&v["outputs"])).enumerate() {
                same(&format!("{} output {port}", case.what), got, &tensor(want));
                let inferred = case.graph.shape(case.outputs[port]).unwrap();
                assert!(inferred.admits(got.shape()), "{}: inferred {inferred}, is {}", case.what, got.shape());
            }
        }
    }
}

#[test]
fn gradients_agree() {
    let mut n = 0;
    for v in list(&fixture()["cases"]) {
        let Some(wanted) = v.get("gradients") else { continue };
        for known in [true, false] {
            // These need constant permutations, axes and repetitions, and say so otherwise.
            if !known && ["Transpose", "GatherV2", "ConcatV2", "Tile"].contains(&v["op"].as_str().unwrap()) {
                continue;
            }
            let case = build(v, known);
            let got = case.run(&case.gradients(&tensor(&v["weights"])));
            assert_eq!(got.len(), list(wanted).len(), "{}", case.what);
            for (i, (got, want)) in got.iter().zip(list(wanted)).enumerate() {
                same(&format!("{} gradient {i} (shapes known: {known})", case.what), got, &tensor(want));
                n += 1;
            }
        }
    }
    assert!(n > 200, "{n} gradients compared");
}

#[test]
fn gradients_are_the_slopes() {
    const STEP: f64 = 1e-6;
    // Of outputs that are not smooth where the inputs lie, or not of the inputs alone.
    let skipped = ["Sign", "Floor", "Cast"];
    for v in list(&fixture()["cases"]) {
        let has_rule = rule(v["op"].as_str().unwrap()).is_some();
        if v.get("gradients").is_none() || !has_rule || skipped.contains(&v["op"].as_str().unwrap()) {
            continue;
        }
        let mut case = build(v, true);
        if case.float_inputs().iter().any(|(_, t)| t.dtype() != DType::F64) {
            continue;
        }
        let weights = tensor(&v["weights"]);
        let slopes = case.run(&case.gradients(&weights));
        let weights = floats(&weights);
        for (i, slopes) in slopes.iter().enumerate() {
            for k in 0..case.feeds[i].1.len() {
                let original = case.feeds[i].1.clone();
                let mut at = |delta: f64| {
                    let mut moved = floats(&original);
                    moved[k] += delta;
                    case.feeds[i].1 = Tensor::from_vec(original.dims(), moved).unwrap();
                    floats(&case.run(&case.outputs[..1])[0]).iter().zip(&weights).map(|(y, w)| y * w).sum::<f64>()
                };
                let slope = (at(STEP) - at(-STEP)) / (2.0 * STEP);
                case.feeds[i].1 = original;
                let got = floats(slopes)[k];
                // Cross entropy's is that of labels that sum to 1, which a moved one no longer does.
                let exempt = v["op"] == "SoftmaxCrossEntropyWithLogits" && i == 1;
                assert!(
                    exempt || (got - slope).abs() < 1e-6 * slope.abs().max(1.0),
                    "{}: {got} and {slope}",
                    case.what
                );
            }
        }
    }
}

#[test]
fn random_numbers_agree() {
    for v in list(&fixture()["random"]) {
        let graph = Graph::new();
        let shape: Vec<i32> = list(&v["shape"]).iter().map(|d| d.as_i64().unwrap() as i32).collect();
        let shape = graph.ints(&shape);
        let op = v["op"].as_str().unwrap();
        let runs: Vec<Tensor> = list(&v["runs"]).iter().map(tensor).collect();
        let node = graph.add_node(op).input(shape).attr("dtype", runs[0].dtype());
        let y = node.attr("seed", 87_654_321i64).attr("seed2", 42i64).value();
        let session = Session::new(&graph, SessionOptions::default()).unwrap();
        for (i, want) in runs.iter().enumerate() {
            same(&format!("{op}, run {i}"), &session.run(&[], &[&name(&graph, y)], &[]).unwrap()[0], want);
        }
    }
}

#[test]
fn training_agrees() {
    let fixture = fixture();
    let v = &fixture["mlp"];
    let rules =
        [("descent", Optimizer::GradientDescent, 0.2f32), ("momentum", Optimizer::Momentum { momentum: 0.9 }, 0.1)];
    for (key, optimizer, rate) in rules {
        let g = Graph::new();
        let weights: Vec<Tensor> = list(&v["weights"]).iter().map(tensor).collect();
        let vars: Vec<Var> = weights.iter().enumerate().map(|(i, w)| g.variable(&format!("v{i}"), w.clone())).collect();
        let [x, labels] = ["x", "labels"].map(|name| g.constant(tensor(&v[name])));
        let h = x.matmul(vars[0].value).bias_add(vars[1].value).relu();
        let logits = h.matmul(vars[2].value).bias_add(vars[3].value);
        let loss = logits.sparse_cross_entropy(labels).mean_all();
        let training = optimizer.minimize(loss, &vars, g.constant(rate)).unwrap();
        let init: Vec<_> = vars.iter().map(|v| v.init).chain(training.init).collect();
        g.group("init", &init);
        let train = g.node(training.op).unwrap().name.to_string();
        let session = Session::new(&g, SessionOptions::default()).unwrap();
        session.run(&[], &[], &["init"]).unwrap();
        let loss = name(&g, loss.output());
        for (step, want) in list(&v[key]).iter().enumerate() {
            let got = f64::from(session.run(&[], &[&loss], &[]).unwrap()[0].item::<f32>().unwrap());
            assert!((got - number(want)).abs() < 2e-5, "{key} step {step}: {got}, TensorFlow has {want}");
            session.run(&[], &[], &[&train]).unwrap();
        }
    }
}
