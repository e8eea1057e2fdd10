//! What takes a function node's place runs in the node's frame and only where the node would: constants of bodies that use
//! nothing they are given, in loops and branches.

use engine::{Graph, PartialShape, Session, SessionOptions, Tensor};
use formats::proto::GraphDef;

/// An attribute `key` of a type.
fn of(key: &str, dtype: &str) -> String {
    format!(r#"attr {{ key: "{key}" value {{ type: {dtype} }} }} "#)
}

fn node(name: &str, op: &str, inputs: &[&str], attrs: &str) -> String {
    let inputs: String = inputs.iter().map(|input| format!(r#"input: "{input}" "#)).collect();
    format!(r#"{{ name: "{name}" op: "{op}" {inputs} {attrs} }}"#)
}

fn float(value: f32) -> String {
    let tensor = format!(r#"attr {{ key: "value" value {{ tensor {{ dtype: DT_FLOAT float_val: {value} }} }} }}"#);
    of("dtype", "DT_FLOAT") + &tensor
}

fn int(value: i32) -> String {
    let tensor = format!(r#"attr {{ key: "value" value {{ tensor {{ dtype: DT_INT32 int_val: {value} }} }} }}"#);
    of("dtype", "DT_INT32") + &tensor
}

/// A node that calls `f` with values of these types, and gives some.
fn calls(attrs: &[(&str, &str)], given: &str, results: &str) -> String {
    let list = |types: &str| types.split_whitespace().map(|t| format!("type: {t} ")).collect::<String>();
    let types = |key: &str, types: &str| format!(r#"attr {{ key: "{key}" value {{ list {{ {} }} }} }} "#, list(types));
    let functions = attrs.iter().map(|(key, f)| match f.split_whitespace().collect::<Vec<_>>()[..] {
        [one] => format!(r#"attr {{ key: "{key}" value {{ func {{ name: "{one}" }} }} }} "#),
        ref many => {
            let many: String = many.iter().map(|f| format!(r#"func {{ name: "{f}" }} "#)).collect();
            format!(r#"attr {{ key: "{key}" value {{ list {{ {many} }} }} }} "#)
        }
    });
    functions.collect::<String>() + &types("Tin", given) + &types("Tout", results)
}

/// A function of arguments `name TYPE, ...`, nodes, and results `name TYPE value, ...`.
fn function(name: &str, args: &str, nodes: &[String], results: &str) -> String {
    let words = |text: &str| -> Vec<Vec<String>> {
        text.split(',').map(|one| one.split_whitespace().map(str::to_owned).collect()).collect()
    };
    let arg = |words: &Vec<String>| format!(r#"input_arg {{ name: "{}" type: {} }} "#, words[0], words[1]);
    let result = |words: &Vec<String>| format!(r#"output_arg {{ name: "{}" type: {} }} "#, words[0], words[1]);
    let ret = |words: &Vec<String>| format!(r#"ret {{ key: "{}" value: "{}" }} "#, words[0], words[2]);
    let args: String = words(args).iter().map(arg).collect();
    let outputs: String = words(results).iter().map(result).collect();
    let rets: String = words(results).iter().map(ret).collect();
    let nodes: String = nodes.iter().map(|node| format!("node_def {node} ")).collect();
    format!(r#"function {{ signature {{ name: "{name}" {args} {outputs} }} {nodes} {rets} }} "#)
}

/// A graph with a placeholder `x`.
fn definition(nodes: &[String], functions: &[String]) -> GraphDef {
    let nodes: String = nodes.iter().map(|node| format!("node {node} ")).collect();
    let placeholder = node("x", "Placeholder", &[], &of("dtype", "DT_FLOAT"));
    let pbtxt = format!("node {placeholder} {nodes} library {{ {} }}", functions.concat());
    formats::graph_file::decode(pbtxt.as_bytes()).unwrap()
}

/// `y` of a graph with a fed `x`.
fn y(nodes: &[String], functions: &[String], x: f32) -> f32 {
    let def = definition(nodes, functions);
    let mut values = Vec::new();
    for (devices, threads) in [(1, 1), (1, 2), (2, 2)] {
        let graph = Graph::new();
        graph.import(&def, "").unwrap_or_else(|e| panic!("{e}\n{nodes:?}"));
        let options = SessionOptions { threads: Some(threads), ..SessionOptions::devices(devices) };
        let session = Session::new(&graph, options).unwrap();
        let got = session.run(&[("x", Tensor::scalar(x))], &["y"], &[]).unwrap_or_else(|e| panic!("{e}"));
        values.push(got[0].item::<f32>().unwrap());
    }
    assert!(values.windows(2).all(|two| two[0] == two[1]), "{values:?}");
    values[0]
}

fn t() -> String {
    of("T", "DT_FLOAT")
}

/// A function that gives 5 whatever it is given.
fn five() -> String {
    function("five", "a DT_FLOAT", &[node("c", "Const", &[], &float(5.0))], "r DT_FLOAT c:output:0")
}

#[test]
fn a_call_in_a_branch_gives_nothing_where_the_branch_is_not_taken() {
    // The argument is made in the branch: nothing else ties the constant to it.
    let then = [
        node("half", "Tanh", &["a"], &t()),
        node("call", "PartitionedCall", &["half:y:0"], &calls(&[("f", "five")], "DT_FLOAT", "DT_FLOAT")),
    ];
    let functions = [
        five(),
        function("then", "a DT_FLOAT", &then, "r DT_FLOAT call:output:0"),
        function("else", "a DT_FLOAT", &[node("neg", "Neg", &["a"], &t())], "r DT_FLOAT neg:y:0"),
    ];
    let conditional = calls(&[("then_branch", "then"), ("else_branch", "else")], "DT_FLOAT", "DT_FLOAT");
    let nodes = [
        node("zero", "Const", &[], &float(0.0)),
        node("p", "Greater", &["x", "zero"], &t()),
        node("y", "If", &["p", "x"], &(of("Tcond", "DT_BOOL") + &conditional)),
    ];
    for _ in 0..20 {
        assert_eq!(y(&nodes, &functions, 2.0), 5.0);
        assert_eq!(y(&nodes, &functions, -2.0), 2.0);
    }
}

/// Three iterations of a body over `i` and `v`, which begins as `x`.
fn three_times(body: &[String], functions: &[String], result: &str, x: f32) -> f32 {
    let types = "attr { key: \"T\" value { list { type: DT_INT32 type: DT_FLOAT } } } ";
    let functions_of =
        r#"attr { key: "cond" value { func { name: "cond" } } } attr { key: "body" value { func { name: "body" } } }"#;
    let next =
        [node("one", "Const", &[], &int(1)), node("next", "AddV2", &["i", "one:output:0"], &of("T", "DT_INT32"))];
    let cond =
        [node("three", "Const", &[], &int(3)), node("less", "Less", &["i", "three:output:0"], &of("T", "DT_INT32"))];
    let own = [
        function("cond", "i DT_INT32, v DT_FLOAT", &cond, "r DT_BOOL less:z:0"),
        function(
            "body",
            "i DT_INT32, v DT_FLOAT",
            &[&next, body].concat(),
            &format!("j DT_INT32 next:z:0, w DT_FLOAT {result}"),
        ),
    ];
    let nodes = [
        node("start", "Const", &[], &int(0)),
        node("loop", "While", &["start", "x"], &format!("{types} {functions_of}")),
        node("y", "Identity", &["loop:1"], &t()),
    ];
    y(&nodes, &[functions, &own].concat(), x)
}

#[test]
fn a_call_in_a_loop_gives_its_value_in_each_iteration() {
    // v = v * five(tanh(v))
    let body = [
        node("half", "Tanh", &["v"], &t()),
        node("call", "PartitionedCall", &["half:y:0"], &calls(&[("f", "five")], "DT_FLOAT", "DT_FLOAT")),
        node("product", "Mul", &["v", "call:output:0"], &t()),
    ];
    assert_eq!(three_times(&body, &[five()], "product:z:0", 2.0), 250.0);
}

#[test]
fn a_case_in_a_loop_takes_the_branch_of_each_iteration() {
    // v = v + 1, v * 5, v * 5 (the last branch, for what is out of range): for 2 (2 + 1) * 5 * 5.
    let branch = |name: &str, op: &str, value: f32| {
        let nodes = [node("c", "Const", &[], &float(value)), node("z", op, &["v", "c:output:0"], &t())];
        function(name, "v DT_FLOAT", &nodes, "r DT_FLOAT z:z:0")
    };
    let case = calls(&[("branches", "add product")], "DT_FLOAT", "DT_FLOAT");
    let functions = [branch("add", "AddV2", 1.0), branch("product", "Mul", 5.0)];
    let body = [node("case", "Case", &["i", "v"], &case)];
    assert_eq!(three_times(&body, &functions, "case:output:0", 2.0), 75.0);
    // The index is made in the loop too.
    let body =
        [node("j", "Square", &["i"], &of("T", "DT_INT32")), node("case", "StatelessCase", &["j:y:0", "v"], &case)];
    assert_eq!(three_times(&body, &functions, "case:output:0", 2.0), 75.0);
}

#[test]
fn a_loop_without_changes_in_a_loop_ends() {
    // while false: (the inner loop hands its variable on), in each iteration of the outer one.
    let inner = r#"attr { key: "T" value { list { type: DT_FLOAT } } }
        attr { key: "cond" value { func { name: "never" } } } attr { key: "body" value { func { name: "same" } } }"#;
    let no = r#"attr { key: "dtype" value { type: DT_BOOL } } attr { key: "value" value { tensor { dtype: DT_BOOL bool_val: false } } }"#;
    let functions = [
        function("never", "v DT_FLOAT", &[node("no", "Const", &[], no)], "r DT_BOOL no:output:0"),
        function("same", "v DT_FLOAT", &[], "r DT_FLOAT v"),
    ];
    let body = [node("twice", "AddV2", &["v", "v"], &t()), node("inner", "While", &["twice:z:0"], inner)];
    assert_eq!(three_times(&body, &functions, "inner:output:0", 2.0), 16.0);
}

fn shape(dims: &[i32]) -> String {
    let content: String = dims.iter().map(|d| format!("int_val: {d} ")).collect();
    let shape = format!("tensor_shape {{ dim {{ size: {} }} }}", dims.len());
    let value = format!(r#"attr {{ key: "value" value {{ tensor {{ dtype: DT_INT32 {shape} {content} }} }} }}"#);
    of("dtype", "DT_INT32") + &value
}

/// A function that makes a vector of 3 of a scalar, which no scalar can be.
fn impossible() -> String {
    let nodes = [node("s", "Const", &[], &shape(&[3])), node("r", "Reshape", &["a", "s:output:0"], &t())];
    function("impossible", "a DT_FLOAT", &nodes, "r DT_FLOAT r:output:0")
}

#[test]
fn shapes_that_do_not_fit_in_a_branch_are_errors_of_the_step_that_takes_it() {
    let functions =
        [impossible(), function("else", "a DT_FLOAT", &[node("neg", "Neg", &["a"], &t())], "r DT_FLOAT neg:y:0")];
    let conditional = calls(&[("then_branch", "impossible"), ("else_branch", "else")], "DT_FLOAT", "DT_FLOAT");
    let nodes = [
        node("zero", "Const", &[], &float(0.0)),
        node("p", "Greater", &["x", "zero"], &t()),
        node("y", "If", &["p", "x"], &(of("Tcond", "DT_BOOL") + &conditional)),
    ];
    assert_eq!(y(&nodes, &functions, -2.0), 2.0);
    let graph = Graph::new();
    graph.import(&definition(&nodes, &functions), "").unwrap();
    let session = Session::new(&graph, SessionOptions::default()).unwrap();
    let error = session.run(&[("x", Tensor::scalar(2.0f32))], &["y"], &[]).unwrap_err().to_string();
    assert!(error.contains("y/then/r") && error.contains("Reshape"), "{error}");
}

#[test]
fn a_call_gives_the_shapes_of_its_body_and_its_misfits_are_found_at_once() {
    let body = [
        node("s", "Const", &[], &shape(&[2, 3])),
        node("fill", "Fill", &["s:output:0", "a"], &t()),
        node("call", "PartitionedCall", &["fill:output:0"], &calls(&[("f", "inner")], "DT_FLOAT", "DT_FLOAT")),
    ];
    let inner = [node("s", "Const", &[], &shape(&[-1, 2])), node("r", "Reshape", &["b", "s:output:0"], &t())];
    let functions = [
        function("outer", "a DT_FLOAT", &body, "r DT_FLOAT call:output:0"),
        function("inner", "b DT_FLOAT", &inner, "r DT_FLOAT r:output:0"),
        impossible(),
    ];
    let call = |f: &str, more: &str| {
        let attrs = calls(&[("f", f)], "DT_FLOAT", "DT_FLOAT") + more;
        [node("one", "Const", &[], &float(1.0)), node("y", "PartitionedCall", &["one"], &attrs)]
    };
    let import = |nodes: &[String]| {
        let graph = Graph::new();
        graph.import(&definition(nodes, &functions), "").map(|()| graph.shape(graph.output("y").unwrap()).unwrap())
    };
    assert_eq!(import(&call("outer", "")).unwrap(), PartialShape::new(&[Some(3), Some(2)]));
    let error = import(&call("impossible", "")).unwrap_err().to_string();
    assert!(error.contains("node y") && error.contains("1 elements do not fit shape [3]"), "{error}");
    let unasked = r#"attr { key: "_disable_call_shape_inference" value { b: true } }"#;
    assert_eq!(import(&call("impossible", unasked)).unwrap(), PartialShape::unknown());
}

#[test]
fn a_function_that_says_another_type_than_it_gives_is_refused() {
    let wrong = function("f", "a DT_FLOAT", &[node("neg", "Neg", &["a"], &t())], "r DT_INT32 neg:y:0");
    let nodes = [node("y", "PartitionedCall", &["x"], &calls(&[("f", "f")], "DT_FLOAT", "DT_FLOAT"))];
    let graph = Graph::new();
    graph.import(&definition(&nodes, &[wrong]), "").unwrap();
    let session = Session::new(&graph, SessionOptions::default()).unwrap();
    let error = session.run(&[("x", Tensor::scalar(2.0f32))], &["y"], &[]).unwrap_err().to_string();
    assert!(error.contains("node y: function f declares results of types"), "{error}");
}

/// The node with a device, colocated with others.
fn on(mut node: String, device: &str, with: &[&str]) -> String {
    let class: String = with.iter().map(|with| format!(r#"s: "loc:@{with}" "#)).collect();
    let class = format!(r#"attr {{ key: "_class" value {{ list {{ {class} }} }} }}"#);
    let end = node.rfind('}').unwrap();
    node.insert_str(end, &format!(r#" device: "{device}" {}"#, if with.is_empty() { "" } else { &class }));
    node
}

/// TensorFlow's rule: `import_graph_def` gives a node the device of what it is colocated with.
#[test]
fn colocated_nodes_get_the_device_of_what_they_are_with() {
    let nodes = [
        on(node("a", "Neg", &["x"], &t()), "/device:CPU:1", &[]),
        on(node("b", "Neg", &["x"], &t()), "/no device", &["nobody", "x", "a"]),
        on(node("c", "Neg", &["b"], &t()), "/device:CPU:0", &["b"]),
        on(node("d", "Neg", &["b"], &t()), "/device:CPU:0", &["nobody"]),
        on(node("e", "Neg", &["b"], &t()), "/device:CPU:0", &["e"]),
    ];
    for prefix in ["", "within"] {
        let graph = Graph::new();
        graph.import(&definition(&nodes, &[]), prefix).unwrap();
        let nodes = graph.nodes();
        let devices: Vec<&str> = nodes.iter().skip(1).map(|node| &*node.device).collect();
        assert_eq!(devices, ["/device:CPU:1", "/device:CPU:1", "/device:CPU:1", "", "/device:CPU:0"]);
    }
    let wrong = [on(node("a", "Neg", &["x"], &t()), "/gpu:x", &[])];
    let error = Graph::new().import(&definition(&wrong, &[]), "").unwrap_err().to_string();
    assert!(error.starts_with("node a: \"/gpu:x\" is not a device"), "{error}");
}

#[test]
fn a_constant_of_another_type_than_it_says_is_an_error_of_the_steps_that_need_it() {
    let value = r#"attr { key: "value" value { tensor { dtype: DT_FLOAT float_val: 1 } } }"#;
    let nodes = [
        node("wrong", "Const", &[], &(of("dtype", "DT_INT32") + value)),
        node("y", "Neg", &["x"], &t()),
        node("z", "Neg", &["wrong"], &of("T", "DT_INT32")),
    ];
    assert_eq!(y(&nodes, &[], 2.0), -2.0);
    let graph = Graph::new();
    graph.import(&definition(&nodes, &[]), "").unwrap();
    let session = Session::new(&graph, SessionOptions::default()).unwrap();
    let error = session.run(&[], &["z"], &[]).unwrap_err().to_string();
    assert!(error.contains("wrong") && error.contains("the value is float"), "{error}");
}

#[test]
fn a_range_that_runs_away_from_its_limit_is_refused() {
    let known = [
        node("start", "Const", &[], &int(3)),
        node("limit", "Const", &[], &int(1)),
        node("step", "Const", &[], &int(1)),
        node("y", "Range", &["start", "limit", "step"], &of("Tidx", "DT_INT32")),
    ];
    let error = Graph::new().import(&definition(&known, &[]), "").unwrap_err().to_string();
    assert!(error.contains("limit 1 is not reached from 3 in steps of 1"), "{error}");
    let fed = [
        node("limit", "Const", &[], &float(1.0)),
        node("range", "Range", &["x", "limit", "limit"], &of("Tidx", "DT_FLOAT")),
        node("y", "Size", &["range"], &t()),
    ];
    let graph = Graph::new();
    graph.import(&definition(&fed, &[]), "").unwrap();
    let session = Session::new(&graph, SessionOptions::default()).unwrap();
    let run = |x: f32| session.run(&[("x", Tensor::scalar(x))], &["y"], &[]).map(|y| y[0].item::<i32>().unwrap());
    assert_eq!((run(-2.0).unwrap(), run(1.0).unwrap()), (3, 0));
    assert!(run(2.0).unwrap_err().to_string().contains("limit 1 is not reached from 2 in steps of 1"));
}

#[test]
fn a_result_that_nobody_takes_is_not_computed() {
    let nodes = [
        node("s", "Const", &[], &shape(&[3])),
        node("wrong", "Reshape", &["a", "s:output:0"], &t()),
        node("right", "Neg", &["a"], &t()),
    ];
    let function = function("two", "a DT_FLOAT", &nodes, "r DT_FLOAT right:y:0, w DT_FLOAT wrong:output:0");
    let unasked = r#"attr { key: "_disable_call_shape_inference" value { b: true } }"#;
    let attrs = calls(&[("f", "two")], "DT_FLOAT", "DT_FLOAT DT_FLOAT") + unasked;
    let nodes = [node("call", "PartitionedCall", &["x"], &attrs), node("y", "Neg", &["call"], &t())];
    assert_eq!(y(&nodes, &[function], 2.0), 2.0);
}

/// TensorFlow places what a call runs by itself, and by default where the call is.
#[test]
fn the_device_of_a_call_is_a_default_for_its_body() {
    let body = [
        on(node("a", "Neg", &["v"], &t()), "", &["k"]),
        on(node("b", "Neg", &["v"], &t()), "/device:CPU:1", &["k"]),
        node("c", "AddV2", &["a:y:0", "b:y:0"], &t()),
    ];
    let function = function("f", "v DT_FLOAT", &body, "r DT_FLOAT c:z:0");
    let call = node("call", "PartitionedCall", &["x"], &calls(&[("f", "f")], "DT_FLOAT", "DT_FLOAT"));
    let nodes = [on(call, "/device:CPU:0", &[]), on(node("y", "Neg", &["call"], &t()), "/device:CPU:0", &[])];
    let graph = Graph::new();
    graph.import(&definition(&nodes, &[function]), "").unwrap();
    let session = Session::new(&graph, SessionOptions::devices(3)).unwrap();
    assert_eq!(session.run(&[("x", Tensor::scalar(2.0f32))], &["y"], &[]).unwrap()[0].item::<f32>().unwrap(), 4.0);
    assert!(session.relaxed_requests().is_empty());
    let ran = session.inspect(&["x"], &["y"], &[]).unwrap().graph;
    // What is colocated with the one that asks for another device is there, all else where the call is.
    let sent = ran.node.iter().filter(|node| node.op == "_Send");
    let text = |node: &formats::proto::NodeDef| match &node.attr["send_device"].value {
        Some(formats::proto::attr_value::Value::S(device)) => {
            format!("{:?} {}", node.input, String::from_utf8_lossy(device))
        }
        _ => String::new(),
    };
    let sent: Vec<String> = sent.map(text).collect();
    assert!(sent.iter().any(|send| send.contains("call/") && send.to_lowercase().contains("cpu:1")), "{sent:?}");
    assert!(!sent.iter().any(|send| send.contains("call/c")), "{sent:?}");
}

/// TensorFlow looks at the loops of what a step needs, and at no others: a gradient that it built wrongly may stand in a graph.
#[test]
fn a_node_that_fits_into_no_loop_is_an_error_of_the_steps_that_run_it() {
    let frame = |name: &str| t() + &format!(r#"attr {{ key: "frame_name" value {{ s: "{name}" }} }}"#);
    let truth = r#"attr { key: "dtype" value { type: DT_BOOL } } attr { key: "value" value { tensor {
        dtype: DT_BOOL tensor_shape {} bool_val: true } } }"#;
    let twice = t() + r#"attr { key: "N" value { i: 2 } }"#;
    let broken: [(&str, &str, &[&str], String, &str); 6] = [
        ("mixed", "AddV2", &["enter", "outside"], t(), "inputs from different frames"),
        ("mixed", "Switch", &["enter", "true"], t(), "inputs from different frames"),
        ("lost", "Exit", &["outside"], t(), "it is outside of any loop"),
        ("lost", "NextIteration", &["outside"], t(), "it is outside of any loop"),
        ("mixed", "Enter", &["enter"], frame("loop"), "frame loop is entered from"),
        ("head", "Merge", &["enter", "next"], twice, "it closes a loop that is not its own"),
    ];
    for (name, op, inputs, attrs, why) in broken {
        let nodes = [
            node("outside", "Const", &[], &float(1.0)),
            node("true", "Const", &[], truth),
            node("enter", "Enter", &["x"], &frame("loop")),
            node("other", "Enter", &["x"], &frame("other")),
            node(name, op, inputs, &attrs),
            node("next", "NextIteration", &["other"], &t()),
            node("after", "Neg", &[name], &t()),
            node("y", "Neg", &["x"], &t()),
        ];
        assert_eq!(y(&nodes, &[], 2.0), -2.0, "{op}");
        let graph = Graph::new();
        graph.import(&definition(&nodes, &[]), "").unwrap();
        let session = Session::new(&graph, SessionOptions::default()).unwrap();
        let error = session.run(&[("x", Tensor::scalar(2.0f32))], &["after"], &[]).unwrap_err().to_string();
        assert!(error.contains(&format!("node {name}")) && error.contains(why), "{op}: {error}");
    }
}
