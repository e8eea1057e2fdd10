//! References: what reads the value of one of TensorFlow's first variables gets a node that reads it, then.
//!
//! An output such as `Variable`'s is the variable itself ([`engine_core::ops::ArgDef::is_ref`]); ops that update it take it as
//! it is, every other op takes its value at the time when it runs. So the read waits for what its reader waits for.

use std::collections::BTreeMap;

use smallvec::{SmallVec, smallvec};

use super::NewNode;
use super::{PassContext, Source, WorkGraph, WorkId};
use crate::compile::CompileError;
use engine_core::graph::{Attr, Port};
use engine_core::ops::{ArgDef, ArgType, OpKind as K};

/// Whether the argument at a position is a reference. Ops with references have no lists before them.
fn is_ref(args: &[ArgDef], at: usize) -> bool {
    let is_single = |arg: &ArgDef| matches!(arg.ty, ArgType::Fixed(_) | ArgType::Attr(_));
    args.get(at).is_some_and(|arg| arg.is_ref) && args[..at].iter().all(is_single)
}

fn is_ref_source(graph: &WorkGraph, source: Source) -> bool {
    let Source::Port(node, port) = source else { return false };
    graph.get(node).is_some_and(|node| is_ref(&node.def.op.outputs, port as usize))
}

/// Runs the pass; gives the number of reads it added.
pub(in crate::compile) fn run(graph: &mut WorkGraph, _: &PassContext<'_>) -> Result<usize, CompileError> {
    if !graph.iter().any(|(_, node)| node.def.op.outputs.iter().any(|arg| arg.is_ref)) {
        return Ok(0);
    }
    let mut n_added = 0;
    for id in graph.ids() {
        let Some(node) = graph.get(id) else { continue };
        let reads: SmallVec<[usize; 2]> = (0..node.inputs.len())
            .filter(|i| is_ref_source(graph, node.inputs[*i]) && !is_ref(&node.def.op.inputs, *i))
            .collect();
        for i in reads {
            let read = add_read(graph, id, i)?;
            graph.set_input(id, i, read);
            n_added += 1;
        }
    }
    for i in 0..graph.fetches.len() {
        let source = graph.fetches[i];
        if is_ref_source(graph, source) {
            graph.fetches[i] = read_of(graph, source, SmallVec::new())?;
            n_added += 1;
        }
    }
    Ok(n_added)
}

/// A read for input `i` of a node, after all that the node waits for. Nodes that pass one of several values on do not
/// wait for the others.
fn add_read(graph: &mut WorkGraph, id: WorkId, i: usize) -> Result<Source, CompileError> {
    let Some(node) = graph.get(id) else {
        return Err(CompileError::Pass { pass: "references", problem: "a node went while it was read".into() });
    };
    let source = node.inputs[i];
    let mut before: SmallVec<[WorkId; 2]> = node.control_inputs.clone();
    if !matches!(node.kind(), K::Merge | K::Switch | K::Enter | K::NextIteration | K::Exit) {
        let others = node.inputs.iter().enumerate().filter(|(at, _)| *at != i).filter_map(|(_, other)| other.node());
        before.extend(others.filter(|other| Some(*other) != source.node()));
        before.sort_unstable();
        before.dedup();
    }
    read_of(graph, source, before)
}

fn read_of(graph: &mut WorkGraph, source: Source, before: SmallVec<[WorkId; 2]>) -> Result<Source, CompileError> {
    let gone = || CompileError::Pass { pass: "references", problem: "a reference comes from nowhere".into() };
    let (dtype, shape) = graph.port(source).map(|(dtype, shape)| (dtype, shape.clone())).ok_or_else(gone)?;
    let of = source.node().and_then(|node| graph.get(node)).ok_or_else(gone)?;
    let (name, device) = (format!("{}/read_value", of.name()), of.device);
    let read = graph.add_new(NewNode {
        name: &name,
        op: "ReadReference",
        attrs: BTreeMap::from([("T".to_owned(), Attr::Type(dtype))]),
        inputs: smallvec![source],
        control_inputs: before,
        outputs: vec![Port { dtype, shape }],
        device,
    })?;
    Ok(read.into())
}
