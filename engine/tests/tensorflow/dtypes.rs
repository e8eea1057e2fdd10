//! Kernels, gradients and inferred shapes of element-wise, array and reduction ops with every element type against
//! TensorFlow's own results, in `data/dtypes.json.gz` (made by `tests/scripts/tf_dtype_fixtures.py`).

use std::collections::BTreeMap;
use std::io::Read;

use engine::buffer::Allocator;
use engine::convert::convert;
use engine::dtype::Complex64;
use engine::gradients::gradients;
use engine::graph::Attr;
use engine::{DType, Graph, Output, Session, SessionOptions, Shape, Tensor};
use serde_json::Value;

/// TensorFlow 2.21 rounds int32 and int64 to 0, which is wrong (and int8 and int16 to themselves).
fn is_wrong(case: &Value) -> bool {
    case[0] == "Round" && ["int32", "int64"].iter().any(|t| case[3][0][0] == *t)
}

fn fixture() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/dtypes.json.gz");
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut text).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn list(v: &Value) -> &[Value] {
    v.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn tensor(v: &Value) -> Tensor {
    let dims: Vec<usize> = list(&v[1]).iter().map(|d| d.as_u64().unwrap() as usize).collect();
    if v[0] == "string" {
        let strings = list(&v[2]).iter().map(|s| s.as_str().unwrap().as_bytes().to_vec()).collect();
        return Tensor::from_strings(dims.as_slice(), strings).unwrap();
    }
    let dtype = DType::from_name(v[0].as_str().unwrap()).unwrap();
    let hex = v[2].as_str().unwrap();
    let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect();
    if dtype == DType::Bool {
        return Tensor::from_vec(dims.as_slice(), bytes.iter().map(|b| *b != 0).collect()).unwrap();
    }
    Tensor::from_bytes(dtype, Shape::new(&dims), &bytes, Allocator::host()).unwrap()
}

fn attr(v: &Value) -> Attr {
    match v {
        Value::Bool(b) => Attr::Bool(*b),
        Value::Number(n) if n.is_i64() => Attr::Int(n.as_i64().unwrap()),
        Value::Number(n) => Attr::Float(n.as_f64().unwrap() as f32),
        Value::String(s) => Attr::Str(s.as_bytes().to_vec()),
        Value::Array(a) if a.first().is_some_and(Value::is_string) => {
            Attr::Type(DType::from_name(a[1].as_str().unwrap()).unwrap())
        }
        Value::Array(a) if a.first().is_some_and(Value::is_f64) => {
            Attr::ListFloat(a.iter().map(|v| v.as_f64().unwrap() as f32).collect())
        }
        Value::Array(a) => Attr::ListInt(a.iter().map(|v| v.as_i64().unwrap()).collect()),
        other => panic!("{other}"),
    }
}

/// How far a result may lie from TensorFlow's, relative to the larger of the value and 1.
fn tolerance(dtype: DType, slope: bool) -> f64 {
    let of = match dtype {
        DType::F16 => 4e-3,
        DType::BF16 => 3e-2,
        DType::F32 | DType::C64 => 2e-5,
        _ => 1e-10,
    };
    // TensorFlow's slopes of 16-bit floats round at every node.
    if slope && matches!(dtype, DType::F16 | DType::BF16) { of * 8.0 } else { of }
}

fn close(got: &Tensor, want: &Tensor, slope: bool) -> bool {
    if (got.dtype(), got.shape()) != (want.dtype(), want.shape()) {
        return false;
    }
    if !got.dtype().has_gradient() {
        return got == want;
    }
    let wide = |t: &Tensor| convert(t, DType::C128, Allocator::host()).unwrap().slice::<Complex64>().unwrap().to_vec();
    let limit = tolerance(got.dtype(), slope);
    let part = |g: f64, w: f64| (g - w).abs() <= limit * w.abs().max(1.0) || g == w || (g.is_nan() && w.is_nan());
    wide(got).iter().zip(&wide(want)).all(|(g, w)| part(g.re, w.re) && part(g.im, w.im))
}

struct Case {
    graph: Graph,
    feeds: Vec<(String, Tensor)>,
    outputs: Vec<Output>,
}

fn name(g: &Graph, o: impl Into<Output>) -> String {
    let o = o.into();
    format!("{}:{}", g.node(o.node).unwrap().name, o.port)
}

/// The case's graph: integers as constants and shapes known, or everything fed and of unknown size.
fn build(case: &Value, known: bool) -> Result<Case, String> {
    let graph = Graph::new();
    let (mut feeds, mut inputs) = (Vec::new(), Vec::new());
    for (i, v) in list(&case[3]).iter().enumerate() {
        let value = tensor(v);
        if known && value.dtype().is_integer() && value.dtype() != DType::U8 {
            inputs.push(graph.constant(value));
            continue;
        }
        let dims: Vec<_> = value.dims().iter().map(|d| known.then_some(*d)).collect();
        let p = graph.placeholder(&format!("in{i}"), value.dtype(), dims.as_slice());
        feeds.push((name(&graph, p), value));
        inputs.push(p);
    }
    let mut node = graph.add_node(case[0].as_str().unwrap());
    let lists: Vec<usize> = list(&case[2]).iter().map(|n| n.as_u64().unwrap() as usize).collect();
    let lists = if lists.is_empty() { vec![0; inputs.len()] } else { lists };
    let mut rest = inputs.as_slice();
    for n in lists {
        let (now, later) = rest.split_at(n.max(1));
        node = if n == 0 { node.input(now[0]) } else { node.inputs(now) };
        rest = later;
    }
    for (k, v) in case[1].as_object().unwrap() {
        node = node.attr(k, attr(v));
    }
    let id = node.build().map_err(|e| e.to_string())?;
    let n = graph.node(id).unwrap().outputs.len() as u32;
    Ok(Case { outputs: (0..n).map(|port| Output { node: id, port }).collect(), graph, feeds })
}

impl Case {
    fn run(&self, fetches: &[Output]) -> Result<Vec<Tensor>, String> {
        let options = SessionOptions { threads: Some(1), ..Default::default() };
        let session = Session::new(&self.graph, options).map_err(|e| e.to_string())?;
        let feeds: Vec<_> = self.feeds.iter().map(|(n, t)| (n.as_str(), t.clone())).collect();
        let fetches: Vec<_> = fetches.iter().map(|o| name(&self.graph, *o)).collect();
        let fetches: Vec<_> = fetches.iter().map(String::as_str).collect();
        session.run(&feeds, &fetches, &[]).map_err(|e| e.to_string())
    }
}

fn check_outputs(v: &Value, known: bool) -> Result<(), String> {
    let case = build(v, known)?;
    for (port, (got, want)) in case.run(&case.outputs)?.iter().zip(list(&v[4])).enumerate() {
        let want = tensor(want);
        if !close(got, &want, false) {
            return Err(format!("output {port}: got {got:?}, TensorFlow has {want:?}"));
        }
        let inferred = case.graph.shape(case.outputs[port]).unwrap();
        if !inferred.admits(got.shape()) {
            return Err(format!("output {port}: inferred {inferred}, is {}", got.shape()));
        }
    }
    Ok(())
}

fn check_gradients(v: &Value, known: bool) -> Result<usize, String> {
    let case = build(v, known)?;
    let weights = case.graph.constant(tensor(&v[5])).output();
    let fed = case.feeds.iter().filter(|(_, t)| t.dtype().has_gradient());
    let xs: Vec<Output> = fed.map(|(n, _)| case.graph.output(n).unwrap()).collect();
    let grads = gradients(&case.graph, &case.outputs[..1], &xs, &[weights]).map_err(|e| e.to_string())?;
    let mut n = 0;
    for (i, (got, want)) in case.run(&grads)?.iter().zip(list(&v[6])).enumerate() {
        // TensorFlow may have no gradient where there is one.
        if want.is_null() {
            continue;
        }
        let want = tensor(want);
        if !close(got, &want, true) {
            return Err(format!("gradient {i}: got {got:?}, TensorFlow has {want:?}"));
        }
        n += 1;
    }
    Ok(n)
}

fn what(v: &Value, known: bool) -> String {
    let inputs: Vec<String> = list(&v[3]).iter().map(|i| format!("{}{}", i[0].as_str().unwrap(), i[1])).collect();
    format!("{} {} {} (known: {known})", v[0], v[1], inputs.join(" "))
}

#[test]
fn kernels_agree() {
    let (mut n, mut failures) = (BTreeMap::<String, usize>::new(), Vec::new());
    for v in list(&fixture()).iter().filter(|v| !is_wrong(v)) {
        for known in [true, false] {
            match check_outputs(v, known) {
                Ok(()) => *n.entry(v[0].to_string()).or_default() += 1,
                Err(e) => failures.push(format!("{}: {e}", what(v, known))),
            }
        }
    }
    println!("{} comparisons of {} ops, {} failed", n.values().sum::<usize>(), n.len(), failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(n.len() > 180);
}

#[test]
fn gradients_agree() {
    let (mut n, mut failures) = (0, Vec::new());
    for v in list(&fixture()).iter().filter(|v| !v[6].is_null()) {
        for known in [true, false] {
            match check_gradients(v, known) {
                Ok(compared) => n += compared,
                Err(e) => failures.push(format!("{}: {e}", what(v, known))),
            }
        }
    }
    println!("{n} gradients compared, {} failed", failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(n > 1500);
}
