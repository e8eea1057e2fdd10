//! Lookup tables, staging areas and barriers: programs of TensorFlow's, run as it ran them, in `data/tf_state.json.gz` (made
//! by `tests/scripts/tf_state_fixtures.py`).

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use engine::checkpoint::{Saver, SaverOptions};
use engine::graph::Attr;
use engine::{DType, Graph, RunOptions, Session, SessionOptions, Tensor};
use formats::proto::GraphDef;
use prost::Message as _;
use serde_json::Value;

fn fixture() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tf_state.json.gz");
    serde_json::from_reader(flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap())).unwrap()
}

fn list(v: &Value) -> &[Value] {
    v.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn texts(v: &Value) -> Vec<&str> {
    list(v).iter().map(|t| t.as_str().unwrap()).collect()
}

fn tensor(v: &Value) -> Tensor {
    let dims: Vec<usize> = list(&v[1]).iter().map(|d| d.as_u64().unwrap() as usize).collect();
    let (dims, values) = (dims.as_slice(), list(&v[2]));
    let ints = || values.iter().map(|v| v.as_i64().unwrap());
    let float = |v: &Value| v.as_f64().unwrap_or_else(|| v.as_str().unwrap().parse().unwrap()) as f32;
    match v[0].as_str().unwrap() {
        "string" => {
            let strings = values.iter().map(|s| BASE64_STANDARD.decode(s.as_str().unwrap()).unwrap()).collect();
            Tensor::from_strings(dims, strings).unwrap()
        }
        "bool" => Tensor::from_vec(dims, ints().map(|v| v != 0).collect()).unwrap(),
        "int32" => Tensor::from_vec(dims, ints().map(|v| v as i32).collect()).unwrap(),
        "int64" => Tensor::from_vec(dims, ints().collect()).unwrap(),
        "float" => Tensor::from_vec(dims, values.iter().map(float).collect()).unwrap(),
        other => panic!("{other}"),
    }
}

/// The rows of a tensor, as text.
fn rows(t: &Tensor) -> Vec<String> {
    let n = t.dims()[0];
    let row = t.len().checked_div(n).unwrap_or(0);
    let each = |i: usize| match t.dtype() {
        DType::String => format!("{:?}", &t.strings().unwrap()[i * row..][..row]),
        dtype => format!("{:?}", &t.bytes()[i * row * dtype.size()..][..row * dtype.size()]),
    };
    (0..n).map(each).collect()
}

/// Keys with their values, in one order.
fn pairs(exported: &[Tensor]) -> Vec<(String, String)> {
    let mut all: Vec<_> = rows(&exported[0]).into_iter().zip(rows(&exported[1])).collect();
    all.sort();
    all
}

#[test]
fn programs_give_what_tensorflow_gave() {
    let fixture = fixture();
    let programs = list(&fixture["programs"]);
    let mut n_runs = 0;
    for (program, n_devices) in programs.iter().flat_map(|program| [(program, 1), (program, 3)]) {
        let graph = Graph::new();
        let def = GraphDef::decode(BASE64_STANDARD.decode(program["graph"].as_str().unwrap()).unwrap().as_slice());
        graph.import(&def.unwrap(), "").unwrap_or_else(|e| panic!("{}: {e}", program["name"]));
        let options = SessionOptions { threads: Some(2), ..SessionOptions::devices(n_devices) };
        let session = Session::new(&graph, options).unwrap();
        for (n, run) in list(&program["runs"]).iter().enumerate() {
            let what =
                format!("{} on {n_devices} devices, run {n}: {} {}", program["name"], run["fetches"], run["targets"]);
            let options = RunOptions { timeout: Some(Duration::from_secs(20)), ..RunOptions::default() };
            let got = session.run_step(&options, &[], &texts(&run["fetches"]), &texts(&run["targets"]));
            n_runs += 1;
            if run["fails"] == true {
                let error = got.err().unwrap_or_else(|| panic!("{what} does not fail")).to_string();
                assert!(!error.contains("deadline"), "{what}: {error}");
                continue;
            }
            let got = got.unwrap_or_else(|e| panic!("{what}: {e}"));
            let want: Vec<Tensor> = list(&run["values"]).iter().map(tensor).collect();
            match run["exported"] == true {
                true => assert_eq!(pairs(&got), pairs(&want), "{what}"),
                false => assert_eq!(got, want, "{what}"),
            }
        }
    }
    println!("{} programs, {n_runs} runs", programs.len());
    assert!(programs.len() >= 15 && n_runs >= 210, "{} programs, {n_runs} runs", programs.len());
}

#[test]
fn a_mutable_table_comes_back_from_a_checkpoint() {
    let g = Graph::new();
    let table = g.add_node("MutableHashTableV2").name("t").attr("key_dtype", DType::String);
    let table = table.attr("value_dtype", DType::I64).value();
    let keys = g.constant(Tensor::from_strings([2], vec![b"a".to_vec(), b"b".to_vec()]).unwrap());
    let values = g.constant(Tensor::vector(&[1i64, 2]));
    g.add_node("LookupTableInsertV2").name("put").input(table).input(keys).input(values).value();
    let find = g.add_node("LookupTableFindV2").name("find").input(table).input(keys).input(g.constant(-1i64));
    find.attr("Tout", Attr::Type(DType::I64)).value();
    let folder = tempfile::tempdir().unwrap();
    let session = || Session::new(&g, SessionOptions::default()).unwrap();
    let first = session();
    first.run(&[], &[], &["put"]).unwrap();
    Saver::new(folder.path(), SaverOptions::default()).unwrap().save(&first, 1).unwrap();
    let second = session();
    assert_eq!(second.run(&[], &["find"], &[]).unwrap()[0], Tensor::vector(&[-1i64, -1]));
    Saver::new(folder.path(), SaverOptions::default()).unwrap().restore(&second).unwrap().unwrap();
    assert_eq!(second.run(&[], &["find"], &[]).unwrap()[0], Tensor::vector(&[1i64, 2]));
}
