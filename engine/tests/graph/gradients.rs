//! Every gradient against central differences in f64, first and second order, through the executor.

use engine::gradients::{GradientError, gradients};
use engine::graph::{Attr, NodeBuilder, Value};
use engine::{DType, Graph, Output, PartialShape, Session, SessionOptions, Tensor};

/// Builds a value out of the placeholders.
type Build = dyn for<'g> Fn(&[Value<'g>]) -> Value<'g>;

fn node<'g>(op: &'static str, inputs: &[Value<'g>]) -> NodeBuilder<'g> {
    inputs.iter().fold(inputs[0].graph().add_node(op), |builder, input| builder.input(*input))
}

fn op<'g>(op: &'static str, inputs: &[Value<'g>]) -> Value<'g> {
    node(op, inputs).value()
}

fn ints<'g>(x: Value<'g>, values: &[i32]) -> Value<'g> {
    x.graph().ints(values)
}

fn int(x: Value<'_>, value: i32) -> Value<'_> {
    x.graph().constant(Tensor::scalar(value))
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

fn case(build: &Build, shapes: &[&[usize]], inputs: &[Vec<f64>], second_order: bool) -> Case {
    let g = Graph::new();
    let place = |(i, shape): (usize, &&[usize])| {
        let dims: Vec<Option<usize>> = shape.iter().map(|d| Some(*d)).collect();
        g.placeholder(&format!("x{i}"), DType::F64, dims.as_slice())
    };
    let placed: Vec<Value<'_>> = shapes.iter().enumerate().map(place).collect();
    let xs: Vec<Output> = placed.iter().map(|x| x.output()).collect();
    let weighted = |out: Value<'_>, shape: &[usize], seed: u64| {
        let weights = Tensor::from_vec(shape, numbers(shape.iter().product(), seed)).unwrap();
        (out * g.constant(weights)).reshape([-1]).sum([0]).output()
    };
    let out = build(&placed);
    let shape = out.shape().known().expect("the cases have static shapes");
    let mut loss = weighted(out, shape.dims(), 99);
    if second_order {
        let first = gradients(&g, &[loss], &xs, &[]).unwrap();
        let parts = first.into_iter().zip(shapes).zip(7..);
        let sums: Vec<Output> = parts.map(|((grad, shape), seed)| weighted(g.value(grad), shape, seed)).collect();
        loss = g.add_n(&sums).output();
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

fn check(what: &str, build: &Build, shapes: &[&[usize]]) {
    let inputs: Vec<Vec<f64>> = shapes.iter().zip(1..).map(|(s, seed)| numbers(s.iter().product(), seed)).collect();
    case(build, shapes, &inputs, false).check(what);
    case(build, shapes, &inputs, true).check(&format!("{what}, second order"));
}

/// The same with inputs in [0.5, 2.5), where logarithms and roots live.
fn check_positive(what: &str, build: &Build, shapes: &[&[usize]]) {
    let positive = |(s, seed): (&&[usize], u64)| numbers(s.iter().product(), seed).iter().map(|v| v + 1.5).collect();
    let inputs: Vec<Vec<f64>> = shapes.iter().zip(1..).map(positive).collect();
    case(build, shapes, &inputs, false).check(what);
    case(build, shapes, &inputs, true).check(&format!("{what}, second order"));
}

#[test]
fn unary() {
    for name in ["Neg", "Abs", "Square", "Exp", "Tanh", "Sigmoid", "Relu", "Softmax", "LogSoftmax", "Identity"] {
        check(name, &move |x| op(name, x), &[&[2, 3]]);
    }
    for name in ["Log", "Log1p", "Sqrt", "Rsqrt", "Reciprocal"] {
        check_positive(name, &move |x| op(name, x), &[&[2, 3]]);
    }
}

#[test]
fn binary_with_broadcasting() {
    for shapes in [[&[2, 3][..], &[2, 3][..]], [&[2, 3], &[3]], [&[2, 1], &[1, 3]], [&[], &[2]], [&[4, 1, 3], &[2, 1]]]
    {
        for name in ["AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference"] {
            check(name, &move |x| op(name, x), &shapes);
        }
        for name in ["RealDiv", "Pow"] {
            check_positive(name, &move |x| op(name, x), &shapes);
        }
    }
}

#[test]
fn matrix_products() {
    check("MatMul", &|x| x[0].matmul(x[1]), &[&[2, 3], &[3, 4]]);
    check("MatMul, a transposed", &|x| x[0].matmul_with(x[1], true, false), &[&[3, 2], &[3, 4]]);
    check("MatMul, b transposed", &|x| x[0].matmul_with(x[1], false, true), &[&[2, 3], &[4, 3]]);
    check("MatMul, both transposed", &|x| x[0].matmul_with(x[1], true, true), &[&[3, 2], &[4, 3]]);
    check("MatMul, of a batch", &|x| x[0].matmul_with(x[1], true, false), &[&[2, 3, 2], &[3, 2]]);
}

#[test]
fn reductions() {
    check("Sum", &|x| x[0].sum([1]), &[&[2, 3, 2]]);
    check("Sum, last kept", &|x| x[0].sum_keep_dims([-1, 0]), &[&[2, 3, 2]]);
    check("Mean", &|x| x[0].mean([0, 2]), &[&[2, 3, 2]]);
    check("Mean of all", &|x| x[0].mean([0, 1]), &[&[2, 3]]);
    check("Max", &|x| x[0].max([1]), &[&[2, 3]]);
    fn min_kept<'g>(x: &[Value<'g>]) -> Value<'g> {
        node("Min", &[x[0], ints(x[0], &[0])]).attr("keep_dims", true).value()
    }
    check("Min", &min_kept, &[&[2, 3]]);
    check("L2Loss", &|x| x[0].l2_loss(), &[&[2, 3]]);
}

#[test]
fn arrays() {
    check("Reshape", &|x| x[0].reshape([3, 2]), &[&[2, 3]]);
    check("ExpandDims", &|x| x[0].expand_dims(1), &[&[2, 3]]);
    check("Squeeze", &|x| op("Squeeze", x), &[&[2, 1, 3]]);
    check("Transpose", &|x| x[0].transpose([2, 0, 1]), &[&[2, 3, 4]]);
    check("BroadcastTo", &|x| x[0].broadcast_to([4, 2, 3]), &[&[2, 1]]);
    check("Tile", &|x| op("Tile", &[x[0], ints(x[0], &[2, 3])]), &[&[2, 2]]);
    check("Fill", &|x| x[0].graph().fill([2, 3], x[0]), &[&[]]);
    check("Slice", &|x| op("Slice", &[x[0], ints(x[0], &[1, 0]), ints(x[0], &[2, 2])]), &[&[4, 3]]);
    check("ConcatV2", &|x| x[0].graph().concat(x, 1), &[&[2, 3], &[2, 1], &[2, 2]]);
    fn pack<'g>(x: &[Value<'g>]) -> Value<'g> {
        x[0].graph().add_node("Pack").inputs(x).attr("axis", 1i64).value()
    }
    check("Pack", &pack, &[&[2, 3], &[2, 3]]);
    fn second<'g>(x: &[Value<'g>]) -> Value<'g> {
        let unpacked = node("Unpack", x).attr("num", 3i64).attr("axis", 1i64).value();
        unpacked.port(1) * unpacked.port(2)
    }
    check("Unpack", &second, &[&[2, 3]]);
    check("GatherV2", &|x| x[0].embedding_lookup(ints(x[0], &[3, 1, 3, 0])), &[&[4, 2]]);
    fn segments<'g>(x: &[Value<'g>]) -> Value<'g> {
        op("UnsortedSegmentSum", &[x[0], ints(x[0], &[1, -1, 0, 1]), int(x[0], 3)])
    }
    check("UnsortedSegmentSum", &segments, &[&[4, 2]]);
    fn select<'g>(x: &[Value<'g>]) -> Value<'g> {
        x[0].graph().constant(Tensor::vector(&[true, false, true])).select(x[0], x[1])
    }
    check("SelectV2", &select, &[&[2, 3], &[]]);
}

#[test]
fn losses() {
    check("BiasAdd", &|x| x[0].bias_add(x[1]), &[&[4, 3], &[3]]);
    fn sparse<'g>(x: &[Value<'g>]) -> Value<'g> {
        x[0].sparse_cross_entropy(x[0].graph().constant(Tensor::vector(&[2i64, 0, 1])))
    }
    check("SparseSoftmaxCrossEntropyWithLogits", &sparse, &[&[3, 4]]);
    fn dense<'g>(x: &[Value<'g>]) -> Value<'g> {
        x[0].op_with("SoftmaxCrossEntropyWithLogits", x[1].softmax())
    }
    check("SoftmaxCrossEntropyWithLogits", &dense, &[&[3, 4], &[3, 4]]);
}

/// Where the formula of a slope divides by 0, TensorFlow's rule still gives a number; where no gradient comes in none
/// goes out, whatever the slope; an infinite gradient of one element does not reach the others. The values are
/// TensorFlow's.
#[test]
fn slopes_at_zero_are_tensorflows() {
    fn running<'g>(x: &[Value<'g>], exclusive: bool, reverse: bool) -> Value<'g> {
        let product = node("Cumprod", &[x[0], int(x[0], 0)]);
        product.attr("exclusive", exclusive).attr("reverse", reverse).value()
    }
    fn root_of_largest<'g>(x: &[Value<'g>]) -> Value<'g> {
        op("SegmentMax", &[x[0], ints(x[0], &[0, 0, 1, 1])]).sqrt()
    }
    fn root_of_largest_unsorted<'g>(x: &[Value<'g>]) -> Value<'g> {
        op("UnsortedSegmentMax", &[x[0], ints(x[0], &[0, 0, 1, -1]), int(x[0], 2)]).sqrt()
    }
    fn root_of_product<'g>(x: &[Value<'g>]) -> Value<'g> {
        op("SegmentProd", &[x[0], ints(x[0], &[0, 0, 1, 1])]).sqrt()
    }
    /// `name` of the positive elements, and the others as they are.
    fn of_positive<'g>(x: Value<'g>, name: &str) -> Value<'g> {
        x.greater(0.0).select(x.op(name), x)
    }
    let row = [2.0, 0.0, 3.0, 0.5];
    let cases: [(&str, &Build, &[f64], &[f64]); 14] = [
        ("Cumprod", &|x| running(x, false, false), &row, &[1.0, 0.0, 0.0, 0.0]),
        ("Cumprod, reverse", &|x| running(x, false, true), &row, &[0.0, 0.0, 0.5, 4.0]),
        ("Cumprod, exclusive", &|x| running(x, true, false), &row, &[1.0, 0.0, 0.0, 0.0]),
        ("Cumprod, both", &|x| running(x, true, true), &row, &[0.0, 0.0, 0.5, 4.0]),
        ("BesselI1", &|x| op("BesselI1", x), &[0.0, 1.0], &[1.0, 0.700_906_773_759_523_1]),
        ("BesselI1e", &|x| op("BesselI1e", x), &[0.0, 1.0], &[0.5, 0.049_938_776_894_223_55]),
        ("BesselJ1", &|x| op("BesselJ1", x), &[0.0, 1.0], &[0.5, 0.325_147_100_813_033_04]),
        ("SegmentMax", &root_of_largest, &[-1.0, 0.0, 4.0, 1.0], &[0.0, f64::INFINITY, 0.25, 0.0]),
        ("UnsortedSegmentMax", &root_of_largest_unsorted, &[-1.0, 0.0, 4.0, 0.0], &[0.0, f64::INFINITY, 0.25, 0.0]),
        ("SegmentProd", &root_of_product, &[0.0, 0.0, 1.0, 4.0], &[0.0, 0.0, 1.0, 0.25]),
        ("Sqrt", &|x| of_positive(x[0], "Sqrt"), &[4.0, 0.0, -1.0], &[0.25, 1.0, 1.0]),
        ("Rsqrt", &|x| of_positive(x[0], "Rsqrt"), &[4.0, 0.0, -1.0], &[-0.0625, 1.0, 1.0]),
        ("Reciprocal", &|x| of_positive(x[0], "Reciprocal"), &[4.0, 0.0, -1.0], &[-0.0625, 1.0, 1.0]),
        ("Inv", &|x| of_positive(x[0], "Inv"), &[4.0, 0.0, -1.0], &[-0.0625, 1.0, 1.0]),
    ];
    for (what, build, values, want) in cases {
        let g = Graph::new();
        let x = g.constant(Tensor::vector(values));
        let grads = gradients(&g, &[build(&[x]).output()], &[x.output()], &[]).unwrap();
        let session = Session::new(&g, SessionOptions { threads: Some(1), ..SessionOptions::default() }).unwrap();
        let got = session.run(&[], &[&name_of(&g, grads[0])], &[]).unwrap();
        let got = got[0].slice::<f64>().unwrap();
        let is_like = |(a, b): (&f64, &f64)| a == b || (a - b).abs() < 1e-12;
        assert!(got.len() == want.len() && got.iter().zip(want).all(is_like), "{what}: {got:?} instead of {want:?}");
    }
}

#[test]
fn several_paths_are_added_and_missing_ones_are_zero() {
    check("x^2 tanh(x), y unused", &|x| x[0].square() * x[0].tanh(), &[&[3], &[2]]);
}

#[test]
fn an_op_without_a_rule_is_named() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F64, PartialShape::unknown());
    let y = node("IgammaGradA", &[x, x]).name("slope").value();
    let error = gradients(&g, &[y.output()], &[x.output()], &[]).unwrap_err();
    assert!(matches!(&error, GradientError::NoRule { .. }));
    assert_eq!(error.to_string(), "node slope: op IgammaGradA has no gradient");
}

#[test]
fn the_gradient_of_a_variable_is_that_of_its_value() {
    let g = Graph::new();
    let shape = Attr::Shape(PartialShape::new(&[Some(2)]));
    let handle =
        g.add_node("VarHandleOp").name("v").attr("shared_name", "v").attr("dtype", DType::F64).attr("shape", shape);
    let handle = handle.value().output();
    let value = g.constant(Tensor::vector(&[3.0, -2.0]));
    let init = g.add_node("AssignVariableOp").name("init").input(handle).input(value).value();
    assert_eq!(&*g.node(init.node()).unwrap().name, "init");
    let read = g.add_node("ReadVariableOp").input(handle).attr("dtype", DType::F64).value();
    let grad = gradients(&g, &[read.square().output()], &[handle], &[]).unwrap()[0];
    let session = Session::new(&g, SessionOptions::default()).unwrap();
    session.run(&[], &[], &["init"]).unwrap();
    let got = session.run(&[], &[&name_of(&g, grad)], &[]).unwrap();
    assert_eq!(got[0].slice::<f64>().unwrap(), [6.0, -4.0]);
}
