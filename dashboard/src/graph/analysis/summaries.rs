//! The tags that record values of the selected item or of nodes below it.

use crate::{
    Data, ViewKind,
    graph::model::{ItemId, Kind, Model},
    recorded::SummaryTargets,
};
use std::{collections::BTreeMap, sync::Arc};

/// A tag and the panel that shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub name: Arc<str>,
    pub view: ViewKind,
}

/// The tags of one item, cached while nothing that they depend on changes.
#[derive(Default)]
pub(crate) struct Summaries {
    recorded: SummaryTargets,
    /// The item and the number of series for which the tags were found.
    stamp: Option<(Option<ItemId>, usize)>,
    tags: Vec<Tag>,
}

impl Summaries {
    /// Updates the tags of `item`.
    pub fn update(&mut self, model: &Model, item: Option<ItemId>, data: &Data) {
        let n_series = data.runs().map(|run| run.run.series.len()).sum();
        let has_new_graph = self.recorded.update(data);
        if !has_new_graph && self.stamp == Some((item, n_series)) {
            return;
        }
        self.stamp = Some((item, n_series));
        self.tags.clear();
        let Some(item) = item.filter(|&i| !matches!(model.kind(i), Kind::Root | Kind::Library)) else { return };
        let mut found = BTreeMap::new();
        for (tag, series) in data.runs().flat_map(|run| &run.run.series) {
            if !series.node_name().is_empty() && self.recorded.belongs_to(series.node_name(), model.name(item)) {
                found.insert(tag, ViewKind::showing(series));
            }
        }
        self.tags.extend(found.into_iter().map(|(tag, view)| Tag { name: tag.as_str().into(), view }));
    }

    pub fn tags(&self) -> &[Tag] {
        &self.tags
    }
}
