//! Random structured programs, functions and models against TensorFlow's own results, in
//! `data/tf_control_flow.bin.gz` (made by `tests/scripts/tf_control_flow_fixtures.py`).

#![allow(clippy::unwrap_used, reason = "a test")]

use std::io::Read;

use engine::dtype::Element;
use engine::gradients::gradients;
use engine::{DType, Graph, Output, Session, SessionOptions, Tensor};
use formats::proto::GraphDef;
use prost::Message;
use serde_json::Value;

struct Program {
    meta: Value,
    graph: GraphDef,
}

fn programs() -> Vec<Program> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tf_control_flow.bin.gz");
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    let mut rest = bytes.as_slice();
    let mut blob = || {
        let (n, after) = rest.split_first_chunk::<4>()?;
        let (blob, after) = after.split_at(u32::from_le_bytes(*n) as usize);
        rest = after;
        Some(blob)
    };
    let pair = || {
        let (meta, graph) = (blob()?, blob()?);
        Some(Program { meta: serde_json::from_slice(meta).unwrap(), graph: GraphDef::decode(graph).unwrap() })
    };
    std::iter::from_fn(pair).collect()
}

fn list(v: &Value) -> &[Value] {
    v.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn texts(v: &Value) -> Vec<&str> {
    list(v).iter().map(|t| t.as_str().unwrap()).collect()
}

fn tensor(v: &Value) -> Tensor {
    let dims: Vec<usize> = list(&v[1]).iter().map(|d| d.as_u64().unwrap() as usize).collect();
    fn of<T: Element>(dims: &[usize], values: &[Value], f: impl Fn(&Value) -> T) -> Tensor {
        Tensor::from_vec(dims, values.iter().map(f).collect()).unwrap()
    }
    match v[0].as_str().unwrap() {
        "float" => of(&dims, list(&v[2]), |v| v.as_f64().unwrap() as f32),
        "double" => of(&dims, list(&v[2]), |v| v.as_f64().unwrap()),
        "int32" => of(&dims, list(&v[2]), |v| v.as_i64().unwrap() as i32),
        "int64" => of(&dims, list(&v[2]), |v| v.as_i64().unwrap()),
        "bool" => of(&dims, list(&v[2]), |v| v.as_i64().unwrap() != 0),
        other => panic!("{other}"),
    }
}

/// What is different, if anything.
fn difference(got: &Tensor, want: &Tensor) -> Option<String> {
    let same = (got.dtype(), got.shape()) == (want.dtype(), want.shape());
    let close = |tolerance: f64| match got.dtype() {
        DType::F32 => {
            let pairs = got.slice::<f32>().unwrap().iter().zip(want.slice::<f32>().unwrap());
            { pairs }.all(|(g, w)| f64::from((g - w).abs()) <= tolerance * f64::from(w.abs().max(1.0)))
        }
        _ => got == want,
    };
    (!same || !close(2e-5)).then(|| format!("got {got:?}, TensorFlow has {want:?}"))
}

fn session(graph: &Graph, threads: usize) -> Session {
    Session::new(graph, SessionOptions { threads: Some(threads), ..SessionOptions::default() }).unwrap()
}

/// Runs a program's feeds for `fetches` and compares with the answers at the positions `at`.
fn compare(session: &Session, meta: &Value, fetches: &[&str], at: &[usize]) -> Result<usize, String> {
    let mut n = 0;
    for run in list(&meta["runs"]) {
        let feeds = run["feeds"].as_object().unwrap();
        // What the program does not use cannot be fed.
        let known = feeds.iter().filter(|(name, _)| session.graph().output(name).is_ok());
        let feeds: Vec<(&str, Tensor)> = known.map(|(name, v)| (name.as_str(), tensor(v))).collect();
        let got = session.run(&feeds, fetches, &[]).map_err(|e| format!("{e}, with {:?}", run["feeds"]["k:0"]))?;
        for (got, at) in got.iter().zip(at) {
            let want = tensor(&run["answers"][*at]);
            if let Some(difference) = difference(got, &want) {
                return Err(format!("{}: {difference}, with {}", meta["fetches"][*at], run["feeds"]));
            }
            n += 1;
        }
    }
    Ok(n)
}

fn import(program: &Program) -> Result<Graph, String> {
    let graph = Graph::new();
    graph.import(&program.graph, "").map_err(|e| format!("import: {e}"))?;
    Ok(graph)
}

/// TensorFlow's graph as it is, its gradients included.
fn run_as_it_is(program: &Program, threads: usize) -> Result<usize, String> {
    let graph = import(program)?;
    let fetches = texts(&program.meta["fetches"]);
    let all: Vec<usize> = (0..fetches.len()).collect();
    compare(&session(&graph, threads), &program.meta, &fetches, &all)
}

/// The gradients that this engine adds to TensorFlow's graph.
fn run_own_gradients(program: &Program, threads: usize) -> Result<usize, String> {
    let graph = import(program)?;
    let y = graph.output(program.meta["y"].as_str().unwrap()).unwrap();
    let xs: Vec<Output> = texts(&program.meta["xs"]).iter().map(|x| graph.output(x).unwrap()).collect();
    let grads = gradients(&graph, &[y], &xs, &[]).map_err(|e| format!("gradients: {e}"))?;
    let name = |o: &Output| format!("{}:{}", graph.node(o.node).unwrap().name, o.port);
    let names: Vec<String> = grads.iter().map(name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let at: Vec<usize> = (1..=names.len()).collect();
    compare(&session(&graph, threads), &program.meta, &names, &at)
}

/// The gradient of the gradient, both this engine's.
fn run_second_order(program: &Program, threads: usize) -> Result<usize, String> {
    let graph = import(program)?;
    let (y, x) = (graph.output("y:0").unwrap(), graph.output("x:0").unwrap());
    let again = |y: Output| gradients(&graph, &[y], &[x], &[]).map_err(|e| format!("gradients: {e}"));
    let g = again(y)?[0];
    let weights = graph.constant(Tensor::vector(&[1.0f32, 2.0, -1.0])).unwrap();
    let h = again(graph.mul(g, weights).unwrap())?[0];
    let name = |o: &Output| format!("{}:{}", graph.node(o.node).unwrap().name, o.port);
    compare(&session(&graph, threads), &program.meta, &[&name(&g), &name(&h)], &[1, 2])
}

/// Applies `run` to the programs of these kinds; prints the count and says which differ.
fn check(kinds: &[&str], what: &str, run: fn(&Program, usize) -> Result<usize, String>) {
    let programs = programs();
    let of_kind = |p: &&Program| kinds.contains(&p.meta["kind"].as_str().unwrap());
    let (mut n_programs, mut n_values, mut failed) = (0, 0, Vec::new());
    for program in programs.iter().filter(of_kind) {
        n_programs += 1;
        for threads in [1, 2] {
            match run(program, threads) {
                Ok(n) => n_values += n,
                Err(e) => {
                    failed.push(format!("{} on {threads} threads: {e}", program.meta["name"].as_str().unwrap()));
                    break;
                }
            }
        }
    }
    println!("{what}: {n_programs} programs, {n_values} values compared, {} programs differ", failed.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(n_programs > 0);
}

#[test]
fn primitives_run() {
    check(&["v1"], "TensorFlow 1 graphs with TensorFlow's gradients", run_as_it_is);
}

#[test]
fn functions_run() {
    check(&["v2", "second"], "TensorFlow 2 graphs with TensorFlow's gradients", run_as_it_is);
}

#[test]
fn models_run() {
    check(&["model"], "tf.function and Keras graphs", run_as_it_is);
}

#[test]
fn gradients_of_primitives_agree() {
    check(&["v1"], "gradients of TensorFlow 1 graphs", run_own_gradients);
}

#[test]
fn gradients_of_functions_agree() {
    check(&["v2"], "gradients of TensorFlow 2 graphs", run_own_gradients);
}

#[test]
fn gradients_of_gradients_agree() {
    check(&["second"], "second derivatives through loops", run_second_order);
}

#[test]
fn definitions_round_trip() {
    for program in programs() {
        let graph = import(&program).unwrap();
        let copy = Graph::new();
        copy.import(&graph.to_def(), "").unwrap();
        assert_eq!(copy.to_def(), graph.to_def(), "{}", program.meta["name"]);
    }
}
