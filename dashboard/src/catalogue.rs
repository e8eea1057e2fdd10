//! The tags of all shown runs, grouped and filtered: what cards a page of charts has. No egui here.

use crate::{Data, Selection, filter::Filter, recorded::Recorded, runs::RunList, selection::is_at_or_below};
use std::{collections::BTreeMap, sync::Arc};
use summaries::{HistogramSeries, MediaSeries, ScalarSeries, Series};

/// A kind of series that a page shows.
pub trait Kind {
    /// What this kind reads of a series; `None` for another kind.
    fn of(series: &Series) -> Option<&Self>;
}

impl Kind for ScalarSeries {
    fn of(series: &Series) -> Option<&Self> {
        match series {
            Series::Scalar(s) => Some(s),
            _ => None,
        }
    }
}

impl Kind for HistogramSeries {
    fn of(series: &Series) -> Option<&Self> {
        match series {
            Series::Histogram(s) => Some(s),
            _ => None,
        }
    }
}

impl Kind for MediaSeries {
    fn of(series: &Series) -> Option<&Self> {
        match series {
            Series::Media(s) => Some(s),
            _ => None,
        }
    }
}

/// A run that has the tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The run's name in the window.
    pub label: Arc<str>,
    /// Index of its colour.
    pub color_idx: usize,
    logdir_idx: usize,
    run: Arc<str>,
}

impl Member {
    /// The run's series of this tag.
    pub fn series<'a, K: Kind>(&self, data: &'a Data, tag: &str) -> Option<&'a K> {
        K::of(data.logdirs.get(self.logdir_idx)?.runs.by_name.get(&*self.run)?.series.get(tag)?)
    }
}

/// A tag: one card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagRow {
    /// Identity of the card.
    pub key: Arc<str>,
    /// The whole tag.
    pub tag: Arc<str>,
    /// The part to show below its group's title.
    pub name: Arc<str>,
    /// The summary op that wrote it, where the file says so.
    pub node: Option<Arc<str>>,
    /// The graph node whose values it records, where the graph is known.
    pub source: Option<Arc<str>>,
    /// Shown runs that have it.
    pub members: Vec<Member>,
}

impl TagRow {
    /// The node that a click on the card selects: what is recorded, or else what records it.
    pub fn target(&self) -> Option<&Arc<str>> {
        self.source.as_ref().or(self.node.as_ref())
    }

    /// Whether it shows values of `scope` (a node or name scope), or its op lies there.
    pub fn belongs_to(&self, scope: &str) -> bool {
        [&self.node, &self.source].into_iter().flatten().any(|name| is_at_or_below(scope, name))
    }

    /// Whether the selected node or scope has it.
    pub fn is_selected(&self, selection: &Selection) -> bool {
        selection.node.get().is_some_and(|node| self.belongs_to(node))
    }
}

/// Tags with the same first part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The part before the first `/`; empty for tags without one.
    pub name: Arc<str>,
    /// In the order of their names.
    pub rows: Vec<TagRow>,
}

/// The groups of a page; made anew only when runs, tags or filters changed.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// In the order of their names.
    pub groups: Vec<Group>,
    recorded: Recorded,
    stamp: Option<(usize, usize, u64, String, String)>,
    /// Tags of this kind in all runs, filtered or not.
    pub n_tags: usize,
}

impl Catalogue {
    /// Brings the groups up to date; whether they were made anew.
    pub fn update<K: Kind>(&mut self, data: &Data, runs: &RunList, filter: &Filter) -> bool {
        let n_series = data.runs().map(|run| run.run.series.len()).sum();
        let shown = runs.entries().iter().fold(0_u64, |h, e| h.wrapping_mul(31).wrapping_add(u64::from(e.is_on) + 1));
        let stamp = (data.runs().count(), n_series, shown, runs.filter.text().to_owned(), filter.text().to_owned());
        let has_new_graph = self.recorded.update(data);
        if !has_new_graph && self.stamp.as_ref() == Some(&stamp) {
            return false;
        }
        self.stamp = Some(stamp);
        let mut tags: BTreeMap<&str, TagRow> = BTreeMap::new();
        let mut n_tags = 0;
        for run in data.runs() {
            let color_idx = runs.shown_color(run.label);
            for (tag, series) in run.run.series.iter().filter(|(_, series)| K::of(series).is_some()) {
                n_tags += 1;
                let Some(color_idx) = color_idx.filter(|_| filter.matches(tag)) else {
                    continue;
                };
                let row = tags.entry(tag).or_insert_with(|| new_row(tag));
                if row.node.is_none() && !series.node_name().is_empty() {
                    row.node = Some(series.node_name().into());
                    row.source = self.recorded.of(series.node_name()).cloned();
                }
                let (label, run_name) = (run.label.clone(), run.run.name.as_str().into());
                row.members.push(Member { label, color_idx, logdir_idx: run.logdir_idx, run: run_name });
            }
        }
        self.n_tags = n_tags;
        self.groups = grouped(tags.into_values());
        true
    }
}

impl Catalogue {
    /// A card for each run of each tag instead of one for each tag; cards of a tag with several runs say whose they are.
    pub fn split_by_run(&mut self) {
        for group in &mut self.groups {
            let split = |row: TagRow| {
                let is_shared = row.members.len() > 1;
                row.members.clone().into_iter().map(move |member| {
                    let name =
                        if is_shared { format!("{} · {}", row.name, member.label).into() } else { row.name.clone() };
                    let key = format!("{}\n{}", row.tag, member.label).into();
                    TagRow { key, name, members: vec![member], ..row.clone() }
                })
            };
            group.rows = std::mem::take(&mut group.rows).into_iter().flat_map(split).collect();
        }
    }
}

fn new_row(tag: &str) -> TagRow {
    let name = tag.split_once('/').map_or(tag, |(_, rest)| rest);
    TagRow { key: tag.into(), tag: tag.into(), name: name.into(), node: None, source: None, members: Vec::new() }
}

fn grouped(rows: impl Iterator<Item = TagRow>) -> Vec<Group> {
    let mut groups: BTreeMap<Arc<str>, Vec<TagRow>> = BTreeMap::new();
    for row in rows {
        let group = row.tag.split_once('/').map_or("", |(group, _)| group).into();
        groups.entry(group).or_default().push(row);
    }
    groups.into_iter().map(|(name, rows)| Group { name, rows }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;
    use summaries::{Run, Runs};

    fn data(runs: &[(&str, &[&str])]) -> Data {
        let mut all = Runs::default();
        for (name, tags) in runs {
            let series = |tag: &&str| ((*tag).to_owned(), Series::Scalar(ScalarSeries::default()));
            let run = Run { name: (*name).to_owned(), series: tags.iter().map(series).collect(), ..Run::default() };
            all.by_name.insert((*name).to_owned(), run);
        }
        Data::default().with_runs("logs", all)
    }

    fn check(runs: &[(&str, &[&str])], filter: &str, expected: &str) {
        let data = data(runs);
        let mut list = RunList::default();
        list.update(data.runs().map(|r| r.label));
        let mut tag_filter = Filter::default();
        tag_filter.set(filter);
        let mut catalogue = Catalogue::default();
        assert!(catalogue.update::<ScalarSeries>(&data, &list, &tag_filter));
        assert!(!catalogue.update::<ScalarSeries>(&data, &list, &tag_filter), "nothing changed");
        let mut text = String::new();
        for group in &catalogue.groups {
            write!(text, "[{}]", group.name).unwrap();
            for row in &group.rows {
                let members: Vec<&str> = row.members.iter().map(|m| &*m.label).collect();
                write!(text, " {}({})", row.name, members.join(",")).unwrap();
            }
            text.push('\n');
        }
        assert_eq!(text.trim_end(), expected);
    }

    #[test]
    fn groups_by_the_first_part() {
        check(
            &[(".", &["loss", "train/acc", "train/a/b"]), ("eval", &["loss"])],
            "",
            "[] loss(logs,eval)\n[train] a/b(logs) acc(logs)",
        );
    }

    #[test]
    fn filters_tags() {
        check(&[("a", &["loss", "acc"])], "^l", "[] loss(a)");
        check(&[("a", &["loss", "acc"])], "nothing", "");
    }
}
