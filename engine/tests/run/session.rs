//! Sessions: partial execution, feeds, control edges, errors, concurrency, variables.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::common::{note_node, notes, session, source, sum, value};
use engine::graph::{Attr, Graph, Output};
use engine::session::{CancelToken, RunError};
use engine::{DType, PartialShape, RunOptions, Session, SessionOptions, Shape, Tensor};

/// The graph of the white paper's Figure 6 with a note at each node: a and b feed c; b feeds d; c and d feed e and f.
fn figure_6() -> (Graph, Session) {
    let g = Graph::new();
    let noted = |name: &str| note_node(&g, &format!("ran_{name}"), &[]);
    let source_of = |name: &str, v: f32| {
        let ran = noted(name);
        g.add_node("TestSource").name(name).attr("value", v).after(&[ran]).value().output()
    };
    let sum_of = |name: &str, inputs: &[Output]| {
        let ran = noted(name);
        g.add_node("TestSum").name(name).inputs(inputs).after(&[ran]).value().output()
    };
    let (a, b) = (source_of("a", 1.0), source_of("b", 2.0));
    let c = sum_of("c", &[a, b]);
    let d = sum_of("d", &[b]);
    sum_of("e", &[d]);
    sum_of("f", &[c]);
    let s = session(&g, 2);
    (g, s)
}

#[track_caller]
fn check_ran(feeds: &[(&str, f32)], fetches: &[&str], targets: &[&str], ran: &str) -> Vec<f32> {
    let (_, s) = figure_6();
    let feeds: Vec<_> = feeds.iter().map(|(name, v)| (*name, Tensor::scalar(*v))).collect();
    let values = s.run(&feeds, fetches, targets).unwrap();
    let got: BTreeSet<String> = notes(&s).0.lock().iter().map(|n| n.replace("ran_", "")).collect();
    assert_eq!(got.into_iter().collect::<Vec<_>>().join(" "), ran);
    values.iter().map(|v| v.item::<f32>().unwrap()).collect()
}

#[test]
fn only_what_is_wanted_runs() {
    // Figure 6: feed b, fetch f; d and e are not run, nor is the fed b.
    assert_eq!(check_ran(&[("b:0", 10.0)], &["f:0"], &[], "a c f"), [11.0]);
    assert_eq!(check_ran(&[], &["e"], &[], "b d e"), [2.0]);
    assert_eq!(check_ran(&[("c", 5.0)], &["f", "c", "f:0"], &[], "f"), [5.0, 5.0, 5.0]);
    assert!(check_ran(&[], &[], &["d"], "b d").is_empty());
    assert_eq!(check_ran(&[("d", 7.0)], &["d:0"], &[], ""), [7.0]);
}

#[test]
fn a_fed_port_leaves_the_other_ports_of_its_node() {
    let g = Graph::new();
    let x = source(&g, "x", 10.0);
    let split = g.add_node("TestSplit").name("split").input(x).value();
    sum(&g, "y", &[split.output(), split.port(1).output()]);
    let s = session(&g, 1);
    assert_eq!(value(&s.run(&[], &["y"], &[]).unwrap()), 20.0);
    assert_eq!(value(&s.run(&[("split:1", Tensor::scalar(100.0f32))], &["y"], &[]).unwrap()), 111.0);
}

/// As TensorFlow's shape functions, which evaluate what is constant; a fed value is none.
#[test]
fn shapes_follow_from_computed_integers_unless_those_are_fed() {
    let g = Graph::new();
    let x = g.constant(Tensor::from_vec([2, 3, 5], vec![0f32; 30]).unwrap());
    let shape = x.shape_tensor();
    // The last two dimensions, the first of them doubled.
    let slice = g.add_node("StridedSlice").inputs(&[shape, g.ints(&[1]), g.ints(&[0]), g.ints(&[1])]);
    let last = slice.attr("end_mask", 1i64).attr("Index", DType::I32).value();
    let doubled = g.add_node("Mul").name("doubled").inputs(&[last, g.ints(&[2, 1])]).value();
    let rank = x.rank_tensor();
    let pack = g.add_node("Pack").name("pack").inputs(&[rank, rank.number(1.0)]).value();
    let filled = g.fill(g.concat(&[doubled, pack], 0), g.constant(1f32));
    g.add_node("Shape").name("sizes").input(filled).value();
    assert_eq!(filled.shape(), PartialShape::from(&Shape::new(&[6, 5, 3, 1])));

    let s = session(&g, 1);
    let sizes = |feeds: &[(&str, Tensor)]| s.run(feeds, &["sizes"], &[]).unwrap()[0].slice::<i32>().unwrap().to_vec();
    assert_eq!(sizes(&[]), [6, 5, 3, 1]);
    assert_eq!(sizes(&[("pack", Tensor::vector(&[2i32, 2]))]), [6, 5, 2, 2]);
    assert_eq!(sizes(&[("doubled", Tensor::vector(&[4i32])), ("pack", Tensor::vector(&[2i32, 2]))]), [4, 2, 2]);
}

#[test]
fn control_edges_order() {
    for threads in [1, 2] {
        let g = Graph::new();
        let mut last = note_node(&g, "n0", &[]);
        for i in 1..50 {
            last = note_node(&g, &format!("n{i}"), &[last]);
        }
        let s = session(&g, threads);
        s.run(&[], &[], &["n49"]).unwrap();
        let expected: Vec<String> = (0..50).map(|i| format!("n{i}")).collect();
        assert_eq!(*notes(&s).0.lock(), expected);
    }
}

#[track_caller]
fn check_error(result: Result<Vec<Tensor>, RunError>, expected: &str) {
    assert_eq!(result.map(|_| ()).unwrap_err().to_string(), expected);
}

#[test]
fn errors_name_node_op_and_shapes() {
    let g = Graph::new();
    let x = source(&g, "x", 1.0);
    for (op, name) in [("TestFail", "fails"), ("TestPanic", "panics"), ("TestLeaveUnset", "unset")] {
        let y = g.scope("deep").add_node(op).name(name).input(x).value().output();
        sum(&g, &format!("after_{name}"), &[y]);
    }
    for threads in [1, 2] {
        let s = session(&g, threads);
        check_error(
            s.run(&[], &["after_fails"], &[]),
            "node deep/fails (op TestFail, inputs float[]): it always fails",
        );
        check_error(
            s.run(&[], &["after_panics"], &[]),
            "node deep_1/panics (op TestPanic): the kernel panicked: it always panics",
        );
        check_error(
            s.run(&[], &["after_unset"], &[]),
            "node deep_2/unset (op TestLeaveUnset): the kernel left output 0 unset",
        );
        check_error(s.run(&[], &["nowhere"], &[]), "no node nowhere");
        check_error(s.run(&[], &["x:1"], &[]), "no output x:1: the node has 1 outputs");
        check_error(s.run(&[], &[], &["nowhere"]), "no node nowhere");
        let feed = |t: Tensor| [("x", t)];
        check_error(s.run(&feed(Tensor::scalar(1i32)), &["x"], &[]), "feed x:0: expected float[], got int32[]");
        check_error(s.run(&feed(Tensor::vector(&[1.0f32])), &["x"], &[]), "feed x:0: expected float[], got float[1]");
        let twice = [("x", Tensor::scalar(1.0f32)), ("x:0", Tensor::scalar(1.0f32))];
        check_error(s.run(&twice, &["x"], &[]), "x:0 is fed twice");
        // The session goes on as before.
        assert_eq!(value(&s.run(&[], &["x"], &[]).unwrap()), 1.0);
        assert_eq!(value(&s.run(&[("deep/fails", Tensor::scalar(3.0f32))], &["after_fails"], &[]).unwrap()), 3.0);
    }
}

#[test]
fn a_node_without_a_kernel_is_an_error() {
    let g = Graph::new();
    let x = g.add_node("TestHolder").name("holder").value();
    sum(&g, "y", &[x.output()]);
    let s = session(&g, 1);
    check_error(s.run(&[], &["y"], &[]), "node holder (op TestHolder): no kernel for op TestHolder on CPU");
    let fed = s.run(&[("holder", Tensor::scalar(2.0f32))], &["y"], &[]).unwrap();
    assert_eq!(value(&fed), 2.0);
}

#[test]
fn a_placeholder_must_be_fed_where_it_is_needed() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [None, Some(2)]);
    g.add_node("Neg").name("y").input(x).value();
    let s = session(&g, 1);
    check_error(s.run(&[], &["y"], &[]), "node x (op Placeholder): a value of float[?,2] must be fed");
    let feed = |n: usize| [("x", Tensor::from_vec([1, n], vec![1.0f32; n]).unwrap())];
    check_error(s.run(&feed(3), &["y"], &[]), "feed x:0: expected float[?,2], got float[1,3]");
    assert_eq!(s.run(&feed(2), &["y"], &[]).unwrap()[0].slice::<f32>().unwrap(), [-1.0, -1.0]);
    // As a target it is done once it is fed.
    assert!(s.run(&feed(2), &[], &["x"]).unwrap().is_empty());
}

#[test]
fn cancellation_and_deadlines_end_steps_between_kernels() {
    let g = Graph::new();
    let mut x = source(&g, "x", 0.0);
    for i in 0..2_000 {
        // All of them take many seconds: whoever cancels comes in time, however late it gets the processor.
        x = g.add_node("TestSum").name(&format!("s{i}")).input(x).attr("work", 2_000_000).value().output();
    }
    for threads in [1, 2] {
        let s = session(&g, threads);
        let token = CancelToken::new();
        let options = RunOptions { cancel: Some(&token), ..RunOptions::default() };
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(2));
                token.cancel();
            });
            s.run_step(&options, &[], &["s1999"], &[])
        });
        let text = result.map(|_| ()).unwrap_err().to_string();
        assert!(text.starts_with("the step was cancelled after ") && text.ends_with(" of 2001 nodes"), "{text}");
        let options = RunOptions { timeout: Some(Duration::from_millis(1)), ..RunOptions::default() };
        let text = s.run_step(&options, &[], &["s1999"], &[]).map(|_| ()).unwrap_err().to_string();
        assert!(text.starts_with("the deadline passed after "), "{text}");
        let options = RunOptions { timeout: Some(Duration::from_secs(3600)), ..RunOptions::default() };
        assert_eq!(value(&s.run_step(&options, &[], &["s3"], &[]).unwrap()), 0.0);
    }
}

#[test]
fn concurrent_steps_share_variables() {
    let g = Graph::new();
    let mut last = g.add_node("TestCount").name("count").value();
    for i in 0..20 {
        let work = [0, 1, 2, 3]
            .map(|k| g.add_node("TestSum").name(&format!("w{i}_{k}")).input(last).attr("work", 2_000).value());
        let join = g.add_node("TestSum").name(&format!("j{i}")).input(work[0]);
        last = join.after(&[work[1].node(), work[2].node()]).value();
    }
    let s = session(&g, 2);
    let mut seen: Vec<f32> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| (0..25).map(|_| value(&s.run(&[], &["j19"], &[]).unwrap())).collect::<Vec<_>>()))
            .collect();
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
    });
    // Each step saw its own count all the way through.
    seen.sort_by(f32::total_cmp);
    assert_eq!(seen, (1..=100).map(|i| i as f32).collect::<Vec<_>>());
}

#[test]
fn variables_outlive_sessions_until_their_container_is_reset() {
    let g = Graph::new();
    g.add_node("TestCount").name("count").value();
    g.add_node("TestCount").name("other").attr("container", "mine").value();
    let first = session(&g, 1);
    let run = |s: &Session, name: &str| value(&s.run(&[], &[name], &[]).unwrap());
    assert_eq!((run(&first, "count"), run(&first, "count"), run(&first, "other")), (1.0, 2.0, 1.0));
    let options = SessionOptions { devices: vec![first.device().clone()], ..SessionOptions::default() };
    let second = Session::new(&g, options).unwrap();
    assert_eq!((run(&second, "count"), run(&second, "other")), (3.0, 2.0));
    second.reset("mine");
    assert_eq!((run(&first, "count"), run(&first, "other")), (4.0, 1.0));
    assert_eq!(run(&session(&g, 1), "count"), 1.0);
}

#[test]
fn a_graph_may_grow_under_its_session() {
    let g = Graph::new();
    let x = source(&g, "x", 1.0);
    let s = session(&g, 1);
    assert_eq!(value(&s.run(&[], &["x"], &[]).unwrap()), 1.0);
    sum(&g, "y", &[x, x]);
    assert_eq!(value(&s.run(&[], &["y"], &[]).unwrap()), 2.0);
}

#[test]
fn sessions_are_extended_by_definitions_at_a_version() {
    let g = Graph::new();
    source(&g, "x", 1.0);
    let s = session(&g, 1);
    let more = Graph::new();
    let x = source(&more, "z", 5.0);
    sum(&more, "y", &[x, x]);
    assert_eq!(s.extend(&more.to_def(), Some(1)).unwrap(), 3);
    assert_eq!(value(&s.run(&[], &["y"], &[]).unwrap()), 10.0);
    let late = s.extend(&more.to_def(), Some(1)).unwrap_err().to_string();
    assert_eq!(late, "the graph is at version 3, expected 1");
    assert!(s.extend(&more.to_def(), None).is_err(), "the names are taken");
}

#[test]
fn callables_run_without_names() {
    let g = Graph::new();
    let (a, b) = (source(&g, "a", 1.0), source(&g, "b", 2.0));
    sum(&g, "y", &[a, b, b]);
    let s = session(&g, 2);
    let y = s.prepare(&["b"], &["y", "b"], &[]).unwrap();
    assert_eq!(y.n_nodes(), 2);
    for i in 0..10 {
        let values = y.run(&[Tensor::scalar(i as f32)]).unwrap();
        let values: Vec<f32> = values.iter().map(|v| v.item().unwrap()).collect();
        assert_eq!(values, [1.0 + 2.0 * i as f32, i as f32]);
    }
    check_error(y.run(&[]), "expected 1 feeds, got 0");
}

#[test]
fn shards_cover_the_work_and_their_panics_reach_the_caller() {
    let g = Graph::new();
    g.add_node("TestShards").name("good").attr("n", 4_000).value();
    g.add_node("TestShards").name("bad").attr("n", 4_000).attr("panic", Attr::Bool(true)).value();
    for threads in [1, 2, 4] {
        let s = session(&g, threads);
        for _ in 0..20 {
            assert_eq!(value(&s.run(&[], &["good"], &[]).unwrap()), (3_999 * 4_000 / 2) as f32);
            check_error(s.run(&[], &["bad"], &[]), "node bad (op TestShards): the kernel panicked: a shard panics");
        }
    }
}

/// TensorFlow's executor threads do the same; without it a network that has converged trains at two thirds of its speed.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[test]
fn denormals_are_zero_in_kernels_and_stay_in_the_caller() {
    let product = || std::hint::black_box(1e-30f32) * std::hint::black_box(1e-10f32);
    const N: usize = 1 << 20;
    let g = Graph::new();
    let [x, y] = ["x", "y"].map(|name| g.placeholder(name, DType::F32, PartialShape::unknown()));
    g.add_node("Mul").name("z").input(x).input(y).value();
    for threads in [1, 3] {
        let s = session(&g, threads);
        // Long enough for shards on the workers.
        let feed = |v: f32| Tensor::from_vec([N], vec![v; N]).unwrap();
        let z = s.run(&[("x", feed(1e-30)), ("y", feed(1e-10))], &["z"], &[]).unwrap();
        assert!(z[0].slice::<f32>().unwrap().iter().all(|z| *z == 0.0));
        assert!(product() > 0.0, "the caller's own arithmetic is unchanged");
        s.run(&[("x", feed(1.0)), ("y", Tensor::vector(&[1.0f32; 3]))], &["z"], &[]).unwrap_err();
        assert!(product() > 0.0, "after an error too");
    }
}

#[test]
fn a_definition_that_does_not_fit_adds_nothing() {
    let other = Graph::new();
    let x = source(&other, "scope/x", 1.0);
    sum(&other, "scope/y", &[x]);
    let good = other.to_def();
    let mut bad = good.clone();
    bad.node[1].op = "NoSuchOp".to_owned();

    let g = Graph::new();
    let s = session(&g, 1);
    source(&g, "before", 1.0);
    let error = s.extend(&bad, Some(1)).unwrap_err();
    assert!(error.to_string().contains("NoSuchOp"), "{error}");
    assert_eq!((g.n_nodes(), g.output("scope/x").is_err()), (1, true));
    // The names are free again, and a right definition under them runs.
    assert_eq!(s.extend(&good, Some(1)).unwrap(), 3);
    assert_eq!(value(&s.run(&[], &["scope/y"], &[]).unwrap()), 1.0);
    // Twice is too often; the graph is what it was.
    s.extend(&good, None).unwrap_err();
    assert_eq!((g.n_nodes(), g.output("scope/y").is_ok()), (3, true));
}
