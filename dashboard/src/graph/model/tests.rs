//! Text in, text out: a few nodes as lines, the tree and the edges as lines.

use super::*;
use formats::proto::{GraphDef, NodeDef};
use std::sync::Arc;

/// `name = Op(input, input) @device`, one node a line.
pub(crate) fn graph(text: &str) -> Arc<GraphDef> {
    let node = |line: &str| {
        let (name, rest) = line.split_once('=').unwrap();
        let (op, rest) = rest.trim().split_once('(').unwrap();
        let (inputs, rest) = rest.rsplit_once(')').unwrap();
        let input = inputs.split(',').map(|i| i.trim().to_owned()).filter(|i| !i.is_empty()).collect();
        let device = rest.trim().trim_start_matches('@').to_owned();
        NodeDef { name: name.trim().to_owned(), op: op.to_owned(), input, device, ..NodeDef::default() }
    };
    let node = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(node).collect();
    Arc::new(GraphDef { node, ..GraphDef::default() })
}

fn model(text: &str) -> Model {
    Model::build(graph(text))
}

/// The tree, indented, then metaedges of every scope.
fn dump(model: &Model) -> String {
    let mut out = String::new();
    for item in model.items().skip(1) {
        let indent = "  ".repeat(model.depth(item) as usize - 1);
        let what = match (model.kind(item), model.role(item)) {
            (Kind::Op, Role::Shown) => model.op(item).to_owned(),
            (Kind::Op, role) => format!("{} {role:?}", model.op(item)),
            (kind, Role::Shown) => format!("{kind:?} {}", model.n_nodes(item)),
            (kind, role) => format!("{kind:?} {role:?}"),
        };
        out += &format!("{indent}{}: {what}\n", model.label(item));
    }
    for scope in model.items() {
        for edge in model.metaedges(scope) {
            let n = format!("{}+{}", edge.n_data, edge.n_control);
            out += &format!("{} -> {} {n}\n", model.name(edge.src), model.name(edge.dst));
        }
    }
    out
}

fn check(text: &str, expected: &str) {
    let expected: Vec<_> = expected.lines().map(str::trim_end).filter(|l| !l.trim().is_empty()).collect();
    let got = dump(&model(text));
    let got: Vec<_> = got.lines().collect();
    let indent = expected.first().map_or(0, |l| l.len() - l.trim_start().len());
    let expected: Vec<_> = expected.iter().map(|l| &l[indent..]).collect();
    assert_eq!(got, expected);
}

#[test]
fn names_become_scopes_and_edges_meet_at_their_lowest_common_scope() {
    check(
        "x = Placeholder()
         layer/w = VariableV2()
         layer/mul = MatMul(x, layer/w)
         layer/act/relu = Relu(layer/mul)
         out = Identity(layer/act/relu, ^layer/w)",
        "
        layer: Scope 3
          act: Scope 1
            relu: Relu
          w: VariableV2
          mul: MatMul
        x: Placeholder
        out: Identity
        layer -> out 1+1
        x -> layer 1+0
        layer/w -> layer/mul 1+0
        layer/mul -> layer/act 1+0
        ",
    );
}

#[test]
fn a_node_that_is_a_scope_becomes_its_child() {
    check("a = Add()\na/b = Mul(a)", "a: Scope 2\n  (a): Add\n  b: Mul\na -> a/b 1+0");
}

#[test]
fn constants_and_summaries_become_annotations() {
    let text = "c = Const(^x)
                x = Placeholder()
                y = Add(x, c)
                tag = Const()
                s = ScalarSummary(tag, y)
                all = MergeSummary(s)
                only/c = Const()
                z = Neg(only/c)";
    check(
        text,
        "
        only: Scope Empty
          c: Const Constant
        c: Const Constant
        x: Placeholder
        y: Add
        tag: Const Constant
        s: ScalarSummary Summary
        all: MergeSummary
        z: Neg
        x -> y 1+1
        ",
    );
    let model = model(text);
    let y = model.find("y").unwrap();
    assert_eq!(model.constants(y), [model.find("c").unwrap()]);
    assert_eq!(model.summaries(y), [model.find("s").unwrap()]);
    assert_eq!(model.host(model.find("s").unwrap()), y);
}

#[test]
fn series_fold_and_count() {
    let text: String = (0..6).map(|i| format!("save/RestoreV2_{i} = RestoreV2()\n")).collect();
    let model = model(&(text + "save/all = NoOp(^save/RestoreV2_3)"));
    let series = model.find("save/RestoreV2_[0…5]").unwrap();
    assert_eq!((model.kind(series), model.n_nodes(series)), (Kind::Series, 6));
    assert_eq!(model.children(model.find("save").unwrap()).len(), 2);
    assert_eq!(model.find("save/RestoreV2_4").map(|i| model.parent(i)), Some(series));
}

#[test]
fn replicas_share_a_structure_nested_modules_too() {
    let cell = |at: &str, from: &str| {
        format!(
            "{at}/deep/w = VariableV2()\n{at}/deep/m = MatMul({from}, {at}/deep/w)\n{at}/b = Add({at}/deep/m, {from})\n"
        )
    };
    let other = "d/deep/w = VariableV2()\nd/deep/m = MatMul(d/deep/w, x)\nd/b = Add(d/deep/m, x)\n";
    let text = format!("x = Placeholder()\n{}{}{}{other}", cell("a", "x"), cell("b/inner_1", "a/b"), cell("c", "x"));
    let model = model(&text);
    let class = |name: &str| model.structure(model.find(name).unwrap());
    assert_eq!(class("a"), class("b/inner_1"));
    assert_eq!(class("a/deep"), class("b/inner_1/deep"));
    assert_eq!((class("a").n_members, class("a/deep").n_members), (3, 3));
    assert_ne!(class("a").class, class("d").class, "operands exchanged is another structure");
}

#[test]
fn structure_tells_apart_what_neighbourhoods_alone_do_not() {
    // Two pairs fed by one source each, against two sources feeding one of each pair.
    let scope = |s: &str, w: [[u8; 2]; 2]| {
        let node = |name: &str, [p, q]: [u8; 2]| format!("{s}/{name} = Add({s}/a{p}, {s}/a{q})\n");
        format!("{s}/a0 = Rand()\n{s}/a1 = Rand()\n{}{}", node("b", w[0]), node("c", w[1]))
    };
    let model = model(&(scope("s", [[0, 0], [1, 1]]) + &scope("t", [[0, 1], [0, 1]])));
    let class = |name: &str| model.structure(model.find(name).unwrap()).class;
    assert_ne!(class("s"), class("t"));
}

#[test]
fn hostile_graphs_end_with_a_model_and_warnings() {
    let model =
        model("a = Add(a, nowhere, ^gone)\na = Mul(a:7)\n/ = X()\n// = Y(a//b)\n = Z()\nb = NextIteration(b, a)");
    let texts: Vec<_> = model.warnings().iter().map(|w| (w.count, w.text.as_str())).collect();
    assert_eq!(texts.len(), 2);
    assert_eq!((texts[0].0, texts[1].0), (3, 1));
    assert_eq!(model.n_nodes(ItemId::ROOT), 6);
    assert_eq!(Model::build(Arc::default()).n_items(), 1);
}

#[test]
fn a_name_of_a_hundred_thousand_components_is_a_name() {
    let deep = "s/".repeat(100_000);
    let model = model(&format!("{deep}a = Rand()\n{deep}b = Neg({deep}a)\nc = Neg({deep}b, ^{deep}a)"));
    assert_eq!(model.n_items(), 100_004);
    let edge = model.metaedges(ItemId::ROOT);
    assert_eq!((edge.len(), edge[0].n_data, edge[0].n_control), (1, 1, 1));
}
