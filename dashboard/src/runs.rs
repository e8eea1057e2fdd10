//! The list of runs, shared by Scalars and Histograms: colours, which are shown, and the filter.

use crate::filter::Filter;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Runs beyond this many start hidden, as in TensorBoard: drawing thousands of curves helps nobody.
pub const SHOWN_AT_FIRST: usize = 500;

/// One run of the list.
#[derive(Clone, Debug)]
pub struct RunEntry {
    /// What to call it; unique.
    pub label: Arc<str>,
    /// Index of its colour, by order of appearance: a new run changes nobody's colour.
    pub color_idx: usize,
    /// Whether it is switched on.
    pub is_on: bool,
}

/// All runs and what is done with them.
#[derive(Clone, Debug, Default)]
pub struct RunList {
    entries: Vec<RunEntry>,
    by_label: FxHashMap<Arc<str>, usize>,
    /// Which runs are listed and shown at all.
    pub filter: Filter,
}

impl RunList {
    /// Takes in runs that are new; runs that are gone stay, so that they keep their colour when they come back.
    pub fn update<'a>(&mut self, labels: impl Iterator<Item = &'a Arc<str>>) {
        for label in labels {
            if !self.by_label.contains_key(label) {
                let idx = self.entries.len();
                self.by_label.insert(label.clone(), idx);
                let is_on = idx < SHOWN_AT_FIRST;
                self.entries.push(RunEntry { label: label.clone(), color_idx: idx, is_on });
            }
        }
    }

    /// Every run, in order of appearance.
    pub fn entries(&self) -> &[RunEntry] {
        &self.entries
    }

    /// The run's colour index, if it is switched on and passes the filter.
    pub fn shown_color(&self, label: &str) -> Option<usize> {
        let entry = &self.entries[*self.by_label.get(label)?];
        (entry.is_on && self.filter.matches(label)).then_some(entry.color_idx)
    }

    /// The run's colour index, shown or not.
    pub fn color(&self, label: &str) -> Option<usize> {
        Some(self.entries[*self.by_label.get(label)?].color_idx)
    }

    /// Shows the runs that are wanted, and only those.
    pub fn show_only(&mut self, is_wanted: impl Fn(&str) -> bool) {
        for entry in &mut self.entries {
            entry.is_on = is_wanted(&entry.label);
        }
    }

    /// Switches one run.
    pub fn toggle(&mut self, label: &str) {
        if let Some(&idx) = self.by_label.get(label) {
            self.entries[idx].is_on ^= true;
        }
    }

    /// Switches every run that passes the filter on or off.
    pub fn set_all(&mut self, is_on: bool) {
        for entry in &mut self.entries {
            if self.filter.matches(&entry.label) {
                entry.is_on = is_on;
            }
        }
    }

    /// Shows this run alone; if it is alone already, all.
    pub fn solo(&mut self, label: &str) {
        let is_alone = self.entries.iter().all(|entry| entry.is_on == (*entry.label == *label));
        for entry in &mut self.entries {
            entry.is_on = is_alone || *entry.label == *label;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(labels: &[&str]) -> RunList {
        let labels: Vec<Arc<str>> = labels.iter().map(|l| Arc::from(*l)).collect();
        let mut list = RunList::default();
        list.update(labels.iter());
        list
    }

    #[test]
    fn colours_stay_when_runs_come() {
        let mut runs = list(&["b"]);
        runs.update([Arc::from("a"), Arc::from("b")].iter());
        assert_eq!(runs.shown_color("b"), Some(0));
        assert_eq!(runs.shown_color("a"), Some(1));
        assert_eq!(runs.shown_color("c"), None);
    }

    #[test]
    fn toggle_solo_and_filter() {
        let mut runs = list(&["train", "eval"]);
        runs.solo("eval");
        assert_eq!((runs.shown_color("train"), runs.shown_color("eval")), (None, Some(1)));
        runs.solo("eval");
        assert_eq!(runs.shown_color("train"), Some(0));
        runs.filter.set("ev");
        runs.set_all(false);
        runs.filter.set("");
        assert_eq!((runs.shown_color("train"), runs.shown_color("eval")), (Some(0), None));
        runs.toggle("eval");
        assert_eq!(runs.shown_color("eval"), Some(1));
    }
}
