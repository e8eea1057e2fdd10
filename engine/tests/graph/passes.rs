//! Graph passes: what they make of hand-made graphs, and that no result changes by a bit.

use engine::compile::{PIPELINE, Passes};
use engine::graph::{Graph, GraphError, Output, Value, WhileOptions};
use engine::{DType, PartialShape, Session, SessionOptions, Shape, Tensor};
use formats::proto::GraphDef;
use proptest::prelude::*;

fn session(g: &Graph, passes: Passes) -> Session {
    Session::new(g, SessionOptions { threads: Some(2), passes, ..SessionOptions::default() }).unwrap()
}

fn name(g: &Graph, o: impl Into<Output>) -> String {
    let o = o.into();
    format!("{}:{}", g.node(o.node).unwrap().name, o.port)
}

/// The nodes that are executed for some fetches, as `name=op`.
fn executed(g: &Graph, passes: Passes, feeds: &[Value<'_>], fetches: &[Value<'_>]) -> Vec<String> {
    let def = inspect(g, passes, feeds, fetches);
    def.node.iter().filter(|n| n.op != "Placeholder").map(|n| format!("{}={}", n.name, n.op)).collect()
}

fn inspect(g: &Graph, passes: Passes, feeds: &[Value<'_>], fetches: &[Value<'_>]) -> GraphDef {
    let names = |values: &[Value<'_>]| values.iter().map(|o| name(g, *o)).collect::<Vec<_>>();
    let (feeds, fetches) = (names(feeds), names(fetches));
    let feeds: Vec<&str> = feeds.iter().map(String::as_str).collect();
    let fetches: Vec<&str> = fetches.iter().map(String::as_str).collect();
    session(g, passes).inspect(&feeds, &fetches, &[]).unwrap().graph
}

fn only(names: &[&str]) -> Passes {
    names.iter().fold(Passes::none(), |passes, name| passes.with(name))
}

fn x(g: &Graph, shape: impl Into<PartialShape>) -> Value<'_> {
    g.placeholder("x", DType::F32, shape)
}

#[test]
fn constants_and_known_shapes_are_folded() {
    let g = Graph::new();
    let x = x(&g, [2, 3]);
    let y = g.add_node("Mul").name("y").input(x).input(g.constant(1f32) + 1.0).value();
    let n = g.add_node("Prod").name("n").input(y.shape_tensor()).input(g.ints(&[0])).value();
    assert_eq!(executed(&g, only(&["fold"]), &[x], &[n]), ["n=Const"], "the shape is known");
    let nodes = executed(&g, only(&["fold"]), &[x], &[y, n]);
    assert_eq!(nodes.len(), 3, "{nodes:?}");
    let s = session(&g, Passes::all());
    let feed = Tensor::from_vec([2, 3], vec![0f32; 6]).unwrap();
    assert_eq!(s.run(&[("x", feed)], &["n"], &[]).unwrap()[0].item::<i32>().unwrap(), 6);
}

#[test]
fn a_shape_behind_a_switch_is_dead_where_its_value_is() {
    let g = Graph::new();
    let (x, pred) = (x(&g, [3]), g.placeholder("pred", DType::Bool, PartialShape::scalar()));
    let switch = g.add_node("Switch").input(x).input(pred).value();
    let shapes = [switch.shape_tensor(), -switch.port(1).shape_tensor()];
    let side = g.add_node("Merge").name("side").inputs(&shapes).value();
    for passes in [Passes::none(), only(&["fold"]), Passes::all()] {
        for (taken, dim) in [(false, 3), (true, -3)] {
            let feeds = [("x", Tensor::vector(&[0f32; 3])), ("pred", Tensor::scalar(taken))];
            let got = session(&g, passes.clone()).run(&feeds, &["side:0", "side:1"], &[]).unwrap();
            assert_eq!(got, [Tensor::vector(&[dim]), Tensor::scalar(i32::from(taken))], "{passes:?}");
        }
    }
    let nodes = executed(&g, Passes::all(), &[x, pred], &[side]);
    assert!(!nodes.iter().any(|node| node.ends_with("=Shape")), "{nodes:?}");
}

#[test]
fn the_shape_of_what_was_folded_is_folded() {
    let g = Graph::new();
    let rows = g.constant(Tensor::from_vec([2, 3], vec![1f32; 6]).unwrap());
    let rows = g.add_node("Unpack").input(rows).attr("num", 2i64).attr("axis", 0i64).value();
    let shape = g.add_node("Shape").name("shape").input(rows.port(1)).value();
    assert_eq!(executed(&g, only(&["fold"]), &[], &[shape]), ["shape=Const"]);
    assert_eq!(session(&g, Passes::all()).run(&[], &["shape"], &[]).unwrap(), [Tensor::vector(&[3])]);
}

#[test]
fn what_has_state_or_is_too_large_is_not_folded() {
    let g = Graph::new();
    let random = g.add_node("RandomUniform").name("r").input(g.ints(&[4])).attr("dtype", DType::F32).value();
    let large = g.fill([1 << 20], g.constant(1f32));
    let huge = g.fill([1 << 30, 1 << 30], g.constant(1f32));
    for node in [random, large, huge] {
        let before = g.node(node.node()).unwrap();
        let nodes = executed(&g, Passes::all(), &[], &[node]);
        assert!(nodes.contains(&format!("{}={}", before.name, before.op.name)), "{nodes:?}");
    }
    let s = session(&g, Passes::all());
    let draw = || s.run(&[], &["r"], &[]).unwrap().remove(0);
    assert_ne!(draw(), draw());
}

#[test]
fn equal_nodes_become_one_where_inputs_commute() {
    let g = Graph::new();
    let (x, y) = (x(&g, [3]), g.placeholder("y", DType::F32, [3]));
    let (a, b) = (x + y, y + x);
    let all = g.add_n(&[a, b, x - y, y - x]);
    let nodes = executed(&g, only(&["cse"]), &[x, y], &[all]);
    assert_eq!(nodes.len(), 4, "two additions are one, two subtractions are not: {nodes:?}");
    let kept = executed(&g, only(&["cse"]), &[x, y], &[all, a, b]);
    assert_eq!(kept.len(), 5, "both are fetched: {kept:?}");
    let kept = executed(&g, only(&["cse"]), &[x, y], &[all, b]);
    assert_eq!(kept.len(), 4, "{kept:?}");
    assert!(kept.contains(&format!("{}=AddV2", g.node(b.node()).unwrap().name)), "{kept:?}");
}

#[test]
fn control_edges_and_state_keep_nodes_apart() {
    let g = Graph::new();
    let x = x(&g, [3]);
    let after_first = g.with_control(&[g.group("first", &[])]);
    let (a, b) = (-x, -x.with(&after_first));
    let random = || g.add_node("RandomUniform").input(g.ints(&[3])).attr("dtype", DType::F32).value();
    let all = g.add_n(&[a, b, random(), random()]);
    let nodes = executed(&g, Passes::all().without("fuse"), &[x], &[all]);
    let count = |op: &str| nodes.iter().filter(|n| n.ends_with(&format!("={op}"))).count();
    assert_eq!((count("Neg"), count("RandomUniform"), count("Const")), (2, 2, 1), "{nodes:?}");
}

#[test]
fn what_changes_nothing_goes() {
    let g = Graph::new();
    let x = x(&g, [2, 3]);
    let y = (x.identity() * 1.0).transpose([1, 0]).transpose([1, 0]);
    let y = y.reshape([6]).reshape([3, 2]).reshape([2, 3]);
    let last = g.add_node("Exp").name("last").input(-(-y)).value();
    let nodes = executed(&g, only(&["simplify"]), &[x], &[last]);
    assert_eq!(nodes, ["last=Exp"]);
    // 0 added to -0 is 0: not neutral.
    let plus = g.add_node("AddV2").name("plus").input(x).input(g.constant(0f32)).value();
    let kept = g.add_node("Exp").name("kept").input(plus).value();
    assert!(executed(&g, only(&["simplify"]), &[x], &[kept]).contains(&"plus=AddV2".to_owned()));
    // A scalar times a vector of ones is a vector.
    let ones = g.constant(Tensor::vector(&[1f32, 1.0]));
    let s = g.placeholder("s", DType::F32, PartialShape::scalar());
    let grown = g.add_node("Mul").name("grown").input(s).input(ones).value();
    let kept = g.add_node("Exp").name("kept2").input(grown).value();
    assert!(executed(&g, only(&["simplify"]), &[s], &[kept]).contains(&"grown=Mul".to_owned()));
}

#[test]
fn fetched_identities_and_targets_stay() {
    let g = Graph::new();
    let x = x(&g, [3]);
    let a = g.add_node("Identity").name("a").input(x).value();
    let b = g.add_node("Exp").name("b").input(a).value();
    assert_eq!(executed(&g, Passes::all(), &[x], &[a, b]).len(), 2);
    let s = session(&g, Passes::all());
    let def = s.inspect(&["x"], &["b"], &["a"]).unwrap().graph;
    assert!(def.node.iter().any(|n| n.name == "a"));
}

#[test]
fn gradients_of_the_perceptron_shrink() {
    use engine::models::MlpOptions;
    use engine::training::mlp;
    let g = Graph::new();
    let m = mlp(&g, &MlpOptions { hidden: vec![32, 16], ..MlpOptions::default() }).unwrap();
    let train = g.node(m.train_op).unwrap().name.to_string();
    let run = |passes: Passes| {
        let s = session(&g, passes);
        let (x, labels, loss) = (name(&g, m.x), name(&g, m.labels), name(&g, m.loss));
        s.run(&[], &[], &[&g.node(m.init).unwrap().name]).unwrap();
        let x_value: Vec<f32> = (0..8 * 64).map(|i| (i * 37 % 101) as f32 / 101.0).collect();
        let feeds = [Tensor::from_vec([8, 64], x_value).unwrap(), Tensor::vector(&[0i64, 1, 2, 3, 4, 5, 6, 7])];
        let step = s.prepare(&[&x, &labels], &[&loss], &[&train]).unwrap();
        let losses: Vec<Tensor> = (0..5).map(|_| step.run(&feeds).unwrap().remove(0)).collect();
        (losses, step.n_nodes())
    };
    let (plain, n_plain) = run(Passes::none());
    let (rewritten, n_rewritten) = run(Passes::all());
    assert_eq!(plain, rewritten);
    assert!(n_rewritten * 10 <= n_plain * 9, "{n_plain} nodes became {n_rewritten}");
}

#[test]
fn graphs_are_dumped_before_and_after_each_pass() {
    let folder = std::env::temp_dir().join(format!("stepscope-passes-{}", std::process::id()));
    let g = Graph::new();
    let y = x(&g, [3]).identity().exp();
    let dump_graphs = Some(folder.clone());
    let s = Session::new(&g, SessionOptions { threads: Some(1), dump_graphs, ..SessionOptions::default() }).unwrap();
    s.run(&[("x", Tensor::vector(&[1f32, 2.0, 3.0]))], &[&name(&g, y)], &[]).unwrap();
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), PIPELINE.len());
    for file in &files {
        let def: GraphDef = prost::Message::decode(std::fs::read(file).unwrap().as_slice()).unwrap();
        Graph::new().import(&def, "").unwrap();
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A random program over a few shapes: each line makes a value from earlier ones.
#[derive(Debug, Clone)]
struct Line {
    op: usize,
    a: usize,
    b: usize,
    after: Option<usize>,
}

const UNARY: &[&str] = &[
    "Neg",
    "Abs",
    "Square",
    "Exp",
    "Tanh",
    "Sigmoid",
    "Relu",
    "Identity",
    "StopGradient",
    "Sqrt",
    "Sign",
    "Reciprocal",
    "Log",
    "Floor",
    "ZerosLike",
    "OnesLike",
    "Shape of",
    "Transpose",
    "Reshape",
    "Sum",
    "Mean rows",
];
const BINARY: &[&str] = &[
    "AddV2",
    "Sub",
    "Mul",
    "RealDiv",
    "Maximum",
    "Minimum",
    "SquaredDifference",
    "MatMul",
    "AddN",
    "ReluGrad",
    "Pack",
    "Select",
    "BiasAdd",
    "TanhGrad",
    "SigmoidGrad",
];

/// Adds the line's node if its shapes fit, otherwise a negation.
fn add_line(g: &Graph, line: &Line, values: &[Output]) -> Output {
    let g = &match line.after {
        Some(i) => g.with_control(&[values[i % values.len()].node]),
        None => g.clone(),
    };
    let (a, b) = (values[line.a % values.len()], values[line.b % values.len()]);
    let op = line.op % (UNARY.len() + BINARY.len());
    let node = |op: &str| g.add_node(op).input(a).output();
    let made = match UNARY.get(op).copied().unwrap_or_else(|| BINARY[op - UNARY.len()]) {
        "Shape of" => Ok(g.value(a).shape_tensor().cast(DType::F32).output()),
        "Transpose" => {
            let rank = g.shape(a).unwrap().rank().unwrap_or(0) as i32;
            let perm = g.ints(&(0..rank).rev().collect::<Vec<_>>());
            g.add_node("Transpose").input(a).input(perm).output()
        }
        "Reshape" => g.add_node("Reshape").input(a).input(g.ints(&[-1, 4])).output(),
        "Sum" => Ok(g.value(a).sum_all().output()),
        "Mean rows" => g.add_node("Mean").input(a).input(g.ints(&[0])).attr("keep_dims", true).output(),
        "MatMul" => g.add_node("MatMul").input(a).input(b).attr("transpose_a", line.after.is_some()).output(),
        "AddN" => g.add_node("AddN").inputs(&[a, b, a]).output(),
        "Pack" => g.add_node("Pack").inputs(&[a, b]).output(),
        "Select" => {
            let less = g.add_node("Less").input(a).input(b).output();
            less.and_then(|less| g.add_node("SelectV2").input(less).input(a).input(b).output())
        }
        op if BINARY.contains(&op) => g.add_node(op).input(a).input(b).output(),
        op => node(op),
    };
    made.unwrap_or_else(|_| (-g.value(a)).output())
}

fn lines() -> impl Strategy<Value = Vec<Line>> {
    let line = (0usize..1000, 0usize..1000, 0usize..1000, prop::option::weighted(0.1, 0usize..1000));
    prop::collection::vec(line.prop_map(|(op, a, b, after)| Line { op, a, b, after }), 1..40)
}

/// The same results, bit by bit, up to the sign and payload of NaN.
fn assert_same(plain: &[Tensor], got: &[Tensor], what: &str) {
    assert_eq!(plain.len(), got.len());
    for (a, b) in plain.iter().zip(got) {
        assert_eq!((a.dtype(), a.shape()), (b.dtype(), b.shape()), "{what}");
        let (a, b) = (a.slice::<f32>().unwrap(), b.slice::<f32>().unwrap());
        let differ = a.iter().zip(b).position(|(a, b)| a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan()));
        assert!(differ.is_none(), "{what}: element {differ:?} of {a:?} became {b:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn random_graphs_give_equal_results_with_any_passes(
        lines in lines(),
        fetched in prop::collection::vec(0usize..1000, 1..4),
        off in prop::collection::vec(any::<bool>(), PIPELINE.len()),
        batch in 1usize..6,
    ) {
        let g = Graph::new();
        let fed = g.placeholder("x", DType::F32, [None, Some(4)]);
        let known = g.placeholder("k", DType::F32, [5, 4]);
        let values = [-1.5f32, -0.0, 0.5, 3.0];
        let row = g.constant(Tensor::vector(&values));
        let matrix = g.constant(Tensor::from_vec([4, 4], [values; 4].concat()).unwrap());
        let mut made = [fed, known, row, matrix, g.constant(1f32), g.constant(0f32)].map(Value::output).to_vec();
        for line in &lines {
            made.push(add_line(&g, line, &made));
        }
        let n = made.len();
        let fetches: Vec<String> = fetched.iter().map(|i| name(&g, made[n - 1 - i % lines.len()])).collect();
        let fetches: Vec<&str> = fetches.iter().map(String::as_str).collect();
        let number = |i: usize| [1.0, -2.5, 0.25, -0.0, 7.0, 1e-3, -1e3, 0.5][i * 5 % 8];
        let feeds = [
            ("x", Tensor::from_vec([batch, 4], (0..batch * 4).map(number).collect()).unwrap()),
            ("k", Tensor::from_vec([5, 4], (0..20).map(|i| number(i + 3)).collect()).unwrap()),
        ];
        // Sums of products are taken in another order: `products.rs` has them.
        let run = |passes: Passes| session(&g, passes.without("products")).run(&feeds, &fetches, &[]);
        let some = PIPELINE.iter().zip(&off).filter(|(_, off)| **off).fold(Passes::all(), |p, (pass, _)| p.without(pass.name));
        match run(Passes::none()) {
            Ok(plain) => {
                assert_same(&plain, &run(Passes::all()).unwrap(), "all passes");
                assert_same(&plain, &run(some.clone()).unwrap(), &format!("{some:?}"));
            }
            // Shapes that the feeds' sizes do not fit: an error stays one, or the node was not needed.
            Err(_) => drop(run(Passes::all())),
        }
    }
}

#[test]
fn attributes_of_folded_nodes_say_what_they_were() {
    let g = Graph::new();
    let sum = g.add_node("AddV2").name("sum").input(g.constant(1f32)).input(g.constant(2f32)).value();
    let def = inspect(&g, Passes::all(), &[], &[sum]);
    let node = &def.node[0];
    assert_eq!((node.name.as_str(), node.op.as_str()), ("sum", "Const"));
    let folded = node.attr.get("_folded_op").and_then(|a| a.value.clone());
    assert_eq!(folded, Some(formats::proto::attr_value::Value::S(b"AddV2".to_vec())));
}

/// Numbers where functions go wrong, if they do.
const HARD: [f64; 12] = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-40, 3e38, -89.0, 89.0, f64::INFINITY, f64::NAN];

fn hard(dtype: DType, shape: &[usize], salt: usize) -> Tensor {
    let n = shape.iter().product::<usize>();
    let value = |i: usize| HARD[(i * 7 + salt * 5 + i / 13) % HARD.len()];
    match dtype {
        DType::F32 => Tensor::from_vec(shape, (0..n).map(|i| value(i) as f32).collect()).unwrap(),
        _ => Tensor::from_vec(shape, (0..n).map(value).collect()).unwrap(),
    }
}

fn assert_same_bits(a: &Tensor, b: &Tensor, what: &str) {
    assert_eq!((a.dtype(), a.shape()), (b.dtype(), b.shape()), "{what}");
    let bits = |t: &Tensor| -> Vec<u64> {
        match t.dtype() {
            DType::F32 => {
                t.slice::<f32>().unwrap().iter().map(|v| if v.is_nan() { 1 } else { u64::from(v.to_bits()) }).collect()
            }
            _ => t.slice::<f64>().unwrap().iter().map(|v| if v.is_nan() { 1 } else { v.to_bits() }).collect(),
        }
    };
    assert_eq!(bits(a), bits(b), "{what}");
}

#[test]
fn every_op_gives_the_same_fused_and_alone() {
    use engine::kernels::formula::FUSED_OPS;
    // The second operand's shape against the first's: whole, rows short and longer than a block, scalars, columns.
    let shapes: [(&[usize], &[usize]); 9] = [
        (&[3, 5], &[3, 5]),
        (&[7, 300], &[300]),
        (&[3, 2500], &[1, 2500]),
        (&[2, 3, 40], &[3, 40]),
        (&[4, 50], &[]),
        (&[4, 50], &[4, 1]),
        (&[], &[]),
        (&[1, 1], &[]),
        (&[0, 3], &[3]),
    ];
    for def in FUSED_OPS {
        for (dtype, (a, b)) in [DType::F32, DType::F64].iter().flat_map(|d| shapes.iter().map(move |s| (*d, *s))) {
            let g = Graph::new();
            let x = g.placeholder("x", dtype, Shape::new(a));
            let y = g.placeholder("y", dtype, Shape::new(b));
            let node = g.add_node(def.name);
            let node = match (def.name, def.n_operands) {
                ("AddN", _) => node.inputs(&[x, y, x]),
                (_, 1) => node.input(x),
                _ => node.input(x).input(y),
            };
            // Shapes that the op does not take.
            let Ok(made) = node.output() else { continue };
            let last = -g.value(made) - x;
            let feeds = [("x", hard(dtype, a, 1)), ("y", hard(dtype, b, 2))];
            let what = format!("{} of {dtype} {a:?} {b:?}", def.name);
            let run = |passes| session(&g, passes).run(&feeds, &[&name(&g, last)], &[]);
            match run(Passes::none()) {
                Ok(alone) => assert_same_bits(&alone[0], &run(only(&["fuse"])).unwrap()[0], &what),
                Err(_) => assert!(run(only(&["fuse"])).is_err(), "{what}"),
            }
            if a.len() == 2 && b.len() != 2 {
                assert_eq!(executed(&g, only(&["fuse"]), &[x, y], &[last]).len(), 1, "{what}");
            }
        }
    }
}

#[test]
fn unknown_shapes_that_do_not_suit_run_one_by_one() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, PartialShape::unknown());
    let y = g.placeholder("y", DType::F32, PartialShape::unknown());
    let last = ((x + y) * x).tanh();
    assert_eq!(executed(&g, Passes::all(), &[x, y], &[last]).len(), 1);
    let value = |shape: &[usize]| hard(DType::F32, shape, 3);
    for (a, b) in [(vec![3, 1], vec![1, 4]), (vec![2, 3, 1], vec![2, 1, 4]), (vec![5], vec![2, 5]), (vec![1], vec![])] {
        let feeds = [("x", value(&a)), ("y", value(&b))];
        let run = |passes| session(&g, passes).run(&feeds, &[&name(&g, last)], &[]).unwrap();
        assert_same_bits(&run(Passes::none())[0], &run(Passes::all())[0], &format!("{a:?} {b:?}"));
    }
    let feeds = [("x", value(&[3])), ("y", value(&[4]))];
    let error = session(&g, Passes::all()).run(&feeds, &[&name(&g, last)], &[]).unwrap_err().to_string();
    assert!(error.contains("AddV2") && error.contains("[3]") && error.contains("[4]"), "{error}");
}

#[test]
fn products_take_their_bias_and_relu_with_them() {
    for (m, k, n) in [(5, 7, 3), (130, 64, 512), (1, 0, 4)] {
        let g = Graph::new();
        let x = g.placeholder("x", DType::F32, [m, k]);
        let w = g.placeholder("w", DType::F32, [k, n]);
        let b = g.placeholder("b", DType::F32, [n]);
        let y = x.matmul(w).bias_add(b);
        let z = y.relu();
        let number = |shape: &[usize]| {
            let n = shape.iter().product::<usize>();
            Tensor::from_vec(shape, (0..n).map(|i| (i * 7919 % 1000) as f32 / 500.0 - 1.0).collect()).unwrap()
        };
        let feeds = [("x", number(&[m, k])), ("w", number(&[k, n])), ("b", number(&[n]))];
        for fetches in [vec![z], vec![y], vec![y, z]] {
            let names: Vec<String> = fetches.iter().map(|o| name(&g, *o)).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let run = |passes| session(&g, passes).run(&feeds, &names, &[]).unwrap();
            assert_same(&run(Passes::none()), &run(Passes::all()), &format!("{m} {k} {n}"));
            let nodes = executed(&g, Passes::all(), &[x, w, b], &fetches);
            assert_eq!(nodes.len(), fetches.len(), "{nodes:?}");
        }
    }
}

#[test]
fn branches_of_constant_predicates_go() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [4]);
    for taken in [true, false] {
        let yes = g.constant(Tensor::scalar(taken));
        let side = |op: &'static str| move |g: &Graph| Ok(vec![x.with(g).op(op).output()]);
        let y = g.cond::<GraphError>(yes, side("Exp"), side("Neg")).unwrap()[0];
        let last = g.value(y).square();
        let feeds = [("x", hard(DType::F32, &[4], 1))];
        let run = |passes: Passes| session(&g, passes).run(&feeds, &[&name(&g, last)], &[]).unwrap();
        let alone = x.op(if taken { "Exp" } else { "Neg" }).square();
        let alone = session(&g, Passes::none()).run(&feeds, &[&name(&g, alone)], &[]).unwrap();
        assert_same(&alone, &run(Passes::all()), "taken");
        let nodes = executed(&g, only(&["branches", "simplify"]), &[x], &[last]);
        assert!(
            nodes.len() == 2 && nodes.iter().any(|n| n.ends_with(if taken { "=Exp" } else { "=Neg" })),
            "{nodes:?}"
        );
    }
}

/// A forward part whose values all wait for a backward part.
fn forth_and_back(x: Value<'_>, depth: usize) -> Value<'_> {
    let weights = |value: f32| x.graph().constant(Tensor::from_vec([64, 64], vec![value; 4096]).unwrap());
    let mut forward = vec![x];
    for _ in 0..depth {
        let wide = forward[forward.len() - 1].matmul(weights(0.02));
        forward.extend([wide.tanh(), wide.sigmoid()]);
    }
    let back = forward.into_iter().rev().reduce(|back, value| back.matmul_with(weights(0.01), false, true) * value);
    back.unwrap().sum_all()
}

#[test]
fn memory_stays_within_a_limit_that_the_plain_order_exceeds() {
    let g = Graph::new();
    let y = forth_and_back(x(&g, [None, Some(64)]), 12);
    let rows = 1024;
    let feed = Tensor::from_vec([rows, 64], (0..rows * 64).map(|i| (i % 97) as f32 / 97.0).collect()).unwrap();
    let run = |passes: Passes, memory_limit: usize| {
        let options =
            SessionOptions { threads: Some(1), passes, memory_limit, unknown_dim: rows, ..SessionOptions::default() };
        let s = Session::new(&g, options).unwrap();
        let peaks = s.inspect(&["x"], &[&name(&g, y)], &[]).unwrap().peaks;
        let result = s.run(&[("x", feed.clone())], &[&name(&g, y)], &[]);
        (result, s.device().allocator().stats().peak, peaks)
    };
    let memory = || only(&["memory"]);
    let (plain, plain_peak, estimate) = run(memory(), usize::MAX);
    assert_eq!(estimate[0].before, estimate[0].after);
    let error = estimate[0].before as f64 / plain_peak as f64;
    assert!((0.8..1.25).contains(&error), "estimated {}, measured {plain_peak}", estimate[0].before);
    let limit = plain_peak * 7 / 10;
    assert!(run(Passes::none(), limit).0.is_err(), "does not fit as it is");
    let (within, peak, estimate) = run(memory(), limit);
    assert!(estimate[0].after <= limit && estimate[0].before > limit, "{estimate:?}");
    let plain = plain.unwrap();
    assert_same(&plain, &within.unwrap(), "within the limit");
    assert!(peak <= limit, "{peak} of {limit}");
    let (fused, fused_peak, _) = run(only(&["fuse", "memory"]), limit);
    assert_same(&plain, &fused.unwrap(), "fused, within the limit");
    assert!(fused_peak <= limit, "{fused_peak} of {limit}");
    assert!((peak as f64 / estimate[0].after as f64 - 1.0).abs() < 0.25, "{peak} measured, {estimate:?}");
}

#[test]
fn a_large_graph_goes_through_quickly() {
    let g = Graph::new();
    let mut layer = vec![x(&g, [16, 16]); 8];
    let n_layers = 36_000 / 8 / 5;
    for i in 0..n_layers {
        let next = |k: usize| {
            let scale = g.constant(0.5f32 + (i % 7) as f32);
            let sum = layer[k] + layer[(k + 1) % 8];
            (sum.reshape(sum.shape_tensor()) * scale).tanh()
        };
        layer = (0..8).map(next).collect();
    }
    let last = g.add_n(&layer);
    let s = session(&g, Passes::all());
    let passes = s.inspect(&["x"], &[&name(&g, last)], &[]).unwrap().passes;
    for pass in &passes {
        println!(
            "{:12} {:6} -> {:6} nodes, {:6} changes, {:7.2} ms",
            pass.name,
            pass.n_before,
            pass.n_after,
            pass.n_changes,
            pass.elapsed_ns as f64 / 1e6
        );
    }
    assert!(passes[0].n_before > 36_000 && passes[passes.len() - 1].n_after < 20_000, "{passes:?}");
}

/// A loop over sums and products whose values differ from iteration to iteration.
fn looped(x: Value<'_>, n: Value<'_>) -> Vec<Output> {
    let zero = x.graph().constant(Tensor::scalar(0i32));
    let body = |g: &Graph, v: &[Output]| {
        let next = g.value(v[0]) + 1.0;
        let y = (((g.value(v[1]) + 1.0) * 1.0).identity() - x).tanh();
        Ok::<_, GraphError>(vec![next.output(), (y.tanh() + y.tanh()).output()])
    };
    let cond = |g: &Graph, v: &[Output]| Ok(g.value(v[0]).less(n).output());
    x.graph().while_loop(&[zero.output(), x.output()], cond, body, &WhileOptions::default()).unwrap()
}

#[test]
fn loops_survive_each_pass() {
    let g = Graph::new();
    let x = x(&g, [8]);
    let n = g.placeholder("n", DType::I32, PartialShape::scalar());
    let ends = looped(x, n);
    let outer = g.cond::<GraphError>(
        n.greater(2.0),
        |g| Ok(vec![looped(g.value(ends[1]), n)[1]]),
        |g| Ok(vec![(-(-(-g.value(ends[1])))).output()]),
    );
    let outer = outer.unwrap()[0];
    let fetches = [name(&g, ends[1]), name(&g, outer)];
    let fetches: Vec<&str> = fetches.iter().map(String::as_str).collect();
    for count in [0i32, 1, 2, 3, 7] {
        let feeds = [("x", hard(DType::F32, &[8], 4)), ("n", Tensor::scalar(count))];
        let run = |passes: Passes| session(&g, passes).run(&feeds, &fetches, &[]).unwrap();
        let plain = run(Passes::none());
        assert_same(&plain, &run(Passes::all()), "all passes");
        for pass in PIPELINE {
            assert_same(&plain, &run(only(&[pass.name])), pass.name);
        }
    }
}
