//! Graphs that ask for more than there is: each ends with one error that names the node and the limit, and the process
//! never holds much more than it may.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Mutex;
use std::time::Duration;

use engine::dtype::Element;
use engine::graph::{Attr, Graph, GraphError, Output, Value, WhileOptions};
use engine::session::{CancelToken, OnStall};
use engine::{DType, PartialShape, RunOptions, Session, SessionOptions, Tensor, memory};
use formats::proto::op_def::ArgDef;
use formats::proto::{AttrValue, FunctionDef, FunctionDefLibrary, GraphDef, NameAttrList, NodeDef, OpDef, attr_value};
use prost::Message;

/// What tensors may take here, all sessions of this test program together.
const LIMIT: usize = 64 << 20;
/// What the process may hold besides: the program, graphs, and memory that is reported after it was taken.
const BESIDES: usize = 512 << 20;

/// The most that the process ever held.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<usize>().unwrap() << 10
}

/// Runs a node and gives the error, which names it.
fn fails(g: &Graph, feeds: &[(&str, Tensor)], name: &str) -> String {
    memory::set_limit(Some(LIMIT));
    let session = Session::new(g, SessionOptions { threads: Some(2), ..SessionOptions::default() }).unwrap();
    let error = session.run(feeds, &[], &[name]).expect_err(name).to_string();
    assert!(!error.contains('\n'), "{error}");
    assert!(peak() < LIMIT + BESIDES, "{name}: {} MB were held", peak() >> 20);
    error
}

/// A vector, or a scalar where `dims` is empty.
fn values<T: Element>(dims: &[usize], values: Vec<T>) -> Tensor {
    Tensor::from_vec(engine::Shape::new(dims), values).unwrap()
}

fn int(value: i32) -> Tensor {
    Tensor::scalar(value)
}

fn longs(list: &[i64]) -> Tensor {
    Tensor::vector(list)
}

fn text() -> Tensor {
    Tensor::from_strings([], vec![b"x".to_vec()]).unwrap()
}

type Case = (&'static str, Vec<Tensor>, Vec<(&'static str, Attr)>);

/// An op, its inputs, and the attributes that these do not determine.
fn cases() -> Vec<Case> {
    let long = 1i64 << 40;
    let x = || Tensor::vector(&[1.0f32, 2.0]);
    let column = values(&[100_000, 1], vec![1.0f32; 100_000]);
    let row = values(&[1, 100_000], vec![1.0f32; 100_000]);
    let flat = Tensor::vector(&vec![1.0f32; 100_000]);
    let float = ("dtype", Attr::Type(DType::F32));
    vec![
        ("Fill", vec![longs(&[1 << 20, 1 << 20]), Tensor::scalar(1.0f32)], vec![]),
        ("Fill", vec![longs(&[1 << 32]), text()], vec![]),
        ("Range", vec![Tensor::scalar(0i64), Tensor::scalar(long - 1), Tensor::scalar(1i64)], vec![]),
        ("LinSpace", vec![Tensor::scalar(0.0f32), Tensor::scalar(1.0f32), int(i32::MAX)], vec![]),
        ("Tile", vec![x(), longs(&[long])], vec![]),
        ("Tile", vec![Tensor::from_strings([1], vec![b"x".to_vec()]).unwrap(), longs(&[1 << 32])], vec![]),
        ("BroadcastTo", vec![Tensor::scalar(1.0f32), longs(&[long])], vec![]),
        ("BroadcastTo", vec![text(), longs(&[1 << 32])], vec![]),
        ("RandomUniform", vec![longs(&[1 << 20, 1 << 20])], vec![float.clone()]),
        ("RandomStandardNormal", vec![longs(&[long])], vec![float.clone()]),
        ("TruncatedNormal", vec![longs(&[long])], vec![float.clone()]),
        ("Pad", vec![x(), values(&[1, 2], vec![0, long])], vec![]),
        ("OneHot", vec![longs(&[1, 2, 3]), int(i32::MAX), Tensor::scalar(1.0f32), Tensor::scalar(0.0f32)], vec![]),
        ("SparseToDense", vec![longs(&[1]), longs(&[long]), Tensor::scalar(1.0f32), Tensor::scalar(0.0f32)], vec![]),
        ("Bincount", vec![Tensor::vector(&[1i32, 2]), int(i32::MAX), Tensor::vector(&[0i32; 0])], vec![]),
        ("HistogramFixedWidth", vec![x(), Tensor::vector(&[0.0f32, 1.0]), int(i32::MAX)], vec![]),
        ("UnsortedSegmentSum", vec![x(), Tensor::vector(&[0i32, 1]), int(i32::MAX)], vec![]),
        ("DynamicStitch", vec![Tensor::vector(&[0i32, i32::MAX - 1]), x()], vec![("N", Attr::Int(1))]),
        ("ScatterNd", vec![values(&[2, 1], vec![0i64, 1]), x(), longs(&[long])], vec![]),
        ("MatMul", vec![column.clone(), row.clone()], vec![]),
        (
            "Einsum",
            vec![flat.clone(), flat.clone()],
            vec![("equation", Attr::Str(b"i,j->ij".to_vec())), ("N", Attr::Int(2))],
        ),
        ("MatrixDiag", vec![flat], vec![]),
        ("AddV2", vec![column, row], vec![]),
        ("ResizeBilinear", vec![values(&[1, 1, 1, 1], vec![1.0f32]), Tensor::vector(&[1i32 << 20, 1 << 20])], vec![]),
        ("Empty", vec![Tensor::vector(&[i32::MAX])], vec![float]),
        ("Multinomial", vec![values(&[1, 2], vec![0.5f32, 0.5]), int(i32::MAX)], vec![]),
        (
            "SparseFillEmptyRows",
            vec![values(&[1, 2], vec![0i64, 0]), Tensor::vector(&[1.0f32]), longs(&[long, 2]), Tensor::scalar(0.0f32)],
            vec![],
        ),
        ("TensorArrayV3", vec![int(1 << 28)], vec![("dtype", Attr::Type(DType::F32))]),
    ]
}

#[test]
fn sizes_that_come_as_values_are_refused() {
    for (op, inputs, attrs) in cases() {
        for is_fed in [false, true] {
            let g = Graph::new();
            let mut feeds = Vec::new();
            let names: Vec<String> = (0..inputs.len()).map(|i| format!("input{i}")).collect();
            let input = |(name, value): (&String, &Tensor)| match is_fed {
                true => g.placeholder(name, value.dtype(), PartialShape::unknown()),
                false => g.named_constant(name, value.clone()),
            };
            let outputs: Vec<Output> = names.iter().zip(&inputs).map(input).map(Output::from).collect();
            if is_fed {
                feeds.extend(names.iter().map(String::as_str).zip(inputs.iter().cloned()));
            }
            let node =
                attrs.iter().fold(g.add_node(op).name("hostile"), |node, (name, value)| node.attr(name, value.clone()));
            let lists = g_lists(op, &outputs);
            let built = lists.iter().fold(node, |node, list| match list {
                List::One(one) => node.input(*one),
                List::Many(many) => node.inputs(many),
            });
            built.build().unwrap_or_else(|error| panic!("{op}: {error}"));
            let error = fails(&g, &feeds, "hostile");
            assert!(error.contains("hostile") && error.contains(op), "{op}: {error}");
            let names_limit = error.contains(&format!("limit {LIMIT}"));
            assert!(names_limit || error.contains("too large") || error.contains("too long"), "{op}: {error}");
        }
    }
}

enum List {
    One(Output),
    Many(Vec<Output>),
}

/// The inputs as the op's arguments take them.
fn g_lists(op: &str, outputs: &[Output]) -> Vec<List> {
    match op {
        "Einsum" => vec![List::Many(outputs.to_vec())],
        "DynamicStitch" => outputs.iter().map(|o| List::Many(vec![*o])).collect(),
        _ => outputs.iter().map(|o| List::One(*o)).collect(),
    }
}

/// A loop that never ends, whose variable becomes what `body` makes of it.
fn endless(begin: Value<'_>, invariant: PartialShape, body: impl for<'g> FnOnce(Value<'g>) -> Value<'g>) -> String {
    let g = begin.graph();
    let yes = |g: &Graph, vars: &[Output]| Ok(g.value(vars[1]).less(1.0).output());
    let begin = [begin, g.constant(0f32)].map(Output::from);
    let options = WhileOptions { shape_invariants: vec![Some(invariant), None], ..WhileOptions::default() };
    let again = |g: &Graph, vars: &[Output]| Ok(vec![body(g.value(vars[0])).output(), vars[1]]);
    let ends = g.while_loop::<GraphError>(&begin, yes, again, &options);
    g.node(ends.unwrap()[0].node).unwrap().name.to_string()
}

#[test]
fn endless_growth_is_ended() {
    // A list of scalars, which lie in the list itself.
    let g = Graph::new();
    let (shape, any) = (g.ints(&[]), g.constant(int(-1)));
    let list = g.add_node("EmptyTensorList").input(shape).input(any).attr("element_dtype", DType::F32).value();
    let name = endless(list, PartialShape::scalar(), |list| {
        let one = list.graph().constant(1f32);
        list.graph().add_node("TensorListPushBack").name("push").input(list).input(one).value()
    });
    let error = fails(&g, &[], &name);
    assert!(error.contains("push") && error.contains(&format!("limit {LIMIT}")), "{error}");
    // A tensor, and a string, that double.
    let g = Graph::new();
    let name = endless(g.constant(Tensor::vector(&[1.0f32])), PartialShape::new(&[None]), |x| {
        let axis = x.graph().constant(int(0));
        x.graph().add_node("ConcatV2").name("double").inputs(&[x, x]).input(axis).value()
    });
    let error = fails(&g, &[], &name);
    assert!(error.contains("double") && error.contains(&format!("limit {LIMIT}")), "{error}");
    let g = Graph::new();
    let name = endless(g.constant(text()), PartialShape::scalar(), |x| {
        x.graph().add_node("StringJoin").name("double").inputs(&[x, x]).value()
    });
    let error = fails(&g, &[], &name);
    assert!(error.contains("double") && error.contains(&format!("limit {LIMIT}")), "{error}");
}

fn node(name: &str, op: &str, input: &str, f: Option<&str>) -> NodeDef {
    let value = |value| AttrValue { value: Some(value) };
    let types = || {
        value(attr_value::Value::List(attr_value::ListValue { r#type: vec![DType::F32 as i32], ..Default::default() }))
    };
    let f = f.map(|f| NameAttrList { name: f.into(), ..NameAttrList::default() });
    let attr = f.into_iter().flat_map(|f| {
        [("f".to_owned(), value(attr_value::Value::Func(f))), ("Tin".to_owned(), types()), ("Tout".to_owned(), types())]
    });
    NodeDef { name: name.into(), op: op.into(), input: vec![input.into()], attr: attr.collect(), ..NodeDef::default() }
}

/// A function of one float that calls these one after the other.
fn function(name: &str, calls: &[String]) -> FunctionDef {
    let arg = |name: &str| ArgDef { name: name.into(), r#type: DType::F32 as i32, ..ArgDef::default() };
    let signature =
        OpDef { name: name.into(), input_arg: vec![arg("x")], output_arg: vec![arg("y")], ..OpDef::default() };
    let mut last = "x".to_owned();
    let mut nodes = Vec::new();
    for (i, call) in calls.iter().enumerate() {
        let own = format!("call{i}");
        nodes.push(node(&own, "PartitionedCall", &last, Some(call)));
        last = format!("{own}:output:0");
    }
    FunctionDef {
        signature: Some(signature),
        node_def: nodes,
        ret: [("y".to_owned(), last)].into(),
        ..FunctionDef::default()
    }
}

/// A graph that calls `f0` of functions each of which calls others.
fn calling(functions: Vec<FunctionDef>) -> Graph {
    let g = Graph::new();
    g.placeholder("x", DType::F32, PartialShape::scalar());
    let mut def = g.to_def();
    def.node.push(node("top", "PartitionedCall", "x", Some("f0")));
    def.library = Some(FunctionDefLibrary { function: functions, ..FunctionDefLibrary::default() });
    let g = Graph::new();
    g.import(&def, "").unwrap();
    g
}

fn x() -> [(&'static str, Tensor); 1] {
    [("x", Tensor::scalar(1.0f32))]
}

#[test]
fn calls_that_multiply_are_counted_before_they_are_replaced() {
    let twice = |i: usize, n: usize| if i + 1 < n { vec![format!("f{}", i + 1); 2] } else { vec![] };
    let g = calling((0..30).map(|i| function(&format!("f{i}"), &twice(i, 30))).collect());
    let error = fails(&g, &x(), "top");
    assert!(error.contains("node top") && error.contains("f0 -> f1 -> f2"), "{error}");
    assert!(error.contains("the limit is 1000000"), "{error}");
    // What fits in the limit runs; the limit is the session's.
    let g = calling((0..6).map(|i| function(&format!("f{i}"), &twice(i, 6))).collect());
    let run = |max_nodes| {
        let session = Session::new(&g, SessionOptions { max_nodes, ..SessionOptions::default() }).unwrap();
        session.run(&x(), &["top"], &[]).map(|values| values[0].item::<f32>().unwrap()).map_err(|e| e.to_string())
    };
    assert_eq!(run(100).unwrap(), 1.0);
    assert!(run(50).unwrap_err().contains("the limit is 50"));
}

#[test]
fn calls_that_are_deep_or_call_each_other_are_bounded() {
    let next = |i: usize| vec![format!("f{}", i + 1)];
    let mut deep: Vec<FunctionDef> = (0..5000).map(|i| function(&format!("f{i}"), &next(i))).collect();
    deep.push(function("f5000", &[]));
    let error = fails(&calling(deep), &x(), "top");
    assert!(error.contains("node top") && error.contains("nested more than 1000 deep"), "{error}");
    // Each calls all: as many chains as there are orders.
    let all: Vec<String> = (0..12).map(|i| format!("f{i}")).collect();
    let error = fails(&calling(all.iter().map(|name| function(name, &all)).collect()), &x(), "top");
    assert!(error.contains("the limit is 1000000"), "{error}");
    // One that calls itself is called as deep as calls may be.
    let error = fails(&calling(vec![function("f0", &["f0".to_owned()])]), &x(), "top");
    assert!(error.contains("calls itself 1000 deep"), "{error}");
}

/// Graphs that were found to take all memory.
#[test]
fn graphs_that_were_found_are_refused() {
    let one_hot: &[u8] = include_bytes!("data/hostile/huge_one_hot.pb");
    let nested: &[u8] = include_bytes!("data/hostile/nested_calls_2_to_29.pb");
    for bytes in [one_hot, nested] {
        let g = Graph::new();
        let def = GraphDef::decode(bytes).unwrap();
        g.import(&def, "").unwrap();
        let last = def.node.iter().rev().find(|node| def.node.iter().all(|other| !reads(other, &node.name))).unwrap();
        let placeholders = def.node.iter().filter(|node| node.op == "Placeholder");
        let names: Vec<String> = placeholders.map(|node| node.name.clone()).collect();
        let feeds: Vec<(&str, Tensor)> = names.iter().map(|name| (name.as_str(), Tensor::scalar(1.0f32))).collect();
        let error = fails(&g, &feeds, &last.name);
        assert!(error.contains("limit"), "{error}");
    }
}

fn reads(node: &NodeDef, name: &str) -> bool {
    node.input.iter().any(|input| input.split(':').next() == Some(name))
}

#[test]
fn a_step_that_waits_says_for_what() {
    let g = Graph::new();
    let types = || Attr::ListType(vec![DType::F32]);
    let queue = g.add_node("FIFOQueueV2").name("rows").attr("component_types", types()).value();
    g.add_node("QueueDequeueV2").name("take").input(queue).attr("component_types", types()).value();
    let session = Session::new(&g, SessionOptions::default()).unwrap();
    let (token, reported) = (CancelToken::new(), Mutex::new(Vec::new()));
    let report = |waiting: &[String]| {
        reported.lock().unwrap().extend(waiting.iter().cloned());
        token.cancel();
    };
    let on_stall = Some(OnStall { after: Duration::from_millis(10), report: &report });
    let options = RunOptions { cancel: Some(&token), on_stall, ..RunOptions::default() };
    let ended = session.run_step(&options, &[], &["take"], &[]).unwrap_err().to_string();
    assert!(ended.contains("cancelled"), "{ended}");
    assert_eq!(*reported.lock().unwrap(), ["node take (QueueDequeueV2) at FIFOQueue rows"]);
}
