//! Every form of a graph file, real ones, and files that are none.

use std::{fs, io::Write};

use flate2::{Compression, write::GzEncoder};

use super::*;
use crate::{
    proto::{AttrValue, NodeDef, TensorProto, attr_value},
    tfrecord::append_record,
};

const TEXT: &str = r#"
# A comment with { in it.
node {
  name: "layer1/MatMul" op: "MatMul" input: "x" input: "^init" device: "/gpu:0"
  attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "note" value { s: "a \" { quote" } }
}
node { name: "x" op: "Placeholder" experimental_debug_info { original_node_names: "x" } }
versions { producer: 27 }
library { function { signature { name: "f" is_stateful: true } ret { key: "y" value: "y:0" } } }
"#;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn in_event_file(graph: &GraphDef, is_meta: bool) -> Vec<u8> {
    let what = if is_meta {
        What::MetaGraphDef(MetaGraphDef { graph_def: Some(graph.clone()) }.encode_to_vec())
    } else {
        What::GraphDef(graph.encode_to_vec())
    };
    let mut out = Vec::new();
    for what in [What::FileVersion("brain.Event:2".into()), what] {
        append_record(
            &mut out,
            &Event { wall_time: 1.0, step: 0, what: Some(what), source_metadata: None }.encode_to_vec(),
        );
    }
    out
}

#[test]
fn all_forms_give_the_same_graph() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("graph");
    let graph = decode(TEXT.as_bytes()).unwrap();
    assert_eq!(graph.node[0].input, ["x", "^init"]);
    assert_eq!(graph.node[0].attr["T"].value, Some(attr_value::Value::Type(1)));
    assert_eq!(graph.node[0].attr["note"].value, Some(attr_value::Value::S(b"a \" { quote".to_vec())));
    assert_eq!(graph.library.as_ref().unwrap().function[0].ret["y"], "y:0");
    let binary = graph.encode_to_vec();
    let forms = [
        TEXT.as_bytes().to_vec(),
        gzip(TEXT.as_bytes()),
        binary.clone(),
        gzip(&binary),
        in_event_file(&graph, false),
        gzip(&in_event_file(&graph, true)),
    ];
    for (i, form) in forms.iter().enumerate() {
        fs::write(&path, form).unwrap();
        assert_eq!(read(&path).unwrap(), graph, "form {i}");
    }
}

#[test]
fn equal_graphs_encode_to_equal_bytes() {
    let attr = |value: i64| AttrValue { value: Some(attr_value::Value::I(value)) };
    let keys = ["T", "a", "shape", "dtype", "b", "_class"];
    let node = |keys: &mut dyn Iterator<Item = &&str>| NodeDef {
        name: "n".into(),
        attr: keys.map(|key| (key.to_string(), attr(key.len() as i64))).collect(),
        ..NodeDef::default()
    };
    assert_eq!(node(&mut keys.iter()).encode_to_vec(), node(&mut keys.iter().rev()).encode_to_vec());
}

/// The one line that the user gets.
#[track_caller]
fn check_error(bytes: &[u8], expected: &str) {
    let error = decode(bytes).unwrap_err().to_string();
    assert!(error.contains(expected), "{error:?} does not contain {expected:?}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn other_files_get_one_clear_line() {
    check_error(b"", "the file is empty");
    check_error(b"hello world", "not a GraphDef in text form");
    check_error(b"node { nme: 'x' }", "not a GraphDef in text form");
    check_error(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "not a GraphDef");
    check_error(&[0x22, 2, 0x08, 27], "no graph in it");
    check_error(b"\xff\xfe\xfd\xfc", "not a GraphDef");
    let mut events = Vec::new();
    append_record(&mut events, b"");
    check_error(&events, "an event file without a graph");
    let deep = format!("node {{ {} ", "attr { value { list { func {".repeat(50_000));
    check_error(deep.as_bytes(), "nested deeper");
    // A quoted brace is not a level.
    let quoted = format!("node {{ name: '{}' }}", "{".repeat(1000));
    assert_eq!(decode(quoted.as_bytes()).unwrap().node.len(), 1);
}

#[test]
fn a_bomb_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bomb.pb.gz");
    let node =
        GraphDef { node: vec![NodeDef { name: "n".repeat(1 << 20), ..NodeDef::default() }], ..GraphDef::default() };
    let packed = gzip(&node.encode_to_vec().repeat(100));
    fs::write(&path, packed).unwrap();
    assert!(matches!(read(&path), Err(GraphFileError::TooLarge { .. })));
    fs::write(&path, &gzip(b"node { name: 'x' }")[..20]).unwrap();
    assert!(matches!(read(&path), Err(GraphFileError::Io(_))));
}

#[test]
fn cut_and_flipped_graphs_do_not_panic() {
    let graph = GraphDef {
        node: vec![NodeDef {
            name: "n".into(),
            attr: [(
                "value".to_owned(),
                AttrValue {
                    value: Some(attr_value::Value::Tensor(TensorProto {
                        float_val: vec![1.0; 9],
                        ..TensorProto::default()
                    })),
                },
            )]
            .into(),
            ..NodeDef::default()
        }],
        ..GraphDef::default()
    };
    let bytes = graph.encode_to_vec();
    for i in 0..bytes.len() {
        let _ = decode(&bytes[..i]);
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[i] ^= 1 << bit;
            let _ = decode(&flipped);
        }
    }
}

#[test]
fn real_graphs() {
    // Counted with TensorFlow's own classes.
    let cases = [
        ("graphs/tf_inception_v3_4towers.tfevents.gz", 36_303, 0),
        ("graphs/tf_lstm_8x20_adam.tfevents.gz", 11_764, 0),
        ("graphs/zhacmsra_functions.pbtxt.gz", 461, 2),
        ("graphdef_cases/nested_g1/graph.pb", 144, 0),
        ("graphdef_cases/zero_trip_g1/graph.pb", 76, 0),
    ];
    for (file, n_nodes, n_functions) in cases {
        let Some(path) = test_support::data(file) else { continue };
        let graph = read(&path).unwrap_or_else(|e| panic!("{file}: {e}"));
        let functions = graph.library.as_ref().map_or(0, |l| l.function.len());
        assert_eq!((graph.node.len(), functions), (n_nodes, n_functions), "{file}");
    }
}
