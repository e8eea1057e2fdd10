//! The tags of all visible runs, grouped and filtered: the cards of a page of charts. No egui here.

pub(crate) use crate::panels::has_own_panel;
use crate::{Data, Selection, data::RunRef, recorded::SummaryTargets, runs::RunList, selection::is_at_or_below};
use std::{collections::BTreeMap, sync::Arc};
use summaries::{HistogramSeries, MediaSeries, Run, ScalarSeries, Series};
use ui::{filter::Filter, natural::Natural};

/// A kind of series that a page of cards shows.
pub trait Kind {
    /// The series as this kind; `None` for another kind.
    fn from_series(series: &Series) -> Option<&Self>;
}

impl Kind for ScalarSeries {
    fn from_series(series: &Series) -> Option<&Self> {
        match series {
            Series::Scalar(s) => Some(s),
            _ => None,
        }
    }
}

impl Kind for HistogramSeries {
    fn from_series(series: &Series) -> Option<&Self> {
        match series {
            Series::Histogram(s) => Some(s),
            _ => None,
        }
    }
}

impl Kind for MediaSeries {
    fn from_series(series: &Series) -> Option<&Self> {
        match series {
            Series::Media(s) if !has_own_panel(s.kind()) => Some(s),
            _ => None,
        }
    }
}

/// A run on a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The run's name in the window.
    pub label: Arc<str>,
    /// Index of the run's colour.
    pub color_idx: usize,
    /// The run's name in the window: equal to `label`, except on charts of several tags.
    pub run_label: Arc<str>,
    /// The tag of this line where it differs from the card's.
    pub tag: Option<Arc<str>>,
    /// Tags of the lower and upper edge of the band around the line.
    pub band: Option<[Arc<str>; 2]>,
    logdir_idx: usize,
    run: Arc<str>,
}

impl Member {
    fn of_run(run: &RunRef<'_>, color_idx: usize) -> Self {
        Self {
            label: run.label.clone(),
            color_idx,
            run_label: run.label.clone(),
            tag: None,
            band: None,
            logdir_idx: run.logdir_idx,
            run: run.run.name.as_str().into(),
        }
    }

    /// Creates a member for one of several tags of a card.
    pub fn of_tag(run: &RunRef<'_>, color_idx: usize, tag: &str, band: Option<[Arc<str>; 2]>) -> Self {
        let label = format!("{} · {tag}", run.label).into();
        Self { label, tag: Some(tag.into()), band, ..Self::of_run(run, color_idx) }
    }

    pub fn run<'a>(&self, data: &'a Data) -> Option<&'a Run> {
        data.logdirs.get(self.logdir_idx)?.runs.by_name.get(&*self.run)
    }

    /// The run's series of the tag.
    pub fn series<'a, K: Kind>(&self, data: &'a Data, tag: &str) -> Option<&'a K> {
        K::from_series(self.run(data)?.series.get(tag)?)
    }
}

/// A card with its tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagRow {
    /// Identifies the card.
    pub key: Arc<str>,
    /// The full tag.
    pub tag: Arc<str>,
    /// The part of the tag that is shown below the group's title.
    pub name: Arc<str>,
    /// The summary op that wrote the tag, where the file names it.
    pub node: Option<Arc<str>>,
    /// The graph node whose values it records, where the graph is known.
    pub source: Option<Arc<str>>,
    /// The visible runs with this tag.
    pub members: Vec<Member>,
}

impl TagRow {
    /// The node that a click on the card selects: the recorded node, or else the summary op.
    pub fn target(&self) -> Option<&Arc<str>> {
        self.source.as_ref().or(self.node.as_ref())
    }

    /// Whether the card shows values of `scope` (a node or name scope), or its summary op is in `scope`.
    pub fn belongs_to(&self, scope: &str) -> bool {
        [&self.node, &self.source].into_iter().flatten().any(|name| is_at_or_below(scope, name))
    }

    /// Whether the card belongs to the selected node or scope.
    pub fn is_selected(&self, selection: &Selection) -> bool {
        selection.node.get().is_some_and(|node| self.belongs_to(node))
    }
}

/// Tags with the same first part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The part before the first `/`; empty for tags without one.
    pub name: Arc<str>,
    /// Whether this is the group of pinned cards, which are also in their own groups.
    pub is_pinned: bool,
    /// The cards, sorted by name.
    pub rows: Vec<TagRow>,
}

/// The versions of a catalogue's inputs.
#[derive(Clone, Debug, PartialEq)]
struct Stamp {
    n_runs: usize,
    n_series: usize,
    shown_runs: u64,
    runs: String,
    tags: String,
    pins: Vec<Arc<str>>,
}

/// The groups of a page, recomputed only when runs, tags or filters change.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// The groups, sorted by name, pinned cards first.
    pub groups: Vec<Group>,
    /// Pinned tags in order; the filter does not apply to them.
    pub pins: Vec<Arc<str>>,
    /// Incremented with every change of the groups.
    pub revision: u64,
    recorded: SummaryTargets,
    stamp: Option<Stamp>,
    /// The number of tags of this kind in all runs, filtered or not.
    pub n_tags: usize,
}

impl Catalogue {
    /// Updates the groups; returns whether they changed.
    pub fn update<K: Kind>(&mut self, data: &Data, runs: &RunList, filter: &Filter) -> bool {
        let n_series = data.runs().map(|run| run.run.series.len()).sum();
        let shown_runs = runs.entries().iter().fold(0_u64, |h, e| {
            h.wrapping_mul(31).wrapping_add((e.color_idx as u64).wrapping_mul(2).wrapping_add(u64::from(e.is_on) + 1))
        });
        let (run_filter, tag_filter) = (runs.filter.text().to_owned(), filter.text().to_owned());
        let pins = self.pins.clone();
        let n_runs = data.runs().count();
        let stamp = Stamp { n_runs, n_series, shown_runs, runs: run_filter, tags: tag_filter, pins };
        let has_new_graph = self.recorded.update(data);
        if !has_new_graph && self.stamp.as_ref() == Some(&stamp) {
            return false;
        }
        self.stamp = Some(stamp);
        let mut tags: BTreeMap<Natural<&str>, TagRow> = BTreeMap::new();
        let mut n_tags = 0;
        for run in data.runs() {
            let color_idx = runs.shown_color(run.label);
            for (tag, series) in run.run.series.iter().filter(|(_, series)| K::from_series(series).is_some()) {
                n_tags += 1;
                let is_pinned = self.pins.iter().any(|pin| **pin == **tag);
                let Some(color_idx) = color_idx.filter(|_| is_pinned || filter.matches(tag)) else {
                    continue;
                };
                let row = tags.entry(Natural(tag)).or_insert_with(|| new_row(tag));
                if row.node.is_none() && !series.node_name().is_empty() {
                    row.node = Some(series.node_name().into());
                    row.source = self.recorded.get(series.node_name()).cloned();
                }
                row.members.push(Member::of_run(&run, color_idx));
            }
        }
        self.n_tags = n_tags;
        self.revision += 1;
        let pinned: Vec<TagRow> = self.pins.iter().filter_map(|pin| pinned(tags.get(&Natural(&**pin))?)).collect();
        self.groups = grouped(tags.into_values().filter(|row| filter.matches(&row.tag)));
        if !pinned.is_empty() {
            self.groups.insert(0, Group { name: "Pinned".into(), is_pinned: true, rows: pinned });
        }
        true
    }

    /// Every series of the page once, with its tag and run.
    pub fn series<'a, K: Kind + 'a>(&'a self, data: &'a Data) -> impl Iterator<Item = (&'a TagRow, &'a Member, &'a K)> {
        let rows = self.groups.iter().filter(|group| !group.is_pinned).flat_map(|group| &group.rows);
        let members = rows.flat_map(|row| row.members.iter().map(move |member| (row, member)));
        members.filter_map(|(row, member)| Some((row, member, member.series(data, &row.tag)?)))
    }

    /// Splits the cards for which `is_split` returns true into one card for each run, whose name has the run where the
    /// tag has several.
    pub fn split_by_run(&mut self, is_split: impl Fn(&TagRow) -> bool) {
        for group in &mut self.groups {
            let split = |row: TagRow| {
                if !is_split(&row) {
                    return vec![row];
                }
                let is_shared = row.members.len() > 1;
                let of_member = |member: &Member| {
                    let name =
                        if is_shared { format!("{} · {}", row.name, member.label).into() } else { row.name.clone() };
                    let key = format!("{}\n{}", row.tag, member.label).into();
                    TagRow { key, name, members: vec![member.clone()], ..row.clone() }
                };
                row.members.iter().map(of_member).collect()
            };
            group.rows = std::mem::take(&mut group.rows).into_iter().flat_map(split).collect();
        }
    }
}

/// The part of a tag after its group's name.
pub fn name_in_group(tag: &str) -> &str {
    tag.split_once('/').map_or(tag, |(_, rest)| rest)
}

fn new_row(tag: &str) -> TagRow {
    let name = name_in_group(tag);
    TagRow { key: tag.into(), tag: tag.into(), name: name.into(), node: None, source: None, members: Vec::new() }
}

/// The card of a tag in the group of pinned cards, under its full name.
fn pinned(row: &TagRow) -> Option<TagRow> {
    let key = format!("pinned\n{}", row.tag).into();
    (!row.members.is_empty()).then(|| TagRow { key, name: row.tag.clone(), ..row.clone() })
}

fn grouped(rows: impl Iterator<Item = TagRow>) -> Vec<Group> {
    let mut groups: BTreeMap<Natural<Arc<str>>, Vec<TagRow>> = BTreeMap::new();
    for row in rows {
        let group: Arc<str> = row.tag.split_once('/').map_or("", |(group, _)| group).into();
        groups.entry(Natural(group)).or_default().push(row);
    }
    groups.into_iter().map(|(Natural(name), rows)| Group { name, is_pinned: false, rows }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;
    use summaries::Runs;

    fn data(runs: &[(&str, &[&str])]) -> Data {
        let mut all = Runs::default();
        for (name, tags) in runs {
            let series = |tag: &&str| ((*tag).to_owned(), Series::Scalar(Box::default()));
            let run = Run { name: (*name).to_owned(), series: tags.iter().map(series).collect(), ..Run::default() };
            all.by_name.insert((*name).to_owned(), run);
        }
        Data::default().with_runs("logs", all)
    }

    fn check(runs: &[(&str, &[&str])], filter: &str, expected: &str) {
        let data = data(runs);
        let mut list = RunList::default();
        list.update(data.runs().map(|r| (r.label, r.run)), true);
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
    fn pinned_tags_come_first_whatever_the_filter() {
        let data = data(&[("a", &["loss", "train/acc", "lr"])]);
        let mut list = RunList::default();
        list.update(data.runs().map(|r| (r.label, r.run)), true);
        let mut filter = Filter::default();
        filter.set("lr");
        let mut catalogue = Catalogue { pins: vec!["train/acc".into(), "gone".into()], ..Catalogue::default() };
        assert!(catalogue.update::<ScalarSeries>(&data, &list, &filter));
        let shown: Vec<(&str, Vec<&str>)> =
            catalogue.groups.iter().map(|g| (&*g.name, g.rows.iter().map(|r| &*r.name).collect())).collect();
        assert_eq!(shown, [("Pinned", vec!["train/acc"]), ("", vec!["lr"])]);
        catalogue.pins.clear();
        assert!(catalogue.update::<ScalarSeries>(&data, &list, &filter));
        assert_eq!(catalogue.groups.len(), 1);
    }

    #[test]
    fn filters_tags() {
        check(&[("a", &["loss", "acc"])], "^l", "[] loss(a)");
        check(&[("a", &["loss", "acc"])], "nothing", "");
    }
}
