//! The modules of a range of a trace, computed in a thread.

use super::model::Tree;
use crate::ops::range_analysis::{RangeQuestion, Request};
use rustc_hash::FxHashMap;
use std::{ops::Range, sync::Arc};
use trace_analysis::torch::{ModuleRow, OpShapeRow, module_of_site, modules_and_shapes};
use trace_model::SliceId;
use trace_store::{Residency, Store};

/// The forward passes of a module in the trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Passes {
    /// The name of their slices.
    pub slice_name: Arc<str>,
    /// The longest one.
    pub longest: SliceId,
    /// Its duration, ns.
    pub longest_ns: i64,
}

/// The modules and ops of a range.
#[derive(Default)]
pub struct Report {
    pub question: RangeQuestion,
    /// Whether the range's slices were resident; if not, the report is empty.
    pub residency: Residency,
    /// The range of the figures.
    pub range: Range<i64>,
    pub tree: Tree,
    /// Ops by the shapes of their inputs.
    pub shapes: Vec<OpShapeRow>,
    /// The forward passes of each module, by its name.
    pub passes: FxHashMap<String, Passes>,
}

/// Analyses the range.
pub fn answer(request: Request) -> Report {
    // Recursive: a loader that waits to write must not hold up the window behind this read.
    let store = request.store.read_recursive();
    let question = RangeQuestion { version: store.version(), ..request.question };
    let range = question.range.clone().unwrap_or_else(|| store.range());
    let residency = store.residency(&range);
    if residency != Residency::Resident {
        return Report { question, range, residency, ..Report::default() };
    }
    let (modules, shapes) = modules_and_shapes(&store, &range);
    let passes = passes_of(&store, &range, &modules);
    Report { question, residency, range, tree: Tree::new(modules), shapes, passes }
}

/// The forward passes in the range, by module.
fn passes_of(store: &Store, range: &Range<i64>, modules: &[ModuleRow]) -> FxHashMap<String, Passes> {
    let mut passes: FxHashMap<String, Passes> = FxHashMap::default();
    if modules.is_empty() {
        return passes;
    }
    let names: Vec<Option<&str>> = store.sites().iter().map(module_of_site).collect();
    for slice in store.tracks().iter().flat_map(|track| &track.lanes).flat_map(|lane| lane.slices(range)) {
        let Some(name) = names.get(slice.site as usize).copied().flatten() else { continue };
        let is_longer = passes.get(name).is_none_or(|known| slice.dur() > known.longest_ns);
        if is_longer {
            let slice_name = store.slice_name(&slice).into();
            passes.insert(name.to_owned(), Passes { slice_name, longest: slice.id, longest_ns: slice.dur() });
        }
    }
    passes
}
