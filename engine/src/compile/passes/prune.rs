//! What must run for some fetches and targets, given some feeds (white paper section 4.2, Figure 6).

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{PassContext, Source, WorkFeed, WorkGraph, WorkId, WorkNode};
use crate::compile::{CompileError, Signature};
use engine_core::dtype::DType;
use engine_core::functions;
use engine_core::graph::{GraphError, Node, NodeId, Nodes, Output};
use engine_core::ops::OpKind;
use engine_core::shape::PartialShape;

#[derive(Clone, Copy, PartialEq)]
enum Mark {
    New,
    /// Its inputs are being visited.
    Open,
    Done,
}

/// The pass: takes the nodes that must run; gives their number.
pub(in crate::compile) fn run(graph: &mut WorkGraph, context: &PassContext<'_>) -> Result<usize, CompileError> {
    if let Some((from, signature)) = context.source {
        *graph = WorkGraph::pruned(&from.nodes(), signature)?;
    }
    Ok(graph.len())
}

/// Whether all that must run can be found.
///
/// # Errors
/// A placeholder that is not fed, a cycle, what belongs to another graph.
pub(in crate::compile) fn check(nodes: &Nodes, signature: &Signature) -> Result<(), CompileError> {
    Prune::new(nodes, signature)?.order(signature).map(drop)
}

/// The nodes that must run and call functions: those are lowered before the passes.
pub(in crate::compile) fn calls(nodes: &Nodes, signature: &Signature) -> Result<Vec<NodeId>, CompileError> {
    if !nodes.iter().any(|node| node.op.kind.is_functional()) {
        return Ok(Vec::new());
    }
    let needed = Prune::new(nodes, signature)?.order(signature)?;
    Ok(needed.into_iter().filter(|node| node.op.kind.is_functional()).map(|node| node.id).collect())
}

impl WorkGraph {
    /// The nodes that must run, each after what it waits for: found backwards from fetches and targets, stopping at
    /// feeds.
    ///
    /// # Errors
    /// A feed, fetch or target that does not exist, a placeholder that is not fed, a cycle.
    pub(crate) fn pruned(nodes: &Nodes, signature: &Signature) -> Result<WorkGraph, CompileError> {
        let prune = Prune::new(nodes, signature)?;
        let order = prune.order(signature)?;
        let mut number = vec![u32::MAX; nodes.len()];
        order.iter().enumerate().for_each(|(i, node)| number[node.id.index()] = i as u32);
        let mut graph = WorkGraph::default();
        for feed in &signature.feeds {
            let port = &find(nodes, feed.node)?.outputs[feed.port as usize];
            let name = output_name(nodes, *feed)?;
            graph.feeds.push(WorkFeed { name, dtype: port.dtype, shape: port.shape.clone() });
        }
        let source = |output: &Output| match prune.fed.get(output) {
            Some(feed) => Source::Feed(*feed),
            None => Source::Port(WorkId(number[output.node.index()]), output.port),
        };
        let input = |output: &Output| source(&prune.producer(*output));
        for node in order {
            let control = node.control_inputs.iter().map(|id| number[id.index()]);
            graph.add(WorkNode {
                inputs: node.inputs.iter().map(input).collect(),
                // Not in the graph: a placeholder that is fed.
                control_inputs: control.filter(|id| *id != u32::MAX).map(WorkId).collect(),
                origin: Some(node.id),
                device: 0,
                def: Arc::clone(node),
            });
        }
        for fetch in &signature.fetches {
            graph.fetch_names.push(output_name(nodes, *fetch)?);
            graph.fetches.push(source(fetch));
        }
        let targets = signature.targets.iter().map(|id| number[id.index()]);
        graph.targets = targets.filter(|id| *id != u32::MAX).map(WorkId).collect();
        graph.forget_shapes_of_fed(nodes, signature);
        Ok(graph)
    }

    /// Shapes follow from integers that the graph computes from constants. Where a feed takes the place of such integers,
    /// what depends on it can have any shape.
    fn forget_shapes_of_fed(&mut self, nodes: &Nodes, signature: &Signature) {
        let is_computed = |output: &Output| {
            nodes.get(output.node).is_some_and(|node| {
                let dtype = node.outputs.get(output.port as usize).map(|port| port.dtype);
                node.op.kind != OpKind::Placeholder && matches!(dtype, Some(DType::I32 | DType::I64))
            })
        };
        let fed: Vec<u32> = (0..).zip(&signature.feeds).filter(|(_, feed)| is_computed(feed)).map(|(i, _)| i).collect();
        if fed.is_empty() {
            return;
        }
        for (feed, output) in self.feeds.iter_mut().zip(&signature.feeds) {
            if nodes.get(output.node).is_some_and(|node| node.op.kind != OpKind::Placeholder) {
                feed.shape = PartialShape::unknown();
            }
        }
        let ids: Vec<WorkId> = self.iter().map(|(id, _)| id).collect();
        let mut depends = vec![false; ids.len()];
        let mut is_changed = true;
        // Again until nothing changes: a loop's head comes before what closes it.
        while std::mem::take(&mut is_changed) {
            for id in &ids {
                let Some(node) = self.get(*id).filter(|_| !depends[id.index()]) else { continue };
                depends[id.index()] = node.inputs.iter().any(|source| match source {
                    Source::Feed(i) => fed.contains(i),
                    Source::Port(from, _) => depends[from.index()],
                });
                is_changed |= depends[id.index()];
            }
        }
        for id in ids.into_iter().filter(|id| depends[id.index()]) {
            if let Some(node) = self.get_mut(id) {
                Arc::make_mut(&mut node.def).outputs.iter_mut().for_each(|port| port.shape = PartialShape::unknown());
            }
        }
    }
}

struct Prune<'a> {
    nodes: &'a Nodes,
    fed: FxHashMap<Output, u32>,
}

impl<'a> Prune<'a> {
    fn new(nodes: &'a Nodes, signature: &Signature) -> Result<Prune<'a>, CompileError> {
        let mut fed = FxHashMap::default();
        for (i, feed) in signature.feeds.iter().enumerate() {
            let name = output_name(nodes, *feed)?;
            if fed.insert(*feed, i as u32).is_some() {
                return Err(CompileError::FedTwice { name });
            }
        }
        Ok(Prune { nodes, fed })
    }

    /// Whether nothing is left to run of a node: a placeholder that is fed.
    fn is_given(&self, id: NodeId) -> bool {
        self.fed.contains_key(&Output::from(id)) && self.nodes.get(id).is_some_and(|n| n.op.kind == OpKind::Placeholder)
    }

    /// The output that an input takes: where it is a result of a call, branch or loop, that of the body. Who needs one of the
    /// results does not wait for the others.
    fn producer(&self, mut output: Output) -> Output {
        while !self.fed.contains_key(&output)
            && let Some(node) = self.nodes.get(output.node)
            && node.attrs.contains_key(functions::RESULTS)
            && let (Some(input), []) = (node.inputs.get(output.port as usize), &*node.control_inputs)
        {
            output = *input;
        }
        output
    }

    fn order(&self, signature: &Signature) -> Result<Vec<&'a Arc<Node>>, CompileError> {
        let fetched = signature.fetches.iter().filter(|fetch| !self.fed.contains_key(fetch)).map(|fetch| fetch.node);
        let targets = signature.targets.iter().copied().filter(|id| !self.is_given(*id));
        let wanted: Vec<NodeId> = fetched.chain(targets).collect();
        let mut marks = vec![Mark::New; self.nodes.len()];
        let mut order = Vec::new();
        // Where loops close; whoever runs the loop's head needs them too, but does not wait for them.
        let mut later: Vec<NodeId> = Vec::new();
        // Depth first without recursion: graphs are deeper than stacks. A node is left when it comes up again.
        let mut stack: Vec<NodeId> = wanted.into_iter().rev().collect();
        while let Some(id) = stack.last().copied().or_else(|| later.pop()) {
            if stack.is_empty() {
                stack.push(id);
            }
            let node = find(self.nodes, id)?;
            match marks[id.index()] {
                Mark::Done => drop(stack.pop()),
                Mark::Open => {
                    marks[id.index()] = Mark::Done;
                    order.push(node);
                    stack.pop();
                }
                Mark::New => {
                    marks[id.index()] = Mark::Open;
                    self.visit(node, &marks, &mut stack, &mut later)?;
                }
            }
        }
        Ok(order)
    }

    /// Puts what the node waits for on the stack.
    fn visit(
        &self,
        node: &Node,
        marks: &[Mark],
        stack: &mut Vec<NodeId>,
        later: &mut Vec<NodeId>,
    ) -> Result<(), CompileError> {
        if node.op.kind == OpKind::Placeholder {
            return Err(CompileError::not_fed(node));
        }
        if let Some(GraphError::ControlFlow { node, op, source }) = self.nodes.misplaced(node.id) {
            return Err(CompileError::ControlFlow { node: node.clone(), op, source: source.clone() });
        }
        let data = node.inputs.iter().map(|input| self.producer(*input));
        let data = data.filter(|input| !self.fed.contains_key(input)).map(|input| input.node);
        let control = node.control_inputs.iter().copied().filter(|id| !self.is_given(*id));
        for before in data.chain(control) {
            if find(self.nodes, before)?.op.kind.closes_loop(node.op.kind) {
                later.push(before);
                continue;
            }
            match marks[before.index()] {
                Mark::New => stack.push(before),
                Mark::Open => return Err(CompileError::Cycle { node: node.name.to_string() }),
                Mark::Done => {}
            }
        }
        Ok(())
    }
}

fn find(nodes: &Nodes, id: NodeId) -> Result<&Arc<Node>, CompileError> {
    nodes.get(id).ok_or(CompileError::ForeignNode { id })
}

fn output_name(nodes: &Nodes, output: Output) -> Result<String, CompileError> {
    let node = find(nodes, output.node)?;
    if output.port as usize >= node.outputs.len() {
        return Err(CompileError::NoSuchPort { node: node.name.to_string(), port: output.port });
    }
    Ok(format!("{}:{}", node.name, output.port))
}
