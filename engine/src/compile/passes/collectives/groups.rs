//! The groups of a graph: which collectives belong together, and whether they fit.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::compile::CompileError;
use crate::compile::{Source, WorkGraph, WorkId, WorkNode};
use engine_core::device::DeviceName;
use engine_core::dtype::DType;
use engine_core::graph::Attr;
use engine_core::ops::OpKind;

/// What a group computes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Collective {
    /// Every member gets the inputs merged.
    Reduce { merge: Merge, divides: bool },
    /// Member k gets the k-th part of that.
    ReduceScatter { merge: Merge, divides: bool },
    /// Every member gets all inputs, one after the other.
    Gather,
    /// Every member gets the input of the one.
    Broadcast { from: usize },
}

/// The op that merges two values.
pub(super) type Merge = &'static str;

/// Job, replica, task, type and index of the device that a member asks for.
type Order = (Option<String>, Option<u32>, Option<u32>, Option<String>, Option<u32>);

/// A collective's node.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub node: WorkId,
    pub name: Arc<str>,
    /// The device that it asks for.
    pub device: Arc<str>,
    pub input: Option<Source>,
    order: Order,
}

/// Nodes that compute something together, in the order of their devices.
#[derive(Debug)]
pub(super) struct Group {
    pub collective: Collective,
    pub dtype: DType,
    pub members: Vec<Member>,
}

impl Group {
    pub fn len(&self) -> usize {
        self.members.len()
    }
}

/// What a node says of its group.
struct Claim {
    size: i64,
    /// Group and instance.
    keys: (i64, i64),
    collective: Collective,
    is_source: bool,
    dtype: DType,
    member: Member,
}

fn problem(text: String) -> CompileError {
    CompileError::Pass { pass: "collectives", problem: text }
}

/// All groups, by their keys.
pub(super) fn find(graph: &WorkGraph) -> Result<Vec<Group>, CompileError> {
    let mut claims: BTreeMap<(i64, i64), Vec<Claim>> = BTreeMap::new();
    for (id, node) in graph.iter().filter(|(_, node)| node.kind() == OpKind::Collective) {
        let claim = claim(graph, id, node)?;
        claims.entry(claim.keys).or_default().push(claim);
    }
    claims.into_values().map(group).collect()
}

fn claim(graph: &WorkGraph, id: WorkId, node: &WorkNode) -> Result<Claim, CompileError> {
    let name = node.name();
    let (family, is_second) = match node.op().strip_suffix("V2") {
        Some(family) => (family, true),
        None => (node.op(), false),
    };
    // A receiver has no value of its own before the numbers.
    let has_input = family != "CollectiveBcastRecv";
    let number = |attr: &str, input: usize| {
        let found = match node.def.attrs.get(attr) {
            Some(Attr::Int(value)) if !is_second => Some(*value),
            _ if is_second => node
                .inputs
                .get(input)
                .and_then(|source| graph.constant_ints(graph.handed_on(*source))?.first().copied()),
            _ => None,
        };
        found.ok_or_else(|| problem(format!("node {name} ({}): {attr} is not known before the step", node.op())))
    };
    let first = usize::from(has_input);
    let (size, group) = (number("group_size", first)?, number("group_key", first + 1)?);
    let instance = number("instance_key", first + 2)?;
    let collective = collective(node, family)?;
    let device: DeviceName = node.def.device.parse().unwrap_or_default();
    if device.is_any() {
        return Err(problem(format!("node {name} ({}): a member of a group has to ask for a device", node.op())));
    }
    let order = (device.job, device.replica, device.task, device.kind, device.index);
    let input = node.inputs.first().copied().filter(|_| has_input);
    let member = Member { node: id, name: name.clone(), device: node.def.device.clone(), input, order };
    let dtype = node.outputs().first().map_or(DType::F32, |port| port.dtype);
    let is_source = family == "CollectiveBcastSend";
    Ok(Claim { size, keys: (group, instance), collective, is_source, dtype, member })
}

fn collective(node: &WorkNode, family: &str) -> Result<Collective, CompileError> {
    let text = |attr: &str| match node.def.attrs.get(attr) {
        Some(Attr::Str(text)) => String::from_utf8_lossy(text).into_owned(),
        _ => String::new(),
    };
    let unknown = |what: &str| problem(format!("node {} ({}): {what} is not known", node.name(), node.op()));
    let merge = || match text("merge_op").as_str() {
        "Add" => Ok("AddV2"),
        "Mul" => Ok("Mul"),
        "Min" => Ok("Minimum"),
        "Max" => Ok("Maximum"),
        other => Err(unknown(&format!("merge_op {other:?}"))),
    };
    let divides = || match text("final_op").as_str() {
        "Id" => Ok(false),
        "Div" => Ok(true),
        other => Err(unknown(&format!("final_op {other:?}"))),
    };
    Ok(match family {
        "CollectiveReduce" => Collective::Reduce { merge: merge()?, divides: divides()? },
        "CollectiveReduceScatter" => Collective::ReduceScatter { merge: merge()?, divides: divides()? },
        "CollectiveGather" => Collective::Gather,
        "CollectiveBcastSend" | "CollectiveBcastRecv" => Collective::Broadcast { from: 0 },
        _ => return Err(unknown("this collective")),
    })
}

fn group(mut claims: Vec<Claim>) -> Result<Group, CompileError> {
    claims.sort_by(|a, b| a.member.order.cmp(&b.member.order));
    let (first, (group, instance)) = (&claims[0], claims[0].keys);
    let of = |text: String| problem(format!("group {group}, instance {instance}: {text}"));
    let differs =
        |claim: &&Claim| (claim.size, claim.dtype) != (first.size, first.dtype) || claim.collective != first.collective;
    if let Some(other) = claims.iter().find(differs) {
        return Err(of(format!("{} and {} do not do the same", first.member.name, other.member.name)));
    }
    if usize::try_from(first.size) != Ok(claims.len()) {
        let names: Vec<&str> = claims.iter().map(|claim| &*claim.member.name).collect();
        let (have, size) = (claims.len(), first.size);
        let text = format!("{have} of {size} members take part in the step ({}); all have to be run", names.join(", "));
        return Err(of(text));
    }
    if let Some(two) = claims.windows(2).find(|two| two[0].member.order == two[1].member.order) {
        let (one, other, device) = (&two[0].member.name, &two[1].member.name, &two[0].member.device);
        return Err(of(format!("{one} and {other} both ask for {device}")));
    }
    let mut collective = first.collective.clone();
    if let Collective::Broadcast { from } = &mut collective {
        let mut sources = claims.iter().enumerate().filter(|(_, claim)| claim.is_source).map(|(i, _)| i);
        match (sources.next(), sources.next()) {
            (Some(one), None) => *from = one,
            _ => return Err(of("one member has to send, all others to receive".into())),
        }
    }
    let dtype = first.dtype;
    Ok(Group { collective, dtype, members: claims.into_iter().map(|claim| claim.member).collect() })
}
