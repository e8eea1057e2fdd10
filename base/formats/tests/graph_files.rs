//! Graphs in files that TensorFlow and onnx wrote (`fixtures/make_graph_files.py`).

use std::path::PathBuf;

use formats::{
    FileKind, graph_file,
    proto::{GraphDef, attr_value::Value},
    sniff,
};

fn read(name: &str) -> GraphDef {
    // At run time: the target folder may be another clone's, too.
    let crate_folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    let path = PathBuf::from(crate_folder).join("tests/fixtures").join(name);
    assert_eq!(sniff(&path).expect("the fixture is there"), FileKind::GraphDef, "{name}");
    graph_file::read(&path).expect("it holds a graph")
}

fn lines(graph: &GraphDef) -> Vec<String> {
    graph.node.iter().map(|n| format!("{} = {}({})", n.name, n.op, n.input.join(", "))).collect()
}

#[test]
fn a_saved_model_is_read_from_its_folder_or_its_file() {
    let graph = read("saved_model");
    assert_eq!(graph, read("saved_model/saved_model.pb"));
    let call = graph.node.iter().find(|n| n.op == "StatefulPartitionedCall").expect("the signature is called");
    assert!(call.input.iter().any(|i| i.contains("serving_default_x")), "{:?}", call.input);
    let functions = &graph.library.as_ref().unwrap().function;
    assert!(functions.iter().any(|f| f.node_def.iter().any(|n| n.op == "MatMul")), "the model is in the library");
}

#[test]
fn a_meta_graph_is_its_graph() {
    assert_eq!(lines(&read("graph.meta")), ["x = Placeholder()", "y/y = Const()", "y = AddV2(x, y/y)"]);
}

#[test]
fn an_onnx_model_keeps_its_ops_edges_and_shapes() {
    let graph = read("small.onnx");
    assert_eq!(
        lines(&graph),
        [
            "w = Const()",
            "x = Placeholder()",
            "flag = Placeholder()",
            "fc/MatMul = MatMul(x, w)",
            "choice/If/else_branch/Neg = Neg(fc/MatMul)",
            "choice/If/then_branch/Identity = Identity(fc/MatMul)",
            "choice/If = If(flag)",
        ]
    );
    let Some(Value::List(shapes)) = &graph.node[3].attr["_output_shapes"].value else { panic!("no shapes") };
    assert_eq!(shapes.shape[0].dim.iter().map(|d| d.size).collect::<Vec<_>>(), [-1, 2]);
}
