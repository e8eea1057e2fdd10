//! The cards: one for each tag and run, except that precision-recall curves of all runs share a card, and so do the
//! parts of a mesh. No egui here.

use super::decode::MediaValue;
use crate::{
    Data,
    catalogue::{Catalogue, Member, TagRow, name_in_group},
};
use formats::plugins::{MeshPluginData, mesh_plugin_data::ContentType};
use prost::Message;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use summaries::{MediaSeries, Series};

/// The value of a run at the card's step.
pub struct RunValue<'a> {
    pub member: &'a Member,
    pub shown: Arc<MediaValue>,
}

/// The plugin of a row's values.
pub fn kind<'a>(row: &TagRow, data: &'a Data) -> &'a str {
    series(row, data).map_or("", MediaSeries::kind)
}

/// The series of a row's first member.
pub fn series<'a>(row: &TagRow, data: &'a Data) -> Option<&'a MediaSeries> {
    row.members.first()?.series(data, &row.tag)
}

/// The tags of a mesh's vertices, faces and colours; `None` for parts that it lacks.
pub type MeshTags = [Option<Arc<str>>; 3];

/// The meshes on a page, by the keys of their cards.
pub type Meshes = FxHashMap<Arc<str>, MeshTags>;

/// Arranges the catalogue's rows as cards; returns the meshes.
pub fn arrange(catalogue: &mut Catalogue, data: &Data) -> Meshes {
    catalogue.split_by_run(|row| kind(row, data) != "pr_curves");
    let mut meshes = Meshes::default();
    let mut card_of: FxHashMap<(Arc<str>, MeshId), Arc<str>> = FxHashMap::default();
    for group in &mut catalogue.groups {
        group.rows.retain_mut(|row| {
            let Some((id, _)) = series(row, data).and_then(|series| part(&row.tag, series)) else { return true };
            let Some(member) = row.members.first() else { return true };
            let key = (member.label.clone(), id);
            if card_of.contains_key(&key) {
                return false;
            }
            row.name = name_in_group(&key.1.name).into();
            let tags = tags_of(member, data, &key.1);
            if let Some(first) = tags.iter().flatten().next() {
                row.tag = first.clone();
            }
            meshes.insert(row.key.clone(), tags);
            card_of.insert(key, row.key.clone());
            true
        });
        name_runs(&mut group.rows, &meshes);
    }
    catalogue.groups.retain(|group| !group.rows.is_empty());
    meshes
}

/// Adds the run to the names of meshes that would otherwise be the same.
fn name_runs(rows: &mut [TagRow], meshes: &Meshes) {
    let mut n_named: FxHashMap<Arc<str>, u32> = FxHashMap::default();
    for row in rows.iter().filter(|row| meshes.contains_key(&row.key)) {
        *n_named.entry(row.name.clone()).or_default() += 1;
    }
    for row in rows.iter_mut().filter(|row| meshes.contains_key(&row.key)) {
        if n_named.get(&row.name).is_some_and(|n| *n > 1)
            && let Some(member) = row.members.first()
        {
            row.name = format!("{} · {}", row.name, member.label).into();
        }
    }
}

/// Identifies a mesh in a run: the parts' name in their metadata and the scope of their tags. The tags themselves end
/// as their writer likes: in `_VERTEX` by TensorBoard and torch, in `_1` by tensorboardX.
#[derive(Clone, PartialEq, Eq, Hash)]
struct MeshId {
    scope: Box<str>,
    name: Box<str>,
}

/// The mesh that a tag belongs to, and the index of the part in [`MeshTags`].
fn part(tag: &str, series: &MediaSeries) -> Option<(MeshId, usize)> {
    let plugin = series.metadata.plugin_data.as_ref().filter(|_| series.kind() == "mesh")?;
    let metadata = MeshPluginData::decode(&plugin.content[..]).ok()?;
    let part = match metadata.content_type() {
        ContentType::Vertex => 0,
        ContentType::Face => 1,
        ContentType::Color => 2,
        ContentType::Undefined => return None,
    };
    let scope = tag.rsplit_once('/').map_or("", |(scope, _)| scope);
    Some((MeshId { scope: scope.into(), name: metadata.name.into() }, part))
}

/// The parts of a mesh, whether or not their tags pass the page's filter.
fn tags_of(member: &Member, data: &Data, id: &MeshId) -> MeshTags {
    let mut tags = MeshTags::default();
    for (tag, series) in member.run(data).into_iter().flat_map(|run| run.series.iter()) {
        let Series::Media(series) = series else { continue };
        if let Some((_, place)) = part(tag, series).filter(|(of, _)| of == id) {
            tags[place].get_or_insert_with(|| tag.as_str().into());
        }
    }
    tags
}

/// The key of a member's series in the cache.
pub fn cache_key(tag: &str, member: &Member) -> Arc<str> {
    format!("{tag}\n{}", member.label).into()
}

/// The row of `part` that belongs to `row` of a mesh's first part: the same row where both have the same step, or else
/// the newest row at or before that step.
pub fn row_of_part(first: &MediaSeries, row: usize, part: &MediaSeries) -> Option<usize> {
    let step = first.rows().get(row)?.step;
    let is_same_step = |at: &usize| part.rows().get(*at).is_some_and(|part| part.step == step);
    Some(row).filter(is_same_step).or_else(|| part.rows().iter().rposition(|part| part.step <= step))
}
