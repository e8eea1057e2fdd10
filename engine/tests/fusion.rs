//! Element-wise clusters with several outputs, windows and joined results: the same bits as node by node.

#![allow(clippy::unwrap_used, reason = "a test")]

use engine::compile::Passes;
use engine::graph::{Graph, GraphError, Output, WhileOptions};
use engine::{DType, PartialShape, Session, SessionOptions, Tensor};
use formats::proto::GraphDef;
use formats::proto::attr_value::Value;

fn session(g: &Graph, passes: Passes, n_devices: usize) -> Session {
    Session::new(g, SessionOptions { threads: Some(2), passes, ..SessionOptions::devices(n_devices) }).unwrap()
}

fn fused() -> Passes {
    ["simplify", "fuse"].iter().fold(Passes::none(), |passes, name| passes.with(name))
}

fn name(g: &Graph, o: Output) -> String {
    format!("{}:{}", g.node(o.node).unwrap().name, o.port)
}

fn op(g: &Graph, op: &str, inputs: &[Output]) -> Output {
    inputs.iter().fold(g.add_node(op), |node, input| node.input(*input)).output().unwrap()
}

fn int(g: &Graph, value: i32) -> Output {
    g.constant(Tensor::scalar(value)).unwrap()
}

fn numbers(dtype: DType, shape: &[usize], seed: usize) -> Tensor {
    let n = shape.iter().product::<usize>();
    let value = |i: usize| ((i * 37 + seed * 11) % 101) as f64 / 25.0 - 2.0;
    match dtype {
        DType::F32 => Tensor::from_vec(shape, (0..n).map(|i| value(i) as f32).collect()).unwrap(),
        _ => Tensor::from_vec(shape, (0..n).map(value).collect()).unwrap(),
    }
}

struct Case {
    g: Graph,
    feeds: Vec<(String, Tensor)>,
}

impl Case {
    fn new() -> Case {
        Case { g: Graph::new(), feeds: Vec::new() }
    }

    /// A placeholder of open shape if `is_open`.
    fn feed(&mut self, dtype: DType, shape: &[usize], is_open: bool) -> Output {
        let name = format!("x{}", self.feeds.len());
        let dims: Vec<Option<usize>> =
            shape.iter().enumerate().map(|(i, d)| Some(*d).filter(|_| !is_open || i > 0)).collect();
        let x = self.g.placeholder(&name, dtype, PartialShape::new(&dims)).unwrap();
        self.feeds.push((name, numbers(dtype, shape, self.feeds.len())));
        x
    }

    fn names(&self, outputs: &[Output]) -> Vec<String> {
        outputs.iter().map(|o| name(&self.g, *o)).collect()
    }

    fn run(&self, passes: Passes, n_devices: usize, fetches: &[Output]) -> Result<Vec<Tensor>, String> {
        let feeds: Vec<(&str, Tensor)> =
            self.feeds.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let names = self.names(fetches);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        session(&self.g, passes, n_devices).run(&feeds, &names, &[]).map_err(|e| e.to_string())
    }

    fn graph(&self, fetches: &[Output]) -> GraphDef {
        let feeds: Vec<&str> = self.feeds.iter().map(|(name, _)| name.as_str()).collect();
        let names = self.names(fetches);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        session(&self.g, fused(), 1).inspect(&feeds, &names, &[]).unwrap().graph
    }

    /// Equal bits fused and not; gives the ops that are run fused.
    fn check(&self, fetches: &[Output]) -> Vec<String> {
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
fn cell(g: &Graph, gates: Output, c: Output, axis: i32) -> (Output, Output, Vec<Output>) {
    let split = g.add_node("Split").input(int(g, axis)).input(gates).attr("num_split", 4i64).build().unwrap();
    let gate = |port| Output { node: split, port };
    let [i, f, o] = [0, 2, 3].map(|port| g.sigmoid(gate(port)).unwrap());
    let j = g.tanh(gate(1)).unwrap();
    let next = g.add(g.mul(f, c).unwrap(), g.mul(i, j).unwrap()).unwrap();
    let t = g.tanh(next).unwrap();
    (next, g.mul(o, t).unwrap(), vec![i, j, f, o, t])
}

#[test]
fn a_cell_is_one_node_with_its_gates_and_its_gradient_another() {
    for (dtype, is_open) in [(DType::F32, false), (DType::F32, true), (DType::F64, true)] {
        for rows in [1usize, 3, 40] {
            let mut case = Case::new();
            let (gates, c) = (case.feed(dtype, &[rows, 4 * 33], is_open), case.feed(dtype, &[rows, 33], is_open));
            let g = case.g.clone();
            let (next, h, inner) = cell(&g, gates, c, 1);
            let loss = g.add(g.sum_all(g.square(h).unwrap()).unwrap(), g.sum_all(next).unwrap()).unwrap();
            let grads = engine::gradients::gradients(&g, &[loss], &[gates, c], &[]).unwrap();
            case.check(&[vec![loss], grads.clone()].concat());
            // What is fetched stays; here it is used.
            let used = grads.iter().map(|grad| op(&g, "Cumsum", &[*grad, int(&g, 0)])).collect();
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
        let mut case = Case::new();
        let mut shape = [4usize, 6, 10];
        shape[axis as usize] *= 2;
        let x = case.feed(DType::F32, &shape, false);
        let g = case.g.clone();
        let split = g.add_node("Split").input(int(&g, axis - 3)).input(x).attr("num_split", 2i64).build().unwrap();
        let [a, b] = [0, 1].map(|port| Output { node: split, port });
        let (sum, product) = (g.add(a, b).unwrap(), g.mul(g.tanh(a).unwrap(), b).unwrap());
        let last = g.sub(sum, product).unwrap();
        let all = g.add_node("ConcatV2").inputs(&[last, product, sum]).input(int(&g, axis)).output().unwrap();
        let y = g.sum_all(all).unwrap();
        let ops = case.check(&[y]);
        assert_eq!(
            (count(&ops, "Split"), count(&ops, "ConcatV2"), count(&ops, "_FusedElementwise")),
            (0, 0, 1),
            "{ops:?}"
        );
        // A part that others use too is an output of its own: the parts are put together by their own node.
        let ops = case.check(&[y, g.sum_all(sum).unwrap()]);
        assert_eq!((count(&ops, "ConcatV2"), count(&ops, "_FusedElementwise")), (1, 1), "{ops:?}");
        // What is split for others as well stays split.
        let ops = case.check(&[y, g.sum_all(a).unwrap()]);
        assert_eq!(count(&ops, "Split"), 1, "{ops:?}");
    }
}

#[test]
fn slices_of_one_axis_are_windows() {
    let mut case = Case::new();
    let (x, y) = (case.feed(DType::F64, &[5, 30], true), case.feed(DType::F64, &[5, 12], true));
    let g = case.g.clone();
    let slice = |begin: [i32; 2], size: [i32; 2]| {
        op(&g, "Slice", &[x, g.int_vector(&begin).unwrap(), g.int_vector(&size).unwrap()])
    };
    let cut = slice([0, 7], [-1, 12]);
    let z = g.mul(g.tanh(cut).unwrap(), y).unwrap();
    let ops = case.check(&[z]);
    assert_eq!(ops, ["_FusedElementwise"]);
    let corner = slice([1, 7], [4, 12]);
    let z = g.exp(g.neg(corner).unwrap()).unwrap();
    assert_eq!(count(&case.check(&[z]), "Slice"), 1);
}

#[test]
fn shapes_that_turn_out_otherwise_give_the_same_results_and_errors() {
    let mut case = Case::new();
    let (x, y) = (case.feed(DType::F32, &[6, 8], true), case.feed(DType::F32, &[6, 4], true));
    let g = case.g.clone();
    let split = g.add_node("Split").input(int(&g, 1)).input(x).attr("num_split", 2i64).build().unwrap();
    let [a, b] = [0, 1].map(|port| Output { node: split, port });
    let sum = g.add(g.mul(a, y).unwrap(), b).unwrap();
    let both = g.add_node("ConcatV2").inputs(&[sum, g.tanh(sum).unwrap()]).input(int(&g, 1)).output().unwrap();
    let last = g.sum_all(both).unwrap();
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
    let mut case = Case::new();
    let x = case.feed(DType::F32, &[20], false);
    let pred = case.g.placeholder("pred", DType::Bool, PartialShape::scalar()).unwrap();
    let g = case.g.clone();
    // Live whatever the predicate says, but used on one side of it too.
    let always = g.tanh(g.neg(x).unwrap()).unwrap();
    let switch = g.add_node("Switch").input(x).input(pred).build().unwrap();
    let side = g.mul(always, Output { node: switch, port: 1 }).unwrap();
    let other = g.exp(Output { node: switch, port: 0 }).unwrap();
    let merge = g.add_node("Merge").inputs(&[side, other]).output().unwrap();
    let mean = g.mean_all(always).unwrap();
    for taken in [true, false] {
        case.feeds.truncate(1);
        case.feeds.push(("pred".into(), Tensor::scalar(taken)));
        case.check(&[merge, mean]);
    }
}

#[test]
fn loops_fuse_their_bodies() {
    let mut case = Case::new();
    let (x, c) = (case.feed(DType::F32, &[5, 48], false), case.feed(DType::F32, &[5, 12], false));
    let g = case.g.clone();
    let done = g.while_loop::<GraphError>(
        &[int(&g, 0), x, c],
        |g, vars| g.add_node("Less").input(vars[0]).input(int(g, 6)).output(),
        |g, vars| {
            let (next, h, _) = cell(g, vars[1], vars[2], 1);
            let gates = g.add_node("ConcatV2").inputs(&[h, next, h, next]).input(int(g, 1)).output()?;
            Ok(vec![g.add(vars[0], int(g, 1))?, g.add(gates, vars[1])?, next])
        },
        &WhileOptions::default(),
    );
    let done = done.unwrap();
    let loss = g.sum_all(done[1]).unwrap();
    let grads = engine::gradients::gradients(&g, &[loss], &[x, c], &[]).unwrap();
    let ops = case.check(&[vec![loss, done[2]], grads].concat());
    assert_eq!((count(&ops, "Split"), count(&ops, "Sigmoid")), (0, 0), "{ops:?}");
}

#[test]
fn nothing_waits_for_itself_or_for_heavier_work() {
    let mut case = Case::new();
    let (x, w) = (case.feed(DType::F32, &[8, 8], false), case.feed(DType::F32, &[8, 8], false));
    let g = case.g.clone();
    // Around: the product needs the first value, the last one both.
    let first = g.tanh(g.neg(x).unwrap()).unwrap();
    let product = g.matmul(first, w).unwrap();
    let last = g.mul(first, g.exp(product).unwrap()).unwrap();
    let ops = case.check(&[last]);
    assert_eq!(count(&ops, "_FusedElementwise"), 2, "{ops:?}");
    // Control edges count: what waits for a value's node cannot come before it.
    let waits = g.with_control(&[first.node]).neg(w).unwrap();
    let both = g.add(waits, first).unwrap();
    case.check(&[both, g.mean_all(first).unwrap()]);
    // A value that is there early does not wait for a product that it does not need.
    let early = g.square(g.neg(w).unwrap()).unwrap();
    let late = g.add(early, g.matmul(x, w).unwrap()).unwrap();
    let ops = case.check(&[g.mean_all(late).unwrap(), g.mean_all(early).unwrap()]);
    assert_eq!((count(&ops, "_FusedElementwise"), count(&ops, "AddV2")), (1, 1), "{ops:?}");
}

#[test]
fn nodes_on_several_devices_are_fused_where_they_are() {
    let mut case = Case::new();
    let x = case.feed(DType::F32, &[16, 8], false);
    let on = |device: usize| case.g.with_device(&format!("/device:CPU:{device}"));
    let split = on(0).add_node("Split").input(int(&on(0), 1)).input(x).attr("num_split", 2i64).build().unwrap();
    let [a, b] = [0, 1].map(|port| Output { node: split, port });
    let (left, right) = (on(0).tanh(on(0).neg(a).unwrap()).unwrap(), on(1).exp(on(1).neg(b).unwrap()).unwrap());
    let all = on(1).add_node("ConcatV2").inputs(&[left, right]).input(int(&on(1), 1)).output().unwrap();
    let plain = case.run(Passes::none(), 2, &[all, left]).unwrap();
    assert_eq!(plain, case.run(Passes::all(), 2, &[all, left]).unwrap());
}

#[test]
fn programs_that_contradict_themselves_are_refused() {
    let mut case = Case::new();
    let x = case.feed(DType::F32, &[6, 8], false);
    let g = case.g.clone();
    let y = g.mul(g.tanh(x).unwrap(), x).unwrap();
    let def = case.graph(&[y]);
    let broken = |attr: &str, list: &[i64]| {
        let mut def = def.clone();
        let node = def.node.iter_mut().find(|node| node.op == "_FusedElementwise").unwrap();
        let list = formats::proto::attr_value::ListValue { i: list.to_vec(), ..Default::default() };
        node.attr.get_mut(attr).unwrap().value = Some(Value::List(list));
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
