//! Matrix, sparse, segment, scatter, quantised, random, summary and string ops against TensorFlow's own results, in
//! `data/tf_THEME.json.gz` (made by `tests/scripts/tf_linalg_fixtures.py`).

use std::io::Read as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use engine::dtype::{Complex64, DType};
use engine::gradients::gradients;
use engine::graph::Attr;
use engine::{Graph, Output, Session, SessionOptions, Shape, Tensor};
use serde_json::Value;

fn fixture(theme: &str) -> Vec<Value> {
    let path = format!("{}/tests/data/tf_{theme}.json.gz", env!("CARGO_MANIFEST_DIR"));
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut text).unwrap();
    let mut fixture: Value = serde_json::from_slice(&text).unwrap();
    match fixture["cases"].take() {
        Value::Array(cases) => cases,
        other => panic!("{other}"),
    }
}

fn list(v: &Value) -> &[Value] {
    v.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn usizes(v: &Value) -> Vec<usize> {
    list(v).iter().map(|d| d.as_u64().unwrap() as usize).collect()
}

fn number(v: &Value) -> f64 {
    v.as_f64().unwrap_or_else(|| v.as_str().unwrap().parse().unwrap())
}

fn cast(t: &Tensor, to: DType) -> Tensor {
    engine::convert::convert(t, to, engine::buffer::Allocator::host()).unwrap()
}

fn tensor(v: &Value) -> Tensor {
    let (dims, values) = (usizes(&v[1]), list(&v[2]));
    let dtype = DType::from_name(v[0].as_str().unwrap()).unwrap();
    let shape = dims.as_slice();
    if dtype == DType::String {
        let strings = values.iter().map(|s| BASE64_STANDARD.decode(s.as_str().unwrap()).unwrap()).collect();
        return Tensor::from_strings(shape, strings).unwrap();
    }
    if dtype.is_complex() {
        let pair = |v: &Value| Complex64::new(number(&v[0]), number(&v[1]));
        return cast(&Tensor::from_vec(shape, values.iter().map(pair).collect()).unwrap(), dtype);
    }
    if dtype == DType::U64 {
        return Tensor::from_vec(shape, values.iter().map(|v| v.as_u64().unwrap()).collect::<Vec<u64>>()).unwrap();
    }
    if dtype.is_float() {
        return cast(&Tensor::from_vec(shape, values.iter().map(number).collect()).unwrap(), dtype);
    }
    cast(&Tensor::from_vec(shape, values.iter().map(|v| v.as_i64().unwrap()).collect::<Vec<i64>>()).unwrap(), dtype)
}

fn attr(v: &Value) -> Attr {
    let dtype = |v: &Value| DType::from_name(v.as_str().unwrap()).unwrap();
    match v {
        Value::Bool(b) => Attr::Bool(*b),
        Value::Number(n) => Attr::Int(n.as_i64().unwrap()),
        Value::Object(o) if o.contains_key("string") => o["string"].as_str().unwrap().into(),
        Value::Object(o) if o.contains_key("float") => Attr::Float(number(&o["float"]) as f32),
        Value::Object(o) if o.contains_key("shapes") => {
            Attr::ListShape(list(&o["shapes"]).iter().map(|dims| Shape::new(&usizes(dims)).into()).collect())
        }
        Value::Object(o) if o.contains_key("types") => Attr::ListType(list(&o["types"]).iter().map(dtype).collect()),
        Value::Object(o) => {
            Attr::ListStr(list(&o["strings"]).iter().map(|s| s.as_str().unwrap().as_bytes().to_vec()).collect())
        }
        Value::Array(a) if a.first().is_some_and(Value::is_string) => Attr::Type(dtype(&a[1])),
        Value::Array(a) => Attr::ListInt(a.iter().map(|v| v.as_i64().unwrap()).collect()),
        other => panic!("{other}"),
    }
}

/// Numbers as pairs of f64 (the second 0 for real ones).
fn numbers(t: &Tensor) -> Vec<Complex64> {
    cast(t, DType::C128).slice::<Complex64>().unwrap().to_vec()
}

fn tolerance(dtype: DType) -> f64 {
    match dtype.real() {
        DType::F64 => 1e-9,
        DType::F16 => 2e-3,
        DType::BF16 => 2e-2,
        _ => 2e-5,
    }
}

/// Equal, floats within a tolerance relative to the larger of the value and 1.
fn same(what: &str, got: &Tensor, want: &Tensor) {
    assert_eq!((got.dtype(), got.shape()), (want.dtype(), want.shape()), "{what}");
    if !got.dtype().has_gradient() {
        return assert_eq!(got, want, "{what}");
    }
    let tolerance = tolerance(got.dtype());
    for (g, w) in numbers(got).iter().zip(numbers(want)) {
        let nan = g.is_nan() && w.is_nan();
        let close = (g - w).norm() <= tolerance * w.norm().max(1.0) || *g == w || nan;
        assert!(close, "{what}: got {g}, TensorFlow has {w}\n{got:?}\n{want:?}");
    }
}

/// Equal to the precision of f32: TensorFlow computes them so, whatever their type.
fn roughly(what: &str, got: &Tensor, want: &Tensor) {
    assert_eq!(got.dtype(), want.dtype(), "{what}");
    let is_double = got.dtype() == DType::F64;
    let rough = |t: &Tensor| if is_double { cast(t, DType::F32) } else { t.clone() };
    same(what, &rough(got), &rough(want));
}

/// Bit for bit.
fn exact(what: &str, got: &Tensor, want: &Tensor) {
    assert_eq!((got.dtype(), got.shape()), (want.dtype(), want.shape()), "{what}");
    assert_eq!(got, want, "{what}");
}

struct Case {
    graph: Graph,
    feeds: Vec<(String, Tensor)>,
    outputs: Vec<Output>,
    what: String,
}

fn name(g: &Graph, o: impl Into<Output>) -> String {
    let o = o.into();
    format!("{}:{}", g.node(o.node).unwrap().name, o.port)
}

/// The case's graph; `known` says whether shapes, and integers, are known when it is built.
fn build(case: &Value, known: bool) -> Case {
    let graph = Graph::new();
    let op = case["op"].as_str().unwrap();
    let shapes: String = list(&case["inputs"]).iter().map(|i| format!(" {}{}", i[0], i[1])).collect();
    let what = format!("{op} {}{shapes}", case["attrs"]);
    let (mut feeds, mut inputs) = (Vec::new(), Vec::new());
    for (i, v) in list(&case["inputs"]).iter().enumerate() {
        let value = tensor(v);
        if known && !value.dtype().has_gradient() {
            inputs.push(graph.constant(value));
            continue;
        }
        let dims: Vec<_> = value.dims().iter().map(|d| known.then_some(*d)).collect();
        let p = graph.placeholder(&format!("in{i}"), value.dtype(), dims.as_slice());
        feeds.push((name(&graph, p), value));
        inputs.push(p);
    }
    let mut node = graph.add_node(op);
    let lists = usizes(&case["lists"]);
    let lists = if lists.is_empty() { vec![0; inputs.len()] } else { lists };
    let mut rest = inputs.as_slice();
    for n in lists {
        let (now, later) = rest.split_at(n.max(1));
        node = if n == 0 { node.input(now[0]) } else { node.inputs(now) };
        rest = later;
    }
    for (k, v) in case["attrs"].as_object().unwrap() {
        node = node.attr(k, attr(v));
    }
    let id = node.build().unwrap_or_else(|e| panic!("{what}: {e}"));
    let n = graph.node(id).unwrap().outputs.len();
    let outputs = (0..n as u32).map(|port| Output { node: id, port }).collect();
    Case { graph, feeds, outputs, what }
}

impl Case {
    fn session(&self) -> Session {
        Session::new(&self.graph, SessionOptions { threads: Some(2), ..Default::default() }).unwrap()
    }

    fn run(&self, session: &Session, fetches: &[Output]) -> Vec<Tensor> {
        let feeds: Vec<_> = self.feeds.iter().map(|(n, t)| (n.as_str(), t.clone())).collect();
        let fetches: Vec<_> = fetches.iter().map(|o| name(&self.graph, *o)).collect();
        let fetches: Vec<_> = fetches.iter().map(String::as_str).collect();
        session.run(&feeds, &fetches, &[]).unwrap_or_else(|e| panic!("{}: {e}", self.what))
    }
}

/// Runs every case of a theme, forward and gradients, with shapes known and unknown.
fn check(theme: &str, at_least: usize) {
    let cases = fixture(theme);
    let (mut n_gradients, mut failed) = (0, Vec::new());
    for v in &cases {
        for known in [true, false] {
            // All failures are reported, not only the first.
            match std::panic::catch_unwind(|| check_case(v, known)) {
                Ok(n) => n_gradients += n,
                Err(_) => failed.push(format!("{} {}", v["op"], v["attrs"])),
            }
        }
    }
    assert!(failed.is_empty(), "{theme}: {} failed: {failed:#?}", failed.len());
    assert!(cases.len() >= at_least, "{theme}: {} cases", cases.len());
    println!("{theme}: {} cases, {n_gradients} gradients", cases.len());
}

fn check_case(v: &Value, known: bool) -> usize {
    if v["check"] == "variable" {
        check_variable(v, known);
        return 0;
    }
    let case = build(v, known);
    let session = case.session();
    for (n, run) in list(&v["runs"]).iter().enumerate() {
        let got = case.run(&session, &case.outputs);
        let want: Vec<Tensor> = list(run).iter().map(tensor).collect();
        compare(&format!("{}, run {n}", case.what), &v["check"], &case, &got, &want);
    }
    if v.get("gradients").is_some() { check_gradients(v, &case, known) } else { 0 }
}

/// What a variable holds after an update, by reference (`as_ref`) or by handle.
fn check_variable(v: &Value, as_ref: bool) {
    let g = Graph::new();
    let inputs: Vec<Tensor> = list(&v["inputs"]).iter().map(tensor).collect();
    let op = v["op"].as_str().unwrap();
    let shape = Attr::Shape(inputs[0].shape().into());
    let (variable, own, initialise) = match (as_ref, op) {
        (true, _) => ("VariableV2", op.to_owned(), "Assign"),
        (false, "Assign" | "AssignAdd" | "AssignSub") => ("VarHandleOp", format!("{op}VariableOp"), "AssignVariableOp"),
        (false, _) => ("VarHandleOp", format!("Resource{op}"), "AssignVariableOp"),
    };
    let dtype = inputs[0].dtype();
    let var = g.add_node(variable).name("v").attr("dtype", dtype).attr("shape", shape).value();
    let value = g.constant(inputs[0].clone());
    g.add_node(initialise).name("init").input(var).input(value).value();
    let mut update = g.add_node(&own).name("update").input(var);
    for input in &inputs[1..] {
        update = update.input(g.constant(input.clone()));
    }
    for (k, v) in v["attrs"].as_object().unwrap() {
        update = update.attr(k, attr(v));
    }
    update.build().unwrap_or_else(|e| panic!("{own}: {e}"));
    let read = match as_ref {
        true => var.identity(),
        false => g.add_node("ReadVariableOp").input(var).attr("dtype", dtype).value(),
    };
    let session = Session::new(&g, SessionOptions::default()).unwrap();
    session.run(&[], &[], &["init"]).unwrap();
    session.run(&[], &[], &["update"]).unwrap_or_else(|e| panic!("{own}: {e}"));
    let got = session.run(&[], &[&name(&g, read)], &[]).unwrap();
    same(&own, &got[0], &tensor(&v["runs"][0][0]));
    if as_ref {
        let fetched = session.run(&[], &["v:0"], &[]).unwrap();
        same(&own, &fetched[0], &got[0]);
    }
}

fn compare(what: &str, how: &Value, case: &Case, got: &[Tensor], want: &[Tensor]) {
    for (port, (got, want)) in got.iter().zip(want).enumerate() {
        let what = format!("{what}, output {port}");
        let inferred = case.graph.shape(case.outputs[port]).unwrap();
        assert!(inferred.admits(got.shape()), "{what}: inferred {inferred}, is {}", got.shape());
        match (how.as_str().unwrap(), port) {
            ("equal", _) | ("svd" | "eigh", 0) => same(&what, got, want),
            ("exact", _) => exact(&what, got, want),
            ("rough", _) => roughly(&what, got, want),
            ("summary", _) => same_summary(&what, got, want),
            ("svd" | "eigh", _) => assert_eq!(got.shape(), want.shape(), "{what}"),
            (other, _) => panic!("{other}"),
        }
    }
    match how.as_str().unwrap() {
        "svd" => is_svd(what, &case.feeds[0].1, got),
        "eigh" => is_eigh(what, &case.feeds[0].1, got),
        _ => {}
    }
}

/// The same values under the same tags, images by their pixels, tensors by their elements; TensorFlow names no nodes,
/// this engine does.
fn same_summary(what: &str, got: &Tensor, want: &Tensor) {
    use formats::proto::{Summary, summary::value::Value};
    use prost::Message as _;
    let decode = |t: &Tensor| {
        let mut summary = Summary::decode(t.strings().unwrap()[0].as_slice()).unwrap();
        for v in &mut summary.value {
            v.node_name.clear();
            match &mut v.value {
                Some(Value::Image(image)) => image.encoded_image_string = pixels(&image.encoded_image_string),
                Some(Value::Tensor(t)) => {
                    *t = engine::tensor_proto::to_proto(&engine::tensor_proto::from_proto(t).unwrap());
                }
                _ => {}
            }
        }
        summary
    };
    assert_eq!(decode(got), decode(want), "{what}");
}

/// The bytes of a PNG file's pixels.
fn pixels(file: &[u8]) -> Vec<u8> {
    let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
    let mut out = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut out).unwrap();
    out
}

fn check_gradients(v: &Value, case: &Case, known: bool) -> usize {
    let weights: Vec<Output> = list(&v["weights"]).iter().map(|w| case.graph.constant(tensor(w)).output()).collect();
    let ys: Vec<Output> = usizes(&v["weighted"]).iter().map(|i| case.outputs[*i]).collect();
    let xs = case.feeds.iter().filter(|(_, t)| t.dtype().has_gradient());
    let xs: Vec<Output> = xs.map(|(n, _)| case.graph.output(n).unwrap()).collect();
    let grads = match gradients(&case.graph, &ys, &xs, &weights) {
        Ok(grads) => grads,
        // Some need shapes or constants, and say so.
        Err(engine::gradients::GradientError::Unsupported { .. }) if !known => return 0,
        Err(e) => panic!("{}: {e}", case.what),
    };
    let got = case.run(&case.session(), &grads);
    for (i, (got, want)) in got.iter().zip(list(&v["gradients"])).enumerate() {
        let compare = if v["check"] == "rough" { roughly } else { same };
        compare(&format!("{} gradient {i} (shapes known: {known})", case.what), got, &tensor(want));
    }
    got.len()
}

/// The matrices of a batch, row-major.
fn matrices(t: &Tensor) -> Vec<Vec<Vec<Complex64>>> {
    let [.., m, n] = *t.dims() else { panic!("{t:?}") };
    let values = numbers(t);
    values.chunks(m * n).map(|a| a.chunks(n).map(<[Complex64]>::to_vec).collect()).collect()
}

/// Columns are orthonormal.
fn is_unitary(what: &str, u: &[Vec<Complex64>], tolerance: f64) {
    let n = u[0].len();
    for i in 0..n {
        for j in 0..n {
            let dot: Complex64 = u.iter().map(|row| row[i].conj() * row[j]).sum();
            assert!((dot - f64::from(u8::from(i == j))).norm() < tolerance, "{what}: columns {i}, {j}: {dot}");
        }
    }
}

fn is_svd(what: &str, a: &Tensor, got: &[Tensor]) {
    let tolerance = 20.0 * tolerance(a.dtype());
    let s = numbers(&got[0]);
    let p = *got[0].dims().last().unwrap();
    for (i, ((a, u), v)) in matrices(a).iter().zip(matrices(&got[1])).zip(matrices(&got[2])).enumerate() {
        is_unitary(what, &u, tolerance);
        is_unitary(what, &v, tolerance);
        for (r, row) in a.iter().enumerate() {
            for (c, want) in row.iter().enumerate() {
                let sum: Complex64 = (0..p).map(|k| u[r][k] * s[i * p + k] * v[c][k].conj()).sum();
                assert!((sum - want).norm() < tolerance, "{what}: {sum} at {r}, {c} is not {want}");
            }
        }
    }
}

fn is_eigh(what: &str, a: &Tensor, got: &[Tensor]) {
    let tolerance = 50.0 * tolerance(a.dtype());
    let e = numbers(&got[0]);
    let n = *got[0].dims().last().unwrap();
    for (i, (a, v)) in matrices(a).iter().zip(matrices(&got[1])).enumerate() {
        is_unitary(what, &v, tolerance);
        for r in 0..n {
            for c in 0..n {
                let av: Complex64 = (0..n).map(|k| a[r][k] * v[k][c]).sum();
                assert!((av - v[r][c] * e[i * n + c]).norm() < tolerance, "{what}: A v is not e v");
            }
        }
    }
}

#[test]
fn matrix_ops_agree() {
    check("matrices", 100);
}

#[test]
fn segment_and_scatter_ops_agree() {
    check("segments", 110);
}

#[test]
fn sparse_ops_agree() {
    check("sparse", 70);
}

#[test]
fn random_ops_agree() {
    check("random", 100);
}

#[test]
fn quantized_ops_agree() {
    check("quantized", 70);
}

#[test]
fn string_ops_agree() {
    check("strings", 50);
}

#[test]
fn summary_ops_agree() {
    check("summaries", 15);
}

#[test]
fn resized_and_cropped_images_agree() {
    check("images", 30);
}

#[test]
fn labellings_agree() {
    check("labellings", 20);
}

#[test]
fn matrix_functions_agree() {
    check("matrix_functions", 25);
}

#[test]
fn quantized_nets_agree() {
    check("quantized_nets", 18);
}

#[test]
fn truncated_normals_agree() {
    check("truncated", 18);
}

#[test]
fn sequences_agree() {
    check("sequences", 12);
}

/// The error of parsing one `SequenceExample` with a dense list `l` of pairs of floats.
fn sequence_error(serialized: &[u8]) -> String {
    let g = Graph::new();
    let strings = |all: &[&[u8]]| {
        let tensor = Tensor::from_strings(Shape::new(&[all.len()]), all.iter().map(|s| s.to_vec()).collect());
        g.constant(tensor.unwrap())
    };
    let pair = Attr::ListShape(vec![Shape::new(&[2]).into()]);
    let node =
        g.add_node("ParseSequenceExample").name("parse").input(strings(&[serialized])).input(strings(&[b"first"]));
    let node = node.inputs(&[] as &[Output]).attr("feature_list_dense_keys", Attr::ListStr(vec![b"l".to_vec()]));
    let node = ["feature_list_dense_missing_assumed_empty", "context_sparse_keys", "context_dense_keys"]
        .iter()
        .chain(&["feature_list_sparse_keys"])
        .fold(node, |node, keys| node.attr(keys, Attr::ListStr(Vec::new())));
    let node = node.attr("feature_list_dense_types", Attr::ListType(vec![DType::F32]));
    node.attr("feature_list_dense_shapes", pair).attr("Nfeature_list_dense", 1i64).value();
    let session = Session::new(&g, SessionOptions::default()).unwrap();
    session.run(&[], &["parse"], &[]).unwrap_err().to_string()
}

#[test]
fn sequences_that_do_not_fit_are_reported_by_name() {
    // A list `l` of one step: field 2 (lists), 1 (entry), 1 (name) and 2 (list), 1 (step), then the feature.
    let with_step = |feature: &[u8]| {
        let wrap = |field: u8, inner: &[u8]| [&[field << 3 | 2, inner.len() as u8], inner].concat();
        wrap(2, &wrap(1, &[wrap(1, b"l"), wrap(2, &wrap(1, feature))].concat()))
    };
    assert!(sequence_error(b"\xff\xff").contains("example first: not a serialised"), "{}", sequence_error(b"\xff\xff"));
    let missing = sequence_error(b"");
    assert!(missing.contains("example first: feature list l is required"), "{missing}");
    let short = sequence_error(&with_step(&[0x12, 0x06, 0x0a, 0x04, 0, 0, 0x80, 0x3f]));
    assert!(short.contains("feature list l has 1 values at step 0, not of shape [2]"), "{short}");
    let other = sequence_error(&with_step(&[0x1a, 0x04, 0x0a, 0x02, 1, 2]));
    assert!(other.contains("feature list l is int64 at step 0, expected float"), "{other}");
}
