//! The list of runs, shared by Scalars and Histograms: colours, visibility, and the filter.

use crate::panels::has_own_panel;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use summaries::{Run, Series};
use ui::{filter::Filter, natural, theme::NO_COLOR};

/// Runs beyond this number start hidden, as in TensorBoard: thousands of lines cannot be distinguished.
const SHOWN_AT_FIRST: usize = 500;

/// What a run has to draw, which decides about its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum DrawKind {
    /// No values yet, or only hyperparameters or a graph.
    #[default]
    Nothing,
    /// Images, texts, single points.
    Marks,
    /// A curve or a histogram.
    Curves,
}

impl DrawKind {
    pub fn for_run(run: &Run) -> Self {
        let mut all = Self::Nothing;
        for series in run.series.values() {
            let draws = match series {
                Series::Scalar(series) if series.len() > 1 => Self::Curves,
                Series::Histogram(_) => Self::Curves,
                Series::Scalar(series) if series.is_empty() => Self::Nothing,
                Series::Scalar(_) => Self::Marks,
                Series::Media(series) if has_own_panel(series.kind()) => Self::Nothing,
                Series::Media(_) => Self::Marks,
            };
            all = all.max(draws);
            if all == Self::Curves {
                break;
            }
        }
        all
    }
}

/// One run of the list.
#[derive(Clone, Debug)]
pub struct RunEntry {
    /// The run's unique name in the window.
    pub label: Arc<str>,
    /// Index of the run's colour: see [`RunList::update`].
    pub color_idx: usize,
    /// Whether the run is switched on.
    pub is_on: bool,
    /// The byte of the label from which on it differs from the adjacent runs' labels.
    pub differs_at: usize,
    draws: DrawKind,
    version: Option<u64>,
    own_color: Option<usize>,
}

/// All runs with their colours and visibility.
#[derive(Clone, Debug, Default)]
pub struct RunList {
    /// The runs, sorted by name.
    entries: Vec<RunEntry>,
    by_label: FxHashMap<Arc<str>, usize>,
    n_colors: usize,
    /// The length in bytes of the folder that is common to all labels.
    common: usize,
    /// The filter of the listed runs.
    pub filter: Filter,
}

impl RunList {
    /// Adds new runs; runs that are gone stay, so that they have the same colour when they return.
    ///
    /// Runs that draw something get colours in the order of their names. A run in another run's folder that draws no
    /// line, such as one of TensorBoard's hyperparameters, has that run's colour. While runs are still being found (not
    /// `is_settled`) all colours are assigned anew; later a new run changes no other run's colour.
    pub fn update<'a>(&mut self, runs: impl Iterator<Item = (&'a Arc<str>, &'a Run)>, is_settled: bool) {
        let (mut n_new, mut is_changed) = (0, false);
        for (label, run) in runs {
            let idx = self.by_label.get(label).copied().unwrap_or(self.entries.len());
            if idx == self.entries.len() {
                n_new += 1;
                self.by_label.insert(label.clone(), idx);
                self.entries.push(RunEntry::new(label.clone(), idx < SHOWN_AT_FIRST));
            }
            let entry = &mut self.entries[idx];
            if entry.version.replace(run.version) != Some(run.version) {
                let draws = DrawKind::for_run(run).max(entry.draws);
                is_changed |= std::mem::replace(&mut entry.draws, draws) != draws;
            }
        }
        if n_new > 0 {
            self.arrange();
        }
        if n_new > 0 || is_changed {
            self.give_colors(!is_settled);
        }
    }

    /// Sorts the entries and finds the differences between their labels.
    fn arrange(&mut self) {
        self.entries.sort_by(|a, b| natural::order(&a.label, &b.label));
        self.by_label = self.entries.iter().enumerate().map(|(i, entry)| (entry.label.clone(), i)).collect();
        let labels: Vec<Arc<str>> = self.entries.iter().map(|entry| entry.label.clone()).collect();
        let in_common: Vec<usize> = labels.windows(2).map(|pair| shared(&pair[0], &pair[1])).collect();
        for (i, entry) in self.entries.iter_mut().enumerate() {
            let [before, after] = [i.checked_sub(1), Some(i)].map(|at| at.and_then(|at| in_common.get(at)).copied());
            entry.differs_at = before.max(after).unwrap_or(0);
        }
        self.common = match &labels[..] {
            [first, .., last] => {
                labels.iter().fold(shared(first, last), |least, label| least.min(shared(first, label)))
            }
            _ => 0,
        };
        self.common = labels.first().and_then(|first| first[..self.common].rfind('/')).map_or(0, |at| at + 1);
    }

    fn give_colors(&mut self, anew: bool) {
        if anew {
            self.n_colors = 0;
            self.entries.iter_mut().for_each(|entry| entry.own_color = None);
        }
        for i in 0..self.entries.len() {
            let entry = &self.entries[i];
            let has_own = match entry.draws {
                DrawKind::Nothing => false,
                DrawKind::Marks => self.above(&entry.label).is_none(),
                DrawKind::Curves => true,
            };
            if has_own && entry.own_color.is_none() {
                self.entries[i].own_color = Some(self.n_colors);
                self.n_colors += 1;
            }
        }
        for i in 0..self.entries.len() {
            let entry = &self.entries[i];
            let color = entry.own_color.or_else(|| self.entries[self.above(&entry.label)?].own_color);
            self.entries[i].color_idx = color.unwrap_or(NO_COLOR);
        }
    }

    /// The innermost run around this one in the tree of folders that has a colour or may get one.
    fn above(&self, label: &str) -> Option<usize> {
        let mut label = label;
        while let Some((folder, _)) = label.rsplit_once('/') {
            if let Some(&at) = self.by_label.get(folder).filter(|at| self.entries[**at].draws > DrawKind::Nothing) {
                return Some(at);
            }
            label = folder;
        }
        None
    }

    /// Every run, in the order of names.
    pub fn entries(&self) -> &[RunEntry] {
        &self.entries
    }

    /// The part of a label that lists show: without the common folder.
    pub fn short<'a>(&self, label: &'a str) -> &'a str {
        label.get(self.common..).filter(|_| self.by_label.contains_key(label)).unwrap_or(label)
    }

    /// The byte of the short label from which on it differs from the adjacent labels.
    pub fn differs_at(&self, label: &str) -> usize {
        self.by_label.get(label).map_or(0, |at| self.entries[*at].differs_at.saturating_sub(self.common))
    }

    /// The run's colour index, if the run is switched on and passes the filter.
    pub fn shown_color(&self, label: &str) -> Option<usize> {
        let entry = &self.entries[*self.by_label.get(label)?];
        (entry.is_on && self.filter.matches(label)).then_some(entry.color_idx)
    }

    /// The run's colour index, whether it is visible or not.
    pub fn color(&self, label: &str) -> Option<usize> {
        Some(self.entries[*self.by_label.get(label)?].color_idx)
    }

    /// Switches the runs on for which `is_wanted` returns true, and all others off.
    pub fn show_only(&mut self, is_wanted: impl Fn(&str) -> bool) {
        for entry in &mut self.entries {
            entry.is_on = is_wanted(&entry.label);
        }
    }

    /// Switches one run on or off.
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

    /// Shows only this run; if it is the only one already, all.
    pub fn solo(&mut self, label: &str) {
        let is_alone = self.entries.iter().all(|entry| entry.is_on == (*entry.label == *label));
        for entry in &mut self.entries {
            entry.is_on = is_alone || *entry.label == *label;
        }
    }
}

impl RunEntry {
    fn new(label: Arc<str>, is_on: bool) -> Self {
        let (color_idx, draws) = (NO_COLOR, DrawKind::Nothing);
        Self { label, color_idx, is_on, differs_at: 0, draws, version: None, own_color: None }
    }
}

/// The length in bytes of the common begin of two names, in entire numbers: `run 12` and `run 13` share `run `.
fn shared(a: &str, b: &str) -> usize {
    let same = a.char_indices().zip(b.chars()).take_while(|((_, a), b)| a == b);
    let end = same.last().map_or(0, |((at, letter), _)| at + letter.len_utf8());
    let is_within = |name: &str| name[end..].starts_with(|c: char| c.is_ascii_digit());
    if is_within(a) || is_within(b) { a[..end].trim_end_matches(|c: char| c.is_ascii_digit()).len() } else { end }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use summaries::{Point, ScalarSeries};

    /// A run with as many points as its name ends in.
    fn run(name: &str, n_points: usize) -> (Arc<str>, Run) {
        let points = (0..n_points as i64).map(|step| Point { step, wall: 0.0, value: 0.0 });
        let loss = Series::Scalar(Box::new(points.collect::<ScalarSeries>()));
        (name.into(), Run { series: [("loss".to_owned(), loss)].into_iter().collect(), ..Run::default() })
    }

    fn with(runs: &mut RunList, all: &[(Arc<str>, Run)], is_settled: bool) {
        runs.update(all.iter().map(|(label, run)| (label, run)), is_settled);
    }

    fn list(labels: &[&str]) -> RunList {
        let mut runs = RunList::default();
        with(&mut runs, &labels.iter().map(|label| run(label, 2)).collect::<Vec<_>>(), true);
        runs
    }

    #[test]
    fn colors_stay_when_runs_come() {
        let mut runs = list(&["b"]);
        with(&mut runs, &[run("a", 2), run("b", 2)], true);
        assert_eq!(runs.shown_color("b"), Some(0));
        assert_eq!(runs.shown_color("a"), Some(1));
        assert_eq!(runs.shown_color("c"), None);
        let mut runs = RunList::default();
        with(&mut runs, &[run("b", 2)], false);
        with(&mut runs, &[run("a", 2), run("b", 2)], false);
        assert_eq!((runs.color("a"), runs.color("b")), (Some(0), Some(1)), "in order while the logdir is read");
    }

    #[test]
    fn colors_go_to_what_draws_curves() {
        let names: Vec<String> = (1..=30).map(|i| format!("sweep/lr{i}")).collect();
        let mut all: Vec<_> = names.iter().map(|name| run(name, 9)).collect();
        all.extend(names.iter().map(|name| run(&format!("{name}/1795431346.{}", name.len()), 1)));
        all.push(run("empty", 0));
        all.push(run("alone", 1));
        let mut runs = RunList::default();
        with(&mut runs, &all, true);
        assert_eq!(runs.color("alone"), Some(0), "a lone point is drawn too");
        assert_eq!(runs.color("empty"), Some(NO_COLOR));
        for (i, name) in names.iter().enumerate() {
            assert_eq!(runs.color(name), Some(i + 1));
            assert_eq!(
                runs.color(&format!("{name}/1795431346.{}", name.len())),
                Some(i + 1),
                "as the run it belongs to"
            );
        }
    }

    #[test]
    fn labels_are_shown_without_what_all_have() {
        let runs = list(&["logs/a/lr0.1_seed1", "logs/a/lr0.1_seed2", "logs/a/lr0.1_seed12", "logs/b/x"]);
        let order: Vec<&str> = runs.entries().iter().map(|entry| runs.short(&entry.label)).collect();
        assert_eq!(order, ["a/lr0.1_seed1", "a/lr0.1_seed2", "a/lr0.1_seed12", "b/x"]);
        assert_eq!(runs.differs_at("logs/a/lr0.1_seed2"), "a/lr0.1_seed".len());
        assert_eq!((runs.short("elsewhere"), runs.differs_at("logs/b/x")), ("elsewhere", 0));
        assert_eq!(list(&["logs/only"]).short("logs/only"), "logs/only");
    }

    proptest! {
        /// What is left of two labels from where they differ is not the same.
        #[test]
        fn neighbours_differ_where_it_says(names in proptest::collection::btree_set("[ab/_12]{1,8}", 2..12)) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let runs = list(&names);
            for pair in runs.entries().windows(2) {
                for at in [pair[0].differs_at, pair[1].differs_at] {
                    let part = |i: usize| &pair[i].label[at.min(pair[i].label.len())..];
                    let same_begin = pair[0].label.get(..at) == pair[1].label.get(..at);
                    prop_assert!(!same_begin || part(0) != part(1));
                }
            }
        }
    }

    #[test]
    fn toggle_solo_and_filter() {
        let mut runs = list(&["train", "eval"]);
        runs.solo("eval");
        assert_eq!((runs.shown_color("train"), runs.shown_color("eval")), (None, Some(0)));
        runs.solo("eval");
        assert_eq!(runs.shown_color("train"), Some(1));
        runs.filter.set("ev");
        runs.set_all(false);
        runs.filter.set("");
        assert_eq!((runs.shown_color("train"), runs.shown_color("eval")), (Some(1), None));
        runs.toggle("eval");
        assert_eq!(runs.shown_color("eval"), Some(0));
    }
}
