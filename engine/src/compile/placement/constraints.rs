//! Which nodes must be on one device, and which devices that can be (white paper section 4.3).
//!
//! Nodes come together by union-find: those that name one class (`_class` with `loc:@name`), and those that use a
//! resource with the node that makes it, whose request counts where they ask for different devices. A group's devices are
//! those that all its members' requests admit and that have kernels for all of them.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::device_set::DeviceSet;
use super::error::PlacementError;
use crate::compile::{Source, WorkGraph, WorkId, WorkNode};
use engine_core::device::{Device, DeviceName};
use engine_core::dtype::DType;
use engine_core::functions;
use engine_core::graph::{Attr, colocated_with};
use engine_core::kernel;

/// A set of device types, at most 64.
type Kinds = u64;
/// The device that a node asks for.
pub(super) fn request(node: &WorkNode) -> Result<DeviceName, PlacementError> {
    node.def.device.parse().map_err(|source| PlacementError::Name { node: node.name().to_string(), source })
}

/// Why two nodes must be on one device.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    Colocated,
    /// The second uses a resource of the first.
    Resource,
}

impl Why {
    fn text(self) -> &'static str {
        match self {
            Why::Colocated => "they are colocated",
            Why::Resource => "the second uses a resource of the first",
        }
    }
}

/// The groups of a graph.
pub(super) struct Groups {
    /// The group of each node, by [`WorkId`]; `u32::MAX` where there is none.
    pub of_node: Vec<u32>,
    /// The devices that each group can be on.
    pub feasible: Vec<DeviceSet>,
}

/// What is known of a group while it grows, at its root.
#[derive(Clone)]
struct Class {
    /// What its members ask for together, and one that asks for something.
    request: Option<(Arc<DeviceName>, WorkId)>,
    /// The device of the call that runs the members; used where nothing else decides.
    default: Option<Arc<DeviceName>>,
    /// Device types that have kernels for all members.
    kinds: Kinds,
    /// The member that restricted the types last.
    narrowed_by: WorkId,
}

/// Whether an output is a handle or a reference: something that only means anything on its device.
pub(super) fn hands_out(node: &WorkNode, port: u32) -> bool {
    let port = port as usize;
    node.outputs().get(port).is_some_and(|port| port.dtype == DType::Resource)
        || node.def.op.outputs.get(port).is_some_and(|arg| arg.is_ref)
}

pub(super) struct Constraints<'a> {
    graph: &'a WorkGraph,
    devices: &'a [Arc<Device>],
    /// The devices' types, each once.
    kinds: Vec<&'static str>,
    is_soft: bool,
    parent: Vec<u32>,
    rank: Vec<u8>,
    class: Vec<Option<Class>>,
    names: FxHashMap<Arc<str>, Arc<DeviceName>>,
}

impl<'a> Constraints<'a> {
    pub fn new(graph: &'a WorkGraph, devices: &'a [Arc<Device>], is_soft: bool) -> Constraints<'a> {
        let mut kinds: Vec<&'static str> = devices.iter().map(|device| device.kind()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let n = graph.n_ids();
        Constraints {
            graph,
            devices,
            kinds,
            is_soft,
            parent: (0..n as u32).collect(),
            rank: vec![0; n],
            class: vec![None; n],
            names: FxHashMap::default(),
        }
    }

    /// The groups, with `pinned` nodes on the device that they have.
    ///
    /// # Errors
    /// A name that is no device's, members that contradict each other, a group that no device can run.
    pub fn groups(mut self, pinned: impl Fn(&WorkNode) -> Option<u32>) -> Result<Groups, PlacementError> {
        for (id, node) in self.graph.iter() {
            let class = self.class_of(id, node)?;
            self.class[id.index()] = Some(class);
        }
        self.join_resources()?;
        self.join_classes()?;
        self.collect(pinned)
    }

    fn class_of(&mut self, id: WorkId, node: &WorkNode) -> Result<Class, PlacementError> {
        let asked = Arc::clone(&node.def.device);
        let request = if asked.is_empty() { None } else { Some(self.parsed(node, &asked)?) };
        let named = request.filter(|name| !name.is_any());
        let (request, default) = match node.def.attrs.contains_key(functions::DEFAULT_DEVICE) {
            true => (None, named),
            false => (named.map(|name| (name, id)), None),
        };
        let has_kernel = |kind: &&str| kernel::supports(&node.def, kind);
        let kinds = self.kinds.iter().enumerate().filter(|(_, kind)| has_kernel(kind)).map(|(i, _)| 1 << i);
        let kinds = kinds.fold(0, |set: Kinds, kind: Kinds| set | kind);
        // What no type can run fails where its kernel is made, with a better message; here it fits anywhere.
        Ok(Class { request, default, kinds: if kinds == 0 { Kinds::MAX } else { kinds }, narrowed_by: id })
    }

    fn parsed(&mut self, node: &WorkNode, text: &Arc<str>) -> Result<Arc<DeviceName>, PlacementError> {
        if let Some(known) = self.names.get(text) {
            return Ok(Arc::clone(known));
        }
        let name = Arc::new(request(node)?);
        self.names.insert(Arc::clone(text), Arc::clone(&name));
        Ok(name)
    }

    /// Joins the nodes that name one class with each other and with the node of that name.
    fn join_classes(&mut self) -> Result<(), PlacementError> {
        let mut first: FxHashMap<&str, WorkId> = FxHashMap::default();
        for (id, node) in self.graph.iter() {
            let Some(Attr::ListStr(classes)) = node.def.attrs.get("_class") else { continue };
            for class in classes {
                let Some(name) = colocated_with(class) else { continue };
                let with = self.graph.find(name).or_else(|| first.get(name).copied());
                first.entry(name).or_insert(id);
                if let Some(with) = with {
                    self.join(with, id, Why::Colocated)?;
                }
            }
        }
        Ok(())
    }

    /// Joins whoever takes a resource with who hands it out.
    fn join_resources(&mut self) -> Result<(), PlacementError> {
        for (id, node) in self.graph.iter() {
            for source in &node.inputs {
                if let Source::Port(from, port) = source
                    && self.graph.get(*from).is_some_and(|from| hands_out(from, *port))
                {
                    self.join(*from, id, Why::Resource)?;
                }
            }
        }
        Ok(())
    }

    fn root(&mut self, id: WorkId) -> usize {
        let mut at = id.index();
        while self.parent[at] as usize != at {
            let up = self.parent[at] as usize;
            self.parent[at] = self.parent[up];
            at = up;
        }
        at
    }

    fn join(&mut self, a: WorkId, b: WorkId, why: Why) -> Result<(), PlacementError> {
        let (mut to, mut from) = (self.root(a), self.root(b));
        if to == from {
            return Ok(());
        }
        let (Some(class_a), Some(class_b)) = (self.class[to].clone(), self.class[from].clone()) else { return Ok(()) };
        let merged = self.merge(&class_a, &class_b, why)?;
        if self.rank[to] < self.rank[from] {
            std::mem::swap(&mut to, &mut from);
        }
        self.rank[to] += u8::from(self.rank[to] == self.rank[from]);
        self.parent[from] = to as u32;
        self.class[to] = Some(merged);
        self.class[from] = None;
        Ok(())
    }

    fn merge(&self, a: &Class, b: &Class, why: Why) -> Result<Class, PlacementError> {
        let request = match (&a.request, &b.request) {
            (Some((name_a, node_a)), Some((name_b, node_b))) if name_a != name_b => match name_a.merge(name_b) {
                Ok(both) => Some((Arc::new(both), *node_a)),
                // Who uses a resource goes where it is, whatever it asks for: TensorFlow's rule too.
                Err(_) if why == Why::Resource => a.request.clone(),
                Err(_) if self.is_soft => {
                    // Neither gets its way: what both leave open is decided like everything else.
                    let both = name_a.merge_softly(name_b).unwrap_or_default();
                    (!both.is_any()).then(|| (Arc::new(both), *node_a))
                }
                Err(conflict) => {
                    return Err(PlacementError::Requests {
                        first: self.name(*node_a),
                        second: self.name(*node_b),
                        why: why.text(),
                        conflict: conflict.into(),
                    });
                }
            },
            (Some(request), _) | (None, Some(request)) => Some(request.clone()),
            (None, None) => None,
        };
        let kinds = a.kinds & b.kinds;
        if kinds == 0 {
            return Err(PlacementError::Kernels {
                first: self.name(a.narrowed_by),
                first_kinds: self.kind_names(a.kinds),
                second: self.name(b.narrowed_by),
                second_kinds: self.kind_names(b.kinds),
                why: why.text(),
            });
        }
        let narrowed_by = if kinds == a.kinds { a.narrowed_by } else { b.narrowed_by };
        let default = a.default.clone().or_else(|| b.default.clone());
        Ok(Class { request, default, kinds, narrowed_by })
    }

    fn name(&self, id: WorkId) -> String {
        self.graph.get(id).map(|node| node.name().to_string()).unwrap_or_default()
    }

    fn kind_names(&self, kinds: Kinds) -> String {
        let names: Vec<&str> =
            self.kinds.iter().enumerate().filter(|(i, _)| kinds >> i & 1 == 1).map(|(_, kind)| *kind).collect();
        names.join(", ")
    }

    fn collect(mut self, pinned: impl Fn(&WorkNode) -> Option<u32>) -> Result<Groups, PlacementError> {
        let mut number = vec![u32::MAX; self.parent.len()];
        let mut groups = Groups { of_node: vec![u32::MAX; self.parent.len()], feasible: Vec::new() };
        for id in self.graph.ids() {
            let root = self.root(id);
            if number[root] == u32::MAX {
                number[root] = groups.feasible.len() as u32;
                let Some(class) = self.class[root].clone() else { continue };
                groups.feasible.push(self.feasible(&class)?);
            }
            groups.of_node[id.index()] = number[root];
        }
        for (id, node) in self.graph.iter() {
            let set = &mut groups.feasible[groups.of_node[id.index()] as usize];
            // What is kept there does not move: where requests give way, they give way to it.
            if let Some(device) = pinned(node)
                && (self.is_soft || set.has(device))
            {
                *set = DeviceSet::one(device);
            }
        }
        Ok(groups)
    }

    /// The devices that a group can be on.
    fn feasible(&self, class: &Class) -> Result<DeviceSet, PlacementError> {
        let kind = |device: &Device| self.kinds.iter().position(|kind| *kind == device.kind()).unwrap_or(0);
        let admitted = |name: Option<&DeviceName>| {
            let fits = |device: &Device| {
                class.kinds >> kind(device) & 1 == 1 && name.is_none_or(|name| name.admits(device.full_name()))
            };
            let devices = self.devices.iter().enumerate().filter(|(_, device)| fits(device));
            devices.map(|(i, _)| i as u32).collect::<DeviceSet>()
        };
        let near_default = |set: DeviceSet| {
            let default = class.default.as_ref().map(|name| admitted(Some(name)));
            let both = default.map(|default| set.iter().filter(|device| default.has(*device)).collect::<DeviceSet>());
            both.filter(|both| !both.is_empty()).unwrap_or(set)
        };
        let Some((name, node)) = &class.request else { return Ok(near_default(admitted(None))) };
        let mut set = admitted(Some(name));
        if set.is_empty() && self.is_soft {
            set = admitted(Some(&name.softened()));
        }
        if set.is_empty() {
            let known: Vec<&str> = self.devices.iter().map(|device| device.name()).collect();
            return Err(PlacementError::NoDevice {
                node: self.name(*node),
                op: self.graph.op(*node),
                asked: name.to_string().into(),
                restricted: (class.narrowed_by != *node).then(|| self.name(class.narrowed_by).into()),
                kinds: self.kind_names(class.kinds).into(),
                devices: known.join(", ").into(),
            });
        }
        Ok(near_default(set))
    }
}
