//! Loops and conditionals whose nodes are dealt out to several tasks give TensorFlow's results (the programs and answers of
//! `engine/tests/data/tf_control_flow.bin.gz`).

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that prints what it counted")]

mod common;

use std::io::Read;

use common::{Loopback, loopback};
use distributed::MasterOptions;
use engine::compile::placement::PlacementOptions;
use engine::dtype::Element;
use engine::session::Steps;
use engine::{DType, Graph, Tensor};
use formats::proto::GraphDef;
use prost::Message;
use serde_json::Value;

fn programs() -> Vec<(Value, GraphDef)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/tf_control_flow.bin.gz");
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    let mut rest = bytes.as_slice();
    let mut blob = || {
        let (n, after) = rest.split_first_chunk::<4>()?;
        let (blob, after) = after.split_at(u32::from_le_bytes(*n) as usize);
        rest = after;
        Some(blob)
    };
    let pair = || Some((serde_json::from_slice(blob()?).unwrap(), GraphDef::decode(blob()?).unwrap()));
    std::iter::from_fn(pair).collect()
}

fn list(v: &Value) -> &[Value] {
    v.as_array().map(Vec::as_slice).unwrap_or_default()
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

fn is_close(got: &Tensor, want: &Tensor) -> bool {
    if got.dtype() != DType::F32 || got.shape() != want.shape() {
        return got == want;
    }
    let pairs = got.slice::<f32>().unwrap().iter().zip(want.slice::<f32>().unwrap());
    { pairs }.all(|(g, w)| (g - w).abs() <= 2e-5 * w.abs().max(1.0))
}

/// The program with its nodes dealt out to the tasks, some in a row.
fn divided(cluster: &Loopback, meta: &Value, graph: &GraphDef, in_a_row: usize) -> Result<usize, String> {
    let n_tasks = cluster.workers.len();
    let mut graph = graph.clone();
    for (i, node) in graph.node.iter_mut().enumerate() {
        node.device = format!("/job:worker/task:{}", i / in_a_row % n_tasks);
    }
    let imported = Graph::new();
    imported.import(&graph, "").map_err(|e| e.to_string())?;
    let session = cluster.master.session(&imported).map_err(|e| e.to_string())?;
    let fetches: Vec<&str> = list(&meta["fetches"]).iter().map(|t| t.as_str().unwrap()).collect();
    let mut n = 0;
    for run in list(&meta["runs"]) {
        let feeds = run["feeds"].as_object().unwrap();
        let known = feeds.iter().filter(|(name, _)| imported.output(name).is_ok());
        let feeds: Vec<(&str, Tensor)> = known.map(|(name, v)| (name.as_str(), tensor(v))).collect();
        let got = session.run(&feeds, &fetches, &[]).map_err(|e| format!("{e}, with {:?}", run["feeds"]["k:0"]))?;
        for (got, want) in got.iter().zip(list(&run["answers"])) {
            let want = tensor(want);
            if !is_close(got, &want) {
                return Err(format!("got {got:?}, TensorFlow has {want:?}"));
            }
            n += 1;
        }
    }
    Ok(n)
}

fn check(kinds: &[&str], every: usize) {
    let programs = programs();
    let of_kind = |p: &&(Value, GraphDef)| kinds.contains(&p.0["kind"].as_str().unwrap());
    let placement = PlacementOptions { is_soft: true, ..PlacementOptions::default() };
    let cluster = |n| loopback(n, MasterOptions { placement: placement.clone(), ..MasterOptions::default() });
    let (two, three) = (cluster(2), cluster(3));
    let (mut n_programs, mut n_values, mut failed) = (0, 0, Vec::new());
    for (meta, graph) in programs.iter().filter(of_kind).step_by(every) {
        n_programs += 1;
        for (cluster, in_a_row) in [(&two, 1), (&three, 2)] {
            match divided(cluster, meta, graph, in_a_row) {
                Ok(n) => n_values += n,
                Err(e) => failed.push(format!("{}: {e}", meta["name"].as_str().unwrap())),
            }
        }
    }
    println!("{kinds:?}: {n_programs} programs in 2 and 3 tasks, {n_values} values, {} differ", failed.len());
    assert!(failed.is_empty() && n_programs > 0, "{}", failed.join("\n"));
    common::until("all steps are over", || three.workers.iter().all(|w| w.n_steps() == 0));
}

#[test]
fn primitives_run_in_several_tasks() {
    check(&["v1"], 1);
}

#[test]
fn functions_run_in_several_tasks() {
    check(&["v2", "second"], 2);
}
