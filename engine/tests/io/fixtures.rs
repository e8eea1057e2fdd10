//! Decoding, parsing and queues against TensorFlow's own results, in `data/io.json` (made by
//! `tests/scripts/tf_io_fixtures.py`); numerics checks, mutexes and accumulators.

use engine::convert::convert;
use engine::graph::Attr;
use engine::{DType, Graph, Numerics, Output, PartialShape, Session, SessionOptions, Tensor};
use serde_json::Value;

fn fixture() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/io.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn list(v: &Value) -> &[Value] {
    v.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn hex(v: &Value) -> Vec<u8> {
    let text = v.as_str().unwrap();
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

/// A number, or the text of one that JSON has none for.
fn number(v: &Value) -> f64 {
    v.as_f64().unwrap_or_else(|| v.as_str().unwrap().parse().unwrap())
}

fn tensor(v: &Value) -> Tensor {
    let dims: Vec<usize> = list(&v[1]).iter().map(|d| d.as_u64().unwrap() as usize).collect();
    let dtype = DType::from_name(v[0].as_str().unwrap()).unwrap();
    let values = list(&v[2]);
    match dtype {
        DType::String => Tensor::from_strings(dims.as_slice(), values.iter().map(hex).collect()).unwrap(),
        DType::Bool => {
            let bits = values.iter().map(|v| v.as_i64().unwrap() != 0).collect();
            Tensor::from_vec(dims.as_slice(), bits).unwrap()
        }
        // i64 holds every integer of the fixtures.
        _ if dtype.is_float() => {
            let wide = Tensor::from_vec(dims.as_slice(), values.iter().map(number).collect()).unwrap();
            convert(&wide, dtype, engine::buffer::Allocator::host()).unwrap()
        }
        _ => {
            let wide = Tensor::from_vec(dims.as_slice(), values.iter().map(|v| v.as_i64().unwrap()).collect()).unwrap();
            convert(&wide, dtype, engine::buffer::Allocator::host()).unwrap()
        }
    }
}

fn attr(v: &Value) -> Attr {
    let dtype = |v: &Value| DType::from_name(v.as_str().unwrap()).unwrap();
    match v {
        Value::Bool(b) => Attr::Bool(*b),
        Value::Number(n) => Attr::Int(n.as_i64().unwrap()),
        Value::String(s) => s.as_str().into(),
        Value::Array(a) => Attr::ListInt(a.iter().map(|v| v.as_i64().unwrap()).collect()),
        Value::Object(o) if o.contains_key("type") => Attr::Type(dtype(&o["type"])),
        Value::Object(o) if o.contains_key("types") => Attr::ListType(list(&o["types"]).iter().map(dtype).collect()),
        Value::Object(o) if o.contains_key("strings") => {
            Attr::ListStr(list(&o["strings"]).iter().map(|s| s.as_str().unwrap().into()).collect())
        }
        Value::Object(o) => {
            let dims =
                |s: &Value| list(s).iter().map(|d| usize::try_from(d.as_i64().unwrap()).ok()).collect::<Vec<_>>();
            Attr::ListShape(list(&o["shapes"]).iter().map(|s| PartialShape::new(&dims(s))).collect())
        }
        Value::Null => panic!("an attribute without a value"),
    }
}

fn session(g: &Graph) -> Session {
    Session::new(g, SessionOptions { threads: Some(2), ..SessionOptions::default() }).unwrap()
}

fn name(g: &Graph, o: Output) -> String {
    format!("{}:{}", g.node(o.node).unwrap().name, o.port)
}

/// The outputs of a case, or why there are none.
fn run(case: &Value) -> Result<Vec<Tensor>, String> {
    let g = Graph::new();
    let mut node = g.add_node(case["op"].as_str().unwrap());
    for input in list(&case["inputs"]) {
        let is_one = input[0].is_string();
        node = match is_one {
            true => node.input(g.constant(tensor(input))),
            false => node.inputs(&list(input).iter().map(|t| g.constant(tensor(t))).collect::<Vec<_>>()),
        };
    }
    for (k, v) in case["attrs"].as_object().unwrap() {
        node = node.attr(k, attr(v));
    }
    let id = node.build().map_err(|e| e.to_string())?;
    let n = g.node(id).unwrap().outputs.len() as u32;
    let names: Vec<String> = (0..n).map(|port| name(&g, Output { node: id, port })).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let out = session(&g).run(&[], &names, &[]).map_err(|e| e.to_string())?;
    for (port, t) in out.iter().enumerate() {
        let inferred = g.shape(Output { node: id, port: port as u32 }).unwrap();
        assert!(inferred.admits(t.shape()), "{}: inferred {inferred}, is {}", case["op"], t.shape());
    }
    Ok(out)
}

#[test]
fn decoding_and_parsing_agree() {
    let fixture = fixture();
    let (mut n, mut n_errors) = (0, 0);
    for (i, case) in list(&fixture["cases"]).iter().enumerate() {
        let what = format!("case {i}: {} {}", case["op"], case["attrs"]);
        let got = run(case);
        if case["error"] == true {
            assert!(got.is_err(), "{what}: TensorFlow refuses");
            n_errors += 1;
            continue;
        }
        let got = got.unwrap_or_else(|e| panic!("{what}: {e}"));
        let wanted: Vec<Tensor> = list(&case["outputs"]).iter().map(tensor).collect();
        assert_eq!(got.len(), wanted.len(), "{what}");
        let tolerance = case["tolerance"].as_f64().unwrap();
        for (g, w) in got.iter().zip(&wanted) {
            assert_eq!((g.dtype(), g.shape()), (w.dtype(), w.shape()), "{what}");
            if tolerance == 0.0 || g.dtype() == DType::String {
                assert_eq!(g, w, "{what}");
                continue;
            }
            let pairs = g.to_f64().unwrap().into_iter().zip(w.to_f64().unwrap());
            let worst = pairs.map(|(g, w)| (g - w).abs()).fold(0.0, f64::max);
            assert!(worst <= tolerance, "{what}: off by {worst}");
        }
        n += 1;
    }
    assert!(n > 70 && n_errors >= 8, "{n} cases, {n_errors} errors");
}

#[test]
fn queues_agree() {
    for script in list(&fixture()["queues"]) {
        let g = Graph::new();
        let op = script["op"].as_str().unwrap();
        let shapes = Attr::ListShape(vec![PartialShape::scalar()]);
        let node =
            g.add_node(op).attr("component_types", vec![DType::I64]).attr("shapes", shapes).attr("capacity", 20i64);
        let node = match op {
            "RandomShuffleQueueV2" => node.attr("min_after_dequeue", 3i64).attr("seed", 17i64).attr("seed2", 4i64),
            _ => node,
        };
        let q = node.value();
        let n_components = if op == "PriorityQueueV2" { 2 } else { 1 };
        let types = vec![DType::I64; n_components];
        let session = session(&g);
        for (i, step) in list(&script["script"]).iter().enumerate() {
            let take = |op: &str, n: Option<i32>| {
                let node = g.add_node(op).input(q).attr("component_types", types.clone());
                let node = match n {
                    Some(n) => node.input(g.constant(Tensor::scalar(n))),
                    None => node,
                };
                let id = node.build().unwrap();
                let names: Vec<String> =
                    (0..n_components as u32).map(|port| name(&g, Output { node: id, port })).collect();
                session.run(&[], &names.iter().map(String::as_str).collect::<Vec<_>>(), &[]).unwrap()
            };
            let n = step[1].as_i64().map(|n| n as i32);
            let got = match step[0].as_str().unwrap() {
                "put" => {
                    let all: Vec<_> = list(&step[1]).iter().map(|t| g.constant(tensor(t))).collect();
                    let id = g.add_node("QueueEnqueueManyV2").input(q).inputs(&all).build().unwrap();
                    session.run(&[], &[], &[&g.node(id).unwrap().name]).unwrap();
                    continue;
                }
                "close" => {
                    let id = g.add_node("QueueCloseV2").input(q).build().unwrap();
                    session.run(&[], &[], &[&g.node(id).unwrap().name]).unwrap();
                    continue;
                }
                "take" if n.is_none() => take("QueueDequeueV2", None),
                "take" => take("QueueDequeueManyV2", n),
                _ => take("QueueDequeueUpToV2", n),
            };
            let wanted: Vec<Tensor> = list(&step[2]).iter().map(tensor).collect();
            assert_eq!(got, wanted, "{op} step {i}");
        }
    }
}

#[test]
fn the_first_op_that_makes_a_nan_is_named() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [2]);
    let log = g.add_node("Log").name("net/log").input(x).value();
    let twice = g.add_node("AddV2").name("net/twice").input(log).input(log).value();
    let out = g.add_node("Neg").name("net/out").input(twice).value();
    assert_eq!(out.output().port, 0);
    let options = SessionOptions { threads: Some(1), numerics: Numerics::Fail, ..SessionOptions::default() };
    let session = Session::new(&g, options).unwrap();
    session.run(&[("x", Tensor::vector(&[1.0f32, 2.0]))], &["net/out"], &[]).unwrap();
    let error = session.run(&[("x", Tensor::vector(&[0.0f32, -1.0]))], &["net/out"], &[]).unwrap_err().to_string();
    assert!(error.contains("node net/log (op Log"), "{error}");
    assert!(error.contains("output 0 has 1 NaN, 1 -Inf of 2 elements, from float[2]"), "{error}");
}

#[test]
fn a_mutex_is_one_steps_at_a_time() {
    let g = Graph::new();
    let mutex = g.add_node("MutexV2").name("mutex").value();
    let lock = g.add_node("MutexLock").name("lock").input(mutex).value();
    let v = g.variable("v", Tensor::scalar(0i64));
    // A read and a write that others could come between.
    let read = g.add_node("ReadVariableOp").input(v.handle).attr("dtype", DType::I64).after(&[lock.node()]).value();
    let write = g.value(v.handle).op_with("AssignVariableOp", read + 1.0).node();
    g.add_node("ConsumeMutexLock").name("step").input(lock).after(&[write]).value();
    let session = session(&g);
    let init = g.node(v.init).unwrap().name.clone();
    session.run(&[], &[], &[&init]).unwrap();
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| (0..100).for_each(|_| drop(session.run(&[], &[], &["step"]).unwrap())));
        }
    });
    assert_eq!(session.run(&[], &["v/Read"], &[]).unwrap()[0].item::<i64>().unwrap(), 400);
}

#[test]
fn accumulators_average_the_gradients_of_a_step() {
    let g = Graph::new();
    let shape = PartialShape::from([2]);
    let acc = g.add_node("ConditionalAccumulator").name("acc").attr("dtype", DType::F32).attr("shape", shape);
    let acc = acc.value();
    let step = g.placeholder("step", DType::I64, PartialShape::scalar());
    let gradient = g.placeholder("gradient", DType::F32, [2]);
    g.add_node("AccumulatorApplyGradient").name("apply").input(acc).input(step).input(gradient).value();
    let three = g.constant(Tensor::scalar(3i32));
    g.add_node("AccumulatorTakeGradient").name("take").input(acc).input(three).attr("dtype", DType::F32).value();
    g.add_node("AccumulatorNumAccumulated").name("n").input(acc).value();
    let session = session(&g);
    let apply = |step: i64, v: [f32; 2]| {
        session.run(&[("step", step.into()), ("gradient", Tensor::vector(&v))], &[], &["apply"]).unwrap();
    };
    let n = || session.run(&[], &["n"], &[]).unwrap()[0].item::<i32>().unwrap();
    std::thread::scope(|s| {
        let taken = s.spawn(|| session.run(&[], &["take"], &[]).unwrap());
        apply(0, [1.0, 2.0]);
        apply(0, [2.0, 4.0]);
        apply(0, [6.0, 0.0]);
        assert_eq!(taken.join().unwrap()[0], Tensor::vector(&[3.0f32, 2.0]));
    });
    // The step is 1 now: what comes late is dropped.
    apply(0, [9.0, 9.0]);
    assert_eq!(n(), 0);
    apply(1, [1.0, 1.0]);
    assert_eq!(n(), 1);
}
