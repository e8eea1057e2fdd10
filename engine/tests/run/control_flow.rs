//! Loops and conditionals: built, imported, nested, dead, wide, failing; on one thread and on several, all iterations at
//! once and one by one. TensorFlow's answers to its own graphs are in `graphdef_cases` (see `tensorflow_graphs`).

use std::path::Path;

use engine::graph::{GraphError, ImportError, Operand, WhileOptions};
use engine::session::RunError;
use engine::{DType, Graph, Output, PartialShape, Session, SessionOptions, Tensor};
use formats::npy::read_npz;
use formats::proto::{AttrValue, GraphDef, NodeDef};
use prost::Message;

fn int(graph: &Graph, value: i32) -> Output {
    graph.constant(Tensor::scalar(value)).output()
}

fn placeholder(graph: &Graph, name: &str, dtype: DType) -> Output {
    graph.placeholder(name, dtype, PartialShape::scalar()).output()
}

/// The predicate of a loop that goes on while its first variable is less than this.
fn below(limit: impl Operand + Copy) -> impl Fn(&Graph, &[Output]) -> Result<Output, GraphError> {
    move |g: &Graph, vars: &[Output]| Ok(g.value(vars[0]).less(limit).output())
}

fn next(g: &Graph, i: Output) -> Output {
    (g.value(i) + 1.0).output()
}

fn sessions(graph: &Graph) -> Vec<Session> {
    let session = |threads| Session::new(graph, SessionOptions { threads: Some(threads), ..Default::default() });
    [1, 2, 4].map(|threads| session(threads).unwrap()).into()
}

fn name(graph: &Graph, output: Output) -> String {
    format!("{}:{}", graph.node(output.node).unwrap().name, output.port)
}

/// Runs the graph on 1, 2 and 4 threads, several times each; all results must be equal.
fn run(graph: &Graph, feeds: &[(&str, Tensor)], fetches: &[Output]) -> Vec<Tensor> {
    let names: Vec<String> = fetches.iter().map(|output| name(graph, *output)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut first: Option<Vec<Tensor>> = None;
    for session in sessions(graph) {
        for _ in 0..6 {
            let values = session.run(feeds, &names, &[]).unwrap();
            assert_eq!(first.get_or_insert_with(|| values.clone()), &values);
        }
    }
    first.unwrap()
}

/// `i` from 0 below `n`, `x` doubled each time and `i` added.
fn double_loop(graph: &Graph, n: Output, x: Output, options: &WhileOptions) -> Result<Vec<Output>, GraphError> {
    let zero = int(graph, 0);
    graph.while_loop(
        &[zero, x],
        below(n),
        |g, vars| {
            let [i, x] = [0, 1].map(|var: usize| g.value(vars[var]));
            Ok([i + 1.0, x * 2.0 + i.cast(DType::F32)].map(Output::from).into())
        },
        options,
    )
}

fn doubled(n: i32, mut x: f32) -> f32 {
    (0..n).for_each(|i| x = 2.0 * x + i as f32);
    x
}

#[test]
fn a_loop_runs_as_often_as_its_predicate_says() {
    for parallel_iterations in [1, 2, 3, 10, 32] {
        let graph = Graph::new();
        let (n, x) = (placeholder(&graph, "n", DType::I32), placeholder(&graph, "x", DType::F32));
        let options = WhileOptions { parallel_iterations, ..Default::default() };
        let exits = double_loop(&graph, n, x, &options).unwrap();
        for trips in [0, 1, 2, 5, 40] {
            let feeds = [("n", Tensor::scalar(trips)), ("x", Tensor::scalar(0.5f32))];
            let values = run(&graph, &feeds, &exits);
            assert_eq!(values, [Tensor::scalar(trips), Tensor::scalar(doubled(trips, 0.5))]);
        }
    }
}

#[test]
fn only_one_side_of_a_conditional_runs() {
    let graph = Graph::new();
    let (pred, x) = (placeholder(&graph, "pred", DType::Bool), placeholder(&graph, "x", DType::F32));
    let triple = |g: &Graph| Ok(vec![(g.value(x) * 3.0).output(), x]);
    let fail = |g: &Graph| Ok(vec![g.value(x).op("TestFail").output(), x]);
    let result = graph.cond::<GraphError>(pred, triple, fail).unwrap();
    let feeds = [("pred", Tensor::scalar(true)), ("x", Tensor::scalar(2f32))];
    assert_eq!(run(&graph, &feeds, &result), [Tensor::scalar(6f32), Tensor::scalar(2f32)]);
    for session in sessions(&graph) {
        let feeds = [("pred", Tensor::scalar(false)), ("x", Tensor::scalar(2f32))];
        let error = session.run(&feeds, &[&name(&graph, result[0])], &[]).unwrap_err();
        assert!(error.to_string().contains("it always fails"), "{error}");
        // A value that both sides give is there, and the session goes on.
        assert_eq!(session.run(&feeds, &[&name(&graph, result[1])], &[]).unwrap(), [Tensor::scalar(2f32)]);
    }
}

#[test]
fn fetching_what_was_not_computed_is_an_error() {
    let graph = Graph::new();
    let (pred, x) = (placeholder(&graph, "pred", DType::Bool), placeholder(&graph, "x", DType::F32));
    graph.add_node("Switch").name("s").input(x).input(pred).value();
    for session in sessions(&graph) {
        let feeds = [("pred", Tensor::scalar(true)), ("x", Tensor::scalar(2f32))];
        assert_eq!(session.run(&feeds, &["s:1"], &[]).unwrap(), [Tensor::scalar(2f32)]);
        let error = session.run(&feeds, &["s:0"], &[]).unwrap_err();
        assert_eq!(error.to_string(), "fetch s:0: there is no value: it is on a branch that was not taken");
    }
}

#[test]
fn a_loop_in_a_side_that_is_not_taken_is_dead() {
    let graph = Graph::new();
    let (pred, x) = (placeholder(&graph, "pred", DType::Bool), placeholder(&graph, "x", DType::F32));
    let result = graph
        .cond::<GraphError>(
            pred,
            |g| Ok(vec![double_loop(g, int(g, 7), x, &WhileOptions::default())?[1]]),
            |g| Ok(vec![next(g, x)]),
        )
        .unwrap();
    let feeds = |pred| [("pred", Tensor::scalar(pred)), ("x", Tensor::scalar(2f32))];
    assert_eq!(run(&graph, &feeds(true), &result), [Tensor::scalar(doubled(7, 2.0))]);
    assert_eq!(run(&graph, &feeds(false), &result), [Tensor::scalar(3f32)]);
}

#[test]
fn conditionals_and_loops_nest() {
    for parallel_iterations in [1, 2, 32] {
        let graph = Graph::new();
        let n = placeholder(&graph, "n", DType::I32);
        let options = WhileOptions { parallel_iterations, ..Default::default() };
        let (zero, one) = (int(&graph, 0), graph.constant(1f32).output());
        let exits = graph
            .while_loop::<GraphError>(
                &[zero, one],
                below(n),
                |g, vars| {
                    let odd = g.value(vars[0]).op_with("FloorMod", 2.0).equal(1.0);
                    let inner = |g: &Graph| Ok(vec![double_loop(g, vars[0], vars[1], &options)?[1]]);
                    let x = g.cond::<GraphError>(odd, inner, |g| Ok(vec![(g.value(vars[1]) + one).output()]))?;
                    Ok(vec![next(g, vars[0]), x[0]])
                },
                &options,
            )
            .unwrap();
        let want = |n| (0..n).fold(1f32, |x, i| if i % 2 == 1 { doubled(i, x) } else { x + 1.0 });
        for trips in [0, 1, 4, 7] {
            let values = run(&graph, &[("n", Tensor::scalar(trips))], &exits);
            assert_eq!(values, [Tensor::scalar(trips), Tensor::scalar(want(trips))]);
        }
    }
}

#[test]
fn a_variable_may_change_its_shape_where_it_says_so() {
    let graph = Graph::new();
    let grow = |invariant: Option<PartialShape>| {
        let begin = [Tensor::scalar(0i32), Tensor::vector(&[1f32])].map(|value| graph.constant(value).output());
        let options = WhileOptions { shape_invariants: vec![None, invariant], ..Default::default() };
        graph.while_loop::<GraphError>(
            &begin,
            below(3.0),
            |g, vars| {
                let longer = g.concat(&[vars[1], vars[1]], 0).output();
                Ok(vec![next(g, vars[0]), longer])
            },
            &options,
        )
    };
    let error = grow(None).unwrap_err().to_string();
    assert!(error.contains("give it a shape invariant"), "{error}");
    let exits = grow(Some(PartialShape::new(&[None]))).unwrap();
    assert_eq!(run(&graph, &[], &exits[1..]), [Tensor::vector(&[1f32; 8])]);
    // The same through a definition, where only the edges say so.
    let copy = Graph::new();
    let mut def = graph.to_def();
    def.node.iter_mut().for_each(|node| drop(node.attr.remove("_shape_invariant")));
    def.node.retain(|node| !node.name.starts_with("while/"));
    copy.import(&def, "").unwrap();
    let exit = copy.output(&name(&graph, exits[1])).unwrap();
    assert_eq!(copy.shape(exit).unwrap(), PartialShape::new(&[None]));
    assert_eq!(run(&copy, &[], &[exit]), [Tensor::vector(&[1f32; 8])]);
}

#[test]
fn control_edges_hold_inside_of_loops() {
    let graph = Graph::new();
    let zero = int(&graph, 0);
    let note = graph.group("before", &[]);
    let exits = graph
        .while_loop::<GraphError>(
            &[zero],
            below(5.0),
            |g, vars| {
                let first = g.group("NoOp", &[vars[0].node, note]);
                let second = g.with_control(&[first]).group("NoOp", &[]);
                let one = int(g, 1);
                Ok(vec![(g.with_control(&[second]).value(vars[0]) + one).output()])
            },
            &WhileOptions::default(),
        )
        .unwrap();
    assert_eq!(run(&graph, &[], &exits), [Tensor::scalar(5)]);
}

#[test]
fn errors_in_a_loop_name_the_node_and_leave_the_session_usable() {
    let graph = Graph::new();
    let (n, x) = (placeholder(&graph, "n", DType::I32), graph.constant(1f32).output());
    let zero = int(&graph, 0);
    let exits = graph
        .while_loop::<GraphError>(
            &[zero, x],
            below(n),
            |g, vars| {
                let third = g.value(vars[0]).equal(3.0);
                let fail = |g: &Graph| Ok(vec![g.add_node("TestFail").name("fails").input(vars[1]).value().output()]);
                let x = g.cond::<GraphError>(third, fail, |g| Ok(vec![(g.value(vars[1]) + x).output()]))?;
                Ok(vec![next(g, vars[0]), x[0]])
            },
            &WhileOptions::default(),
        )
        .unwrap();
    for session in sessions(&graph) {
        for _ in 0..10 {
            let run = |n: i32| session.run(&[("n", Tensor::scalar(n))], &[&name(&graph, exits[1])], &[]);
            let error = run(9).unwrap_err().to_string();
            assert!(error.contains("fails (op TestFail"), "{error}");
            assert_eq!(run(3).unwrap(), [Tensor::scalar(4f32)]);
        }
    }
}

#[test]
fn an_endless_loop_can_be_cancelled_and_has_deadlines() {
    use engine::RunOptions;
    use engine::session::CancelToken;
    use std::time::Duration;
    let graph = Graph::new();
    let zero = int(&graph, 0);
    let body = |g: &Graph, vars: &[Output]| Ok(vec![g.value(vars[0]).op_with("BitwiseAnd", 1.0).output()]);
    let exits = graph.while_loop::<GraphError>(&[zero], below(5.0), body, &WhileOptions::default()).unwrap();
    let fetch = name(&graph, exits[0]);
    for session in sessions(&graph) {
        let options = RunOptions { timeout: Some(Duration::from_millis(20)), ..Default::default() };
        let error = session.run_step(&options, &[], &[&fetch], &[]).unwrap_err();
        assert!(error.to_string().starts_with("the deadline passed"), "{error}");
        let token = CancelToken::new();
        let options = RunOptions { cancel: Some(&token), ..Default::default() };
        std::thread::scope(|scope| {
            let step = scope.spawn(|| session.run_step(&options, &[], &[&fetch], &[]));
            token.cancel();
            let error = step.join().unwrap().unwrap_err();
            assert!(error.to_string().starts_with("the step was cancelled"), "{error}");
        });
    }
}

#[test]
fn what_is_inside_of_a_loop_stays_there() {
    let graph = Graph::new();
    let mut inside = None;
    let zero = int(&graph, 0);
    let exits = graph
        .while_loop::<GraphError>(
            &[zero],
            below(5.0),
            |g, vars| Ok(vec![*inside.insert(next(g, vars[0]))]),
            &WhileOptions::default(),
        )
        .unwrap();
    let inside = inside.unwrap();
    let error = graph.add_node("AddV2").input(inside).input(exits[0]).build().unwrap_err().to_string();
    assert!(error.contains("inputs from different frames: while/AddV2 is in frame while/while_context"), "{error}");
    let session = Session::new(&graph, SessionOptions::default()).unwrap();
    let error = session.run(&[], &[&name(&graph, inside)], &[]).unwrap_err().to_string();
    assert!(error.contains("only results of a loop can be fetched"), "{error}");
    let fed = [(&*name(&graph, inside), Tensor::scalar(3))];
    let error = session.run(&fed, &[&name(&graph, exits[0])], &[]).unwrap_err().to_string();
    assert!(error.contains("fed"), "{error}");
}

fn attr_value(attr: &engine::graph::Attr) -> AttrValue {
    use engine::graph::Attr;
    use engine::tensor_proto;
    use formats::proto::attr_value::Value;
    let value = match attr {
        Attr::Type(t) => Value::Type(tensor_proto::dtype_to_proto(*t)),
        Attr::Int(i) => Value::I(*i),
        Attr::Str(s) => Value::S(s.clone()),
        Attr::Tensor(t) => Value::Tensor(tensor_proto::to_proto(t)),
        other => panic!("{other}"),
    };
    AttrValue { value: Some(value) }
}

fn node(name: &str, op: &str, inputs: &[&str], attrs: &[(&str, engine::graph::Attr)]) -> NodeDef {
    let attr = attrs.iter().map(|(name, value)| ((*name).to_owned(), attr_value(value))).collect();
    let input = inputs.iter().map(|input| (*input).to_owned()).collect();
    NodeDef { name: name.into(), op: op.into(), input, attr, ..Default::default() }
}

#[test]
fn graphs_that_are_no_loops_are_refused_with_one_clear_error() {
    use engine::graph::Attr;
    let t = ("T", Attr::Type(DType::F32));
    let float = || {
        let value = ("value", Attr::Tensor(Tensor::scalar(1f32)));
        node("c", "Const", &[], &[("dtype", Attr::Type(DType::F32)), value])
    };
    let enter = |frame: &str| node("e", "Enter", &["c"], &[t.clone(), ("frame_name", Attr::from(frame))]);
    let n = ("N", Attr::Int(2));
    let cases = [
        (
            vec![
                float(),
                node("a", "AddV2", &["c", "b"], std::slice::from_ref(&t)),
                node("b", "Neg", &["a"], std::slice::from_ref(&t)),
            ],
            "b",
            "no loop: none of its edges is from a NextIteration to a Merge",
        ),
        (vec![float(), enter("")], "e", "node e (Enter): it has no frame name"),
        (
            vec![float(), node("x", "Exit", &["c"], std::slice::from_ref(&t))],
            "x",
            "node x (Exit): it is outside of any loop",
        ),
        (
            vec![
                float(),
                node("m", "Merge", &["c", "n"], &[t.clone(), n.clone()]),
                node("n", "NextIteration", &["m"], std::slice::from_ref(&t)),
            ],
            "n",
            "node n (NextIteration): it is outside of any loop",
        ),
        (
            vec![
                float(),
                enter("f"),
                node("e2", "Enter", &["c"], &[t.clone(), ("frame_name", Attr::from("g"))]),
                node("m", "Merge", &["e", "n"], &[t.clone(), n.clone()]),
                node("n", "NextIteration", &["e2"], std::slice::from_ref(&t)),
            ],
            "m",
            "it closes a loop that is not its own: n is in frame g, the Merge in frame f",
        ),
    ];
    for (nodes, fetch, want) in cases {
        let graph = Graph::new();
        // As in TensorFlow, only what a step needs has to be a loop; a circle without an end is no graph at all.
        let error = match graph.import(&GraphDef { node: nodes, ..Default::default() }, "") {
            Err(error) => error.to_string(),
            Ok(_) => {
                let session = Session::new(&graph, SessionOptions::default()).unwrap();
                session.run(&[], &[fetch], &[]).unwrap_err().to_string()
            }
        };
        assert!(error.contains(want), "{error}\nexpected {want}");
        assert_eq!(graph.n_nodes() == 0, fetch == "b", "what is refused leaves nothing");
    }
}

#[test]
fn a_loop_comes_back_from_its_definition() {
    let graph = Graph::new();
    let (n, x) = (placeholder(&graph, "n", DType::I32), placeholder(&graph, "x", DType::F32));
    let exits = double_loop(&graph, n, x, &WhileOptions::default()).unwrap();
    let fetch = name(&graph, exits[1]);
    let feeds = [("n", Tensor::scalar(6)), ("x", Tensor::scalar(0.25f32))];
    let want = run(&graph, &feeds, &[exits[1]]);
    let copy = Graph::new();
    copy.import(&graph.to_def(), "").unwrap();
    assert_eq!(run(&copy, &feeds, &[copy.output(&fetch).unwrap()]), want);
    let sorted = |graph: &Graph| {
        let mut nodes = graph.to_def().node;
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        nodes
    };
    assert!(sorted(&copy) == sorted(&graph), "the definition comes back");
    // Two copies in one graph are two loops.
    copy.import(&graph.to_def(), "again").unwrap();
    let feeds = [feeds[0].clone(), feeds[1].clone(), ("again/n", Tensor::scalar(2)), ("again/x", Tensor::scalar(1f32))];
    let both = [copy.output(&fetch).unwrap(), copy.output(&format!("again/{fetch}")).unwrap()];
    assert_eq!(run(&copy, &feeds, &both), [want[0].clone(), Tensor::scalar(doubled(2, 1.0))]);
}

/// Runs a graph that TensorFlow made; the answer must be TensorFlow's.
fn check_case(folder: &Path) {
    let def = GraphDef::decode(&*std::fs::read(folder.join("graph.pb")).unwrap()).unwrap();
    let arrays = read_npz(std::fs::File::open(folder.join("io.npz")).unwrap()).unwrap();
    // Several feeds and their answers, one after the other.
    let floats = |name: &str| {
        let array = &arrays.iter().find(|(n, _)| n == name).unwrap().1;
        let values: Vec<f32> = array.data.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        let n = values.len() / array.shape[0];
        let one = |part: &[f32]| Tensor::from_vec(&array.shape[1..], part.to_vec()).unwrap();
        values.chunks(n).map(one).collect::<Vec<_>>()
    };
    let graph = Graph::new();
    graph.import(&def, "").unwrap();
    for (x, want) in floats("x").into_iter().zip(floats("y")) {
        let got = run(&graph, &[("x:0", x)], &[graph.output("y:0").unwrap()]);
        assert_eq!(got[0].shape(), want.shape(), "{}", folder.display());
        for (got, want) in got[0].slice::<f32>().unwrap().iter().zip(want.slice::<f32>().unwrap()) {
            let close = (got - want).abs() <= 1e-5 * want.abs().max(1.0) || (got.is_nan() && want.is_nan());
            assert!(close, "{}: got {got}, TensorFlow has {want}", folder.display());
        }
    }
}

/// Graphs with loops, conditionals, arrays and their gradients.
#[test]
fn tensorflow_graphs() {
    let folder = test_support::data_folder().join("graphdef_cases");
    let mut n = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.join("graph.pb").exists() {
            check_case(&path);
            n += 1;
        }
    }
    assert!(n >= 5, "{n} cases in {}", folder.display());
}

#[test]
fn an_import_error_differs_from_a_run_error() {
    let graph = Graph::new();
    let def = GraphDef { node: vec![node("x", "NoSuchOp", &[], &[])], ..Default::default() };
    assert!(matches!(graph.import(&def, ""), Err(ImportError::Graph(_))));
    let session = Session::new(&graph, SessionOptions::default()).unwrap();
    assert!(matches!(session.run(&[], &["x"], &[]), Err(RunError::Graph(_))));
}
