//! A client's feeds and fetches lie in the host's memory: they are copied to and from devices that have their own.
//!
//! Within loops nothing is added (a value of another frame needs more than a copy): kernels find such a feed on the host.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use smallvec::smallvec;

use super::frames::{Frames, ROOT};
use crate::compile::CompileError;
use crate::compile::NewNode;
use crate::compile::passes::PassContext;
use crate::compile::{Source, WorkGraph, WorkId};
use engine_core::graph::{Attr, Port};

/// Puts a `_ToDevice` behind each feed, for each device with its own memory that takes it, and a `_ToHost` behind each value
/// of such a device that is fetched. Gives how many.
pub(super) fn insert(graph: &mut WorkGraph, context: &PassContext<'_>) -> Result<usize, CompileError> {
    let is_host = |device: u32| context.devices.get(device as usize).is_none_or(|device| device.is_host());
    if context.devices.iter().all(|device| device.is_host()) {
        return Ok(0);
    }
    let frames = Frames::of(graph)?;
    let mut fed: FxHashMap<(u32, u32), WorkId> = FxHashMap::default();
    for id in graph.ids() {
        let Some(node) = graph.get(id).filter(|node| !is_host(node.device)) else { continue };
        if frames.of_node(id) != ROOT {
            continue;
        }
        let (inputs, device) = (node.inputs.clone(), node.device);
        for (i, source) in inputs.iter().enumerate() {
            let Source::Feed(feed) = *source else { continue };
            let there = match fed.get(&(feed, device)) {
                Some(there) => *there,
                None => add(graph, "_ToDevice", *source, device)?,
            };
            fed.insert((feed, device), there);
            if let Some(node) = graph.get_mut(id) {
                node.inputs[i] = there.into();
            }
        }
    }
    let mut fetched: FxHashMap<Source, WorkId> = FxHashMap::default();
    for i in 0..graph.fetches.len() {
        let source = graph.fetches[i];
        let Some(device) = source.node().and_then(|id| graph.get(id)).map(|node| node.device) else { continue };
        if is_host(device) {
            continue;
        }
        let here = match fetched.get(&source) {
            Some(here) => *here,
            None => add(graph, "_ToHost", source, device)?,
        };
        fetched.insert(source, here);
        graph.fetches[i] = here.into();
    }
    Ok(fed.len() + fetched.len())
}

fn add(graph: &mut WorkGraph, op: &str, source: Source, device: u32) -> Result<WorkId, CompileError> {
    let name = match source {
        Source::Port(id, port) => graph.get(id).map(|node| format!("{}/_{port}", node.name())),
        Source::Feed(i) => graph.feeds.get(i as usize).map(|feed| feed.name.replace(':', "/_")),
    };
    let Some((dtype, shape)) = graph.port(source).map(|(dtype, shape)| (dtype, shape.clone())) else {
        return Err(CompileError::Pass { pass: "partition", problem: "a value comes from nowhere".into() });
    };
    graph.add_new(NewNode {
        name: &format!("{}{}_{device}", name.unwrap_or_default(), op.to_ascii_lowercase()),
        op,
        attrs: BTreeMap::from([("T".to_owned(), Attr::Type(dtype))]),
        inputs: smallvec![source],
        control_inputs: smallvec![],
        outputs: vec![Port { dtype, shape }],
        device,
    })
}
