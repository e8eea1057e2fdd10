//! Every gradient against central differences in f64, first and second order, through the executor.

#![allow(clippy::unwrap_used, reason = "a test")]

use engine::gradients::{GradientError, gradients};
use engine::graph::{Attr, NodeBuilder};
use engine::{DType, Graph, Output, PartialShape, Session, SessionOptions, Tensor};

/// Builds an output out of the placeholders.
type Build = fn(&Graph, &[Output]) -> Output;

fn constant(g: &Graph, value: Tensor) -> Output {
    let dtype = value.dtype();
    g.add_node("Const").attr("value", value).attr("dtype", dtype).output().unwrap()
}

fn node<'g>(g: &'g Graph, op: &'g str, inputs: &[Output]) -> NodeBuilder<'g> {
    inputs.iter().fold(g.add_node(op), |builder, input| builder.input(*input))
}

fn op(g: &Graph, op: &str, inputs: &[Output]) -> Output {
    node(g, op, inputs).output().unwrap()
}

fn ints(g: &Graph, values: &[i32]) -> Output {
    constant(g, Tensor::vector(values))
}

fn int(g: &Graph, value: i32) -> Output {
    constant(g, Tensor::scalar(value))
}

/// A fixed sequence of numbers in [-1, 1), so that cases do not depend on each other.
fn numbers(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// The graph's loss `sum(out * weights)` and its gradients, with what they are fed.
struct Case {
    session: Session,
    loss: String,
    grads: Vec<String>,
    feeds: Vec<(String, Tensor)>,
}

fn name_of(g: &Graph, output: Output) -> String {
    format!("{}:{}", g.node(output.node).unwrap().name, output.port)
}

fn case(build: Build, shapes: &[&[usize]], inputs: &[Vec<f64>], second_order: bool) -> Case {
    let g = Graph::new();
    let place = |(i, shape): (usize, &&[usize])| {
        let dims: Vec<Option<usize>> = shape.iter().map(|d| Some(*d)).collect();
        let shape = Attr::Shape(PartialShape::new(&dims));
        g.add_node("Placeholder")
            .name(&format!("x{i}"))
            .attr("dtype", DType::F64)
            .attr("shape", shape)
            .output()
            .unwrap()
    };
    let xs: Vec<Output> = shapes.iter().enumerate().map(place).collect();
    let weighted = |out: Output, shape: &[usize], seed: u64| {
        let weights = Tensor::from_vec(shape, numbers(shape.iter().product(), seed)).unwrap();
        let product = op(&g, "Mul", &[out, constant(&g, weights)]);
        let flat = op(&g, "Reshape", &[product, ints(&g, &[-1])]);
        op(&g, "Sum", &[flat, ints(&g, &[0])])
    };
    let out = build(&g, &xs);
    let shape = g.shape(out).unwrap().known().expect("the cases have static shapes");
    let mut loss = weighted(out, shape.dims(), 99);
    if second_order {
        let first = gradients(&g, &[loss], &xs, &[]).unwrap();
        let sums: Vec<Output> =
            first.into_iter().zip(shapes).zip(7..).map(|((grad, shape), seed)| weighted(grad, shape, seed)).collect();
        loss = g.add_node("AddN").inputs(&sums).output().unwrap();
    }
    let grads = gradients(&g, &[loss], &xs, &[]).unwrap();
    let tensors = shapes.iter().zip(inputs).map(|(s, v)| Tensor::from_vec(*s, v.clone()).unwrap());
    let feeds = (0..).map(|i| format!("x{i}")).zip(tensors).collect();
    Case {
        session: Session::new(&g, SessionOptions { threads: Some(1), ..SessionOptions::default() }).unwrap(),
        loss: name_of(&g, loss),
        grads: grads.into_iter().map(|grad| name_of(&g, grad)).collect(),
        feeds,
    }
}

impl Case {
    fn run(&self, feeds: &[(String, Tensor)], fetches: &[&str]) -> Vec<Tensor> {
        let feeds: Vec<(&str, Tensor)> = feeds.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        self.session.run(&feeds, fetches, &[]).unwrap()
    }

    /// Compares each gradient with `(f(x + h) - f(x - h)) / 2h`.
    fn check(&self, what: &str) {
        const H: f64 = 1e-5;
        let names: Vec<&str> = self.grads.iter().map(String::as_str).collect();
        let analytic = self.run(&self.feeds, &names);
        for (i, grad) in analytic.iter().enumerate() {
            let (_, x) = &self.feeds[i];
            assert_eq!(grad.dims(), x.dims(), "{what}: the gradient has its input's shape");
            let values = x.slice::<f64>().unwrap();
            for at in 0..values.len() {
                let loss = |h: f64| {
                    let mut moved = values.to_vec();
                    moved[at] += h;
                    let mut feeds = self.feeds.clone();
                    feeds[i].1 = Tensor::from_vec(x.shape().clone(), moved).unwrap();
                    self.run(&feeds, &[&self.loss])[0].item::<f64>().unwrap()
                };
                let numeric = (loss(H) - loss(-H)) / (2.0 * H);
                let got = grad.slice::<f64>().unwrap()[at];
                let error = (got - numeric).abs() / numeric.abs().max(1.0);
                assert!(error < 1e-6, "{what}, input {i}, element {at}: gradient {got}, differences {numeric}");
            }
        }
    }
}

fn check(what: &str, build: Build, shapes: &[&[usize]]) {
    let inputs: Vec<Vec<f64>> = shapes.iter().zip(1..).map(|(s, seed)| numbers(s.iter().product(), seed)).collect();
    case(build, shapes, &inputs, false).check(what);
    case(build, shapes, &inputs, true).check(&format!("{what}, second order"));
}

/// The same with inputs in [0.5, 2.5), where logarithms and roots live.
fn check_positive(what: &str, build: Build, shapes: &[&[usize]]) {
    let positive = |(s, seed): (&&[usize], u64)| numbers(s.iter().product(), seed).iter().map(|v| v + 1.5).collect();
    let inputs: Vec<Vec<f64>> = shapes.iter().zip(1..).map(positive).collect();
    case(build, shapes, &inputs, false).check(what);
    case(build, shapes, &inputs, true).check(&format!("{what}, second order"));
}

#[test]
fn unary() {
    for name in ["Neg", "Abs", "Square", "Exp", "Tanh", "Sigmoid", "Relu", "Softmax", "LogSoftmax", "Identity"] {
        let build: Build = match name {
            "Neg" => |g, x| op(g, "Neg", x),
            "Abs" => |g, x| op(g, "Abs", x),
            "Square" => |g, x| op(g, "Square", x),
            "Exp" => |g, x| op(g, "Exp", x),
            "Tanh" => |g, x| op(g, "Tanh", x),
            "Sigmoid" => |g, x| op(g, "Sigmoid", x),
            "Relu" => |g, x| op(g, "Relu", x),
            "Softmax" => |g, x| op(g, "Softmax", x),
            "LogSoftmax" => |g, x| op(g, "LogSoftmax", x),
            _ => |g, x| op(g, "Identity", x),
        };
        check(name, build, &[&[2, 3]]);
    }
    check_positive("Log", |g, x| op(g, "Log", x), &[&[2, 3]]);
    check_positive("Log1p", |g, x| op(g, "Log1p", x), &[&[2, 3]]);
    check_positive("Sqrt", |g, x| op(g, "Sqrt", x), &[&[2, 3]]);
    check_positive("Rsqrt", |g, x| op(g, "Rsqrt", x), &[&[2, 3]]);
    check_positive("Reciprocal", |g, x| op(g, "Reciprocal", x), &[&[2, 3]]);
}

#[test]
fn binary_with_broadcasting() {
    for shapes in [[&[2, 3][..], &[2, 3][..]], [&[2, 3], &[3]], [&[2, 1], &[1, 3]], [&[], &[2]], [&[4, 1, 3], &[2, 1]]]
    {
        check("AddV2", |g, x| op(g, "AddV2", x), &shapes);
        check("Sub", |g, x| op(g, "Sub", x), &shapes);
        check("Mul", |g, x| op(g, "Mul", x), &shapes);
        check("Maximum", |g, x| op(g, "Maximum", x), &shapes);
        check("Minimum", |g, x| op(g, "Minimum", x), &shapes);
        check("SquaredDifference", |g, x| op(g, "SquaredDifference", x), &shapes);
        check_positive("RealDiv", |g, x| op(g, "RealDiv", x), &shapes);
        check_positive("Pow", |g, x| op(g, "Pow", x), &shapes);
    }
}

#[test]
fn matrix_products() {
    fn with(g: &Graph, x: &[Output], ta: bool, tb: bool) -> Output {
        node(g, "MatMul", x).attr("transpose_a", ta).attr("transpose_b", tb).output().unwrap()
    }
    check("MatMul", |g, x| with(g, x, false, false), &[&[2, 3], &[3, 4]]);
    check("MatMul, a transposed", |g, x| with(g, x, true, false), &[&[3, 2], &[3, 4]]);
    check("MatMul, b transposed", |g, x| with(g, x, false, true), &[&[2, 3], &[4, 3]]);
    check("MatMul, both transposed", |g, x| with(g, x, true, true), &[&[3, 2], &[4, 3]]);
}

#[test]
fn reductions() {
    fn reduce(g: &Graph, name: &str, x: Output, axes: &[i32], keep: bool) -> Output {
        node(g, name, &[x, ints(g, axes)]).attr("keep_dims", keep).output().unwrap()
    }
    check("Sum", |g, x| reduce(g, "Sum", x[0], &[1], false), &[&[2, 3, 2]]);
    check("Sum, last kept", |g, x| reduce(g, "Sum", x[0], &[-1, 0], true), &[&[2, 3, 2]]);
    check("Mean", |g, x| reduce(g, "Mean", x[0], &[0, 2], false), &[&[2, 3, 2]]);
    check("Mean of all", |g, x| reduce(g, "Mean", x[0], &[0, 1], false), &[&[2, 3]]);
    check("Max", |g, x| reduce(g, "Max", x[0], &[1], false), &[&[2, 3]]);
    check("Min", |g, x| reduce(g, "Min", x[0], &[0], true), &[&[2, 3]]);
    check("L2Loss", |g, x| op(g, "L2Loss", x), &[&[2, 3]]);
}

#[test]
fn arrays() {
    check("Reshape", |g, x| op(g, "Reshape", &[x[0], ints(g, &[3, 2])]), &[&[2, 3]]);
    check("ExpandDims", |g, x| op(g, "ExpandDims", &[x[0], int(g, 1)]), &[&[2, 3]]);
    check("Squeeze", |g, x| op(g, "Squeeze", x), &[&[2, 1, 3]]);
    check("Transpose", |g, x| op(g, "Transpose", &[x[0], ints(g, &[2, 0, 1])]), &[&[2, 3, 4]]);
    check("BroadcastTo", |g, x| op(g, "BroadcastTo", &[x[0], ints(g, &[4, 2, 3])]), &[&[2, 1]]);
    check("Tile", |g, x| op(g, "Tile", &[x[0], ints(g, &[2, 3])]), &[&[2, 2]]);
    check("Fill", |g, x| op(g, "Fill", &[ints(g, &[2, 3]), x[0]]), &[&[]]);
    check("Slice", |g, x| op(g, "Slice", &[x[0], ints(g, &[1, 0]), ints(g, &[2, 2])]), &[&[4, 3]]);
    fn concat(g: &Graph, x: &[Output]) -> Output {
        g.add_node("ConcatV2").inputs(x).input(int(g, 1)).output().unwrap()
    }
    check("ConcatV2", concat, &[&[2, 3], &[2, 1], &[2, 2]]);
    check("Pack", |g, x| g.add_node("Pack").inputs(x).attr("axis", 1i64).output().unwrap(), &[&[2, 3], &[2, 3]]);
    fn second(g: &Graph, x: &[Output]) -> Output {
        let unpacked = node(g, "Unpack", x).attr("num", 3i64).attr("axis", 1i64).build().unwrap();
        op(g, "Mul", &[Output { node: unpacked, port: 1 }, Output { node: unpacked, port: 2 }])
    }
    check("Unpack", second, &[&[2, 3]]);
    fn gather(g: &Graph, x: &[Output]) -> Output {
        op(g, "GatherV2", &[x[0], ints(g, &[3, 1, 3, 0]), int(g, 0)])
    }
    check("GatherV2", gather, &[&[4, 2]]);
    fn segments(g: &Graph, x: &[Output]) -> Output {
        op(g, "UnsortedSegmentSum", &[x[0], ints(g, &[1, -1, 0, 1]), int(g, 3)])
    }
    check("UnsortedSegmentSum", segments, &[&[4, 2]]);
    fn select(g: &Graph, x: &[Output]) -> Output {
        let chosen = constant(g, Tensor::vector(&[true, false, true]));
        op(g, "SelectV2", &[chosen, x[0], x[1]])
    }
    check("SelectV2", select, &[&[2, 3], &[]]);
}

#[test]
fn losses() {
    check("BiasAdd", |g, x| op(g, "BiasAdd", x), &[&[4, 3], &[3]]);
    fn sparse(g: &Graph, x: &[Output]) -> Output {
        op(g, "SparseSoftmaxCrossEntropyWithLogits", &[x[0], constant(g, Tensor::vector(&[2i64, 0, 1]))])
    }
    check("SparseSoftmaxCrossEntropyWithLogits", sparse, &[&[3, 4]]);
    fn dense(g: &Graph, x: &[Output]) -> Output {
        let labels = op(g, "Softmax", &[x[1]]);
        op(g, "SoftmaxCrossEntropyWithLogits", &[x[0], labels])
    }
    check("SoftmaxCrossEntropyWithLogits", dense, &[&[3, 4], &[3, 4]]);
}

/// Where the formula of a slope divides by 0, TensorFlow's rule still gives a number; where no gradient comes in none
/// goes out, whatever the slope; an infinite gradient of one element does not reach the others. The values are
/// TensorFlow's.
#[test]
fn slopes_at_zero_are_tensorflows() {
    fn running(g: &Graph, x: &[Output], exclusive: bool, reverse: bool) -> Output {
        let product = node(g, "Cumprod", &[x[0], int(g, 0)]);
        product.attr("exclusive", exclusive).attr("reverse", reverse).output().unwrap()
    }
    fn root_of_largest(g: &Graph, x: &[Output]) -> Output {
        op(g, "Sqrt", &[op(g, "SegmentMax", &[x[0], ints(g, &[0, 0, 1, 1])])])
    }
    fn root_of_largest_unsorted(g: &Graph, x: &[Output]) -> Output {
        op(g, "Sqrt", &[op(g, "UnsortedSegmentMax", &[x[0], ints(g, &[0, 0, 1, -1]), int(g, 2)])])
    }
    fn root_of_product(g: &Graph, x: &[Output]) -> Output {
        op(g, "Sqrt", &[op(g, "SegmentProd", &[x[0], ints(g, &[0, 0, 1, 1])])])
    }
    /// `name` of the positive elements, and the others as they are.
    fn of_positive(g: &Graph, x: Output, name: &str) -> Output {
        let is_positive = op(g, "Greater", &[x, constant(g, Tensor::scalar(0.0f64))]);
        op(g, "SelectV2", &[is_positive, op(g, name, &[x]), x])
    }
    let row = [2.0, 0.0, 3.0, 0.5];
    let cases: [(&str, Build, &[f64], &[f64]); 14] = [
        ("Cumprod", |g, x| running(g, x, false, false), &row, &[1.0, 0.0, 0.0, 0.0]),
        ("Cumprod, reverse", |g, x| running(g, x, false, true), &row, &[0.0, 0.0, 0.5, 4.0]),
        ("Cumprod, exclusive", |g, x| running(g, x, true, false), &row, &[1.0, 0.0, 0.0, 0.0]),
        ("Cumprod, both", |g, x| running(g, x, true, true), &row, &[0.0, 0.0, 0.5, 4.0]),
        ("BesselI1", |g, x| op(g, "BesselI1", x), &[0.0, 1.0], &[1.0, 0.700_906_773_759_523_1]),
        ("BesselI1e", |g, x| op(g, "BesselI1e", x), &[0.0, 1.0], &[0.5, 0.049_938_776_894_223_55]),
        ("BesselJ1", |g, x| op(g, "BesselJ1", x), &[0.0, 1.0], &[0.5, 0.325_147_100_813_033_04]),
        ("SegmentMax", root_of_largest, &[-1.0, 0.0, 4.0, 1.0], &[0.0, f64::INFINITY, 0.25, 0.0]),
        ("UnsortedSegmentMax", root_of_largest_unsorted, &[-1.0, 0.0, 4.0, 0.0], &[0.0, f64::INFINITY, 0.25, 0.0]),
        ("SegmentProd", root_of_product, &[0.0, 0.0, 1.0, 4.0], &[0.0, 0.0, 1.0, 0.25]),
        ("Sqrt", |g, x| of_positive(g, x[0], "Sqrt"), &[4.0, 0.0, -1.0], &[0.25, 1.0, 1.0]),
        ("Rsqrt", |g, x| of_positive(g, x[0], "Rsqrt"), &[4.0, 0.0, -1.0], &[-0.0625, 1.0, 1.0]),
        ("Reciprocal", |g, x| of_positive(g, x[0], "Reciprocal"), &[4.0, 0.0, -1.0], &[-0.0625, 1.0, 1.0]),
        ("Inv", |g, x| of_positive(g, x[0], "Inv"), &[4.0, 0.0, -1.0], &[-0.0625, 1.0, 1.0]),
    ];
    for (what, build, values, want) in cases {
        let g = Graph::new();
        let x = constant(&g, Tensor::vector(values));
        let grads = gradients(&g, &[build(&g, &[x])], &[x], &[]).unwrap();
        let session = Session::new(&g, SessionOptions { threads: Some(1), ..SessionOptions::default() }).unwrap();
        let got = session.run(&[], &[&name_of(&g, grads[0])], &[]).unwrap();
        let got = got[0].slice::<f64>().unwrap();
        let is_like = |(a, b): (&f64, &f64)| a == b || (a - b).abs() < 1e-12;
        assert!(got.len() == want.len() && got.iter().zip(want).all(is_like), "{what}: {got:?} instead of {want:?}");
    }
}

#[test]
fn several_paths_are_added_and_missing_ones_are_zero() {
    fn twice(g: &Graph, x: &[Output]) -> Output {
        let square = op(g, "Square", &[x[0]]);
        op(g, "Mul", &[square, op(g, "Tanh", &[x[0]])])
    }
    check("x^2 tanh(x), y unused", twice, &[&[3], &[2]]);
}

#[test]
fn an_op_without_a_rule_is_named() {
    let g = Graph::new();
    let x = g.add_node("Placeholder").attr("dtype", DType::F64).output().unwrap();
    let y = node(&g, "IgammaGradA", &[x, x]).name("slope").output().unwrap();
    let error = gradients(&g, &[y], &[x], &[]).unwrap_err();
    assert!(matches!(&error, GradientError::NoRule { .. }));
    assert_eq!(error.to_string(), "node slope: op IgammaGradA has no gradient");
}

#[test]
fn the_gradient_of_a_variable_is_that_of_its_value() {
    let g = Graph::new();
    let shape = Attr::Shape(PartialShape::new(&[Some(2)]));
    let handle =
        g.add_node("VarHandleOp").name("v").attr("shared_name", "v").attr("dtype", DType::F64).attr("shape", shape);
    let handle = handle.output().unwrap();
    let value = constant(&g, Tensor::vector(&[3.0, -2.0]));
    let init = g.add_node("AssignVariableOp").name("init").input(handle).input(value).build().unwrap();
    assert_eq!(&*g.node(init).unwrap().name, "init");
    let read = g.add_node("ReadVariableOp").input(handle).attr("dtype", DType::F64).output().unwrap();
    let square = op(&g, "Square", &[read]);
    let grad = gradients(&g, &[square], &[handle], &[]).unwrap()[0];
    let session = Session::new(&g, SessionOptions::default()).unwrap();
    session.run(&[], &[], &["init"]).unwrap();
    let got = session.run(&[], &[&name_of(&g, grad)], &[]).unwrap();
    assert_eq!(got[0].slice::<f64>().unwrap(), [6.0, -4.0]);
}
