//! A Keras model's configuration (its `to_json`) as a graph of its layers: a model is a name scope, a layer a node
//! whose op is its class.
//!
//! The configurations of Keras 2 and 3 are read, of functional and sequential models, nested in any way. Nodes, names
//! and edges are those of TensorBoard's conceptual graph; beyond it, inputs given by keyword, those of Keras 2, and
//! those of a functional model with several inputs or within a sequential one are edges too.

use formats::proto::{AttrValue, DataType, GraphDef, NodeDef, attr_value::Value as Attr};
use rustc_hash::FxHashMap;
use serde_json::Value;

/// The longest full name of a layer. Without a limit deeply nested models with long names would take memory out of
/// proportion.
const MAX_NAME: usize = 4_096;

/// Why a configuration has no graph.
#[derive(Debug, thiserror::Error)]
pub enum KerasError {
    /// The configuration is not JSON.
    #[error("not a model's configuration: {0}")]
    Json(#[from] serde_json::Error),
    /// The JSON is not a model's configuration.
    #[error("not a model's configuration: no layers")]
    NoLayers,
    /// A name within nested models is too long for a real model.
    #[error("a layer's name with its models' is longer than {MAX_NAME} bytes")]
    LongName,
}

/// The graph of a serialised model.
pub fn graph(json: &[u8]) -> Result<GraphDef, KerasError> {
    let json: Value = serde_json::from_slice(json)?;
    let root = Layer::parse(&json).ok_or(KerasError::NoLayers)?;
    let model = root.model.as_ref().ok_or(KerasError::NoLayers)?;
    let mut graph = GraphDef::default();
    model.write(root.name, &[], &mut graph.node)?;
    Ok(graph)
}

/// A layer, or a model in the place of a layer.
struct Layer<'a> {
    name: &'a str,
    class: &'a str,
    dtype: Option<DataType>,
    inbound: Vec<Reference<'a>>,
    model: Option<Model<'a>>,
}

/// Layers within a scope.
struct Model<'a> {
    layers: Vec<Layer<'a>>,
    by_name: FxHashMap<&'a str, usize>,
    inputs: Vec<Reference<'a>>,
    /// Empty for a sequential model, whose layers follow one another.
    outputs: Vec<Reference<'a>>,
}

/// An output of a layer.
#[derive(Clone, Copy)]
struct Reference<'a> {
    layer: &'a str,
    output: usize,
}

impl<'a> Layer<'a> {
    fn parse(json: &'a Value) -> Option<Self> {
        let config = json.get("config")?;
        let text = |object: &'a Value, key: &str| object.get(key).and_then(Value::as_str);
        let mut inbound = Vec::new();
        collect_references(json.get("inbound_nodes").unwrap_or(&Value::Null), &mut inbound);
        Some(Self {
            name: text(config, "name").or_else(|| text(json, "name")).unwrap_or("model"),
            class: text(json, "class_name").unwrap_or_default(),
            dtype: dtype(config.get("dtype")),
            inbound,
            model: Model::parse(config),
        })
    }
}

impl<'a> Model<'a> {
    fn parse(config: &'a Value) -> Option<Self> {
        let layers: Vec<Layer<'a>> = config.get("layers")?.as_array()?.iter().filter_map(Layer::parse).collect();
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        collect_references(config.get("input_layers").unwrap_or(&Value::Null), &mut inputs);
        collect_references(config.get("output_layers").unwrap_or(&Value::Null), &mut outputs);
        let by_name = layers.iter().enumerate().map(|(i, layer)| (layer.name, i)).collect();
        (!layers.is_empty()).then_some(Self { layers, by_name, inputs, outputs })
    }

    /// The node that makes output `output` of this model, which is called `scope`.
    fn output(&self, scope: &str, output: usize) -> String {
        let declared_output = self.outputs.get(output).or(self.outputs.last());
        let last = || self.layers.last().map(|last| last.output(scope, 0));
        declared_output.and_then(|reference| self.node_of(scope, *reference)).or_else(last).unwrap_or_default()
    }

    /// The node that makes the output `reference` of a layer in this model; `None` where there is no such layer.
    fn node_of(&self, scope: &str, reference: Reference<'_>) -> Option<String> {
        let layer = &self.layers[*self.by_name.get(reference.layer)?];
        Some(layer.output(scope, reference.output))
    }

    /// Adds a node for each layer. `inputs` are the nodes of the model's inputs; of a model that is called several
    /// times, those of one call after the other.
    fn write(&self, scope: &str, inputs: &[String], nodes: &mut Vec<NodeDef>) -> Result<(), KerasError> {
        let is_sequential = self.outputs.is_empty();
        let mut previous_output = inputs.to_vec();
        for layer in &self.layers {
            let name = format!("{scope}/{}", layer.name);
            if name.len() > MAX_NAME {
                return Err(KerasError::LongName);
            }
            let inbound = layer.inbound.iter().filter_map(|reference| self.node_of(scope, *reference));
            let mut layer_inputs: Vec<String> = inbound.collect();
            if is_sequential {
                layer_inputs.append(&mut previous_output);
            }
            let input_positions = self.inputs.iter().enumerate().filter(|(_, input)| input.layer == layer.name);
            for (position, _) in input_positions.filter(|_| !is_sequential) {
                layer_inputs.extend(inputs.iter().skip(position).step_by(self.inputs.len()).cloned());
            }
            match &layer.model {
                Some(model) => model.write(&name, &layer_inputs, nodes)?,
                None => nodes.push(layer.node(name, layer_inputs)),
            }
            previous_output = vec![layer.output(scope, 0)];
        }
        Ok(())
    }
}

impl Layer<'_> {
    /// The node that makes output `output` of the layer, which is in a model called `scope`.
    fn output(&self, scope: &str, output: usize) -> String {
        let name = format!("{scope}/{}", self.name);
        match &self.model {
            Some(model) => model.output(&name, output),
            None => name,
        }
    }

    fn node(&self, name: String, input: Vec<String>) -> NodeDef {
        let class = Attr::S(self.class.as_bytes().to_vec());
        let dtype = self.dtype.map(|dtype| ("dtype", Attr::Type(dtype.into())));
        let attrs = [Some(("keras_class", class)), dtype].into_iter().flatten();
        NodeDef {
            name,
            op: self.class.to_owned(),
            input,
            attr: attrs.map(|(name, value)| (name.to_owned(), AttrValue { value: Some(value) })).collect(),
            ..NodeDef::default()
        }
    }
}

/// Finds the references to outputs of layers: `["layer", node, output]` of Keras 2 and of models' inputs and outputs,
/// or the `keras_history` of a tensor in the arguments of a call in Keras 3.
fn collect_references<'a>(json: &'a Value, found: &mut Vec<Reference<'a>>) {
    match json {
        Value::Array(items) => {
            if let [Value::String(layer), Value::Number(_), output @ Value::Number(_), rest @ ..] = &items[..] {
                let output = output.as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
                found.push(Reference { layer, output });
                return rest.iter().for_each(|item| collect_references(item, found));
            }
            items.iter().for_each(|item| collect_references(item, found));
        }
        Value::Object(fields) => {
            if let Some(history) = fields.get("config").and_then(|config| config.get("keras_history")) {
                return collect_references(history, found);
            }
            // Positional arguments come first, as in the call.
            fields.get("args").into_iter().for_each(|args| collect_references(args, found));
            fields.iter().filter(|(name, _)| *name != "args").for_each(|(_, value)| collect_references(value, found));
        }
        _ => {}
    }
}

/// The dtype in which a layer computes, from its name or from the name of a dtype policy.
fn dtype(json: Option<&Value>) -> Option<DataType> {
    let json = json?;
    let name = json.as_str().or_else(|| json.get("config")?.get("name")?.as_str())?;
    match name {
        "float16" => Some(DataType::DtHalf),
        "float32" => Some(DataType::DtFloat),
        "float64" => Some(DataType::DtDouble),
        name => DataType::from_str_name(&format!("DT_{}", name.to_uppercase())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: &[&str]) {
        let graph = graph(json.as_bytes()).unwrap();
        let line = |node: &NodeDef| format!("{} = {}({})", node.name, node.op, node.input.join(", "));
        assert_eq!(graph.node.iter().map(line).collect::<Vec<_>>(), expected);
    }

    const DENSE: &str = r#""class_name": "Dense", "config""#;

    #[test]
    fn inputs_of_keras_2_and_by_keyword() {
        let json = format!(
            r#"{{"class_name": "Functional", "config": {{"name": "m", "layers": [
                {{"class_name": "InputLayer", "config": {{"name": "a"}}, "inbound_nodes": []}},
                {{{DENSE}: {{"name": "b"}}, "inbound_nodes": [[["a", 0, 0, {{}}]]]}},
                {{{DENSE}: {{"name": "c"}}, "inbound_nodes": [[["a", 0, 0, {{"y": ["b", 0, 0]}}]]]}},
                {{{DENSE}: {{"name": "d"}}, "inbound_nodes": [{{"args": [], "kwargs": {{"key":
                    {{"class_name": "__keras_tensor__", "config": {{"keras_history": ["c", 0, 0]}}}}}}}}]}}],
                "input_layers": [["a", 0, 0]], "output_layers": [["d", 0, 0]]}}}}"#
        );
        check(&json, &["m/a = InputLayer()", "m/b = Dense(m/a)", "m/c = Dense(m/a, m/b)", "m/d = Dense(m/c)"]);
    }

    #[test]
    fn a_model_of_two_inputs_called_twice() {
        let inner = r#"{"class_name": "Functional", "name": "in", "config": {"name": "in", "layers": [
            {"class_name": "InputLayer", "config": {"name": "p"}, "inbound_nodes": []},
            {"class_name": "InputLayer", "config": {"name": "q"}, "inbound_nodes": []}],
            "input_layers": [["p", 0, 0], ["q", 0, 0]], "output_layers": [["p", 0, 0], ["q", 0, 0]]},
            "inbound_nodes": [[["a", 0, 0, {}], ["b", 0, 0, {}]], [["b", 0, 0, {}], ["a", 0, 0, {}]]]}"#;
        let json = format!(
            r#"{{"class_name": "Functional", "config": {{"name": "m", "layers": [
                {{{DENSE}: {{"name": "a"}}}}, {{{DENSE}: {{"name": "b"}}}}, {inner},
                {{{DENSE}: {{"name": "c"}}, "inbound_nodes": [[["in", 1, 1, {{}}]]]}}],
                "input_layers": [["a", 0, 0]], "output_layers": [["c", 0, 0]]}}}}"#
        );
        let expected = [
            "m/a = Dense()",
            "m/b = Dense()",
            "m/in/p = InputLayer(m/a, m/b)",
            "m/in/q = InputLayer(m/b, m/a)",
            "m/c = Dense(m/in/q)",
        ];
        check(&json, &expected);
    }

    #[test]
    fn what_is_no_model_says_so() {
        for json in
            ["", "[]", "{}", r#"{"config": 1}"#, r#"{"config": {"layers": []}}"#, r#"{"config": {"layers": 5}}"#]
        {
            assert!(graph(json.as_bytes()).is_err(), "{json}");
        }
        let mut json = r#"{"config": {"name": "x"}}"#.to_owned();
        for _ in 0..40 {
            json = format!(r#"{{"config": {{"name": "{}", "layers": [{json}]}}}}"#, "n".repeat(200));
        }
        assert!(matches!(graph(json.as_bytes()), Err(KerasError::LongName)));
    }
}
