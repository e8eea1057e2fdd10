//! Control loops: how a device that takes part in another device's loop learns of its iterations (white paper section 4.4).
//!
//! A receive inside of a loop has no inputs that would start it once per iteration. On each device that receives something within a
//! loop, a small loop of the same frame does:
//!
//! ```text
//! constant -> Enter -> Merge <------- NextIteration
//!                       |  \                ^
//!    every receive <----    -> Switch -true-|
//!                                 ^
//!            the loop's LoopCond --   (received, where it is on another device)
//! ```
//!
//! Its `Merge` starts the receives of each iteration; among them that of the condition, which ends the participant's loop. In
//! nested loops the outer control loop's `Merge` takes the constant's place.

use rustc_hash::FxHashMap;
use smallvec::smallvec;

use super::error::PartitionError;
use super::frames::{Frame, Frames, ROOT};
use crate::compile::CompileError;
use crate::compile::NewNode;
use crate::compile::{Source, WorkGraph, WorkId};
use engine_core::dtype::DType;
use engine_core::graph::{Attr, Port};
use engine_core::shape::{PartialShape, Shape};
use engine_core::tensor::Tensor;

/// The `Merge` of each control loop, by frame and device.
#[derive(Default)]
pub(super) struct ControlLoops {
    merges: FxHashMap<(Frame, u32), WorkId>,
}

impl ControlLoops {
    /// The node that starts receives in the iterations of a frame on a device.
    pub fn merge(&self, frame: Frame, device: u32) -> Option<WorkId> {
        self.merges.get(&(frame, device)).copied()
    }

    /// Makes sure that there is a control loop, and those around it.
    ///
    /// # Errors
    /// The loop has no condition.
    pub fn ensure(
        &mut self,
        graph: &mut WorkGraph,
        frames: &mut Frames,
        frame: Frame,
        device: u32,
    ) -> Result<(), CompileError> {
        if frame == ROOT || self.merges.contains_key(&(frame, device)) {
            return Ok(());
        }
        let info = &frames.frames[frame as usize];
        let (parent, name, condition) = (info.parent, info.name.clone(), info.condition);
        let condition = condition.ok_or_else(|| PartitionError::NoCondition { frame: name.clone() })?;
        self.ensure(graph, frames, parent, device)?;
        let start = match self.merge(parent, device) {
            Some(outer) => outer,
            None => constant(graph, &format!("{name}/_control_{device}/start"), device, &[])?,
        };
        let merge = add(graph, frames, frame, device, start, condition)?;
        self.merges.insert((frame, device), merge);
        Ok(())
    }
}

/// An empty tensor, made after some nodes ran: what a control edge sends.
pub(super) fn constant(
    graph: &mut WorkGraph,
    name: &str,
    device: u32,
    after: &[WorkId],
) -> Result<WorkId, CompileError> {
    let empty = Tensor::vector::<f32>(&[]);
    let attrs = [("dtype", Attr::Type(DType::F32)), ("value", Attr::Tensor(empty))];
    graph.add_new(NewNode {
        name,
        op: "Const",
        attrs: attrs.map(|(name, value)| (name.to_owned(), value)).into(),
        inputs: smallvec![],
        control_inputs: after.iter().copied().collect(),
        outputs: vec![signal()],
        device,
    })
}

/// The output of what carries no data.
pub(super) fn signal() -> Port {
    Port { dtype: DType::F32, shape: PartialShape::from(&Shape::new(&[0])) }
}

fn add(
    graph: &mut WorkGraph,
    frames: &mut Frames,
    frame: Frame,
    device: u32,
    start: WorkId,
    condition: WorkId,
) -> Result<WorkId, CompileError> {
    let info = &frames.frames[frame as usize];
    let scope = format!("{}/_control_{device}", info.name);
    let t = || ("T".to_owned(), Attr::Type(DType::F32));
    let index = Port { dtype: DType::I32, shape: PartialShape::scalar() };
    let enter = [
        t(),
        ("frame_name".into(), Attr::from(info.name.as_str())),
        ("is_constant".into(), Attr::Bool(false)),
        ("parallel_iterations".into(), Attr::Int(info.parallel_iterations)),
    ];
    let mut node = |name: &str, op, attrs: &[(String, Attr)], inputs: &[Source], outputs: &[Port]| {
        let id = graph.add_new(NewNode {
            name: &format!("{scope}/{name}"),
            op,
            attrs: attrs.iter().cloned().collect(),
            inputs: inputs.iter().copied().collect(),
            control_inputs: smallvec![],
            outputs: outputs.to_vec(),
            device,
        })?;
        frames.put(id, frame);
        Ok::<WorkId, CompileError>(id)
    };
    let enter = node("enter", "Enter", &enter, &[start.into()], &[signal()])?;
    let merge_attrs = [t(), ("N".into(), Attr::Int(2))];
    // The second input comes from a node that is not there yet.
    let merge = node("merge", "Merge", &merge_attrs, &[enter.into(), enter.into()], &[signal(), index])?;
    let switch = node("switch", "Switch", &[t()], &[merge.into(), condition.into()], &[signal(), signal()])?;
    let next = node("next", "NextIteration", &[t()], &[Source::Port(switch, 1)], &[signal()])?;
    graph.set_input(merge, 1, next.into());
    Ok(merge)
}
