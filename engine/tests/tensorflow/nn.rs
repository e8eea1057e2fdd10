//! Neural-net ops and their gradients against TensorFlow's results, in `data/tensorflow_nn.json.gz` (made by
//! `tests/scripts/tf_nn_fixtures.py`); and the gradients in f64 against finite differences.

use crate::cases::{attr, floats, list, name, number, tensor};
use engine::gradients::{gradients, rule};
use engine::optimizer::{Optimizer, Slots};
use engine::slices::clip_by_global_norm;
use engine::{DType, Graph, NodeId, Output, PartialShape, Session, SessionOptions, Tensor};
use serde_json::Value;

fn fixture() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tensorflow_nn.json.gz");
    let file = std::fs::File::open(path).unwrap();
    serde_json::from_reader(std::io::BufReader::new(flate2::read::GzDecoder::new(file))).unwrap()
}

/// What differs: floats within a tolerance relative to the larger of the value and 1 do not.
fn difference(got: &Tensor, want: &Tensor) -> Option<String> {
    if (got.dtype(), got.shape()) != (want.dtype(), want.shape()) {
        return Some(format!("{got:?}, TensorFlow has {want:?}"));
    }
    if !got.dtype().is_float() {
        return (got != want).then(|| format!("{got:?}, TensorFlow has {want:?}"));
    }
    let tolerance = if got.dtype() == DType::F32 { 1e-5 } else { 1e-11 };
    let far =
        |(g, w): &(f64, f64)| !((g - w).abs() <= tolerance * w.abs().max(1.0) || g == w || (g.is_nan() && w.is_nan()));
    let (g, w) = floats(got).into_iter().zip(floats(want)).find(far)?;
    Some(format!("got {g}, TensorFlow has {w}\n  {got:?}\n  {want:?}"))
}

/// All cases that differ.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn compare(&mut self, what: &str, got: &Tensor, want: &Tensor) {
        self.0.extend(difference(got, want).map(|d| format!("{what}: {d}")));
    }

    fn check(&self) {
        assert!(self.0.is_empty(), "{} differ:\n{}", self.0.len(), self.0.join("\n"));
    }
}

struct Case {
    /// The output whose gradients are compared.
    of: Output,
    graph: Graph,
    feeds: Vec<(String, Tensor)>,
    outputs: Vec<Output>,
    what: String,
}

/// The case's graph; `known` says whether shapes are known when it is built.
fn build(case: &Value, known: bool) -> Case {
    let graph = Graph::new();
    let op = case["op"].as_str().unwrap();
    let shapes = list(&case["inputs"]).iter().map(|i| i[1].to_string()).collect::<String>();
    let what = format!("{op} {} {shapes}", case["attrs"]);
    let mut feeds = Vec::new();
    let mut node = graph.add_node(op);
    for (i, v) in list(&case["inputs"]).iter().enumerate() {
        let value = tensor(v);
        // Integer inputs are sizes: constants, as programs write them.
        if known && !value.dtype().is_float() {
            node = node.input(graph.constant(value));
            continue;
        }
        let dims: Vec<_> = value.dims().iter().map(|d| known.then_some(*d)).collect();
        let p = graph.placeholder(&format!("in{i}"), value.dtype(), dims.as_slice());
        feeds.push((name(&graph, p), value));
        node = node.input(p);
    }
    for (k, v) in case["attrs"].as_object().unwrap() {
        node = node.attr(k, attr(v));
    }
    let id = node.build().unwrap_or_else(|e| panic!("{what}: {e}"));
    let n = list(&case["outputs"]).len();
    let outputs = (0..n as u32).map(|port| Output { node: id, port }).collect();
    let of = Output { node: id, port: case["of"].as_u64().unwrap_or(0) as u32 };
    Case { of, graph, feeds, outputs, what }
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
        let got = gradients(&self.graph, &[self.of], &xs, &[weights]);
        got.unwrap_or_else(|e| panic!("{}: {e}", self.what))
    }

    fn float_inputs(&self) -> Vec<&(String, Tensor)> {
        self.feeds.iter().filter(|(_, t)| t.dtype().is_float()).collect()
    }
}

/// How many elements of an output TensorFlow gives a value: layers of cells leave the gates of the steps after a
/// sequence's end as they find them in memory, and clear only the states and the outputs.
fn defined(case: &Value, port: usize, output: &Tensor) -> usize {
    if !matches!(case["op"].as_str(), Some("BlockLSTM" | "BlockLSTMV2")) || matches!(port, 1 | 6) {
        return output.len();
    }
    let n_steps = case["inputs"][0][2][0].as_u64().unwrap() as usize;
    n_steps * output.len() / output.dims()[0]
}

/// The first `n` elements of a tensor of floats; the entire tensor where it has no more.
fn first(t: &Tensor, n: usize) -> Tensor {
    if n == t.len() {
        return t.clone();
    }
    Tensor::vector(&t.slice::<f32>().unwrap()[..n])
}

#[test]
fn kernels_agree() {
    let fixture = fixture();
    let cases = list(&fixture["cases"]);
    assert!(cases.len() > 200);
    let mut differences = Differences::default();
    for v in cases {
        for known in [true, false] {
            let case = build(v, known);
            let got = case.run(&case.outputs);
            for (port, (got, want)) in got.iter().zip(list(&v["outputs"])).enumerate() {
                let n = defined(v, port, got);
                let (seen, want) = (first(got, n), first(&tensor(want), n));
                differences.compare(&format!("{} output {port}", case.what), &seen, &want);
                let inferred = case.graph.shape(case.outputs[port]).unwrap();
                assert!(inferred.admits(got.shape()), "{}: inferred {inferred}, is {}", case.what, got.shape());
            }
        }
    }
    differences.check();
}

#[test]
fn gradients_agree() {
    let mut n = 0;
    let mut differences = Differences::default();
    for v in list(&fixture()["cases"]) {
        let Some(wanted) = v.get("gradients") else { continue };
        assert!(rule(v["op"].as_str().unwrap()).is_some(), "{} has no gradient", v["op"]);
        // TensorFlow's rule runs the gradient of the first version, which takes the gates in another order: its results
        // are not the slopes, to which alone the gradient is held.
        if v["op"] == "BlockLSTMV2" {
            continue;
        }
        for known in [true, false] {
            let case = build(v, known);
            let got = case.run(&case.gradients(&tensor(&v["weights"])));
            assert_eq!(got.len(), list(wanted).len(), "{}", case.what);
            for (i, (got, want)) in got.iter().zip(list(wanted)).enumerate() {
                let what = format!("{} gradient {i} (shapes known: {known})", case.what);
                differences.compare(&what, got, &tensor(want));
                n += 1;
            }
        }
    }
    differences.check();
    assert!(n > 400, "{n} gradients compared");
}

/// Cases of f32 are checked in f64, which the ops take too.
fn in_f64(v: &Value) -> Value {
    let text = serde_json::to_string(v).unwrap();
    serde_json::from_str(&text.replace("[\"float\",", "[\"double\",")).unwrap()
}

#[test]
fn gradients_are_the_slopes() {
    const STEP: f64 = 1e-6;
    // Images are resized to f32 from any type.
    let skipped = ["Dilation2D", "ResizeBilinear"];
    let (mut n, mut kinks) = (0, 0);
    let mut wrong = Vec::new();
    for v in list(&fixture()["cases"]) {
        if v.get("gradients").is_none() || skipped.contains(&v["op"].as_str().unwrap()) {
            continue;
        }
        let v = in_f64(v);
        let mut case = build(&v, true);
        let weights = tensor(&v["weights"]);
        let slopes = case.run(&case.gradients(&weights));
        let weights = floats(&weights);
        // Some elements of each input: all together take long.
        for (i, slopes) in slopes.iter().enumerate() {
            // TensorFlow holds the given mean and variance for constants when it does not train.
            if v["op"].as_str().unwrap().starts_with("FusedBatchNorm") && i >= 3 {
                continue;
            }
            let original = case.feeds[i].1.clone();
            for k in (0..original.len()).step_by(original.len() / 6 + 1) {
                let mut at = |delta: f64| {
                    let mut moved = floats(&original);
                    moved[k] += delta;
                    case.feeds[i].1 = Tensor::from_vec(original.dims(), moved).unwrap();
                    floats(&case.run(&[case.of])[0]).iter().zip(&weights).map(|(y, w)| y * w).sum::<f64>()
                };
                let (below, here, above) = (at(-STEP), at(0.0), at(STEP));
                let slope = (above - below) / (2.0 * STEP);
                // Where two maxima are equal the sides differ, and there is no slope.
                if ((above - here) - (here - below)).abs() > 0.02 * STEP * slope.abs().max(1.0) {
                    kinks += 1;
                    continue;
                }
                let got = floats(slopes)[k];
                if (got - slope).abs() > 2e-6 * slope.abs().max(1.0) {
                    wrong.push(format!("{} input {i} element {k}: {got}, the slope is {slope}", case.what));
                }
                n += 1;
            }
            case.feeds[i].1 = original;
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(n > 1000 && kinks < n / 20, "{n} slopes, {kinks} places without one");
}

/// A graph's variables by handles, or as the references of TensorFlow's first variables.
fn variables(g: &Graph, values: &[Tensor], by_reference: bool) -> (Vec<Output>, Vec<Output>, Vec<NodeId>) {
    let (mut handles, mut reads, mut init) = (Vec::new(), Vec::new(), Vec::new());
    for (i, value) in values.iter().enumerate() {
        if !by_reference {
            let v = g.variable(&format!("v{i}"), value.clone());
            handles.push(v.handle);
            reads.push(v.value);
            init.push(v.init);
            continue;
        }
        let shape = PartialShape::from(value.shape());
        let node = g.add_node("VariableV2").name(&format!("v{i}")).attr("dtype", value.dtype()).attr("shape", shape);
        let (v, value) = (node.value(), g.constant(value.clone()));
        handles.push(v.output());
        reads.push(v.identity().output());
        init.push(v.op_with("Assign", value).node());
    }
    (handles, reads, init)
}

#[test]
fn updates_agree() {
    let (mut n, mut differences) = (0, Differences::default());
    for v in list(&fixture()["training"]) {
        let by_handle = v["op"].as_str().unwrap();
        for op in [by_handle, by_handle.strip_prefix("Resource").unwrap()] {
            if engine::ops::lookup(op).is_none() {
                continue;
            }
            let g = Graph::new();
            let values: Vec<Tensor> = list(&v["variables"]).iter().map(tensor).collect();
            let (handles, reads, init) = variables(&g, &values, op != by_handle);
            g.group("init", &init);
            let mut node = g.add_node(op).name("update");
            for handle in handles {
                node = node.input(handle);
            }
            for input in list(&v["inputs"]) {
                node = node.input(g.constant(tensor(input)));
            }
            for (k, v) in v["attrs"].as_object().unwrap() {
                node = node.attr(k, attr(v));
            }
            node.build().unwrap_or_else(|e| panic!("{op}: {e}"));
            let session = Session::new(&g, SessionOptions::default()).unwrap();
            session.run(&[], &[], &["init"]).unwrap();
            for _ in 0..2 {
                session.run(&[], &[], &["update"]).unwrap_or_else(|e| panic!("{op}: {e}"));
            }
            let names: Vec<String> = reads.iter().map(|o| name(&g, *o)).collect();
            let got = session.run(&[], &names.iter().map(String::as_str).collect::<Vec<_>>(), &[]).unwrap();
            for (i, (got, want)) in got.iter().zip(list(&v["after"])).enumerate() {
                differences.compare(&format!("{op} {} variable {i}", v["attrs"]), got, &tensor(want));
                n += 1;
            }
        }
    }
    differences.check();
    assert!(n > 200, "{n} variables compared");
}

#[test]
fn optimizers_agree() {
    let v = &fixture()["optimizers"];
    let start: Vec<Tensor> = list(&v["variables"]).iter().map(tensor).collect();
    let momentum = 0.9;
    let rules = [
        ("descent", Optimizer::GradientDescent, 0.3f32),
        ("momentum", Optimizer::Momentum { momentum }, 0.1),
        ("nesterov", Optimizer::Nesterov { momentum }, 0.1),
        ("adagrad", Optimizer::Adagrad { initial: 0.1 }, 0.2),
        ("rms_prop", Optimizer::RmsProp { decay: 0.9, momentum: 0.5, epsilon: 1e-3 }, 0.02),
        ("adam", Optimizer::ADAM, 0.05),
        ("clipped", Optimizer::GradientDescent, 0.3),
    ];
    for (key, optimizer, rate) in rules {
        let g = Graph::new();
        let vars: Vec<_> = (0..3).map(|i| g.variable(&format!("v{i}"), start[i].clone())).collect();
        let [ids, labels] = ["ids", "labels"].map(|name| g.constant(tensor(&v[name])));
        let h = g.value(vars[0].value).embedding_lookup(ids).reshape([8, 8]);
        let logits = h.matmul(vars[1].value).bias_add(vars[2].value);
        let loss = logits.sparse_cross_entropy(labels).mean_all().output();
        let values: Vec<Output> = vars.iter().map(|v| v.value).collect();
        let mut grads = gradients(&g, &[loss], &values, &[]).unwrap();
        if key == "clipped" {
            grads = clip_by_global_norm(&g, &vars, &grads, 0.2).unwrap().0;
        }
        let rate = g.constant(rate);
        let training = optimizer.apply(&g, &vars, &grads, rate, &mut Slots::default()).unwrap();
        let init: Vec<_> = vars.iter().map(|v| v.init).chain(training.init).collect();
        g.group("init", &init);
        let (train, loss) = (g.node(training.op).unwrap().name.to_string(), name(&g, loss));
        let session = Session::new(&g, SessionOptions::default()).unwrap();
        session.run(&[], &[], &["init"]).unwrap();
        for (step, want) in list(&v["losses"][key]).iter().enumerate() {
            let got = f64::from(session.run(&[], &[&loss], &[]).unwrap()[0].item::<f32>().unwrap());
            assert!((got - number(want)).abs() < 3e-5, "{key} step {step}: {got}, TensorFlow has {want}");
            session.run(&[], &[], &[&train]).unwrap_or_else(|e| panic!("{key}: {e}"));
        }
    }
}

#[test]
fn a_variable_must_have_a_known_shape() {
    let g = Graph::new();
    let start = Tensor::from_vec([1, 2], vec![0f32; 2]).unwrap();
    let v = g.variable_from("v", DType::F32, [None, Some(2)], |g| g.constant(start));
    let applied = Optimizer::ADAM.apply(&g, &[v], &[v.value], g.constant(0.1f32), &mut Slots::default());
    let error = applied.err().unwrap().to_string();
    assert_eq!(error, "node v (VarHandleOp): attribute shape = [?,2], expected a shape that is known in full");
}
