//! Random programs and what TensorFlow computes with them, in `data/random_programs.bin.gz`, made by
//! `tests/scripts/tf_random_programs.py`. `STEPSCOPE_PROGRAMS` names another file of that kind (`cargo xtask soak` makes
//! them with fresh seeds).

use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use engine::gradients::gradients;
use engine::{DType, Graph, Output, RunOptions, Session, SessionOptions, Tensor};
use formats::npy::{Array, ElementType, Kind};
use formats::proto::GraphDef;
use prost::Message;
use serde_json::Value;

struct Program {
    meta: Value,
    graph: GraphDef,
    data: Vec<u8>,
}

/// Where and how a program runs.
#[derive(Clone, Copy, Debug)]
struct Setup {
    devices: usize,
    threads: usize,
    is_soft: bool,
    /// Whether the nodes are dealt out to the devices in turn.
    dealt: bool,
}

fn programs() -> Vec<Program> {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/random_programs.bin.gz");
    let path = std::env::var("STEPSCOPE_PROGRAMS").unwrap_or_else(|_| own.to_owned());
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    let mut rest = bytes.as_slice();
    let mut blob = || {
        let (n, after) = rest.split_first_chunk::<4>()?;
        let (blob, after) = after.split_at(u32::from_le_bytes(*n) as usize);
        rest = after;
        Some(blob.to_vec())
    };
    std::iter::from_fn(|| {
        let (meta, graph, data) = (blob()?, blob()?, blob()?);
        let meta = serde_json::from_slice(&meta).unwrap();
        Some(Program { meta, graph: GraphDef::decode(&*graph).unwrap(), data })
    })
    .collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap()
}

fn array(program: &Program, of: &Value) -> Tensor {
    let shape: Vec<usize> = list(&of["shape"]).iter().map(|n| n.as_u64().unwrap() as usize).collect();
    let (kind, size) = match of["dtype"].as_str().unwrap() {
        "float32" => (Kind::Float, 4),
        "float64" => (Kind::Float, 8),
        "int32" => (Kind::Int, 4),
        "int64" => (Kind::Int, 8),
        "bool" => (Kind::Bool, 1),
        other => panic!("{other}"),
    };
    let (at, n) = (of["at"].as_u64().unwrap() as usize, shape.iter().product::<usize>() * size);
    let data = program.data[at..at + n].to_vec();
    Tensor::from_npy(&Array { element: ElementType::new(kind, size), shape, data }).unwrap()
}

fn floats(value: &Tensor) -> Vec<f64> {
    match value.dtype() {
        DType::F32 => value.slice::<f32>().unwrap().iter().map(|v| f64::from(*v)).collect(),
        DType::F64 => value.slice::<f64>().unwrap().to_vec(),
        DType::I32 => value.slice::<i32>().unwrap().iter().map(|v| f64::from(*v)).collect(),
        DType::I64 => value.slice::<i64>().unwrap().iter().map(|v| *v as f64).collect(),
        other => panic!("{other}"),
    }
}

/// How a value differs from TensorFlow's.
fn difference(got: &Tensor, want: &Tensor, spec: &Value) -> Option<String> {
    if (got.dtype(), got.dims()) != (want.dtype(), want.dims()) {
        return Some(format!("{}{} instead of {}{}", got.dtype(), got.shape(), want.dtype(), want.shape()));
    }
    let (rtol, atol) = (spec["rtol"].as_f64().unwrap(), spec["atol"].as_f64().unwrap());
    let is_like =
        |(a, b): &(&f64, &f64)| a == b || (a.is_nan() && b.is_nan()) || (*a - *b).abs() <= atol + rtol * b.abs();
    let (got, want) = (floats(got), floats(want));
    let bad = got.iter().zip(&want).find(|pair| !is_like(pair))?;
    Some(format!("{} instead of {}", bad.0, bad.1))
}

/// Runs a program; what differs from TensorFlow.
fn run(program: &Program, setup: Setup, only_values: bool) -> Result<usize, String> {
    let mut def = program.graph.clone();
    for (i, node) in def.node.iter_mut().enumerate().filter(|_| setup.dealt) {
        node.device = format!("/device:CPU:{}", i % setup.devices);
    }
    let graph = Graph::new();
    match graph.import(&def, "") {
        Ok(_) => run_in(program, &graph, setup, only_values),
        Err(_) if list(&program.meta["runs"]).iter().all(|run| run.get("error").is_some()) => Ok(1),
        Err(e) => Err(e.to_string()),
    }
}

/// Runs the fetches of a program in a graph.
fn run_in(program: &Program, graph: &Graph, setup: Setup, only_values: bool) -> Result<usize, String> {
    let mut options = SessionOptions { threads: Some(setup.threads), ..SessionOptions::devices(setup.devices) };
    options.placement.is_soft = setup.is_soft;
    let session = Session::new(graph, options).unwrap();
    let fetches: Vec<&str> = list(&program.meta["fetches"]).iter().map(|v| v.as_str().unwrap()).collect();
    let mut n = 0;
    for step in list(&program.meta["runs"]) {
        let fails = step.get("error");
        if only_values && fails.is_some() {
            continue;
        }
        let feeds = step["feeds"].as_object().unwrap();
        let feeds: Vec<(&str, Tensor)> = feeds.iter().map(|(name, of)| (name.as_str(), array(program, of))).collect();
        let limit = RunOptions { timeout: Some(Duration::from_secs(60)), ..RunOptions::default() };
        let got = session.run_step(&limit, &feeds, &fetches, &[]).map_err(|e| e.to_string());
        match (got, fails) {
            (Ok(_), Some(why)) => return Err(format!("a value, where TensorFlow fails: {why}")),
            (Err(e), Some(_)) if e.contains("deadline") || e.contains("panicked") => return Err(e),
            (Err(_), Some(_)) => n += 1,
            (Err(e), None) => return Err(e),
            (Ok(values), None) => {
                for ((got, spec), name) in values.iter().zip(list(&step["values"])).zip(&fetches) {
                    if let Some(how) = difference(got, &array(program, spec), spec) {
                        return Err(format!("{name}: {how}"));
                    }
                    n += 1;
                }
            }
        }
    }
    Ok(n)
}

/// Runs the gradients that this engine adds; those of TensorFlow are in the graph already.
fn run_own_gradients(program: &Program) -> Result<usize, String> {
    let (fetches, xs) = (list(&program.meta["fetches"]), list(&program.meta["xs"]));
    if xs.is_empty() || program.meta.get("damage").is_some() {
        return Ok(0);
    }
    let graph = Graph::new();
    graph.import(&program.graph, "").map_err(|e| e.to_string())?;
    let output = |v: &Value| graph.output(v.as_str().unwrap()).map_err(|e| e.to_string());
    let y = graph.value(output(&fetches[0])?);
    let loss = (y.sin() * 0.5 + y).sum_all().output();
    let xs: Vec<Output> = xs.iter().map(output).collect::<Result<_, _>>()?;
    let grads = gradients(&graph, &[loss], &xs, &[]).map_err(|e| e.to_string())?;
    let names: Vec<String> = grads.iter().map(|g| format!("{}:{}", graph.node(g.node).unwrap().name, g.port)).collect();
    let own = Program { meta: with_fetches(program, &names), graph: GraphDef::default(), data: program.data.clone() };
    let is_soft = true;
    run_in(&own, &graph, Setup { devices: 1, threads: 2, is_soft, dealt: false }, true)
}

/// The program's description with these fetches, whose values are those of the gradients.
fn with_fetches(program: &Program, names: &[String]) -> Value {
    let mut meta = program.meta.clone();
    meta["fetches"] = names.into();
    for run in meta["runs"].as_array_mut().unwrap() {
        if let Some(values) = run.get("values") {
            run["values"] = list(values)[1..=names.len()].to_vec().into();
        }
    }
    meta
}

fn check(program: &Program) -> Result<usize, String> {
    let devices = program.meta["devices"].as_u64().unwrap() as usize;
    let is_soft = program.meta["soft"].as_bool().unwrap();
    let own = Setup { devices, threads: 1, is_soft, dealt: false };
    let mut n = 0;
    let others = [
        Setup { threads: 2, ..own },
        Setup { devices: 3 - devices, is_soft: true, ..own },
        Setup { devices: 2, is_soft: true, dealt: true, threads: 2 },
    ];
    // A loop that lost one of its primitives may run on one device, but not on several.
    let is_loop_damaged = program.meta.get("damage").is_some_and(|damage| damage == "frame");
    let others = others.into_iter().take(if is_loop_damaged { 1 } else { 3 });
    for (i, setup) in std::iter::once(own).chain(others).enumerate() {
        let done = catch_unwind(AssertUnwindSafe(|| run(program, setup, i > 0)));
        let done = done.unwrap_or_else(|_| Err("it panicked".to_owned()));
        n += done.map_err(|e| format!("{setup:?}: {e}"))?;
    }
    let own = catch_unwind(AssertUnwindSafe(|| run_own_gradients(program)));
    n += own.unwrap_or_else(|_| Err("it panicked".to_owned())).map_err(|e| format!("own gradients: {e}"))?;
    Ok(n)
}

#[test]
fn random_programs_give_tensorflows_answers() {
    let (mut n_values, mut n_refused, mut failed) = (0, 0, Vec::new());
    let programs = programs();
    for program in &programs {
        n_refused += usize::from(list(&program.meta["runs"]).iter().any(|run| run.get("error").is_some()));
        match check(program) {
            Ok(n) => n_values += n,
            Err(e) => failed.push(format!("seed {} ({}): {e}", program.meta["seed"], program.meta["style"])),
        }
    }
    println!(
        "{} programs, {n_refused} of them refused, {n_values} values compared, {} programs differ",
        programs.len(),
        failed.len()
    );
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(n_refused > 0 && n_values > programs.len());
}
