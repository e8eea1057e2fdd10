//! Values of a graph: operators make the nodes that they say, and the first error waits until somebody asks.

use engine::gradients::gradients;
use engine::graph::{Ints, Value};
use engine::{DType, Graph, Session, SessionOptions, Tensor};

fn numbers(values: &[f32]) -> Tensor {
    Tensor::vector(values)
}

#[test]
fn operators_compute_what_they_say() {
    let g = Graph::new();
    let (x, y) = (g.constant(numbers(&[1.0, -2.0])), g.constant(numbers(&[4.0, 0.5])));
    let session = Session::new(&g, SessionOptions::default()).unwrap();
    let cases = [
        (x + y, [5.0, -1.5]),
        (x - y, [-3.0, -2.5]),
        (x * y, [4.0, -1.0]),
        (x / y, [0.25, -4.0]),
        (-x, [-1.0, 2.0]),
        (x + 1.0, [2.0, -1.0]),
        (1.0 - x, [0.0, 3.0]),
        (2.0 * x * y, [8.0, -2.0]),
        (8.0 / y, [2.0, 16.0]),
        (x + y.output(), [5.0, -1.5]),
        (x.maximum(0.0), [1.0, 0.0]),
        (x.greater(y).select(x, y), [4.0, 0.5]),
        (x.sum([0]) * x.ones_like(), [-1.0, -1.0]),
    ];
    for (i, (value, expected)) in cases.into_iter().enumerate() {
        assert_eq!(session.step().fetch(value).run().unwrap(), [numbers(&expected)], "case {i}");
    }
    // A number is of the type of the value next to it.
    let i = g.constant(Tensor::vector(&[3i64]));
    assert_eq!(session.step().fetch(2.0 * i).run().unwrap(), [Tensor::vector(&[6i64])]);
}

#[test]
fn parts_products_and_other_shapes() {
    let g = Graph::new();
    let x = g.constant(Tensor::from_vec([2, 3], vec![1f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap());
    let ids = g.constant(Tensor::vector(&[2i64, 0]));
    let (a, b) = (x.slice([0, 1], [-1, 2]).reshape([2i64, 1, 2]), x.slice([0, 0], [2usize, 2]));
    let all = [1f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let cases: [(Value<'_>, &[usize], &[f32]); 13] = [
        (a, &[2, 1, 2], &[2.0, 3.0, 5.0, 6.0]),
        (x.gather(ids, 1), &[2, 2], &[3.0, 1.0, 6.0, 4.0]),
        (x.gather([1usize], 0), &[1, 3], &all[3..]),
        (x.expand_dims(1).squeeze([1]), &[2, 3], &all),
        (x.reshape([1, 2, 1, 3]).squeeze([]), &[2, 3], &all),
        (x.reshape(&[3usize, 1, 2][..]).flatten(), &[3, 2], &all),
        (ids.one_hot(3usize), &[2, 3], &[0.0, 0.0, 1.0, 1.0, 0.0, 0.0]),
        (g.stack(&[x.sum([1]), x.max([1])], 1), &[2, 2], &[6.0, 3.0, 15.0, 6.0]),
        (g.range(1, 8, 3).cast(DType::F32), &[3], &[1.0, 4.0, 7.0]),
        (a.matmul(b), &[2, 1, 2], &[14.0, 19.0, 29.0, 40.0]),
        (a.matmul_with(b, false, true), &[2, 1, 2], &[8.0, 23.0, 17.0, 50.0]),
        (a.matmul_with(a, false, true), &[2, 1, 1], &[13.0, 61.0]),
        (a.matmul_with(a, true, false), &[2, 2, 2], &[4.0, 6.0, 6.0, 9.0, 25.0, 30.0, 30.0, 36.0]),
    ];
    let session = Session::new(&g, SessionOptions::default()).unwrap();
    for (i, (value, dims, expected)) in cases.into_iter().enumerate() {
        assert_eq!(value.shape().known().unwrap().dims(), dims, "case {i}");
        let expected = Tensor::from_vec(dims, expected.to_vec()).unwrap();
        assert_eq!(session.step().fetch(value).run().unwrap(), [expected], "case {i}");
    }
    // What a step alone knows.
    let unknown = g.placeholder("unknown", DType::F32, [None, None, None]);
    let rows = Tensor::from_vec([2, 3, 1], all.to_vec()).unwrap();
    let flat = session.step().feed(unknown, rows).fetch(unknown.flatten()).run().unwrap();
    assert_eq!(flat[0].dims(), [2, 3]);
    // Constants of numbers are int32 where they fit.
    let ints = [[3usize, 4].into_output(&g), [3i64, 1 << 40].into_output(&g), 5i64.into_output(&g)];
    let got = ints.into_iter().fold(session.step(), engine::session::Step::fetch).run().unwrap();
    assert_eq!(got, [Tensor::vector(&[3i32, 4]), Tensor::vector(&[3i64, 1 << 40]), Tensor::scalar(5i32)]);
}

/// The left operand's handle adds the node: its scope, its device.
#[test]
fn nodes_are_added_by_the_left_operand() {
    let g = Graph::new();
    let (x, y) = (g.constant(numbers(&[1.0])), g.constant(numbers(&[2.0])));
    let (scope, device) = (g.scope("layer"), g.with_device("/cpu:1"));
    let name = |value: Value<'_>| g.node(value.node()).unwrap();
    assert_eq!(&*name(x.with(&scope) * y).name, "layer/Mul");
    assert_eq!(&*name(y * x.with(&scope)).name, "Mul");
    assert_eq!(&*name(x.with(&device) * y).device, "/cpu:1");
    let inner = x.in_scope("inner", |x| x.exp() + 1.0);
    assert_eq!(&*name(inner).name, "inner/AddV2");
    assert_eq!(&*name(inner.exp()).name, "Exp");
}

#[test]
fn the_first_error_is_kept_and_reported_by_whoever_needs_the_graph() {
    let g = Graph::new();
    let session = Session::new(&g, SessionOptions::default()).unwrap();
    let x = g.placeholder("x", DType::F32, [2, 3]);
    let w = g.placeholder("w", DType::F32, [4, 5]);
    let product = x.matmul(w);
    let after = (product + 1.0).relu().sum_all();
    let second = x.reshape([5]);
    let expected = "node MatMul (MatMul) with inputs [2,3], [4,5]: ";
    let first = g.check().unwrap_err().to_string();
    assert!(first.starts_with(expected), "{first}");
    // Later errors, and what depends on the node, change nothing; no node was added for them.
    let ops: Vec<&str> = g.nodes().iter().map(|node| node.op.name).filter(|op| *op != "Const").collect();
    assert_eq!(ops, ["Placeholder", "Placeholder"]);
    for value in [product, after, second] {
        assert_eq!(value.try_output().unwrap_err().to_string(), first);
    }
    let errors = [
        Session::new(&g, SessionOptions::default()).err().unwrap().to_string(),
        session.step().fetch(after).run().unwrap_err().to_string(),
        session.run(&[], &["x"], &[]).unwrap_err().to_string(),
        gradients(&g, &[after.output()], &[x.output()], &[]).unwrap_err().to_string(),
        g.cond(after, |_| Ok::<_, engine::graph::GraphError>(vec![]), |_| Ok(vec![])).unwrap_err().to_string(),
    ];
    for error in errors {
        assert_eq!(error, first);
    }
}

#[test]
fn rules_of_gradients_keep_their_errors_to_themselves() {
    // A broken rule, and a graph that goes on.
    engine::ops::register(&engine::ops::op("BrokenRule", "x: float -> y: float", "", |c| {
        let shape = c.input(0);
        c.set(0, shape);
        Ok(())
    }))
    .unwrap();
    engine::gradients::register(("BrokenRule", engine::gradients::Rule::Slope(|x, _| x.op("NoSuchOp"))));
    let g = Graph::new();
    let x = g.constant(numbers(&[1.0, 2.0]));
    let y = x.op("BrokenRule");
    let error = gradients(&g, &[y.output()], &[x.output()], &[]).unwrap_err().to_string();
    assert_eq!(error, "node NoSuchOp: unknown op NoSuchOp");
    g.check().unwrap();
    assert_eq!(gradients(&g, &[(x * x).output()], &[x.output()], &[]).unwrap().len(), 1);
}

#[test]
fn steps_take_handles_and_names() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [None]);
    let v = g.variable("v", numbers(&[0.0]));
    let double = 2.0 * x;
    let session = Session::new(&g, SessionOptions::default()).unwrap();
    session.step().target(v.init).run().unwrap();
    session.step().target("v/Assign").run().unwrap();
    let got = session.step().feed("x:0", numbers(&[1.0])).fetch(double).fetch("Mul").fetch(v.value).run().unwrap();
    assert_eq!(got, [numbers(&[2.0]), numbers(&[2.0]), numbers(&[0.0])]);
    let error = session.step().fetch("nowhere").target("nobody").run().unwrap_err();
    assert_eq!(error.to_string(), "no node nowhere", "the first");
}
