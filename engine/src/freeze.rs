//! Freezing: a trained graph with a checkpoint's values in the place of its variables, and nothing left that trains.

use std::collections::BTreeMap;

use formats::proto::{AttrValue, GraphDef, NodeDef, attr_value::Value};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::checkpoint::{Checkpoint, CheckpointError};
use engine_core::dtype::DType;
use engine_core::ops::{self, Effect, OpKind};
use engine_core::tensor::Tensor;
use engine_core::tensor_proto;

/// Why a graph cannot be frozen.
#[derive(Debug, thiserror::Error)]
pub enum FreezeError {
    /// A variable's value cannot be had.
    #[error("variable {name}: {source}")]
    Variable {
        /// The variable.
        name: String,
        /// What is wrong with it.
        #[source]
        source: CheckpointError,
    },
    /// An output that is to be kept does not exist.
    #[error("the graph has no node {0}")]
    NoSuchNode(String),
    /// An output that is to be kept changes state, or waits for something that does.
    #[error("node {node} cannot be kept: it needs {effect} (op {op}), which has an effect that a frozen graph has not")]
    Effect {
        /// The output.
        node: String,
        /// The node with the effect.
        effect: String,
        /// Its op.
        op: String,
    },
    /// Every output trains, saves or prints.
    #[error("nothing is left: every output of the graph has an effect")]
    Nothing,
}

/// What was done.
#[derive(Debug, Clone)]
pub struct Frozen {
    /// The graph.
    pub graph: GraphDef,
    /// How many variables became constants.
    pub n_variables: usize,
    /// Bytes of their values.
    pub n_bytes: u64,
}

/// Puts the values of a checkpoint in the place of a graph's variables and keeps what `outputs` need; where none are
/// given, everything without an effect. Batches that came from a queue are to be fed.
///
/// # Errors
/// See [`FreezeError`].
pub fn freeze(def: &GraphDef, checkpoint: &Checkpoint, outputs: &[String]) -> Result<Frozen, FreezeError> {
    let variables: FxHashMap<&str, String> =
        def.node.iter().filter(|n| is_variable(n)).map(|n| (n.name.as_str(), shared_name(n))).collect();
    let kept = kept(def, outputs)?;
    let mut values: BTreeMap<String, Tensor> = BTreeMap::new();
    let mut graph = GraphDef { node: Vec::new(), ..def.clone() };
    for node in def.node.iter().filter(|node| kept.contains(node.name.as_str())) {
        let variable = match ops::kind(&node.op) {
            OpKind::Variable => variables.get(node.name.as_str()),
            OpKind::ReadVariable => node.input.first().and_then(|input| variables.get(source(input))),
            _ => None,
        };
        let Some(name) = variable else {
            if !is_variable(node) {
                graph.node.extend(frozen(node, &variables, checkpoint, &mut values)?);
            }
            continue;
        };
        let value = value_of(name, checkpoint, &mut values)?;
        let control = node.input.iter().filter(|input| input.starts_with('^')).cloned().collect();
        graph.node.push(constant(&node.name, &node.device, &value, control));
    }
    // What only variables needed goes with them.
    let n_bytes = values.values().map(|value| value.n_bytes() as u64).sum();
    Ok(Frozen { graph, n_variables: values.len(), n_bytes })
}

fn is_variable(node: &NodeDef) -> bool {
    ops::kind(&node.op).is_variable()
}

/// Whether it becomes a constant, or rows of one, where its variable does.
fn reads_variable(node: &NodeDef) -> bool {
    ops::kind(&node.op) == OpKind::ReadVariable || node.op == GATHER
}

/// Reads rows of a variable.
const GATHER: &str = "ResourceGather";

/// The name that the variable's value is saved under.
fn shared_name(node: &NodeDef) -> String {
    match node.attr.get("shared_name").and_then(|attr| attr.value.as_ref()) {
        Some(Value::S(name)) if !name.is_empty() => String::from_utf8_lossy(name).into_owned(),
        _ => node.name.clone(),
    }
}

/// The node that an input comes from.
fn source(input: &str) -> &str {
    let input = input.strip_prefix('^').unwrap_or(input);
    input.split(':').next().unwrap_or(input)
}

fn value_of(name: &str, checkpoint: &Checkpoint, values: &mut BTreeMap<String, Tensor>) -> Result<Tensor, FreezeError> {
    if let Some(value) = values.get(name) {
        return Ok(value.clone());
    }
    let value = checkpoint.read(name).map_err(|source| FreezeError::Variable { name: name.to_owned(), source })?;
    values.insert(name.to_owned(), value.clone());
    Ok(value)
}

/// A node that stays: rows of a variable become rows of a constant, a batch from a queue is fed.
fn frozen(
    node: &NodeDef,
    variables: &FxHashMap<&str, String>,
    checkpoint: &Checkpoint,
    values: &mut BTreeMap<String, Tensor>,
) -> Result<Vec<NodeDef>, FreezeError> {
    let mut node = node.clone();
    let mut added = Vec::new();
    // Initialisers are not kept.
    node.input.retain(|input| !input.starts_with('^') || !variables.contains_key(source(input)));
    let batch_of_queue = ops::kind(&node.op) == OpKind::PlaceholderWithDefault;
    if batch_of_queue && node.input.iter().any(|input| !input.starts_with('^')) {
        node.op = "Placeholder".to_owned();
        node.input.clear();
    }
    if node.op == GATHER
        && let Some(name) = node.input.first().and_then(|input| variables.get(source(input)))
    {
        let value = value_of(name, checkpoint, values)?;
        let (table, axis) = (format!("{}/frozen", node.name), format!("{}/axis", node.name));
        added.push(constant(&table, &node.device, &value, Vec::new()));
        added.push(constant(&axis, &node.device, &Tensor::scalar(0i32), Vec::new()));
        node.op = "GatherV2".to_owned();
        node.attr.retain(|key, _| key != "validate_indices" && key != "dtype");
        node.attr.insert("Tparams".to_owned(), type_attr(value.dtype()));
        node.attr.insert("Taxis".to_owned(), type_attr(DType::I32));
        node.input[0] = table;
        let n_data = node.input.iter().take_while(|input| !input.starts_with('^')).count();
        node.input.insert(n_data, axis);
    }
    added.push(node);
    Ok(added)
}

fn type_attr(dtype: DType) -> AttrValue {
    AttrValue { value: Some(Value::Type(dtype as i32)) }
}

fn constant(name: &str, device: &str, value: &Tensor, control: Vec<String>) -> NodeDef {
    let tensor = AttrValue { value: Some(Value::Tensor(tensor_proto::to_proto(value))) };
    NodeDef {
        name: name.to_owned(),
        op: "Const".to_owned(),
        input: control,
        device: device.to_owned(),
        attr: [("dtype".to_owned(), type_attr(value.dtype())), ("value".to_owned(), tensor)].into_iter().collect(),
        ..NodeDef::default()
    }
}

/// The nodes that stay, by name.
fn kept<'a>(def: &'a GraphDef, outputs: &[String]) -> Result<FxHashSet<&'a str>, FreezeError> {
    let mut effects = Effects::of(def);
    let mut kept = FxHashSet::default();
    if outputs.is_empty() {
        for node in &def.node {
            if effects.first(node).is_none() {
                kept.insert(node.name.as_str());
            }
        }
        return if kept.is_empty() { Err(FreezeError::Nothing) } else { Ok(kept) };
    }
    let mut stack = Vec::new();
    for output in outputs {
        let node = effects.nodes.get(source(output)).copied().ok_or_else(|| FreezeError::NoSuchNode(output.clone()))?;
        if let Some(found) = effects.first(node) {
            let (effect, op) = (found.name.clone(), found.op.clone());
            return Err(FreezeError::Effect { node: output.clone(), effect, op });
        }
        stack.push(node);
    }
    while let Some(node) = stack.pop() {
        if kept.insert(node.name.as_str()) {
            stack.extend(inputs(node).filter_map(|input| effects.nodes.get(source(input)).copied()));
        }
    }
    Ok(kept)
}

/// The inputs that a node has when frozen.
fn inputs(node: &NodeDef) -> impl Iterator<Item = &String> {
    let is_cut =
        is_variable(node) || matches!(ops::kind(&node.op), OpKind::PlaceholderWithDefault | OpKind::ReadVariable);
    node.input.iter().filter(move |_| !is_cut)
}

/// Which nodes of a graph have effects, or need nodes that have.
struct Effects<'a> {
    nodes: FxHashMap<&'a str, &'a NodeDef>,
    /// Whether the functions of the graph's library have state.
    functions: FxHashMap<&'a str, bool>,
    /// What was found so far.
    known: FxHashMap<&'a str, Option<&'a NodeDef>>,
}

impl<'a> Effects<'a> {
    fn of(def: &'a GraphDef) -> Effects<'a> {
        let signatures = def.library.iter().flat_map(|l| &l.function).filter_map(|f| f.signature.as_ref());
        Effects {
            nodes: def.node.iter().map(|node| (node.name.as_str(), node)).collect(),
            functions: signatures.map(|s| (s.name.as_str(), s.is_stateful)).collect(),
            known: FxHashMap::default(),
        }
    }

    /// The first node with an effect that `node` needs, itself included; loops and long chains cost no stack.
    fn first(&mut self, node: &'a NodeDef) -> Option<&'a NodeDef> {
        let mut stack = vec![(node, false)];
        while let Some((node, is_back)) = stack.pop() {
            let name = node.name.as_str();
            if is_back {
                let found = inputs(node).find_map(|input| self.known.get(source(input)).copied().flatten());
                self.known.insert(name, found);
                continue;
            }
            if self.known.contains_key(name) {
                continue;
            }
            // Within a loop the node itself counts as harmless until it is known.
            let has_effect = self.has_effect(node);
            self.known.insert(name, has_effect.then_some(node));
            if !has_effect {
                stack.push((node, true));
                let before = inputs(node).filter_map(|input| self.nodes.get(source(input)));
                stack.extend(before.map(|node| (*node, false)));
            }
        }
        self.known.get(node.name.as_str()).copied().flatten()
    }

    /// Whether a node changes state, or needs state that a frozen graph has not: of what a graph reads, variables
    /// become constants.
    fn has_effect(&self, node: &NodeDef) -> bool {
        match ops::lookup(&node.op) {
            Some(op) => match op.effect {
                Effect::None | Effect::Random | Effect::Step | Effect::Checks => false,
                Effect::Reads => !is_variable(node) && !reads_variable(node),
                Effect::Writes => true,
            },
            None => self.functions.get(node.op.as_str()).copied().unwrap_or(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{Saver, SaverOptions};
    use crate::models::MlpOptions;
    use crate::training::mlp;
    use crate::{Graph, Session, SessionOptions};

    #[test]
    fn a_frozen_perceptron_answers_as_before() {
        let g = Graph::new();
        let m = mlp(&g, &MlpOptions { hidden: vec![16], ..MlpOptions::default() }).unwrap();
        let session = Session::new(&g, SessionOptions::default()).unwrap();
        let name = |id| g.node(id).unwrap().name.to_string();
        session.run(&[], &[], &[&name(m.init)]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut saver = Saver::new(folder.path(), SaverOptions::default()).unwrap();
        let prefix = saver.save(&session, 1).unwrap();
        let checkpoint = Checkpoint::open(prefix).unwrap();
        let loss = name(m.loss.node);
        let frozen = freeze(&g.to_def(), &checkpoint, std::slice::from_ref(&loss)).unwrap();
        assert_eq!(frozen.n_variables, 4);
        assert!(frozen.graph.node.iter().all(|n| !n.op.contains("Variable") && !n.op.contains("Apply")));
        let again = Graph::new();
        again.import(&frozen.graph, "").unwrap();
        let x = Tensor::from_vec([2, 64], (0..128).map(|i| i as f32 / 128.0).collect()).unwrap();
        let y = Tensor::vector(&[3i64, 4]);
        let run = |s: &Session| s.run(&[("x", x.clone()), ("labels", y.clone())], &[&loss], &[]).unwrap();
        let served = Session::new(&again, SessionOptions::default()).unwrap();
        assert_eq!(run(&session), run(&served));
        // Without names, what trains is left out and the rest stays.
        let rest = freeze(&g.to_def(), &checkpoint, &[]).unwrap();
        assert!(
            rest.graph.node.iter().any(|n| n.name == loss) && rest.graph.node.iter().all(|n| !n.op.contains("Apply"))
        );
        let refused = freeze(&g.to_def(), &checkpoint, &[name(m.train_op)]).unwrap_err().to_string();
        assert!(refused.contains("cannot be kept"), "{refused}");
    }
}
