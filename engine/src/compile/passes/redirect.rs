//! Replacing uses, many at once: a pass notes what stands for what, and one walk over all edges applies it.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::{Source, WorkGraph, WorkId};

/// What stands for what from now on. Replacements may be replaced in turn.
#[derive(Debug, Default)]
pub struct Redirects {
    ports: FxHashMap<(WorkId, u32), Source>,
    controls: FxHashMap<WorkId, SmallVec<[WorkId; 2]>>,
    feeds: FxHashMap<u32, Source>,
    /// Nodes whose inputs stay.
    kept: FxHashSet<WorkId>,
}

impl Redirects {
    /// Uses of this output come from `to`.
    pub fn port(&mut self, node: WorkId, port: u32, to: Source) {
        self.ports.insert((node, port), to);
    }

    /// Uses of this feed come from `to`.
    pub fn feed(&mut self, feed: u32, to: Source) {
        self.feeds.insert(feed, to);
    }

    /// The inputs of `node` stay as they are: it stands for what it takes.
    pub fn keep(&mut self, node: WorkId) {
        self.kept.insert(node);
    }

    /// What waited for `node` to have run waits for `to` (none: for nothing).
    pub fn control(&mut self, node: WorkId, to: &[WorkId]) {
        self.controls.insert(node, to.iter().copied().collect());
    }

    /// `node` is `other` from now on, outputs and all.
    pub fn node(&mut self, node: WorkId, n_outputs: usize, other: WorkId) {
        (0..n_outputs as u32).for_each(|port| self.port(node, port, Source::Port(other, port)));
        self.control(node, &[other]);
    }

    /// Whether nothing was noted.
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty() && self.controls.is_empty() && self.feeds.is_empty()
    }

    /// What a source stands for.
    pub fn source(&self, mut source: Source) -> Source {
        // Bounded, so that a circle (an error of the pass) ends.
        for _ in 0..=self.ports.len() + self.feeds.len() {
            let next = match source {
                Source::Port(node, port) => self.ports.get(&(node, port)),
                Source::Feed(feed) => self.feeds.get(&feed),
            };
            match next {
                Some(next) => source = *next,
                None => break,
            }
        }
        source
    }

    /// Brings the control inputs of `node` up to date.
    pub fn resolve_controls(&self, node: WorkId, control_inputs: &mut SmallVec<[WorkId; 2]>) {
        if control_inputs.iter().any(|before| self.controls.contains_key(before)) {
            *control_inputs = self.resolved_controls(control_inputs);
            control_inputs.retain(|before| *before != node);
        }
    }

    /// What a control edge from each of `nodes` stands for, each once, in order.
    fn resolved_controls(&self, nodes: &[WorkId]) -> SmallVec<[WorkId; 2]> {
        let mut out: SmallVec<[WorkId; 2]> = SmallVec::new();
        let mut seen: SmallVec<[WorkId; 8]> = SmallVec::new();
        let mut stack: SmallVec<[WorkId; 8]> = nodes.iter().rev().copied().collect();
        while let Some(id) = stack.pop() {
            match self.controls.get(&id) {
                Some(to) if !seen.contains(&id) => {
                    seen.push(id);
                    stack.extend(to.iter().rev().copied());
                }
                Some(_) => {}
                None if out.contains(&id) => {}
                None => out.push(id),
            }
        }
        out
    }
}

impl WorkGraph {
    /// Replaces all uses that `redirects` notes: by inputs, control inputs, fetches and targets.
    pub fn redirect(&mut self, redirects: &Redirects) {
        if redirects.is_empty() {
            return;
        }
        for id in self.ids() {
            let Some(node) = self.get_mut(id) else { continue };
            if !redirects.kept.contains(&id) {
                node.inputs.iter_mut().for_each(|input| *input = redirects.source(*input));
            }
            redirects.resolve_controls(id, &mut node.control_inputs);
        }
        for fetch in &mut self.fetches {
            *fetch = redirects.source(*fetch);
        }
        if self.targets.iter().any(|target| redirects.controls.contains_key(target)) {
            self.targets = redirects.resolved_controls(&self.targets).into_vec();
        }
    }
}
