//! Loops of imported graphs: a loop's head comes into the graph before what comes round to it.
//!
//! When the head (`Merge`) is added, only the shape of what enters the loop is known. It is assumed to hold in all
//! iterations. When the loop closes and something else comes round, the import begins anew with less assumed.

use formats::proto::{GraphDef, NodeDef};
use rustc_hash::FxHashMap;

use super::input::Input;
use super::staged::Staged;
use super::{ControlFlowError, GraphError, ImportError, Output};
use crate::ops::flow::common_of;
use crate::ops::{self, OpKind};
use crate::shape::PartialShape;

/// Why an import did not succeed.
pub(super) enum Attempt {
    Failed(ImportError),
    /// It may with what [`Heads`] knows now.
    Again,
}

impl From<ImportError> for Attempt {
    fn from(error: ImportError) -> Attempt {
        Attempt::Failed(error)
    }
}

/// What is known of the shapes of loop variables, by the full name of the `Merge`.
#[derive(Default)]
pub(super) struct Heads {
    shapes: FxHashMap<String, PartialShape>,
    n_attempts: usize,
    has_loops: bool,
    all_unknown: bool,
}

/// After so many attempts nothing is assumed any more.
const MAX_ATTEMPTS: usize = 8;

impl Heads {
    /// Gives up all assumptions. Whether that changes anything.
    pub fn relax_all(&mut self) -> bool {
        self.has_loops && !std::mem::replace(&mut self.all_unknown, true)
    }

    /// Replaces what inference says of a loop's head by what is known to hold.
    pub fn assume(&mut self, staged: &mut Staged<'_>, name: &str) {
        let Some(node) = staged.nodes().find(name) else { return };
        let is_loop = match (node.op.kind, node.inputs.as_slice()) {
            // A head whose loop is not closed has its first input twice.
            (OpKind::Merge, [first, rest @ ..]) => rest.contains(first),
            _ => false,
        };
        if !is_loop {
            return;
        }
        self.has_loops = true;
        let (id, known) = (node.id, self.shapes.get(name).cloned());
        if let Some(shape) = known.or_else(|| self.all_unknown.then(PartialShape::unknown)) {
            staged.nodes_mut().set_shape(id, shape);
        }
    }

    /// Closes all loops of the definition.
    pub fn close(
        &mut self,
        staged: &mut Staged<'_>,
        def: &GraphDef,
        scoped: &impl Fn(&str) -> String,
    ) -> Result<(), Attempt> {
        let mut again = false;
        let merges = def.node.iter().filter(|node| ops::kind(&node.op) == OpKind::Merge);
        for merge in merges {
            let name = scoped(&merge.name);
            let Some(head) = staged.nodes().find(&name).map(|node| node.id) else { continue };
            let texts = merge.input.iter().filter(|text| !text.starts_with('^'));
            for (i, text) in texts.enumerate() {
                let input = Input::parse(&merge.name, text)?;
                let Some(next) = staged.nodes().find(&scoped(input.node)) else { continue };
                if !next.op.kind.closes_loop(OpKind::Merge) {
                    continue;
                }
                let next = Output { node: next.id, port: input.port.unwrap_or(0) };
                let closed = staged.nodes_mut().close_loop(head, i, next);
                match closed {
                    Err(GraphError::ControlFlow { source, .. })
                        if matches!(*source, ControlFlowError::ShapeVaries { .. }) =>
                    {
                        let (before, after) = (staged.nodes().shape_of(head.into()), staged.nodes().shape_of(next));
                        self.shapes.insert(name.clone(), common_of(&before, &after));
                        again = true;
                    }
                    // As inputs from different frames: an error of the step that runs the loop.
                    Err(error @ GraphError::ControlFlow { .. }) => staged.nodes_mut().misplace(head, error),
                    closed => closed.map_err(ImportError::from)?,
                }
            }
        }
        if !again {
            return Ok(());
        }
        self.n_attempts += 1;
        if self.n_attempts >= MAX_ATTEMPTS {
            self.all_unknown = true;
            self.shapes.clear();
        }
        Err(Attempt::Again)
    }
}

/// The input of a loop's head that comes from before the loop.
pub(super) fn head_input(def: &NodeDef) -> Result<&str, ImportError> {
    let first =
        def.input.first().ok_or(GraphError::InputCount { node: def.name.clone(), op: "Merge", expected: 1, got: 0 })?;
    Ok(Input::parse(&def.name, first)?.node)
}
