//! Converts ONNX models to GraphDefs, so that the same tools show both. Ops retain ONNX's names.
//!
//! A consumer's input names the producer of the value, `node:port`. Initializers become `Const` nodes with their type
//! and shape but without their values, the model's inputs `Placeholder`s. A subgraph (a branch of `If`, the body of
//! `Loop`) is an attribute in ONNX; its nodes are named below its node's name: `loop/body/...`. The leading `/` that
//! exporters write is removed, so that names nest.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::{
    onnx::{
        AttributeProto, GraphProto, NodeProto, TypeProto, attribute_proto::AttributeType, tensor_shape_proto::dimension,
    },
    proto::{AttrValue, DataType, GraphDef, NodeDef, TensorShapeProto, attr_value, tensor_shape_proto::Dim},
};

/// The deepest nesting of subgraphs; deeper ones are left out. Exporters write about three levels.
const MAX_DEPTH: usize = 32;

/// Converts a model's graph with its subgraphs.
pub(crate) fn to_graph_def(graph: &GraphProto) -> GraphDef {
    let mut writer = Writer::default();
    writer.write_graph(graph, "", None, 0);
    GraphDef { node: writer.nodes, ..GraphDef::default() }
}

/// The values that a graph's nodes may use: those of the graph, and those of the enclosing graphs.
struct Values<'a, 'o> {
    /// The input string that refers to a value, by the value's name.
    inputs: HashMap<&'a str, String>,
    outer: Option<&'o Values<'a, 'o>>,
}

impl Values<'_, '_> {
    fn get(&self, name: &str) -> Option<&String> {
        self.inputs.get(name).or_else(|| self.outer?.get(name))
    }
}

#[derive(Default)]
struct Writer {
    nodes: Vec<NodeDef>,
    /// The names of all nodes.
    names: HashSet<String>,
}

impl Writer {
    fn write_graph<'a>(&mut self, graph: &'a GraphProto, scope: &str, outer: Option<&Values<'a, '_>>, depth: usize) {
        let mut inputs = HashMap::new();
        let types = value_types(graph);
        for tensor in &graph.initializer {
            let shape = shape_attr(tensor.dims.iter().copied());
            let attr =
                BTreeMap::from([("dtype".into(), type_attr(tensor.data_type)), ("_output_shapes".into(), shape)]);
            inputs.insert(tensor.name.as_str(), self.add_source(scope, &tensor.name, "Const", attr));
        }
        for input in graph.input.iter().filter(|i| graph.initializer.iter().all(|t| t.name != i.name)) {
            let attr = output_attrs(&[&input.name], &types);
            inputs.insert(&input.name, self.add_source(scope, &input.name, "Placeholder", attr));
        }
        // All nodes are named before any input is resolved: a damaged model may use a value before its producer.
        let names: Vec<String> = graph.node.iter().map(|node| self.unique_name(scope, node_name(node))).collect();
        for (node, name) in graph.node.iter().zip(&names) {
            for (port, output) in node.output.iter().enumerate().filter(|(_, output)| !output.is_empty()) {
                inputs.insert(output, if port == 0 { name.clone() } else { format!("{name}:{port}") });
            }
        }
        let values = Values { inputs, outer };
        for (node, name) in graph.node.iter().zip(names) {
            let input = node.input.iter().filter_map(|i| values.get(i.as_str()).cloned()).collect();
            let outputs: Vec<&str> = node.output.iter().map(String::as_str).collect();
            let mut attr = output_attrs(&outputs, &types);
            attr.extend(node.attribute.iter().filter_map(|a| Some((a.name.clone(), convert_attribute(a)?))));
            if depth < MAX_DEPTH {
                for a in &node.attribute {
                    for (idx, subgraph) in a.g.iter().chain(&a.graphs).enumerate() {
                        let part = if idx == 0 { a.name.clone() } else { format!("{}_{idx}", a.name) };
                        self.write_graph(subgraph, &format!("{name}/{part}/"), Some(&values), depth + 1);
                    }
                }
            }
            let op =
                if node.domain.is_empty() { node.op_type.clone() } else { format!("{}.{}", node.domain, node.op_type) };
            self.nodes.push(NodeDef { name, op, input, attr, ..NodeDef::default() });
        }
    }

    /// Adds a node without inputs, and returns its name.
    fn add_source(&mut self, scope: &str, name: &str, op: &str, attr: BTreeMap<String, AttrValue>) -> String {
        let name = self.unique_name(scope, name);
        self.nodes.push(NodeDef { name: name.clone(), op: op.into(), attr, ..NodeDef::default() });
        name
    }

    /// Reserves a name in a scope: `name`, or with a suffix where another node has it.
    fn unique_name(&mut self, scope: &str, name: &str) -> String {
        let base = format!("{scope}{}", name.trim_start_matches('/'));
        let mut unique = base.clone();
        let mut n = 0;
        while !self.names.insert(unique.clone()) {
            n += 1;
            unique = format!("{base}_{n}");
        }
        unique
    }
}

/// A node's name; the op's name where the node has none, which ONNX allows.
fn node_name(node: &NodeProto) -> &str {
    if node.name.trim_start_matches('/').is_empty() { &node.op_type } else { &node.name }
}

/// The types of a graph's values, by the value's name.
fn value_types(graph: &GraphProto) -> HashMap<&str, &TypeProto> {
    let values = graph.input.iter().chain(&graph.value_info).chain(&graph.output);
    values.filter_map(|value| Some((value.name.as_str(), value.r#type.as_ref()?))).collect()
}

/// The attrs `dtype`, of the first output, and `_output_shapes`, where the types are known.
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

/// An attr with TensorFlow's dtype for an element type of ONNX, given by number.
fn type_attr(onnx_type: i32) -> AttrValue {
    use DataType as T;
    // By the numbers of ONNX's TensorProto.DataType.
    const DTYPES: [T; 17] = [
        T::DtInvalid,
        T::DtFloat,
        T::DtUint8,
        T::DtInt8,
        T::DtUint16,
        T::DtInt16,
        T::DtInt32,
        T::DtInt64,
        T::DtString,
        T::DtBool,
        T::DtHalf,
        T::DtDouble,
        T::DtUint32,
        T::DtUint64,
        T::DtComplex64,
        T::DtComplex128,
        T::DtBfloat16,
    ];
    let dtype = usize::try_from(onnx_type).ok().and_then(|i| DTYPES.get(i)).copied().unwrap_or(T::DtInvalid);
    AttrValue { value: Some(attr_value::Value::Type(dtype.into())) }
}

/// Converts an attribute. `None` for graphs and tensors: both may be large, and neither is readable as an attr.
fn convert_attribute(a: &AttributeProto) -> Option<AttrValue> {
    use attr_value::{ListValue, Value};
    let value = match a.r#type() {
        AttributeType::Float => Value::F(a.f),
        AttributeType::Int => Value::I(a.i),
        AttributeType::String => Value::S(a.s.clone()),
        AttributeType::Floats => Value::List(ListValue { f: a.floats.clone(), ..ListValue::default() }),
        AttributeType::Ints => Value::List(ListValue { i: a.ints.clone(), ..ListValue::default() }),
        AttributeType::Strings => Value::List(ListValue { s: a.strings.clone(), ..ListValue::default() }),
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
