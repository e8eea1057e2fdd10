//! Element-wise clusters with several outputs, windows and joined results: the same bits as node by node.

use engine::compile::Passes;
use engine::gradients::gradients;
use engine::graph::{Graph, GraphError, Output, Value, WhileOptions};
use engine::{DType, PartialShape, Session, SessionOptions, Tensor};
use formats::proto::{GraphDef, attr_value};

fn session(g: &Graph, passes: Passes, n_devices: usize) -> Session {
    Session::new(g, SessionOptions { threads: Some(2), passes, ..SessionOptions::devices(n_devices) }).unwrap()
}

fn fused() -> Passes {
    ["simplify", "fuse"].iter().fold(Passes::none(), |passes, name| passes.with(name))
}

fn int(g: &Graph, value: i32) -> Value<'_> {
    g.constant(Tensor::scalar(value))
}

fn numbers(dtype: DType, shape: &[usize], seed: usize) -> Tensor {
    let n = shape.iter().product::<usize>();
    let value = |i: usize| ((i * 37 + seed * 11) % 101) as f64 / 25.0 - 2.0;
    match dtype {
        DType::F32 => Tensor::from_vec(shape, (0..n).map(|i| value(i) as f32).collect()).unwrap(),
        _ => Tensor::from_vec(shape, (0..n).map(value).collect()).unwrap(),
    }
}

struct Case<'g> {
    g: &'g Graph,
    feeds: Vec<(String, Tensor)>,
}

impl<'g> Case<'g> {
    fn new(g: &'g Graph) -> Case<'g> {
        Case { g, feeds: Vec::new() }
    }

    /// A placeholder of open shape if `is_open`.
    fn feed(&mut self, dtype: DType, shape: &[usize], is_open: bool) -> Value<'g> {
        let name = format!("x{}", self.feeds.len());
        let dims: Vec<Option<usize>> =
            shape.iter().enumerate().map(|(i, d)| Some(*d).filter(|_| !is_open || i > 0)).collect();
        let x = self.g.placeholder(&name, dtype, PartialShape::new(&dims));
        self.feeds.push((name, numbers(dtype, shape, self.feeds.len())));
        x
    }

    fn names(&self, outputs: &[impl Into<Output> + Copy]) -> Vec<String> {
        let name = |o: Output| format!("{}:{}", self.g.node(o.node).unwrap().name, o.port);
        outputs.iter().map(|output| name((*output).into())).collect()
    }

    fn run(
        &self,
        passes: Passes,
        n_devices: usize,
        fetches: &[impl Into<Output> + Copy],
    ) -> Result<Vec<Tensor>, String> {
        let feeds: Vec<(&str, Tensor)> =
            self.feeds.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let names = self.names(fetches);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        session(self.g, passes, n_devices).run(&feeds, &names, &[]).map_err(|e| e.to_string())
    }

    fn graph(&self, fetches: &[impl Into<Output> + Copy]) -> GraphDef {
        let feeds: Vec<&str> = self.feeds.iter().map(|(name, _)| name.as_str()).collect();
        let names = self.names(fetches);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        session(self.g, fused(), 1).inspect(&feeds, &names, &[]).unwrap().graph
    }

    /// Equal bits fused and not; gives the ops that are run fused.
    fn check(&self, fetches: &[impl Into<Output> + Copy]) -> Vec<String> {
        let plain = self.run(Passes::none(), 1, fetches).unwrap();
        assert_eq!(plain, self.run(fused(), 1, fetches).unwrap());
        assert_eq!(plain, self.run(Passes::all(), 1, fetches).unwrap());
        let graph = self.graph(fetches);
        graph.node.iter().map(|node| node.op.clone()).filter(|op| op != "Placeholder" && op != "Const").collect()
    }
}

fn count(ops: &[String], op: &str) -> usize {
    ops.iter().filter(|o| *o == op).count()
}

/// The cell of an LSTM from its gates and state, and its gradient as sums that need everything in between.
fn cell<'g>(gates: Value<'g>, c: Value<'g>, axis: i32) -> (Value<'g>, Value<'g>, Vec<Value<'g>>) {
    let g = gates.graph();
    let split = g.add_node("Split").input(int(g, axis)).input(gates).attr("num_split", 4i64).value();
    let [i, f, o] = [0, 2, 3].map(|port| split.port(port).sigmoid());
    let j = split.port(1).tanh();
    let next = f * c + i * j;
    let t = next.tanh();
    (next, o * t, vec![i, j, f, o, t])
}

#[test]
fn a_cell_is_one_node_with_its_gates_and_its_gradient_another() {
    for (dtype, is_open) in [(DType::F32, false), (DType::F32, true), (DType::F64, true)] {
        for rows in [1usize, 3, 40] {
            let g = Graph::new();
            let mut case = Case::new(&g);
            let (gates, c) = (case.feed(dtype, &[rows, 4 * 33], is_open), case.feed(dtype, &[rows, 33], is_open));
            let (next, h, inner) = cell(gates, c, 1);
            let loss = h.square().sum_all() + next.sum_all();
            let grads = gradients(&g, &[loss.output()], &[gates.output(), c.output()], &[]).unwrap();
            let grads: Vec<Value<'_>> = grads.into_iter().map(|grad| g.value(grad)).collect();
            case.check(&[vec![loss], grads.clone()].concat());
            // What is fetched stays; here it is used.
            let used = grads.iter().map(|grad| grad.op_with("Cumsum", int(&g, 0))).collect();
            let ops = case.check(&[vec![loss], used].concat());
            assert_eq!((count(&ops, "Split"), count(&ops, "Sigmoid")), (0, 0), "{ops:?}");
            // Where shapes are open, gradients are summed over what may have been repeated.
            if !is_open {
                assert_eq!(count(&ops, "ConcatV2"), 0, "{ops:?}");
                assert!(count(&ops, "_FusedElementwise") <= 4, "{ops:?}");
            }
            // A fetched value in between stays a node of its name.
            for value in &inner {
                case.check(&[loss, *value]);
            }
            case.check(&[vec![next, h], inner].concat());
        }
    }
}

#[test]
fn windows_and_joins_lie_along_any_axis() {
    for axis in 0..3i32 {
        let g = Graph::new();
        let mut case = Case::new(&g);
        let mut shape = [4usize, 6, 10];
        shape[axis as usize] *= 2;
        let x = case.feed(DType::F32, &shape, false);
        let a = g.add_node("Split").input(int(&g, axis - 3)).input(x).attr("num_split", 2i64).value();
        let b = a.port(1);
        let (sum, product) = (a + b, a.tanh() * b);
        let y = g.concat(&[sum - product, product, sum], axis).sum_all();
        let ops = case.check(&[y]);
        assert_eq!(
            (count(&ops, "Split"), count(&ops, "ConcatV2"), count(&ops, "_FusedElementwise")),
            (0, 0, 1),
            "{ops:?}"
        );
        // A part that others use too is an output of its own: the parts are put together by their own node.
        let ops = case.check(&[y, sum.sum_all()]);
        assert_eq!((count(&ops, "ConcatV2"), count(&ops, "_FusedElementwise")), (1, 1), "{ops:?}");
        // What is split for others as well stays split.
        let ops = case.check(&[y, a.sum_all()]);
        assert_eq!(count(&ops, "Split"), 1, "{ops:?}");
    }
}

#[test]
fn slices_of_one_axis_are_windows() {
    let g = Graph::new();
    let mut case = Case::new(&g);
    let (x, y) = (case.feed(DType::F64, &[5, 30], true), case.feed(DType::F64, &[5, 12], true));
    let slice = |begin: [i32; 2], size: [i32; 2]| {
        g.add_node("Slice").input(x).input(g.ints(&begin)).input(g.ints(&size)).value()
    };
    let cut = slice([0, 7], [-1, 12]);
    assert_eq!(case.check(&[cut.tanh() * y]), ["_FusedElementwise"]);
    let corner = slice([1, 7], [4, 12]);
    assert_eq!(count(&case.check(&[(-corner).exp()]), "Slice"), 1);
}

#[test]
fn shapes_that_turn_out_otherwise_give_the_same_results_and_errors() {
    let g = Graph::new();
    let mut case = Case::new(&g);
    let (x, y) = (case.feed(DType::F32, &[6, 8], true), case.feed(DType::F32, &[6, 4], true));
    let a = g.add_node("Split").input(int(&g, 1)).input(x).attr("num_split", 2i64).value();
    let sum = a * y + a.port(1);
    let last = g.concat(&[sum, sum.tanh()], 1).sum_all();
    // Rows that are repeated, and rows that do not fit.
    for (rows_x, rows_y) in [(6, 6), (6, 1), (1, 6), (0, 0), (0, 1)] {
        case.feeds[0].1 = numbers(DType::F32, &[rows_x, 8], 1);
        case.feeds[1].1 = numbers(DType::F32, &[rows_y, 4], 2);
        case.check(&[last]);
    }
    case.feeds[1].1 = numbers(DType::F32, &[5, 4], 2);
    case.feeds[0].1 = numbers(DType::F32, &[6, 8], 2);
    for passes in [Passes::none(), Passes::all()] {
        let error = case.run(passes, 1, &[last]).unwrap_err();
        assert!(error.contains("[6,4]") && error.contains("[5,4]"), "{error}");
    }
}

#[test]
fn a_value_lives_where_it_did() {
    let g = Graph::new();
    let mut case = Case::new(&g);
    let x = case.feed(DType::F32, &[20], false);
    let pred = g.placeholder("pred", DType::Bool, PartialShape::scalar());
    // Live whatever the predicate says, but used on one side of it too.
    let always = (-x).tanh();
    let switch = g.add_node("Switch").input(x).input(pred).value();
    let merge = g.add_node("Merge").inputs(&[always * switch.port(1), switch.exp()]).value();
    let mean = always.mean_all();
    for taken in [true, false] {
        case.feeds.truncate(1);
        case.feeds.push(("pred".into(), Tensor::scalar(taken)));
        case.check(&[merge, mean]);
    }
}

#[test]
fn loops_fuse_their_bodies() {
    let g = Graph::new();
    let mut case = Case::new(&g);
    let (x, c) = (case.feed(DType::F32, &[5, 48], false).output(), case.feed(DType::F32, &[5, 12], false).output());
    let done = g.while_loop::<GraphError>(
        &[int(&g, 0).output(), x, c],
        |g, vars| Ok(g.value(vars[0]).less(6.0).output()),
        |g, vars| {
            let (next, h, _) = cell(g.value(vars[1]), g.value(vars[2]), 1);
            let gates = g.concat(&[h, next, h, next], 1);
            Ok([g.value(vars[0]) + 1.0, gates + vars[1], next].map(Value::output).to_vec())
        },
        &WhileOptions::default(),
    );
    let done = done.unwrap();
    let loss = g.value(done[1]).sum_all().output();
    let grads = gradients(&g, &[loss], &[x, c], &[]).unwrap();
    let ops = case.check(&[vec![loss, done[2]], grads].concat());
    assert_eq!((count(&ops, "Split"), count(&ops, "Sigmoid")), (0, 0), "{ops:?}");
}

#[test]
fn nothing_waits_for_itself_or_for_heavier_work() {
    let g = Graph::new();
    let mut case = Case::new(&g);
    let (x, w) = (case.feed(DType::F32, &[8, 8], false), case.feed(DType::F32, &[8, 8], false));
    // Around: the product needs the first value, the last one both.
    let first = (-x).tanh();
    let last = first * first.matmul(w).exp();
    let ops = case.check(&[last]);
    assert_eq!(count(&ops, "_FusedElementwise"), 2, "{ops:?}");
    // Control edges count: what waits for a value's node cannot come before it.
    let after_first = g.with_control(&[first.node()]);
    let waits = (-w.with(&after_first)).with(&g);
    case.check(&[waits + first, first.mean_all()]);
    // A value that is there early does not wait for a product that it does not need.
    let early = (-w).square();
    let late = early + x.matmul(w);
    let ops = case.check(&[late.mean_all(), early.mean_all()]);
    assert_eq!((count(&ops, "_FusedElementwise"), count(&ops, "AddV2")), (1, 1), "{ops:?}");
}

#[test]
fn nodes_on_several_devices_are_fused_where_they_are() {
    let g = Graph::new();
    let mut case = Case::new(&g);
    let x = case.feed(DType::F32, &[16, 8], false);
    let [cpu0, cpu1] = [0, 1].map(|device| g.with_device(&format!("/device:CPU:{device}")));
    let a = cpu0.add_node("Split").input(int(&cpu0, 1)).input(x).attr("num_split", 2i64).value();
    let b = a.port(1).with(&cpu1);
    let (left, right) = ((-a).tanh(), (-b).exp());
    let all = cpu1.concat(&[left, right], 1);
    let plain = case.run(Passes::none(), 2, &[all, left]).unwrap();
    assert_eq!(plain, case.run(Passes::all(), 2, &[all, left]).unwrap());
}

#[test]
fn programs_that_contradict_themselves_are_refused() {
    let g = Graph::new();
    let mut case = Case::new(&g);
    let x = case.feed(DType::F32, &[6, 8], false);
    let def = case.graph(&[x.tanh() * x]);
    let broken = |attr: &str, list: &[i64]| {
        let mut def = def.clone();
        let node = def.node.iter_mut().find(|node| node.op == "_FusedElementwise").unwrap();
        let list = attr_value::ListValue { i: list.to_vec(), ..Default::default() };
        node.attr.get_mut(attr).unwrap().value = Some(attr_value::Value::List(list));
        let (name, graph) = (node.name.clone(), Graph::new());
        graph.import(&def, "").map_err(|e| e.to_string())?;
        session(&graph, Passes::none(), 1)
            .run(&[("x0", numbers(DType::F32, &[6, 8], 0))], &[&name], &[])
            .map(drop)
            .map_err(|e| e.to_string())
    };
    assert_eq!(broken("results", &[1]), Ok(()));
    for (attr, list) in [
        ("results", &[0, 0][..]),
        ("results", &[7]),
        ("results", &[-1]),
        ("joined", &[0]),
        ("joined", &[0, 2]),
        ("joined", &[-1, 1]),
        ("windows", &[1, 2]),
        ("windows", &[-2, 0, 0]),
        ("windows", &[1, 4, 5]),
        ("windows", &[9, 0, 1]),
        ("windows", &[1, i64::MAX, i64::MAX]),
        ("operands", &[0, 3, 1, 0]),
    ] {
        assert!(broken(attr, list).is_err(), "{attr} {list:?}");
    }
}
