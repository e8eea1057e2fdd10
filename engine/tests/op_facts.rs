//! What an op is stands in its definition: the table agrees with TensorFlow's registry, and an op's name says nothing.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::{BTreeMap, BTreeSet};

use engine::checkpoint::{Checkpoint, Saver, SaverOptions};
use engine::freeze::freeze;
use engine::graph::{Graph, InferContext, Node, Output, ShapeError};
use engine::kernels::{Kernel, KernelContext, KernelDef, KernelError};
use engine::ops::{self, OpSpec, op, stateful};
use engine::{DType, PartialShape, Session, SessionOptions, Tensor};
use formats::proto::op_def::ArgDef;
use formats::proto::{FunctionDef, FunctionDefLibrary, GraphDef, NodeDef, OpDef};

/// What TensorFlow's registry says of an op: see `tests/scripts/tf_op_facts.py`.
fn tensorflow() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let lines = include_str!("data/tf_ops.txt").lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once(' ').or(Some((line, ""))))
        .map(|(op, facts)| (op, facts.split_whitespace().collect()))
        .collect()
}

/// Ops that have state here and none there, besides those that hold it by a reference.
const STATEFUL_HERE: &[(&[&str], &str)] = &[
    (&["Abort"], "ends the program: it must run, and never before the step"),
    (
        &["MatchingFiles", "ReadFile"],
        "files change between steps; TensorFlow keeps them from being folded by a list of names",
    ),
    (
        &[
            "TensorArrayCloseV2",
            "TensorArrayConcatV2",
            "TensorArrayGatherV2",
            "TensorArrayReadV2",
            "TensorArrayScatterV2",
            "TensorArraySizeV2",
            "TensorArraySplitV2",
            "TensorArrayWriteV2",
        ],
        "work on an array of the step, as their third versions, which have state in both",
    ),
];

#[test]
fn state_is_where_tensorflow_has_it() {
    let theirs = tensorflow();
    let mut here_only: BTreeSet<&str> = STATEFUL_HERE.iter().flat_map(|(ops, _)| ops.iter().copied()).collect();
    let mut n_compared = 0;
    for def in ops::all() {
        let Some(facts) = theirs.get(def.name) else { continue };
        n_compared += 1;
        // A reference is state, though TensorFlow does not call its ops stateful.
        let has_ref = facts.contains("ref") && !def.kind.is_control_flow() && !facts.contains("stateful");
        let expected = facts.contains("stateful") || here_only.remove(def.name);
        assert!(
            def.is_stateful() == expected || (has_ref && def.is_stateful()),
            "{}: {:?}, {facts:?}",
            def.name,
            def.effect
        );
    }
    assert!(n_compared > 780, "{n_compared} ops compared");
    assert_eq!(here_only, BTreeSet::new(), "these are no deviations");
}

#[test]
fn ops_commute_that_do_in_tensorflow() {
    // Of more than two inputs another order is another sum.
    let not_here = ["AccumulateNV2", "AddN"];
    let theirs = tensorflow();
    for def in ops::all() {
        let Some(facts) = theirs.get(def.name) else { continue };
        let expected = facts.contains("commutative") && !not_here.contains(&def.name);
        assert_eq!(def.commutes, expected, "{}", def.name);
    }
}

#[test]
fn sums_of_strings_keep_their_order() {
    let g = Graph::new();
    let text = |name: &str| g.add_node("Placeholder").name(name).attr("dtype", DType::String).value();
    let (a, b) = (text("a"), text("b"));
    for (name, x, y) in [("ab", a, b), ("ba", b, a)] {
        g.add_node("Add").name(name).input(x).input(y).value();
    }
    let session = Session::new(&g, SessionOptions::default()).unwrap();
    let value = |text: &str| Tensor::from_strings([], vec![text.into()]).unwrap();
    let feeds = [("a", value("a")), ("b", value("b"))];
    let sums = session.run(&feeds, &["ab", "ba"], &[]).unwrap();
    let texts: Vec<&[u8]> = sums.iter().map(|sum| sum.strings().unwrap()[0].as_ref()).collect();
    assert_eq!(texts, [b"ab", b"ba"]);
}

fn same(c: &mut InferContext<'_>) -> Result<(), ShapeError> {
    let shape = c.input(0);
    c.set(0, shape);
    Ok(())
}

const SCALED: (&str, &str) = ("x: T -> y: T", "T: type");

macro_rules! scaled {
    ($($name:literal)*) => {
        /// Ops that double, whatever their names call to mind; the first is what the others are compared with.
        const NAMES: &[&str] = &[$($name),*];

        #[linkme::distributed_slice(engine::ops::OP_TABLES)]
        static OPS: &[OpSpec] = &[
            $(op($name, SCALED.0, SCALED.1, same),)*
            stateful("RandomThing", "x: float -> y: float", "", same),
            stateful("StackedThing", "x: float -> y: float", "", same),
            stateful("TensorArrayThing", "x: float -> y: float", "", same),
        ];

        #[linkme::distributed_slice(engine::kernels::KERNEL_TABLES)]
        static KERNELS: &[KernelDef] = &[
            $(cpu($name, double),)*
            cpu("RandomThing", always_fails), cpu("StackedThing", always_fails), cpu("TensorArrayThing", always_fails),
        ];
    };
}

scaled! {
    "PlainThing" "MyRecvThing" "SendMail" "AssignSomething" "ScatterLight" "QueueUp" "SaveTheDay" "RestorePeace"
    "ApplyPressure" "SwitchOff" "MergeLanes" "EnterHall" "ExitLeft" "CollectiveMind" "ReaderOfMinds" "PrintLarge"
    "_InternalThing"
}

const fn cpu(op: &'static str, build: fn(&Node) -> Result<Box<dyn Kernel>, KernelError>) -> KernelDef {
    KernelDef { op, device: "CPU", dtypes: ("", &[]), build }
}

struct Simple(fn(&mut KernelContext<'_>) -> Result<(), KernelError>);

impl Kernel for Simple {
    fn compute(&self, ctx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        (self.0)(ctx)
    }
}

fn double(_: &Node) -> Result<Box<dyn Kernel>, KernelError> {
    Ok(Box::new(Simple(|ctx| {
        let x = ctx.input(0)?;
        let twice = x.slice::<f32>()?.iter().map(|x| 2.0 * x).collect();
        let y = Tensor::from_vec(x.shape().clone(), twice)?;
        ctx.set(0, y);
        Ok(())
    })))
}

fn always_fails(_: &Node) -> Result<Box<dyn Kernel>, KernelError> {
    Ok(Box::new(Simple(|_| Err(KernelError::invalid("it ran")))))
}

/// A constant that goes through the op, a shape of its output, a branch that is never taken, and one that may be, each
/// with element-wise ops about it that fuse.
fn program(op: &str) -> (Graph, [String; 4]) {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [4]).output();
    let pred = g.placeholder("pred", DType::Bool, PartialShape::scalar()).output();
    let thing = |x: Output| g.add_node(op).name("thing").input(x).value().output();
    let unary = |op: &str, x: Output| g.add_node(op).name("unary").input(x).value().output();
    let branch = |pred: Output| {
        let switch = g.add_node("Switch").input(x).input(pred).value();
        let (no, yes) = (switch.output(), switch.port(1).output());
        let no = unary("Neg", unary("Exp", thing(unary("Square", unary("Neg", no)))));
        let yes = unary("Exp", unary("Neg", yes));
        // A merge that is fetched stays.
        unary("Neg", g.add_node("Merge").inputs(&[no, yes]).value().output())
    };
    let folded = thing(g.constant(Tensor::vector(&[1.0f32, 2.0])).output());
    let shape = unary("Shape", thing(thing(x)));
    let dead = branch(g.constant(Tensor::scalar(true)).output());
    let open = branch(pred);
    let name = |o: Output| g.node(o.node).unwrap().name.to_string();
    let names = [folded, shape, dead, open].map(name);
    (g, names)
}

#[test]
fn a_custom_op_is_no_other_whatever_its_name() {
    let of = |op: &str| {
        let (g, names) = program(op);
        let fetches = names.each_ref().map(String::as_str);
        let session = Session::new(&g, SessionOptions::default()).unwrap();
        let inspection = session.inspect(&["x", "pred"], &fetches, &[]).unwrap();
        let passes: Vec<_> = inspection.passes.iter().map(|p| (p.name, p.n_after, p.n_changes)).collect();
        let nodes: Vec<String> = inspection.graph.node.iter().map(|n| n.name.clone()).collect();
        let feeds = [("x", Tensor::vector(&[1.0f32, -2.0, 0.5, 0.0])), ("pred", Tensor::scalar(false))];
        (passes, nodes, session.run(&feeds, &fetches, &[]).unwrap())
    };
    let plain = of(NAMES[0]);
    for name in &NAMES[1..] {
        assert_eq!(of(name), plain, "{name}");
    }
}

#[test]
fn a_custom_op_is_frozen_whatever_its_name() {
    for name in NAMES {
        let (g, names) = program(name);
        let v = g.variable("v", Tensor::scalar(1.0f32));
        let session = Session::new(&g, SessionOptions::default()).unwrap();
        session.run(&[], &[], &[&g.node(v.init).unwrap().name]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let prefix = Saver::new(folder.path(), SaverOptions::default()).unwrap().save(&session, 1).unwrap();
        let frozen = freeze(&g.to_def(), &Checkpoint::open(prefix).unwrap(), &names).unwrap();
        assert!(frozen.graph.node.iter().any(|node| node.op == *name), "{name}");
    }
}

/// A graph that calls a function, whose result does not need its node of this op.
fn calls(op: &str) -> GraphDef {
    let arg = |name: &str| ArgDef { name: name.into(), r#type: DType::F32 as i32, ..ArgDef::default() };
    let signature = OpDef {
        name: "F".into(),
        input_arg: vec![arg("x")],
        output_arg: vec![arg("y")],
        is_stateful: true,
        ..OpDef::default()
    };
    let node = |name: &str, op: &str, input: &str| NodeDef {
        name: name.into(),
        op: op.into(),
        input: vec![input.into()],
        ..NodeDef::default()
    };
    let function = FunctionDef {
        signature: Some(signature),
        node_def: vec![node("effect", op, "x")],
        ret: [("y".to_owned(), "x".to_owned())].into(),
        ..FunctionDef::default()
    };
    let g = Graph::new();
    g.placeholder("x", DType::F32, PartialShape::scalar());
    let mut def = g.to_def();
    def.library = Some(FunctionDefLibrary { function: vec![function], ..FunctionDefLibrary::default() });
    def.node.push(node("call", "F", "x"));
    def
}

#[test]
fn an_effect_in_a_function_runs_whatever_its_name() {
    for op in ["RandomThing", "StackedThing", "TensorArrayThing"] {
        let g = Graph::new();
        g.import(&calls(op), "").unwrap();
        let session = Session::new(&g, SessionOptions::default()).unwrap();
        let failed = session.run(&[("x", Tensor::scalar(1.0f32))], &["call"], &[]).unwrap_err().to_string();
        assert!(failed.contains("it ran"), "{op}: {failed}");
    }
    // Random numbers that nobody needs are not drawn, and what only checks is checked.
    let g = Graph::new();
    let mut def = calls("CheckNumerics");
    let library = def.library.as_mut().unwrap();
    let attr = |value| formats::proto::AttrValue { value: Some(value) };
    library.function[0].node_def[0].attr = [
        ("T".to_owned(), attr(formats::proto::attr_value::Value::Type(DType::F32 as i32))),
        ("message".to_owned(), attr(formats::proto::attr_value::Value::S(b"checked".to_vec()))),
    ]
    .into();
    g.import(&def, "").unwrap();
    let session = Session::new(&g, SessionOptions::default()).unwrap();
    let failed = session.run(&[("x", Tensor::scalar(f32::NAN))], &["call"], &[]).unwrap_err().to_string();
    assert!(failed.contains("checked"), "{failed}");
}

#[test]
fn every_name_of_table_1_is_an_op() {
    let unknown: Vec<&&str> = ops::aliases::TABLE_1.iter().filter(|name| ops::lookup(name).is_none()).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    for (alias, op) in ops::aliases::ALIASES {
        assert_eq!(ops::lookup(alias).map(|def| def.name), Some(*op));
    }
    assert!(ops::lookup("relu").is_none());
}
