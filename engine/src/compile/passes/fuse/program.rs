//! Writes the program of a cluster, and puts the fused node in the place of its members.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::parts::{Parts, Window};
use super::rules::{Members, is_exposed};
use crate::compile::CompileError;
use crate::compile::passes::Redirects;
use crate::compile::{Source, Uses, WorkGraph, WorkId};
use engine_core::dtype::DType;
use engine_core::graph::{Attr, Node, Port};
use engine_core::shape::PartialShape;

/// Replaces the members of a cluster, which are in topological order.
pub(super) fn replace(
    graph: &mut WorkGraph,
    uses: &Uses,
    parts: &Parts,
    members: &[WorkId],
    redirects: &mut Redirects,
) -> Result<(), CompileError> {
    let wanted = members.iter().find(|id| uses.is_wanted(**id));
    let Some(root) = wanted.or(members.last()).copied() else { return Ok(()) };
    let Some(port) = graph.get(root).map(|node| node.outputs()[0].clone()) else { return Ok(()) };
    let program = Program::of(graph, parts, members);
    let outputs = outputs(uses, parts, members, root);
    let mut controls: SmallVec<[WorkId; 2]> = SmallVec::new();
    for before in members.iter().filter_map(|id| graph.get(*id)).flat_map(|node| &node.control_inputs) {
        if !controls.contains(before) && !members.contains(before) {
            controls.push(*before);
        }
    }
    let attrs = program.attrs(port.dtype, &outputs);
    let ports = outputs.iter().map(|output| output.port(&port)).collect();
    graph.turn_into(root, "_FusedElementwise", attrs, program.inputs)?;
    set_outputs(graph, root, ports);
    if let Some(node) = graph.get_mut(root) {
        node.control_inputs = controls;
    }
    for (i, output) in outputs.iter().enumerate() {
        let of = output.join.unwrap_or(output.results[0]);
        if of != root {
            redirects.port(of, 0, Source::Port(root, i as u32));
        }
        if let Some(join) = output.join {
            redirects.control(join, &[root]);
        }
    }
    for id in members.iter().filter(|id| **id != root) {
        redirects.control(*id, &[root]);
        graph.remove(*id);
    }
    Ok(())
}

fn set_outputs(graph: &mut WorkGraph, id: WorkId, outputs: Vec<Port>) {
    if let Some(node) = graph.get(id) {
        let def = Node { outputs, ..Node::clone(&node.def) };
        graph.redefine(id, std::sync::Arc::new(def));
    }
}

/// An output of a fused node.
struct Output {
    /// The members whose results it is, side by side along the axis.
    results: SmallVec<[WorkId; 4]>,
    axis: i64,
    /// The node that put them together.
    join: Option<WorkId>,
}

impl Output {
    /// Its type and shape, of results of `port`.
    fn port(&self, port: &Port) -> Port {
        let (n, axis) = (self.results.len(), usize::try_from(self.axis).unwrap_or(0));
        if n == 1 {
            return port.clone();
        }
        let dims = port.shape.dims().map(|dims| {
            let longer = |(i, dim): (usize, &Option<usize>)| dim.map(|d| if i == axis { d * n } else { d });
            dims.iter().enumerate().map(longer).collect::<Vec<_>>()
        });
        Port { dtype: port.dtype, shape: dims.map_or_else(PartialShape::unknown, |dims| PartialShape::new(&dims)) }
    }
}

/// The outputs that others need, the root's own first.
fn outputs(uses: &Uses, parts: &Parts, members: &[WorkId], root: WorkId) -> Vec<Output> {
    let mut outputs: Vec<Output> = Vec::new();
    let others = members.iter().copied().filter(|id| *id != root);
    for id in std::iter::once(root).chain(others) {
        match parts.join(id) {
            Some((join, _, _)) if outputs.iter().any(|output| output.join == Some(join)) => {}
            Some((join, axis, results)) => {
                outputs.push(Output { results: results.into(), axis, join: Some(join) });
            }
            None if id == root || is_exposed(uses, id, |one| members.contains(&one)) => {
                outputs.push(Output { results: SmallVec::from_slice(&[id]), axis: 0, join: None });
            }
            None => {}
        }
    }
    outputs
}

/// The steps of a fused node.
#[derive(Default)]
struct Program {
    inputs: SmallVec<[Source; 3]>,
    windows: Vec<Option<Window>>,
    ops: Vec<Vec<u8>>,
    /// Of each step two: an input's number, or where negative -1 - the step's.
    operands: Vec<i64>,
    originals: Vec<Vec<u8>>,
    /// The step that a member's result is.
    steps: Members,
}

impl Program {
    fn of(graph: &WorkGraph, parts: &Parts, members: &[WorkId]) -> Program {
        let mut program = Program::default();
        for id in members {
            let Some(node) = graph.get(*id) else { continue };
            let operand =
                |program: &mut Program, source: &Source| match source.node().and_then(|n| program.steps.get(&n)) {
                    Some(step) => -1 - *step as i64,
                    None => program.input(parts, *source),
                };
            let operands: SmallVec<[i64; 3]> = node.inputs.iter().map(|s| operand(&mut program, s)).collect();
            let mut a = operands[0];
            // A unary op has its operand twice.
            for b in if operands.len() == 1 { &operands[..] } else { &operands[1..] } {
                program.operands.extend([a, *b]);
                program.ops.push(node.op().into());
                a = -(program.ops.len() as i64);
            }
            program.originals.push(node.name().as_bytes().to_vec());
            program.steps.insert(*id, program.ops.len() - 1);
        }
        program
    }

    fn input(&mut self, parts: &Parts, source: Source) -> i64 {
        let (source, window) = match parts.window(source) {
            Some((source, window)) => (source, Some(window)),
            None => (source, None),
        };
        let known = self.inputs.iter().zip(&self.windows).position(|(i, w)| (*i, *w) == (source, window));
        known.unwrap_or_else(|| {
            self.inputs.push(source);
            self.windows.push(window);
            self.inputs.len() - 1
        }) as i64
    }

    fn attrs(&self, dtype: DType, outputs: &[Output]) -> BTreeMap<String, Attr> {
        let n = self.inputs.len() as i64;
        let operands = self.operands.iter().map(|o| if *o < 0 { n - 1 - o } else { *o }).collect();
        let window = |window: &Option<Window>| match window {
            Some(Window { axis, begin, size }) => [*axis, *begin, *size],
            None => [-1, 0, 0],
        };
        let is_cut = self.windows.iter().any(Option::is_some);
        let windows = if is_cut { self.windows.iter().flat_map(window).collect() } else { Vec::new() };
        let step = |id: &WorkId| self.steps.get(id).map_or(-1, |step| *step as i64);
        let results = outputs.iter().flat_map(|output| &output.results).map(step).collect();
        let is_joined = outputs.iter().any(|output| output.results.len() > 1);
        let pair = |output: &Output| [output.axis, output.results.len() as i64];
        let joined = if is_joined { outputs.iter().flat_map(pair).collect() } else { Vec::new() };
        BTreeMap::from([
            ("N".to_owned(), Attr::Int(n)),
            ("M".to_owned(), Attr::Int(outputs.len() as i64)),
            ("T".to_owned(), Attr::Type(dtype)),
            ("ops".to_owned(), Attr::ListStr(self.ops.clone())),
            ("operands".to_owned(), Attr::ListInt(operands)),
            ("windows".to_owned(), Attr::ListInt(windows)),
            ("results".to_owned(), Attr::ListInt(results)),
            ("joined".to_owned(), Attr::ListInt(joined)),
            ("originals".to_owned(), Attr::ListStr(self.originals.clone())),
        ])
    }
}
