//! What takes a function node's place runs in the node's frame and only where the node would: constants of bodies that use
//! nothing they are given, in loops and branches.

#![allow(clippy::unwrap_used, reason = "a test")]

use engine::{Graph, Session, SessionOptions, Tensor};

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

/// `y` of a graph with a fed `x`.
fn y(nodes: &[String], functions: &[String], x: f32) -> f32 {
    let nodes: String = nodes.iter().map(|node| format!("node {node} ")).collect();
    let placeholder = node("x", "Placeholder", &[], &of("dtype", "DT_FLOAT"));
    let pbtxt = format!("node {placeholder} {nodes} library {{ {} }}", functions.concat());
    let def = formats::graph_file::decode(pbtxt.as_bytes()).unwrap();
    let mut values = Vec::new();
    for (devices, threads) in [(1, 1), (1, 2), (2, 2)] {
        let graph = Graph::new();
        graph.import(&def, "").unwrap_or_else(|e| panic!("{e}\n{pbtxt}"));
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
