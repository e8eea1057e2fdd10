//! ONNX models as GraphDefs: to be looked at with the same tools. Ops keep ONNX's names.
//!
//! A value's producer becomes the consumer's input, `node:port`; initializers become `Const` nodes of their type and shape
//! (without their values), the model's inputs `Placeholder`s. A graph that is an attribute (the branches of `If`, the body of
//! `Loop`) becomes nodes below its node's name: `loop/body/...`. Exporters' leading `/` goes, so that names nest.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::{
    onnx::{AttributeProto, GraphProto, NodeProto, TypeProto, tensor_shape_proto::dimension},
    proto::{AttrValue, GraphDef, NodeDef, TensorShapeProto, attr_value, tensor_shape_proto::Dim},
};

/// Graphs in graphs deeper than this are left out: exporters write about three.
const MAX_DEPTH: usize = 32;

/// The model's graph with all graphs in it.
pub(crate) fn to_graph_def(graph: &GraphProto) -> GraphDef {
    let mut writer = Writer::default();
    writer.graph(graph, "", &HashMap::new(), 0);
    GraphDef { node: writer.nodes, ..GraphDef::default() }
}

/// Values by name, with the input string that refers to each.
type Values<'a> = HashMap<&'a str, String>;

#[derive(Default)]
struct Writer {
    nodes: Vec<NodeDef>,
    taken: HashSet<String>,
}

impl Writer {
    fn graph<'a>(&mut self, graph: &'a GraphProto, scope: &str, outer: &Values<'a>, depth: usize) {
        let mut values = outer.clone();
        let types = types_of(graph);
        for tensor in &graph.initializer {
            let shape = shape_attr(tensor.dims.iter().copied());
            let attr =
                BTreeMap::from([("dtype".into(), type_attr(tensor.data_type)), ("_output_shapes".into(), shape)]);
            let name = self.add(scope, &tensor.name, "Const", vec![], attr);
            values.insert(&tensor.name, name);
        }
        for input in graph.input.iter().filter(|i| graph.initializer.iter().all(|t| t.name != i.name)) {
            let attr = output_attrs(&[&input.name], &types);
            let name = self.add(scope, &input.name, "Placeholder", vec![], attr);
            values.insert(&input.name, name);
        }
        // Names first: a damaged model may use a value before it makes it.
        let names: Vec<String> = graph.node.iter().map(|node| self.name(scope, name_of(node))).collect();
        for (node, name) in graph.node.iter().zip(&names) {
            for (port, output) in node.output.iter().enumerate().filter(|(_, output)| !output.is_empty()) {
                values.insert(output, if port == 0 { name.clone() } else { format!("{name}:{port}") });
            }
        }
        for (node, name) in graph.node.iter().zip(names) {
            let input = node.input.iter().filter_map(|i| values.get(i.as_str()).cloned()).collect();
            let outputs: Vec<&str> = node.output.iter().map(String::as_str).collect();
            let mut attr = output_attrs(&outputs, &types);
            attr.extend(node.attribute.iter().filter_map(|a| Some((a.name.clone(), attribute(a)?))));
            if depth < MAX_DEPTH {
                for a in &node.attribute {
                    for (idx, inner) in a.g.iter().chain(&a.graphs).enumerate() {
                        let part = if idx == 0 { a.name.clone() } else { format!("{}_{idx}", a.name) };
                        self.graph(inner, &format!("{name}/{part}/"), &values, depth + 1);
                    }
                }
            }
            let op =
                if node.domain.is_empty() { node.op_type.clone() } else { format!("{}.{}", node.domain, node.op_type) };
            self.nodes.push(NodeDef { name, op, input, attr, ..NodeDef::default() });
        }
    }

    fn add(
        &mut self,
        scope: &str,
        name: &str,
        op: &str,
        input: Vec<String>,
        attr: BTreeMap<String, AttrValue>,
    ) -> String {
        let name = self.name(scope, name);
        self.nodes.push(NodeDef { name: name.clone(), op: op.into(), input, attr, ..NodeDef::default() });
        name
    }

    /// A name in a scope that no other node has.
    fn name(&mut self, scope: &str, name: &str) -> String {
        let wanted = format!("{scope}{}", name.trim_start_matches('/'));
        let mut free = wanted.clone();
        let mut n = 0;
        while !self.taken.insert(free.clone()) {
            n += 1;
            free = format!("{wanted}_{n}");
        }
        free
    }
}

/// Nodes need no name: then the op's.
fn name_of(node: &NodeProto) -> &str {
    if node.name.trim_start_matches('/').is_empty() { &node.op_type } else { &node.name }
}

fn types_of(graph: &GraphProto) -> HashMap<&str, &TypeProto> {
    let all = graph.input.iter().chain(&graph.value_info).chain(&graph.output);
    all.filter_map(|value| Some((value.name.as_str(), value.r#type.as_ref()?))).collect()
}

/// `_output_shapes` and `dtype`, where types are known.
fn output_attrs(outputs: &[&str], types: &HashMap<&str, &TypeProto>) -> BTreeMap<String, AttrValue> {
    let tensor = |name: &&str| types.get(name).and_then(|t| t.tensor_type.as_ref());
    let mut attr = BTreeMap::new();
    if let Some(first) = outputs.first().and_then(&tensor) {
        attr.insert("dtype".into(), type_attr(first.elem_type));
    }
    if outputs.iter().any(|name| tensor(name).is_some_and(|t| t.shape.is_some())) {
        let shape = |name: &&str| match tensor(name).and_then(|t| t.shape.as_ref()) {
            Some(shape) => known_shape(shape.dim.iter().map(|d| match d.value {
                Some(dimension::Value::DimValue(n)) => n,
                _ => -1,
            })),
            None => TensorShapeProto { unknown_rank: true, ..TensorShapeProto::default() },
        };
        attr.insert("_output_shapes".into(), shapes_attr(outputs.iter().map(shape).collect()));
    }
    attr
}

fn known_shape(dims: impl Iterator<Item = i64>) -> TensorShapeProto {
    TensorShapeProto { dim: dims.map(|size| Dim { size, ..Dim::default() }).collect(), ..TensorShapeProto::default() }
}

fn shape_attr(dims: impl Iterator<Item = i64>) -> AttrValue {
    shapes_attr(vec![known_shape(dims)])
}

fn shapes_attr(shape: Vec<TensorShapeProto>) -> AttrValue {
    let list = attr_value::ListValue { shape, ..attr_value::ListValue::default() };
    AttrValue { value: Some(attr_value::Value::List(list)) }
}

/// ONNX's element type as TensorFlow's.
fn type_attr(onnx: i32) -> AttrValue {
    const TENSORFLOW: [i32; 17] = [0, 1, 4, 6, 17, 5, 3, 9, 7, 10, 19, 2, 22, 23, 8, 18, 14];
    let number = usize::try_from(onnx).ok().and_then(|i| TENSORFLOW.get(i)).copied().unwrap_or(0);
    AttrValue { value: Some(attr_value::Value::Type(number)) }
}

/// An attribute that is no graph and no tensor (both may be large, and neither reads well).
fn attribute(a: &AttributeProto) -> Option<AttrValue> {
    use attr_value::{ListValue, Value};
    let value = match a.r#type {
        1 => Value::F(a.f),
        2 => Value::I(a.i),
        3 => Value::S(a.s.clone()),
        6 => Value::List(ListValue { f: a.floats.clone(), ..ListValue::default() }),
        7 => Value::List(ListValue { i: a.ints.clone(), ..ListValue::default() }),
        8 => Value::List(ListValue { s: a.strings.clone(), ..ListValue::default() }),
        _ => return None,
    };
    Some(AttrValue { value: Some(value) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::{TensorProto, ValueInfoProto};

    fn node(name: &str, op: &str, input: &[&str], output: &[&str]) -> NodeProto {
        let texts = |list: &[&str]| list.iter().map(|&s| s.to_owned()).collect();
        NodeProto {
            name: name.into(),
            op_type: op.into(),
            input: texts(input),
            output: texts(output),
            ..NodeProto::default()
        }
    }

    #[test]
    fn values_become_edges_and_inner_graphs_scopes() {
        let body = GraphProto { node: vec![node("", "Add", &["outer", "w"], &["sum"])], ..GraphProto::default() };
        let branch =
            AttributeProto { name: "then_branch".into(), g: Some(body), r#type: 5, ..AttributeProto::default() };
        let alpha = AttributeProto { name: "alpha".into(), f: 0.5, r#type: 1, ..AttributeProto::default() };
        let mut gemm = node("/layer/Gemm", "Gemm", &["x", "w", ""], &["outer", "extra"]);
        gemm.attribute.push(alpha);
        let mut choice = node("If_0", "If", &["extra"], &["y"]);
        choice.attribute.push(branch);
        let graph = GraphProto {
            node: vec![gemm, choice, node("", "Relu", &["y"], &["z"]), node("", "Relu", &["z"], &["q"])],
            initializer: vec![TensorProto {
                name: "w".into(),
                data_type: 1,
                dims: vec![3, 4],
                ..TensorProto::default()
            }],
            input: vec![
                ValueInfoProto { name: "x".into(), r#type: None },
                ValueInfoProto { name: "w".into(), r#type: None },
            ],
            ..GraphProto::default()
        };
        let def = to_graph_def(&graph);
        let lines: Vec<String> =
            def.node.iter().map(|n| format!("{} = {}({})", n.name, n.op, n.input.join(", "))).collect();
        assert_eq!(
            lines,
            [
                "w = Const()",
                "x = Placeholder()",
                "layer/Gemm = Gemm(x, w)",
                "If_0/then_branch/Add = Add(layer/Gemm, w)",
                "If_0 = If(layer/Gemm:1)",
                "Relu = Relu(If_0)",
                "Relu_1 = Relu(Relu)",
            ]
        );
        assert_eq!(def.node[2].attr["alpha"].value, Some(attr_value::Value::F(0.5)));
        assert_eq!(def.node[0].attr["dtype"], type_attr(1));
    }
}
