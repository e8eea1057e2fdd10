//! Sums of matrix products that become one, and matrices packed for several products: the same results as without.
//!
//! Where the values are small integers, sums are exact in any order, so results must be equal to the bit; gradients of
//! a recurrent network are compared within rounding.

use engine::compile::Passes;
use engine::gradients::gradients;
use engine::graph::{Graph, GraphError, Output, Value, WhileOptions};
use engine::{DType, PartialShape, Session, SessionOptions, Shape, Tensor};
use proptest::prelude::*;

fn session(g: &Graph, passes: Passes, n_devices: usize) -> Session {
    Session::new(g, SessionOptions { threads: Some(2), passes, ..SessionOptions::devices(n_devices) }).unwrap()
}

fn int(g: &Graph, value: i32) -> Output {
    g.constant(Tensor::scalar(value)).output()
}

/// Small integers.
fn integers(dtype: DType, shape: &[usize], seed: usize) -> Tensor {
    let n = shape.iter().product::<usize>();
    let value = |i: usize| ((i * 29 + seed * 13 + i / 5) % 9) as f64 - 4.0;
    match dtype {
        DType::F32 => Tensor::from_vec(shape, (0..n).map(|i| value(i) as f32).collect()).unwrap(),
        _ => Tensor::from_vec(shape, (0..n).map(value).collect()).unwrap(),
    }
}

/// A graph with what it is fed.
struct Case<'g> {
    g: &'g Graph,
    feeds: Vec<(String, Tensor)>,
}

impl<'g> Case<'g> {
    fn new(g: &'g Graph) -> Case<'g> {
        Case { g, feeds: Vec::new() }
    }

    fn feed(&mut self, dtype: DType, shape: &[usize]) -> Value<'g> {
        let name = format!("x{}", self.feeds.len());
        let x = self.g.placeholder(&name, dtype, Shape::new(shape));
        self.feeds.push((name, integers(dtype, shape, self.feeds.len())));
        x
    }

    fn names(&self, outputs: &[impl Into<Output> + Copy]) -> Vec<String> {
        let name = |o: Output| format!("{}:{}", self.g.node(o.node).unwrap().name, o.port);
        outputs.iter().map(|output| name((*output).into())).collect()
    }

    fn run(&self, passes: Passes, n_devices: usize, fetches: &[impl Into<Output> + Copy]) -> Vec<Tensor> {
        let feeds: Vec<(&str, Tensor)> =
            self.feeds.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let fetches = self.names(fetches);
        let fetches: Vec<&str> = fetches.iter().map(String::as_str).collect();
        session(self.g, passes, n_devices).run(&feeds, &fetches, &[]).unwrap()
    }

    /// Equal results with all passes and with none; gives the ops that are run with all.
    fn check(&self, fetches: &[impl Into<Output> + Copy]) -> Vec<String> {
        assert_eq!(self.run(Passes::none(), 1, fetches), self.run(Passes::all(), 1, fetches));
        self.ops(Passes::all(), fetches)
    }

    fn ops(&self, passes: Passes, fetches: &[impl Into<Output> + Copy]) -> Vec<String> {
        let feeds: Vec<&str> = self.feeds.iter().map(|(name, _)| name.as_str()).collect();
        let fetches = self.names(fetches);
        let fetches: Vec<&str> = fetches.iter().map(String::as_str).collect();
        let graph = session(self.g, passes, 1).inspect(&feeds, &fetches, &[]).unwrap().graph;
        graph.node.iter().map(|node| node.op.clone()).filter(|op| op != "Placeholder" && op != "Const").collect()
    }
}

fn count(ops: &[String], op: &str) -> usize {
    ops.iter().filter(|o| *o == op).count()
}

#[test]
fn a_sum_of_products_is_one() {
    for dtype in [DType::F32, DType::F64] {
        for turned in [(false, false), (true, false), (false, true), (true, true)] {
            let g = Graph::new();
            let mut case = Case::new(&g);
            let shape = |turned: bool, rows: usize, cols: usize| if turned { [cols, rows] } else { [rows, cols] };
            let products: Vec<Value<'_>> = [3usize, 40, 7, 300]
                .iter()
                .map(|k| {
                    let a = case.feed(dtype, &shape(turned.0, 60, *k));
                    let b = case.feed(dtype, &shape(turned.1, *k, 80));
                    a.matmul_with(b, turned.0, turned.1)
                })
                .collect();
            // The last one's operands are larger than twice the sum.
            let mut ops = case.check(&[g.add_n(&products)]);
            ops.sort();
            assert_eq!(ops, ["AddN", "MatMul", "_SumOfProducts"], "{dtype}");
        }
    }
}

#[test]
fn trees_of_additions_keep_what_is_no_product() {
    let g = Graph::new();
    let mut case = Case::new(&g);
    let (a, b) = (case.feed(DType::F32, &[40, 20]), case.feed(DType::F32, &[20, 50]));
    let d = case.feed(DType::F32, &[20, 50]);
    let (x, y) = (case.feed(DType::F32, &[40, 50]), case.feed(DType::F32, &[50]));
    let (first, second) = (a.matmul(b), a.matmul(d));
    let sum = first + x + second + y;
    let ops = case.check(&[sum]);
    assert_eq!((count(&ops, "_SumOfProducts"), count(&ops, "MatMul")), (1, 0), "{ops:?}");
    // What is fetched, or used elsewhere, stays.
    let ops = case.check(&[sum, first]);
    assert_eq!((count(&ops, "_SumOfProducts"), count(&ops, "MatMul")), (0, 2), "{ops:?}");
    let ops = case.check(&[g.add_n(&[sum, second])]);
    assert_eq!(count(&ops, "_SumOfProducts"), 0, "{ops:?}");
}

#[test]
fn control_edges_keep_products_and_sums_in_their_places() {
    let g = Graph::new();
    let mut case = Case::new(&g);
    let [a, b, c] = [20, 21, 22].map(|_| case.feed(DType::F32, &[30, 30]));
    let after_first = g.with_control(&[g.group("NoOp", &[])]);
    let held = a.with(&after_first).matmul(b);
    let free = [a.matmul(c), b.matmul(c)];
    let sum = after_first.add_n(&[held, free[0], free[1]]);
    let after_free = g.with_control(&[free[1].node()]);
    let after = -sum.with(&after_free);
    let ops = case.check(&[sum]);
    assert_eq!((count(&ops, "_SumOfProducts"), count(&ops, "MatMul"), count(&ops, "NoOp")), (1, 1, 1), "{ops:?}");
    let ops = case.check(&[after]);
    assert_eq!(count(&ops, "_SumOfProducts"), 0, "others wait for one of the two: {ops:?}");
}

#[test]
fn products_on_other_devices_stay_there() {
    let g = Graph::new();
    let mut case = Case::new(&g);
    let [cpu0, cpu1] = [0, 1].map(|device| g.with_device(&format!("/device:CPU:{device}")));
    let [a, b] = [0, 1].map(|_| case.feed(DType::F32, &[64, 64]).with(&cpu1));
    let sum = cpu1.add_n(&[a.with(&cpu0).matmul(b), b.matmul(a), a.matmul(a), b.matmul(b)]);
    let results = |passes| case.run(passes, 2, &[sum]);
    assert_eq!(results(Passes::none()), results(Passes::all()));
}

/// Adds `x W^T x`-like products of its two operands to a matrix, `n` times.
fn summing_loop<'g>(case: &mut Case<'g>, dtype: DType, n: Value<'g>, addition: &str) -> Output {
    let (a, b) = (case.feed(dtype, &[48, 10]), case.feed(dtype, &[48, 40]));
    let begin = case.feed(dtype, &[10, 40]);
    let done = case.g.while_loop::<GraphError>(
        &[int(case.g, 0), begin.output()],
        |g, vars| Ok(g.value(vars[0]).less(n).output()),
        |g, vars| {
            let (i, sum) = (g.value(vars[0]), g.value(vars[1]));
            let product = (a.with(g) * i.cast(dtype)).matmul_with(b, true, false);
            let next = i + 1.0;
            let sum = if addition == "AddN" { g.add_n(&[sum, product]) } else { sum + product };
            Ok(vec![next.output(), sum.output()])
        },
        &WhileOptions::default(),
    );
    done.unwrap()[1]
}

#[test]
fn a_loop_adds_its_products_together() {
    for (dtype, addition) in [(DType::F32, "AddN"), (DType::F64, "AddV2")] {
        let g = Graph::new();
        let mut case = Case::new(&g);
        let n = g.placeholder("n", DType::I32, PartialShape::scalar());
        let sum = summing_loop(&mut case, dtype, n, addition);
        case.feeds.push(("n".into(), Tensor::scalar(0i32)));
        // None at all, fewer than are waited for, and many times as many.
        for trips in [0, 1, 3, 20] {
            case.feeds.last_mut().unwrap().1 = Tensor::scalar(trips);
            let ops = case.check(&[sum]);
            let counts = ["_BeginProducts", "_AddProduct", "_EndProducts", "MatMul"].map(|op| count(&ops, op));
            assert_eq!(counts, [1, 1, 1, 0], "{ops:?}");
        }
    }
}

#[test]
fn a_loop_that_looks_at_its_sum_keeps_it() {
    let g = Graph::new();
    let mut case = Case::new(&g);
    let x = case.feed(DType::F64, &[8, 8]).output();
    let done = g.while_loop::<GraphError>(
        &[int(&g, 0), x, x],
        |g, vars| Ok(g.value(vars[0]).less(3.0).output()),
        |g, vars| {
            let sum = g.add_n(&[vars[1], g.value(x).matmul(x).output()]);
            Ok([g.value(vars[0]) + 1.0, sum, g.value(vars[2]) + vars[1]].map(Value::output).to_vec())
        },
        &WhileOptions::default(),
    );
    let done = done.unwrap();
    let ops = case.check(&done[1..]);
    assert_eq!(count(&ops, "_AddProduct"), 0, "{ops:?}");
}

#[test]
fn sums_in_loops_within_loops() {
    let g = Graph::new();
    let mut case = Case::new(&g);
    let (a, b) = (case.feed(DType::F64, &[6, 20]), case.feed(DType::F64, &[20, 30]));
    let (c, zero) = (case.feed(DType::F64, &[6, 20]), g.constant(integers(DType::F64, &[6, 30], 3)).output());
    let body = |g: &Graph, sum: Output| -> Result<Vec<Output>, GraphError> {
        g.while_loop::<GraphError>(
            &[int(g, 0), sum],
            |g, vars| Ok(g.value(vars[0]).less(5.0).output()),
            |g, vars| {
                // Of the iteration: a product of what does not change waits for the iteration by a control edge, and stays.
                let i = g.value(vars[0]).cast(DType::F64);
                let products = [a, c].map(|x| (x.with(g) * i).matmul(b).output());
                let next = g.value(vars[0]) + 1.0;
                Ok(vec![next.output(), g.add_n(&[vars[1], products[0], products[1]]).output()])
            },
            &WhileOptions::default(),
        )
    };
    let done = g.while_loop::<GraphError>(
        &[int(&g, 0), zero],
        |g, vars| Ok(g.value(vars[0]).less(4.0).output()),
        |g, vars| Ok(vec![(g.value(vars[0]) + 1.0).output(), body(g, vars[1])?[1]]),
        &WhileOptions::default(),
    );
    let sum = done.unwrap()[1];
    let ops = case.check(&[sum]);
    assert_eq!(count(&ops, "_AddProduct"), 2, "{ops:?}");
}

/// A recurrent network of `steps` steps, unrolled or as a loop, and the gradients of its weights and input.
fn recurrent(g: &Graph, dtype: DType, steps: usize, is_loop: bool) -> (Case<'_>, Vec<Output>) {
    let mut case = Case::new(g);
    let (x, h) = (case.feed(dtype, &[6, 18]), case.feed(dtype, &[6, 18]));
    let (w, b) = (case.feed(dtype, &[36, 18]), case.feed(dtype, &[18]));
    let small = w * 0.03;
    let [x, h, w, b] = [x, h, w, b].map(Value::output);
    let cell = |g: &Graph, h: Output| g.concat(&[x, h], 1).matmul(small).bias_add(b).tanh().output();
    let last = if is_loop {
        let done = g.while_loop::<GraphError>(
            &[int(g, 0), h],
            |g, vars| Ok(g.value(vars[0]).less(steps as f64).output()),
            |g, vars| Ok(vec![(g.value(vars[0]) + 1.0).output(), cell(g, vars[1])]),
            &WhileOptions::default(),
        );
        done.unwrap()[1]
    } else {
        (0..steps).fold(h, |h, _| cell(g, h))
    };
    let loss = g.value(last).square().sum_all().output();
    let grads = gradients(g, &[loss], &[w, b, x, h], &[]).unwrap();
    let fetches = std::iter::once(loss).chain(grads).collect();
    (case, fetches)
}

fn assert_close(plain: &[Tensor], got: &[Tensor], tolerance: f64, what: &str) {
    for (a, b) in plain.iter().zip(got) {
        assert_eq!((a.dtype(), a.shape()), (b.dtype(), b.shape()), "{what}");
        let f64s = |t: &Tensor| -> Vec<f64> {
            match t.dtype() {
                DType::F32 => t.slice::<f32>().unwrap().iter().map(|v| f64::from(*v)).collect(),
                _ => t.slice::<f64>().unwrap().to_vec(),
            }
        };
        let (a, b) = (f64s(a), f64s(b));
        let largest = a.iter().fold(1e-3f64, |m, v| m.max(v.abs()));
        let far = a.iter().zip(&b).position(|(a, b)| (a - b).abs() > tolerance * largest);
        assert!(far.is_none(), "{what}: element {far:?} of {a:?} became {b:?}");
    }
}

#[test]
fn gradients_of_recurrent_networks_stay() {
    for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F64, 1e-13)] {
        for is_loop in [false, true] {
            let g = Graph::new();
            let (case, fetches) = recurrent(&g, dtype, 9, is_loop);
            let plain = case.run(Passes::none(), 1, &fetches);
            for passes in [Passes::all(), Passes::all().without("products"), Passes::all().without("pack")] {
                let what = format!("{dtype}, loop {is_loop}, {passes:?}");
                assert_close(&plain, &case.run(passes, 1, &fetches), tolerance, &what);
            }
            let ops = case.ops(Passes::all(), &fetches);
            let sums = if is_loop { count(&ops, "_AddProduct") } else { count(&ops, "_SumOfProducts") };
            assert_eq!(sums, 1, "{ops:?}");
        }
    }
}

#[test]
fn packing_changes_no_bit_and_happens_outside_of_loops() {
    let passes = Passes::all().without("products").without("fuse");
    for is_loop in [false, true] {
        let g = Graph::new();
        let (case, fetches) = recurrent(&g, DType::F32, 6, is_loop);
        let (with, without) =
            (case.run(passes.clone(), 1, &fetches), case.run(passes.clone().without("pack"), 1, &fetches));
        assert_eq!(with, without, "loop {is_loop}");
        let ops = case.ops(passes.clone(), &fetches);
        if count(&ops, "_PackMatrix") > 0 {
            // The weights forward, and transposed for the way back.
            assert_eq!(count(&ops, "_PackMatrix"), 2, "{ops:?}");
            assert_eq!(count(&ops, "_PackedMatMul"), if is_loop { 2 } else { 12 }, "{ops:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn random_sums_are_exact(
        shape in (1usize..40, 1usize..40),
        terms in prop::collection::vec((1usize..30, any::<(bool, bool)>(), 0usize..4), 1..8),
        is_wide in any::<bool>(),
    ) {
        let dtype = if is_wide { DType::F64 } else { DType::F32 };
        let g = Graph::new();
        let mut case = Case::new(&g);
        let (m, n) = shape;
        let mut sum = case.feed(dtype, &[m, n]);
        let mut wait = Vec::new();
        for (k, turned, how) in terms {
            let a = case.feed(dtype, &if turned.0 { [k, m] } else { [m, k] });
            let b = case.feed(dtype, &if turned.1 { [n, k] } else { [k, n] });
            let product = a.matmul_with(b, turned.0, turned.1);
            match how {
                0 => sum = product + sum,
                1 => sum = -(sum + product),
                _ => wait.push(product),
            }
        }
        wait.push(sum);
        case.check(&[g.add_n(&wait)]);
    }
}
