//! Which modules are unfolded.

use rustc_hash::FxHashSet;
use std::sync::Arc;

/// The levels that are unfolded, and the modules that the user folded or unfolded apart from them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folding {
    /// Modules above this depth are unfolded; `None`: as many levels as there is room for.
    depth: Option<usize>,
    /// Paths of modules for which it is the other way round.
    toggled: FxHashSet<Arc<str>>,
}

impl Folding {
    /// Whether a module is unfolded. `usual_depth`: the depth until the user sets one.
    pub fn is_open(&self, depth: usize, path: &str, usual_depth: usize) -> bool {
        (depth < self.depth.unwrap_or(usual_depth)) != self.toggled.contains(path)
    }

    /// Folds or unfolds a module.
    pub fn toggle(&mut self, path: &str) {
        if !self.toggled.remove(path) {
            self.toggled.insert(path.into());
        }
    }

    /// Unfolds all modules above a depth, and no others.
    pub fn set_depth(&mut self, depth: usize) {
        *self = Self { depth: Some(depth), toggled: FxHashSet::default() };
    }
}
