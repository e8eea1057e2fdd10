//! Puts a `_Send` and a `_Recv` in the place of the edges from a value to a device (white paper section 3.2.2).

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use super::control_loops::{ControlLoops, constant, signal};
use super::frames::{Frame, Frames, ROOT};
use crate::compile::passes::PassContext;
use crate::compile::{CompileError, NewNode, Pair};
use crate::compile::{Source, WorkGraph, WorkId};
use engine_core::device::Device;
use engine_core::dtype::DType;
use engine_core::graph::Attr;
use engine_ops::kernels::transfer::LOSSY;

/// What a node needs from another device.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum RemoteInput {
    Value(WorkId, u32),
    /// That the node has run.
    Ran(WorkId),
}

impl RemoteInput {
    fn node(self) -> WorkId {
        match self {
            RemoteInput::Value(node, _) | RemoteInput::Ran(node) => node,
        }
    }
}

/// Replaces all edges between devices.
///
/// # Errors
/// A loop on several devices has no condition.
pub(super) fn insert(
    graph: &mut WorkGraph,
    frames: &mut Frames,
    context: &PassContext<'_>,
) -> Result<Vec<Pair>, CompileError> {
    let loops = control_loops(graph, frames)?;
    let mut transfers = Transfers { graph, frames, context, loops, recvs: FxHashMap::default(), pairs: Vec::new() };
    for id in transfers.graph.ids() {
        transfers.rewire(id)?;
    }
    let pairs = transfers.pairs;
    // Nothing in the graph uses what a send does.
    graph.targets.extend(pairs.iter().map(|pair| pair.send));
    graph.senders.extend(pairs.iter().map(|pair| (pair.recv, pair.send)));
    Ok(pairs)
}

/// The edges into a node from other devices.
fn remote_inputs(graph: &WorkGraph, id: WorkId) -> SmallVec<[RemoteInput; 4]> {
    let Some(node) = graph.get(id) else { return smallvec![] };
    let is_foreign = |from: &WorkId| graph.get(*from).is_some_and(|from| from.device != node.device);
    let data = node.inputs.iter().filter_map(|source| match source {
        Source::Port(from, port) => is_foreign(from).then_some(RemoteInput::Value(*from, *port)),
        Source::Feed(_) => None,
    });
    data.chain(node.control_inputs.iter().filter(|from| is_foreign(from)).map(|from| RemoteInput::Ran(*from))).collect()
}

/// A control loop for each frame and device that receives in it.
fn control_loops(graph: &mut WorkGraph, frames: &mut Frames) -> Result<ControlLoops, CompileError> {
    let mut loops = ControlLoops::default();
    for id in graph.ids() {
        let device = graph.get(id).map_or(0, |node| node.device);
        for needed in remote_inputs(graph, id) {
            let frame = frames.of_output(graph, needed.node());
            loops.ensure(graph, frames, frame, device)?;
        }
    }
    Ok(loops)
}

struct Transfers<'a, 'c> {
    graph: &'a mut WorkGraph,
    frames: &'a mut Frames,
    context: &'a PassContext<'c>,
    loops: ControlLoops,
    /// By what is needed and the device that needs it.
    recvs: FxHashMap<(RemoteInput, u32), WorkId>,
    pairs: Vec<Pair>,
}

impl Transfers<'_, '_> {
    /// Lets a node take what comes from other devices from receives on its own.
    fn rewire(&mut self, id: WorkId) -> Result<(), CompileError> {
        let device = self.graph.get(id).map_or(0, |node| node.device);
        for needed in remote_inputs(self.graph, id) {
            let recv = self.recv(needed, device)?;
            let Some(node) = self.graph.get_mut(id) else { continue };
            match needed {
                RemoteInput::Value(from, port) => {
                    let uses = node.inputs.iter_mut().filter(|input| **input == Source::Port(from, port));
                    uses.for_each(|input| *input = recv.into());
                }
                RemoteInput::Ran(from) => {
                    node.control_inputs.retain(|before| *before != from);
                    node.control_inputs.push(recv);
                }
            }
        }
        Ok(())
    }

    /// The only receive of something on a device.
    fn recv(&mut self, needed: RemoteInput, device: u32) -> Result<WorkId, CompileError> {
        if let Some(recv) = self.recvs.get(&(needed, device)) {
            return Ok(*recv);
        }
        let pair = self.add(needed, device)?;
        self.pairs.push(pair);
        let received = match needed {
            RemoteInput::Value(..) => pair.recv,
            RemoteInput::Ran(_) => self.signalled(pair.recv, device)?,
        };
        self.recvs.insert((needed, device), received);
        Ok(received)
    }

    /// A node whose having run, or being dead, is that of what is received: a receive itself runs either way.
    fn signalled(&mut self, recv: WorkId, device: u32) -> Result<WorkId, CompileError> {
        let name = self.graph.get(recv).map(|node| format!("{}/signal", node.name())).unwrap_or_default();
        let signalled = self.graph.add_new(NewNode {
            name: &name,
            op: "Identity",
            attrs: BTreeMap::from([("T".to_owned(), Attr::Type(DType::F32))]),
            inputs: smallvec![recv.into()],
            control_inputs: smallvec![],
            outputs: vec![signal()],
            device,
        })?;
        self.frames.put(signalled, self.frames.of_node(recv));
        Ok(signalled)
    }

    fn add(&mut self, needed: RemoteInput, to: u32) -> Result<Pair, CompileError> {
        let from_node = needed.node();
        let frame = self.frames.of_output(self.graph, from_node);
        let Some(node) = self.graph.get(from_node) else {
            return Err(CompileError::Pass { pass: "partition", problem: "an edge comes from nowhere".into() });
        };
        let (from, name) = (node.device, Arc::clone(node.name()));
        let (edge, scope, port) = match needed {
            RemoteInput::Value(_, port) => {
                (format!("{name}:{port}"), format!("{name}/_{port}"), node.outputs().get(port as usize))
            }
            RemoteInput::Ran(_) => (format!("^{name}"), format!("{name}/_ran"), None),
        };
        let port = port.cloned().unwrap_or_else(signal);
        let is_lossy = port.dtype == DType::F32
            && (self.context.transfers.is_lossy || asks_lossy(node.def.attrs.get("_lossy_outputs"), needed));
        let value = match needed {
            RemoteInput::Value(node, port) => Source::Port(node, port),
            RemoteInput::Ran(node) => {
                let ran = constant(self.graph, &scope, from, &[node])?;
                self.frames.put(ran, frame);
                ran.into()
            }
        };
        let attrs = self.attrs(from, to, &edge, is_lossy);
        let with_type = |key: &str| {
            let mut attrs = attrs.clone();
            attrs.insert(key.to_owned(), Attr::Type(port.dtype));
            attrs
        };
        let (send_attrs, recv_attrs) = (with_type("T"), with_type("tensor_type"));
        let arming = if frame == ROOT { None } else { self.loops.merge(frame, to) };
        let send = self.graph.add_new(NewNode {
            name: &format!("{scope}/_send_{to}"),
            op: "_Send",
            attrs: send_attrs,
            inputs: smallvec![value],
            control_inputs: smallvec![],
            outputs: Vec::new(),
            device: from,
        })?;
        let recv = self.graph.add_new(NewNode {
            name: &format!("{scope}/_recv_{to}"),
            op: "_Recv",
            attrs: recv_attrs,
            inputs: smallvec![],
            control_inputs: arming.into_iter().collect(),
            outputs: vec![port],
            device: to,
        })?;
        self.put(frame, &[send, recv]);
        Ok(Pair { send, recv })
    }

    fn put(&mut self, frame: Frame, nodes: &[WorkId]) {
        nodes.iter().for_each(|id| self.frames.put(*id, frame));
    }

    fn attrs(&self, from: u32, to: u32, edge: &str, is_lossy: bool) -> BTreeMap<String, Attr> {
        let device = |number: u32| self.context.devices.get(number as usize);
        let name = |number: u32| device(number).map(|d| d.full_name().to_string()).unwrap_or_default();
        // An attribute is a number with a sign; all 64 bits are kept.
        let incarnation = device(from).map_or(0, |d: &Arc<Device>| d.incarnation()) as i64;
        let mut attrs = BTreeMap::from([
            ("tensor_name".to_owned(), Attr::from(edge)),
            ("send_device".to_owned(), Attr::from(name(from).as_str())),
            ("send_device_incarnation".to_owned(), Attr::Int(incarnation)),
            ("recv_device".to_owned(), Attr::from(name(to).as_str())),
        ]);
        if is_lossy {
            attrs.insert(LOSSY.to_owned(), Attr::Bool(true));
        }
        attrs
    }
}

/// Whether a node asks for the lossy transfer of an output.
fn asks_lossy(ports: Option<&Attr>, needed: RemoteInput) -> bool {
    let (Some(Attr::ListInt(ports)), RemoteInput::Value(_, port)) = (ports, needed) else { return false };
    ports.contains(&i64::from(port))
}
