//! Random structured programs, functions and models against TensorFlow's own results, in
//! `data/tf_control_flow.bin.gz` (made by `tests/scripts/tf_control_flow_fixtures.py`).

use std::io::Read;

use engine::compile::placement::PlacementOptions;
use engine::dtype::Element;
use engine::gradients::gradients;
use engine::graph::{GraphError, Operand, Value, WhileOptions};
use engine::{DType, Graph, Output, Session, SessionOptions, Tensor};
use formats::proto::GraphDef;
use prost::Message;
use serde_json::Value as Json;

struct Program {
    meta: Json,
    graph: GraphDef,
}

fn programs() -> Vec<Program> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tf_control_flow.bin.gz");
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    let mut rest = bytes.as_slice();
    let mut blob = || {
        let (n, after) = rest.split_first_chunk::<4>()?;
        let (blob, after) = after.split_at(u32::from_le_bytes(*n) as usize);
        rest = after;
        Some(blob)
    };
    let pair = || {
        let (meta, graph) = (blob()?, blob()?);
        Some(Program { meta: serde_json::from_slice(meta).unwrap(), graph: GraphDef::decode(graph).unwrap() })
    };
    std::iter::from_fn(pair).collect()
}

fn list(v: &Json) -> &[Json] {
    v.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn texts(v: &Json) -> Vec<&str> {
    list(v).iter().map(|t| t.as_str().unwrap()).collect()
}

fn tensor(v: &Json) -> Tensor {
    let dims: Vec<usize> = list(&v[1]).iter().map(|d| d.as_u64().unwrap() as usize).collect();
    fn of<T: Element>(dims: &[usize], values: &[Json], f: impl Fn(&Json) -> T) -> Tensor {
        Tensor::from_vec(dims, values.iter().map(f).collect()).unwrap()
    }
    match v[0].as_str().unwrap() {
        "float" => of(&dims, list(&v[2]), |v| v.as_f64().unwrap() as f32),
        "double" => of(&dims, list(&v[2]), |v| v.as_f64().unwrap()),
        "int32" => of(&dims, list(&v[2]), |v| v.as_i64().unwrap() as i32),
        "int64" => of(&dims, list(&v[2]), |v| v.as_i64().unwrap()),
        "bool" => of(&dims, list(&v[2]), |v| v.as_i64().unwrap() != 0),
        other => panic!("{other}"),
    }
}

/// What is different, if anything.
fn difference(got: &Tensor, want: &Tensor) -> Option<String> {
    let same = (got.dtype(), got.shape()) == (want.dtype(), want.shape());
    let close = |tolerance: f64| match got.dtype() {
        DType::F32 => {
            let pairs = got.slice::<f32>().unwrap().iter().zip(want.slice::<f32>().unwrap());
            { pairs }.all(|(g, w)| f64::from((g - w).abs()) <= tolerance * f64::from(w.abs().max(1.0)))
        }
        _ => got == want,
    };
    (!same || !close(2e-5)).then(|| format!("got {got:?}, TensorFlow has {want:?}"))
}

fn session(graph: &Graph, threads: usize) -> Session {
    Session::new(graph, SessionOptions { threads: Some(threads), ..SessionOptions::default() }).unwrap()
}

/// Runs a program's feeds for `fetches` and compares with the answers at the positions `at`.
fn compare(session: &Session, meta: &Json, fetches: &[&str], at: &[usize]) -> Result<usize, String> {
    let mut n = 0;
    for run in list(&meta["runs"]) {
        let feeds = run["feeds"].as_object().unwrap();
        // What the program does not use cannot be fed.
        let known = feeds.iter().filter(|(name, _)| session.graph().output(name).is_ok());
        let feeds: Vec<(&str, Tensor)> = known.map(|(name, v)| (name.as_str(), tensor(v))).collect();
        let got = session.run(&feeds, fetches, &[]).map_err(|e| format!("{e}, with {:?}", run["feeds"]["k:0"]))?;
        for (got, at) in got.iter().zip(at) {
            let want = tensor(&run["answers"][*at]);
            if let Some(difference) = difference(got, &want) {
                return Err(format!("{}: {difference}, with {}", meta["fetches"][*at], run["feeds"]));
            }
            n += 1;
        }
    }
    Ok(n)
}

fn import(program: &Program) -> Result<Graph, String> {
    let graph = Graph::new();
    graph.import(&program.graph, "").map_err(|e| format!("import: {e}"))?;
    Ok(graph)
}

/// TensorFlow's graph as it is, its gradients included.
fn run_as_it_is(program: &Program, threads: usize) -> Result<usize, String> {
    let graph = import(program)?;
    let fetches = texts(&program.meta["fetches"]);
    let all: Vec<usize> = (0..fetches.len()).collect();
    compare(&session(&graph, threads), &program.meta, &fetches, &all)
}

/// TensorFlow's graph, its nodes dealt out to some devices: one by one, or a few in a row.
fn run_divided(program: &Program, threads: usize) -> Result<usize, String> {
    let fetches = texts(&program.meta["fetches"]);
    let all: Vec<usize> = (0..fetches.len()).collect();
    let mut n = 0;
    for (n_devices, in_a_row) in [(2, 1), (3, 1), (4, 3)] {
        let mut divided = Program { meta: program.meta.clone(), graph: program.graph.clone() };
        for (i, node) in divided.graph.node.iter_mut().enumerate() {
            node.device = format!("/device:CPU:{}", i / in_a_row % n_devices);
        }
        // Softly: what must be together stays together.
        let placement = PlacementOptions { is_soft: true, ..PlacementOptions::default() };
        let options = SessionOptions { placement, threads: Some(threads), ..SessionOptions::devices(n_devices) };
        let session = Session::new(&import(&divided)?, options).unwrap();
        let of = |e| format!("{n_devices} devices, {in_a_row} in a row: {e}");
        n += compare(&session, &divided.meta, &fetches, &all).map_err(of)?;
    }
    Ok(n)
}

/// The gradients that this engine adds to TensorFlow's graph.
fn run_own_gradients(program: &Program, threads: usize) -> Result<usize, String> {
    let graph = import(program)?;
    let y = graph.output(program.meta["y"].as_str().unwrap()).unwrap();
    let xs: Vec<Output> = texts(&program.meta["xs"]).iter().map(|x| graph.output(x).unwrap()).collect();
    let grads = gradients(&graph, &[y], &xs, &[]).map_err(|e| format!("gradients: {e}"))?;
    let name = |o: &Output| format!("{}:{}", graph.node(o.node).unwrap().name, o.port);
    let names: Vec<String> = grads.iter().map(name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let at: Vec<usize> = (1..=names.len()).collect();
    compare(&session(&graph, threads), &program.meta, &names, &at)
}

/// The gradient of the gradient, both this engine's.
fn run_second_order(program: &Program, threads: usize) -> Result<usize, String> {
    let graph = import(program)?;
    let (y, x) = (graph.output("y:0").unwrap(), graph.output("x:0").unwrap());
    let again = |y: Output| gradients(&graph, &[y], &[x], &[]).map_err(|e| format!("gradients: {e}"));
    let g = again(y)?[0];
    let weights = graph.constant(Tensor::vector(&[1.0f32, 2.0, -1.0]));
    let h = again((graph.value(g) * weights).output())?[0];
    let name = |o: &Output| format!("{}:{}", graph.node(o.node).unwrap().name, o.port);
    compare(&session(&graph, threads), &program.meta, &[&name(&g), &name(&h)], &[1, 2])
}

/// Applies `run` to the programs of these kinds; prints the count and says which differ.
fn check(kinds: &[&str], what: &str, run: fn(&Program, usize) -> Result<usize, String>) {
    let programs = programs();
    let of_kind = |p: &&Program| kinds.contains(&p.meta["kind"].as_str().unwrap());
    let (mut n_programs, mut n_values, mut failed) = (0, 0, Vec::new());
    for program in programs.iter().filter(of_kind) {
        n_programs += 1;
        for threads in [1, 2, 4] {
            match run(program, threads) {
                Ok(n) => n_values += n,
                Err(e) => {
                    failed.push(format!("{} on {threads} threads: {e}", program.meta["name"].as_str().unwrap()));
                    break;
                }
            }
        }
    }
    println!("{what}: {n_programs} programs, {n_values} values compared, {} programs differ", failed.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(n_programs > 0);
}

#[test]
fn primitives_run() {
    check(&["v1"], "TensorFlow 1 graphs with TensorFlow's gradients", run_as_it_is);
}

#[test]
fn functions_run() {
    check(&["v2", "second"], "TensorFlow 2 graphs with TensorFlow's gradients", run_as_it_is);
}

#[test]
fn models_run() {
    check(&["model"], "tf.function and Keras graphs", run_as_it_is);
}

#[test]
fn gradients_of_primitives_agree() {
    check(&["v1"], "gradients of TensorFlow 1 graphs", run_own_gradients);
}

#[test]
fn primitives_run_on_several_devices() {
    check(&["v1"], "TensorFlow 1 graphs on several devices", run_divided);
}

#[test]
fn gradients_of_functions_agree() {
    check(&["v2"], "gradients of TensorFlow 2 graphs", run_own_gradients);
}

#[test]
fn gradients_of_gradients_agree() {
    check(&["second"], "second derivatives through loops", run_second_order);
}

#[test]
fn definitions_round_trip() {
    for program in programs() {
        let graph = import(&program).unwrap();
        let copy = Graph::new();
        copy.import(&graph.to_def(), "").unwrap();
        assert_eq!(copy.to_def(), graph.to_def(), "{}", program.meta["name"]);
    }
}

/// The slopes of `y` by each element of the placeholder `x`, by central differences.
fn slopes(session: &Session, x: &Tensor, y: &str) -> Vec<f64> {
    const STEP: f64 = 1e-6;
    let values = x.slice::<f64>().unwrap();
    let at = |i: usize, step: f64| {
        let mut moved = values.to_vec();
        moved[i] += step;
        session.run(&[("x", Tensor::vector(&moved))], &[y], &[]).unwrap()[0].item::<f64>().unwrap()
    };
    (0..values.len()).map(|i| (at(i, STEP) - at(i, -STEP)) / (2.0 * STEP)).collect()
}

/// Compares the gradient of the sum of what `build` makes of a vector with its slopes.
fn check_slopes(build: impl for<'g> Fn(Value<'g>) -> Result<Value<'g>, GraphError>) {
    for threads in [1, 2] {
        let graph = Graph::new();
        let x = graph.placeholder("x", DType::F64, [Some(3)]).output();
        let y = build(graph.value(x)).unwrap().sum_all().output();
        let g = gradients(&graph, &[y], &[x], &[]).unwrap()[0];
        let name = |o: &Output| format!("{}:{}", graph.node(o.node).unwrap().name, o.port);
        let session = session(&graph, threads);
        for values in [[0.3, -0.7, 1.1], [-1.2, 0.4, 0.9]] {
            let x = Tensor::vector(&values);
            let got = session.run(&[("x", x.clone())], &[&name(&g)], &[]).unwrap();
            for (got, want) in got[0].slice::<f64>().unwrap().iter().zip(slopes(&session, &x, &name(&y))) {
                assert!((got - want).abs() < 1e-7 * want.abs().max(1.0), "got {got}, slope {want}");
            }
        }
    }
}

/// What `x` becomes where `step` changes it as long as a counter from 0 is below `n`.
fn repeated<'g>(
    x: Value<'g>,
    n: impl Operand + Copy,
    step: impl for<'s> FnOnce(Value<'s>, Output) -> Result<Value<'s>, GraphError>,
) -> Result<Value<'g>, GraphError> {
    let g = x.graph();
    let begin = [g.constant(Tensor::scalar(0i32)), x].map(Output::from);
    let body = |g: &Graph, vars: &[Output]| {
        let next = (g.value(vars[0]) + 1.0).output();
        Ok(vec![next, step(g.value(vars[1]), vars[0])?.output()])
    };
    let goes_on = |g: &Graph, vars: &[Output]| Ok(g.value(vars[0]).less(n).output());
    let ends = g.while_loop::<GraphError>(&begin, goes_on, body, &WhileOptions::default())?;
    Ok(g.value(ends[1]))
}

#[test]
fn own_loops_have_the_slopes_as_gradients() {
    // A captured value, a variable used once more after the loop, no iterations at all.
    for n in [0.0, 1.0, 4.0] {
        check_slopes(|x| Ok(repeated(x, n, |y, _| Ok((y * x).tanh()))? * x));
    }
    // A loop in a loop, and a conditional in it.
    check_slopes(|x| {
        repeated(x, 3.0, |y, i| {
            let inner = repeated(y, i, |z, _| {
                let pred = z.sum_all().greater(0.23);
                let side = z.graph().cond::<GraphError>(
                    pred,
                    |g| Ok(vec![(g.value(z) * x).output()]),
                    |g| Ok(vec![g.value(z).sigmoid().output()]),
                )?;
                Ok(z.graph().value(side[0]).tanh())
            })?;
            Ok(inner + x)
        })
    });
    // A loop in a branch, taken for one of the two feeds only.
    check_slopes(|x| {
        let out = x.graph().cond::<GraphError>(
            x.sum_all().greater(0.5),
            |g| Ok(vec![repeated(g.value(x), 2.0, |y, _| Ok(y.square().tanh()))?.output()]),
            |g| Ok(vec![(-g.value(x)).output()]),
        )?;
        Ok(x.graph().value(out[0]))
    });
}

/// A definition whose node `call` calls `f`, which calls `g`.
fn two_calls(change: impl Fn(&mut GraphDef)) -> Result<Vec<Tensor>, String> {
    let pbtxt = r#"
        node { name: "x" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
               attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 3 } } } }
        node { name: "call" op: "f" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
        library {
          function {
            signature { name: "f" input_arg { name: "a" type_attr: "T" } output_arg { name: "b" type_attr: "T" }
                        attr { name: "T" type: "type" } }
            node_def { name: "twice" op: "g" input: "a" attr { key: "T" value { placeholder: "T" } } }
            node_def { name: "sum" op: "AddV2" input: "twice:out:0" input: "a"
                       attr { key: "T" value { placeholder: "T" } } }
            ret { key: "b" value: "sum:z:0" }
          }
          function {
            signature { name: "g" input_arg { name: "a" type_attr: "T" } output_arg { name: "out" type_attr: "T" }
                        attr { name: "T" type: "type" } }
            node_def { name: "product" op: "Mul" input: "a" input: "a" attr { key: "T" value { placeholder: "T" } } }
            ret { key: "out" value: "product:z:0" }
          }
        }"#;
    let mut def = formats::graph_file::decode(pbtxt.as_bytes()).unwrap();
    change(&mut def);
    let graph = Graph::new();
    graph.import(&def, "").map_err(|e| e.to_string())?;
    let session = session(&graph, 1);
    let got = session.run(&[], &["call"], &[]).map_err(|e| e.to_string());
    assert_eq!(graph.nodes().len(), 2, "the graph itself is not lowered");
    got
}

#[test]
fn functions_are_called_by_name_and_their_errors_say_what_is_wrong() {
    assert_eq!(two_calls(|_| {}).unwrap(), [Tensor::scalar(12.0f32)]);
    let function = |def: &mut GraphDef, i: usize, f: &dyn Fn(&mut formats::proto::FunctionDef)| {
        f(&mut def.library.as_mut().unwrap().function[i]);
    };
    let error = |change: &dyn Fn(&mut GraphDef)| two_calls(change).unwrap_err();
    let missing = error(&|def| drop(def.library.as_mut().unwrap().function.pop()));
    assert_eq!(missing, "function f: node twice: unknown op g");
    let recursive = error(&|def| function(def, 1, &|g| g.node_def[0].op = "f".into()));
    assert!(recursive.contains("calls itself") || recursive.contains("no output"), "{recursive}");
    let unknown = error(&|def| function(def, 1, &|g| g.node_def[0].input[0] = "b".into()));
    assert_eq!(unknown, "function g: b is no argument and no output of a node of the body");
    let no_result = error(&|def| function(def, 0, &|f| f.ret.clear()));
    assert_eq!(no_result, "function f: output b has no value");
    let open = error(&|def| drop(def.node[1].attr.remove("T")));
    assert_eq!(open, "function f: attribute T is not given");
    let count = error(&|def| def.node[1].input.push("x".into()));
    assert!(count.contains("call") && count.contains("expected 1 inputs, got 2"), "{count}");
}

/// What becomes of `f`, which calls itself with `input`, one of its nodes, and adds its own argument, of 3.
fn endless(nodes: &str, input: &str) -> String {
    let pbtxt = r#"
        node { name: "x" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
               attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 3 } } } }
        node { name: "call" op: "f" input: "x" }
        library {
          function {
            signature { name: "f" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "b" type: DT_FLOAT } }
            NODES
            node_def { name: "again" op: "f" input: "INPUT" }
            node_def { name: "sum" op: "AddV2" input: "again:b:0" input: "a" OF_F32 }
            ret { key: "b" value: "sum:z:0" }
          }
        }"#;
    let float = r#"attr { key: "T" value { type: DT_FLOAT } }"#;
    let pbtxt = pbtxt.replace("NODES", nodes).replace("INPUT", input).replace("OF_F32", float);
    let graph = Graph::new();
    graph.import(&formats::graph_file::decode(pbtxt.as_bytes()).unwrap(), "").unwrap();
    session(&graph, 2).run(&[], &["call"], &[]).unwrap_err().to_string()
}

#[test]
fn a_recursion_that_goes_wrong_is_reported_once() {
    let deep = endless("", "a");
    assert!(deep.contains("function f calls itself 1000 deep"), "{deep}");
    assert!(deep.len() < 200, "{deep}");
    // For 3, 2 and 1 all is well; 1 / 0 is checked in the third call within the call.
    let nodes = r#"
        node_def { name: "one" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
                   attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 1 } } } }
        node_def { name: "inverse" op: "Reciprocal" input: "a" OF_F32 }
        node_def { name: "sound" op: "CheckNumerics" input: "inverse:y:0" OF_F32
                   attr { key: "message" value { s: "one by nothing" } } }
        node_def { name: "back" op: "Reciprocal" input: "sound:output:0" OF_F32 }
        node_def { name: "less" op: "Sub" input: "back:y:0" input: "one:output:0" OF_F32 }"#;
    let failed = endless(nodes, "less:z:0");
    assert!(failed.contains("one by nothing") && failed.contains("function f: node "), "{failed}");
    assert_eq!(failed.matches("function f").count(), 1, "{failed}");
}
