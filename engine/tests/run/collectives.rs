//! Collectives compared with TensorFlow's, in `data/collectives.json` (made by `tests/scripts/tf_collective_fixtures.py`), on devices of
//! one process; whatever is wrong with a group is said.

use engine::graph::{Attr, Graph, NodeId, Output};
use engine::models::Unrolling;
use engine::tasks::{self, Task};
use engine::training::{InputMode, Parallelism, TrainingGraph, TrainingOptions, build};
use engine::{DType, PartialShape, Session, SessionOptions, Tensor};
use serde_json::Value;

fn on(g: &Graph, device: usize) -> Graph {
    g.with_device(&format!("/device:CPU:{device}"))
}

fn session(g: &Graph, n: usize) -> Session {
    Session::new(g, SessionOptions { threads: Some(2), ..SessionOptions::devices(n) }).unwrap()
}

/// A member's input, by the rule of the script.
fn input(member: usize, shape: &[usize], dtype: DType) -> Tensor {
    let n = shape.iter().product::<usize>();
    let numbers = (0..n).map(|i| ((i * 7 + member * 13) % 19) as i64 - 9);
    let quarters = numbers.clone().map(|v| v as f32 / 4.0);
    match dtype {
        DType::F64 => Tensor::from_vec(shape, quarters.map(f64::from).collect()),
        DType::F16 => Tensor::from_vec(shape, quarters.map(engine::dtype::f16::from_f32).collect()),
        DType::I32 => Tensor::from_vec(shape, numbers.map(|v| v as i32).collect()),
        DType::I64 => Tensor::from_vec(shape, numbers.collect()),
        _ => Tensor::from_vec(shape, quarters.collect()),
    }
    .unwrap()
}

fn numbers(value: &Tensor) -> Vec<f64> {
    match value.dtype() {
        DType::F64 => value.slice::<f64>().unwrap().to_vec(),
        DType::F16 => value.slice::<engine::dtype::f16>().unwrap().iter().map(|v| v.to_f64()).collect(),
        DType::I32 => value.slice::<i32>().unwrap().iter().map(|v| f64::from(*v)).collect(),
        DType::I64 => value.slice::<i64>().unwrap().iter().map(|v| *v as f64).collect(),
        _ => value.slice::<f32>().unwrap().iter().map(|v| f64::from(*v)).collect(),
    }
}

/// What the script stores of a value: everything, or both ends.
fn ends(value: &Tensor) -> Vec<f64> {
    let all = numbers(value);
    if all.len() <= 64 { all } else { [&all[..8], &all[all.len() - 8..]].concat() }
}

struct Case {
    kind: String,
    n: usize,
    shape: Vec<usize>,
    dtype: DType,
    source: usize,
    merge: String,
    divides: String,
    outputs: Vec<(Vec<usize>, Vec<f64>)>,
}

impl Case {
    fn of(v: &Value) -> Case {
        let number = |v: &Value| v.as_u64().unwrap() as usize;
        let dims = |v: &Value| v.as_array().unwrap().iter().map(number).collect::<Vec<usize>>();
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        let output = |o: &Value| {
            (dims(&o["shape"]), o["values"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect())
        };
        let dtype = match v["dtype"].as_str().unwrap() {
            "double" => DType::F64,
            "half" => DType::F16,
            "int32" => DType::I32,
            "int64" => DType::I64,
            _ => DType::F32,
        };
        Case {
            kind: text(&v["kind"]),
            n: number(&v["n"]),
            shape: dims(&v["shape"]),
            dtype,
            source: number(&v["source"]),
            merge: text(&v["attrs"]["merge_op"]),
            divides: text(&v["attrs"]["final_op"]),
            outputs: v["outputs"].as_array().unwrap().iter().map(output).collect(),
        }
    }

    /// The member's node and its feed. `is_known`: the graph knows the shape.
    fn member(&self, g: &Graph, member: usize, is_known: bool) -> (Output, Option<(String, Tensor)>) {
        let at = on(g, member);
        let (name, value) = (format!("x{member}"), input(member, &self.shape, self.dtype));
        let known = PartialShape::from(value.shape());
        let is_source = self.kind != "broadcast" || member == self.source;
        let x = is_source.then(|| {
            let shape = if is_known { known.clone() } else { PartialShape::unknown() };
            at.placeholder(&name, self.dtype, shape)
        });
        let (op, attrs): (&str, Vec<(&str, Attr)>) = match (self.kind.as_str(), is_source) {
            ("reduce", _) => (
                "CollectiveReduce",
                vec![("merge_op", self.merge.as_str().into()), ("final_op", self.divides.as_str().into())],
            ),
            ("gather", _) => ("CollectiveGather", vec![("shape", Attr::Shape(PartialShape::unknown()))]),
            (_, true) => ("CollectiveBcastSend", vec![("shape", Attr::Shape(known))]),
            (_, false) => ("CollectiveBcastRecv", vec![("shape", Attr::Shape(known))]),
        };
        let mut node = at.add_node(op).name(&format!("y{member}")).attr("T", self.dtype);
        node = node.attr("group_size", self.n as i64).attr("group_key", 7i64).attr("instance_key", 3i64);
        for (name, value) in attrs {
            node = node.attr(name, value);
        }
        let node = match x {
            Some(x) => node.input(x),
            None => node,
        };
        (node.value().output(), is_source.then_some((name, value)))
    }

    fn check(&self, is_known: bool) {
        let g = Graph::new();
        let (mut fetches, mut feeds) = (Vec::new(), Vec::new());
        for member in 0..self.n {
            let (y, feed) = self.member(&g, member, is_known);
            fetches.push(format!("{}:{}", g.node(y.node).unwrap().name, y.port));
            feeds.extend(feed);
        }
        let feeds: Vec<(&str, Tensor)> = feeds.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let fetches: Vec<&str> = fetches.iter().map(String::as_str).collect();
        let got = session(&g, self.n).run(&feeds, &fetches, &[]).unwrap();
        for (member, (got, (dims, values))) in got.iter().zip(&self.outputs).enumerate() {
            let what = format!(
                "{} {} {} of {} {:?} {:?}, member {member}",
                self.kind, self.merge, self.divides, self.n, self.shape, self.dtype
            );
            assert_eq!((got.dtype(), got.dims()), (self.dtype, &dims[..]), "{what}");
            let tolerance = if self.dtype == DType::F16 { 2e-3 } else { 1e-6 };
            for (got, expected) in ends(got).iter().zip(values) {
                assert!((got - expected).abs() <= tolerance * expected.abs().max(1.0), "{what}: {got}, not {expected}");
            }
        }
    }
}

#[test]
fn collectives_give_what_tensorflows_give() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/collectives.json");
    let cases: Vec<Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert!(cases.len() > 100);
    for case in cases.iter().map(Case::of) {
        case.check(true);
        // Reshaped by what the step knows.
        case.check(false);
    }
}

/// A member of the second version, whose keys are constants.
fn second(g: &Graph, op: &str, member: usize, size: i32, x: Output) {
    let at = on(g, member);
    let int = |value: i32| at.constant(Tensor::scalar(value));
    let mut node = at.add_node(op).name(&format!("y{member}")).input(x).input(int(size)).input(int(1)).input(int(2));
    if op.contains("Reduce") {
        node = node.attr("merge_op", "Add").attr("final_op", "Id");
    }
    node.attr("T", DType::F32).value();
}

#[test]
fn rows_of_sums_are_dealt_out() {
    let g = Graph::new();
    for member in 0..3 {
        let x = on(&g, member).constant(input(member, &[6, 2], DType::F32)).output();
        second(&g, "CollectiveReduceScatterV2", member, 3, x);
    }
    let got = session(&g, 3).run(&[], &["y0", "y1", "y2"], &[]).unwrap();
    let all: Vec<Vec<f64>> = (0..3).map(|member| numbers(&input(member, &[6, 2], DType::F32))).collect();
    for (member, got) in got.iter().enumerate() {
        assert_eq!(got.dims(), [2, 2]);
        let expected: Vec<f64> = (0..4).map(|i| all.iter().map(|x| x[member * 4 + i]).sum()).collect();
        assert_eq!(numbers(got), expected);
    }
}

#[test]
fn members_of_a_gather_may_have_different_numbers_of_rows() {
    let g = Graph::new();
    for member in 0..3 {
        let x = on(&g, member).constant(input(member, &[member, 2], DType::F32)).output();
        second(&g, "CollectiveGatherV2", member, 3, x);
    }
    let expected: Vec<f64> = (0..3).flat_map(|member| numbers(&input(member, &[member, 2], DType::F32))).collect();
    for got in session(&g, 3).run(&[], &["y0", "y1", "y2"], &[]).unwrap() {
        assert_eq!((got.dims(), numbers(&got)), (&[3, 2][..], expected.clone()));
    }
}

#[test]
fn what_is_wrong_with_a_group_is_said() {
    let error = |build: &dyn Fn(&Graph), fetches: &[&str]| {
        let g = Graph::new();
        build(&g);
        session(&g, 3).run(&[], fetches, &[]).unwrap_err().to_string()
    };
    let x = |g: &Graph| g.constant(Tensor::vector(&[1f32])).output();
    let two = |g: &Graph| {
        for member in 0..2 {
            second(g, "CollectiveReduceV2", member, 2, x(g));
        }
    };
    let alone = error(&two, &["y0"]);
    assert!(alone.contains("1 of 2 members take part in the step (y0); all have to be run"), "{alone}");
    let same = error(
        &|g| {
            second(g, "CollectiveReduceV2", 1, 2, x(g));
            second(&g.scope("again"), "CollectiveReduceV2", 1, 2, x(g));
        },
        &["y1", "again/y1"],
    );
    assert!(same.contains("both ask for /device:CPU:1"), "{same}");
    let other = error(
        &|g| {
            second(g, "CollectiveReduceV2", 0, 2, x(g));
            second(g, "CollectiveGatherV2", 1, 2, x(g));
        },
        &["y0", "y1"],
    );
    assert!(other.contains("y0 and y1 do not do the same"), "{other}");
    let nowhere = error(
        &|g| {
            let one = || g.constant(Tensor::scalar(1i32));
            let node = g.add_node("CollectiveGatherV2").name("y").input(x(g)).input(one()).input(one()).input(one());
            node.attr("T", DType::F32).value();
        },
        &["y"],
    );
    assert!(nowhere.contains("node y (CollectiveGatherV2): a member of a group has to ask for a device"), "{nowhere}");
}

/// Some steps of N towers; gives the losses.
struct Training {
    g: Graph,
    built: TrainingGraph,
    session: Session,
}

impl Training {
    fn new(task: &Task, n: usize, parallelism: Parallelism) -> Training {
        let g = Graph::new();
        let options = TrainingOptions { towers: n, parallelism, input: InputMode::Fed, ..task.training.clone() };
        let built = build(&g, task.network.as_ref(), &options).unwrap();
        let session = session(&g, n);
        session.run(&[], &[], &[&g.node(built.init).unwrap().name]).unwrap();
        Training { g, built, session }
    }

    fn name(&self, output: Output) -> String {
        format!("{}:{}", self.g.node(output.node).unwrap().name, output.port)
    }

    fn step(&self, task: &mut Task) -> f32 {
        let batches: Vec<Vec<Tensor>> = self.built.feeds.iter().map(|_| (task.next_batch)()).collect();
        self.step_of(&batches)
    }

    /// A step with these batches, one for each tower.
    fn step_of(&self, batches: &[Vec<Tensor>]) -> f32 {
        let feeds = self.built.feeds.iter().flatten().copied().zip(batches.iter().flatten().cloned()).collect();
        let loss = self.name(self.built.losses[0]);
        self.run(feeds, &[&loss], self.built.train_ops[0])[0].item::<f32>().unwrap()
    }

    fn run(&self, feeds: Vec<(Output, Tensor)>, fetches: &[&str], target: NodeId) -> Vec<Tensor> {
        let feeds: Vec<(String, Tensor)> = feeds.into_iter().map(|(feed, value)| (self.name(feed), value)).collect();
        let feeds: Vec<(&str, Tensor)> = feeds.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        self.session.run(&feeds, fetches, &[&self.g.node(target).unwrap().name]).unwrap()
    }

    /// The variables of the first tower and of another one.
    fn variables(&self, replica: usize) -> [Vec<Tensor>; 2] {
        let trained = self.built.variables.iter().filter(|(name, _)| !name.contains("state/"));
        let own: Vec<String> = trained.map(|(_, value)| self.name(*value)).collect();
        let others: Vec<String> = own.iter().map(|name| format!("replica{replica}/{name}")).collect();
        [own, others].map(|names| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            self.session.run(&[], &names, &[]).unwrap()
        })
    }
}

/// Momentum, dense gradients large and small; gradients of rows; shortened gradients, in a loop.
#[test]
fn towers_with_variables_of_their_own_train_as_those_that_share_them() {
    type Model = (&'static str, fn() -> Task, usize);
    let models: [Model; 3] = [
        ("mlp", || tasks::mlp(engine::data::digits(), 1).unwrap(), 5),
        ("embeddings", || tasks::embeddings(1).unwrap(), 5),
        ("lstm", || tasks::language_model(Unrolling::While, 1).unwrap(), 2),
    ];
    for (model, task, n_steps) in models {
        let [shared, own] = [Parallelism::Synchronous, Parallelism::AllReduce].map(|parallelism| {
            let mut task = task();
            let training = Training::new(&task, 3, parallelism);
            let losses: Vec<f32> = (0..n_steps).map(|_| training.step(&mut task)).collect();
            (training, losses)
        });
        for (a, b) in shared.1.iter().zip(&own.1) {
            assert!((a - b).abs() <= 2e-5 * a.abs(), "{model}: {:?} {:?}", shared.1, own.1);
        }
        for replica in [1, 2] {
            let [first, other] = own.0.variables(replica);
            assert!(first == other, "{model}: the variables of replica {replica}");
        }
    }
}

#[test]
fn towers_are_made_alike() {
    let task = tasks::mlp(engine::data::digits(), 1).unwrap();
    let training = Training::new(&task, 2, Parallelism::AllReduce);
    let (g, first) = (&training.g, &training.built.variables[0].0);
    let handle = g.output(&format!("replica1/{first}:0")).unwrap();
    let zeros =
        Tensor::zeros(DType::F32, training.variables(1)[1][0].shape().clone(), engine::buffer::Allocator::host());
    let cpu1 = on(g, 1);
    let value = cpu1.constant(zeros.unwrap());
    cpu1.add_node("AssignVariableOp").name("spoil").input(handle).input(value).value();
    training.session.run(&[], &[], &["spoil"]).unwrap();
    let [own, other] = training.variables(1);
    assert!(own != other);
    let alike = g.node(training.built.alike.unwrap()).unwrap().name.to_string();
    training.session.run(&[], &[], &[&alike]).unwrap();
    let [own, other] = training.variables(1);
    assert!(own == other);
}

/// Of three towers two count, whichever come first: the steps are those of two towers with their batches. What a tower gives for a
/// step that is over changes nothing.
#[test]
fn with_a_backup_worker_the_first_gradients_count() {
    type Model = (&'static str, fn() -> Task);
    let models: [Model; 2] =
        [("mlp", || tasks::mlp(engine::data::digits(), 1).unwrap()), ("embeddings", || tasks::embeddings(1).unwrap())];
    for (model, task) in models {
        let mut task = task();
        let two = Training::new(&task, 2, Parallelism::Synchronous);
        let three = Training::new(&task, 3, Parallelism::Backup { spare: 1 });
        let pushes = three.built.pushes.clone().unwrap();
        assert_eq!((pushes.n_required, pushes.ops.len()), (2, 3));
        three.run(vec![(pushes.done, Tensor::scalar(0i64))], &[], pushes.begin);
        let push = |done: i64, tower: usize, batch: &[Tensor]| {
            let mut feeds: Vec<_> = three.built.feeds[tower].iter().copied().zip(batch.iter().cloned()).collect();
            feeds.push((pushes.done, Tensor::scalar(done)));
            three.run(feeds, &[], pushes.ops[tower]);
        };
        let loss = three.name(three.built.losses[0]);
        for (step, [first, second, late]) in [[0, 2, 1], [1, 0, 2], [2, 1, 0], [0, 1, 2]].into_iter().enumerate() {
            let batches: Vec<Vec<Tensor>> = (0..3).map(|_| (task.next_batch)()).collect();
            push(step as i64, first, &batches[first]);
            push(step as i64, second, &batches[second]);
            let got = three.run(Vec::new(), &[&loss], three.built.train_ops[0])[0].item::<f32>().unwrap();
            push(step as i64, late, &batches[late]);
            let expected = two.step_of(&[batches[first].clone(), batches[second].clone()]);
            assert!((got - expected).abs() <= 2e-5 * expected.abs(), "{model}, step {step}: {got}, {expected}");
        }
    }
}
