//! The tree of modules, and which of its rows are visible in which order.

use super::Folding;
use std::{cmp::Ordering, sync::Arc};
use trace_analysis::torch::{ModuleCost, ModuleRow};

/// Rows that are visible before the user folds or unfolds any, at most.
const MAX_ROWS: usize = 24;

/// A module at one place of the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    pub row: ModuleRow,
    /// The names of the modules that contain it and its own, with slashes.
    pub path: Arc<str>,
    /// The rows of the modules that it contains.
    pub children: Vec<usize>,
    /// Its share of the time of all modules and of what is outside, 0 to 1; on devices if they are recorded.
    pub share: f64,
    /// Floating-point operations per second of that time; 0 where none are counted.
    pub flop_rate: f64,
}

impl Module {
    /// The name that is shown.
    pub fn title(&self) -> &str {
        if self.row.name.is_empty() { "(outside modules)" } else { &self.row.name }
    }

    /// Whether it stands for ops outside all modules.
    pub fn is_outside(&self) -> bool {
        self.row.name.is_empty()
    }

    /// Floating-point operations of forward passes and gradients.
    pub fn flop(&self) -> f64 {
        self.row.forward.flop + self.row.backward.flop
    }
}

/// The tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// Each module is followed by those that it contains.
    pub modules: Vec<Module>,
    roots: Vec<usize>,
    /// Whether the trace has the work of devices.
    pub has_device: bool,
    /// Whether floating-point operations are counted.
    pub has_flop: bool,
    /// Whether allocations are recorded.
    pub has_memory: bool,
    /// The number of levels that are unfolded until the user changes it.
    usual_depth: usize,
}

/// The rows that are visible.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Indices of modules, in order.
    pub shown: Vec<usize>,
    /// The number of modules that match the filter; all without one.
    pub n_matches: usize,
}

impl Tree {
    /// The tree of the rows of the analysis.
    pub fn new(rows: Vec<ModuleRow>) -> Self {
        let any = |of: fn(&ModuleCost) -> bool| rows.iter().any(|row| of(&row.forward) || of(&row.backward));
        let has_device = any(|cost| cost.device_ns > 0);
        let time = |row: &ModuleRow| match has_device {
            true => row.forward.device_ns + row.backward.device_ns,
            false => row.forward.host_ns + row.backward.host_ns,
        };
        let whole: i64 = rows.iter().filter(|row| row.parent.is_none()).map(time).sum();
        let mut tree = Self {
            has_device,
            has_flop: any(|cost| cost.flop > 0.0),
            has_memory: any(|cost| cost.allocated_bytes != 0),
            usual_depth: usual_depth(&rows),
            ..Self::default()
        };
        for row in rows {
            let (index, ns) = (tree.modules.len(), time(&row));
            // A row follows the one that contains it.
            let parent = row.parent.and_then(|parent| tree.modules.get_mut(parent));
            let path = match parent {
                Some(parent) => {
                    parent.children.push(index);
                    format!("{}/{}", parent.path, row.name).into()
                }
                None => {
                    tree.roots.push(index);
                    row.name.as_str().into()
                }
            };
            let mut module = Module { row, path, children: Vec::new(), share: 0.0, flop_rate: 0.0 };
            module.share = ns as f64 / whole.max(1) as f64;
            module.flop_rate = if ns > 0 { module.flop() * 1e9 / ns as f64 } else { 0.0 };
            tree.modules.push(module);
        }
        tree
    }

    /// Whether the trace names no module.
    pub fn is_empty(&self) -> bool {
        self.modules.is_empty()
    }

    /// The row of a path.
    pub fn find(&self, path: &str) -> Option<usize> {
        self.modules.iter().position(|module| *module.path == *path)
    }

    /// Whether a module's children are visible.
    pub fn is_open(&self, module: &Module, folding: &Folding) -> bool {
        !module.children.is_empty() && folding.is_open(module.row.depth, &module.path, self.usual_depth)
    }

    /// The visible rows, sorted among siblings by `compare`, which takes indices. With a filter: the modules whose name has it in any case, and those
    /// that contain them.
    pub fn rows(&self, folding: &Folding, filter: &str, compare: impl Fn(usize, usize) -> Ordering) -> Rows {
        let filter = filter.trim().to_lowercase();
        let is_match: Vec<bool> =
            self.modules.iter().map(|module| module.title().to_lowercase().contains(&filter)).collect();
        let mut has_match = is_match.clone();
        for (index, module) in self.modules.iter().enumerate().rev() {
            if let Some(parent) = module.row.parent.filter(|_| has_match[index]) {
                has_match[parent] = true;
            }
        }
        let mut rows = Rows { shown: Vec::new(), n_matches: is_match.iter().filter(|is_match| **is_match).count() };
        let sorted = |siblings: &[usize]| {
            let mut sorted = siblings.to_vec();
            sorted.sort_by(|a, b| compare(*a, *b));
            sorted.reverse();
            sorted
        };
        let mut next = sorted(&self.roots);
        while let Some(index) = next.pop() {
            let module = &self.modules[index];
            if !has_match[index] {
                continue;
            }
            rows.shown.push(index);
            // What a filter finds is shown, however deep it is.
            if !filter.is_empty() || self.is_open(module, folding) {
                next.extend(sorted(&module.children));
            }
        }
        rows
    }
}

/// The deepest level at which not too many rows are visible.
fn usual_depth(rows: &[ModuleRow]) -> usize {
    let n_to = |depth: usize| rows.iter().filter(|row| row.depth <= depth).count();
    let deepest = rows.iter().map(|row| row.depth).max().unwrap_or(0);
    (0..=deepest).rev().find(|depth| n_to(*depth) <= MAX_ROWS).unwrap_or(0).max(1)
}
