//! A profile of ONNX Runtime compared with the sums of its own tool (`tests/fixtures/make_onnxruntime.py`).

use std::collections::BTreeMap;
use std::path::PathBuf;
use trace_analysis::ops::{op_table, scope_table};
use trace_analysis::stats::node_stats;
use trace_store::{Store, StoreOptions};

#[test]
fn operators_nodes_and_runs() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/onnxruntime");
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    trace_formats::import::open(&[folder.join("profile.json")]).unwrap().read_all(&mut store).unwrap();
    let (_, ops) = op_table(&store, store.range(), &[]);
    let ours: BTreeMap<String, (u64, i64)> = ops
        .into_iter()
        .filter(|row| row.category == "op")
        .map(|row| (row.name, (row.figures.count, row.figures.total_ns / 1_000)))
        .collect();
    let expected: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("expected.json")).unwrap()).unwrap();
    let theirs: BTreeMap<String, (u64, i64)> = expected
        .as_object()
        .unwrap()
        .iter()
        .map(|(op, sums)| (op.clone(), (sums["calls"].as_u64().unwrap(), sums["kernel_us"].as_i64().unwrap())))
        .collect();
    assert_eq!(ours, theirs);
    let nodes = node_stats(&store, store.range());
    let matmul = nodes.iter().find(|node| node.name == "layer1/MatMul").unwrap();
    assert_eq!((&*matmul.op, &*matmul.device, matmul.figures.count), ("MatMul", "", 3));
    assert_eq!(store.steps().iter().map(|step| step.id).collect::<Vec<_>>(), [0, 1, 2], "runs of the model");
    let scopes = scope_table(&store, store.range(), &[]);
    assert_eq!(scopes.iter().find(|row| row.scope == "layer1").unwrap().count, 9);
    let shapes = trace_analysis::report::analyse(&store, store.range()).op_shapes;
    let conv = shapes.iter().find(|row| row.name == "Conv").unwrap();
    assert_eq!(conv.count, 3);
    assert!(conv.dims.starts_with("[[8,3,16,16]") || conv.dims.starts_with("[[8, 3, 16, 16]"), "{}", conv.dims);
    assert!(conv.types.starts_with(r#"["float","#), "{}", conv.types);
}
