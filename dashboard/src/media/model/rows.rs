//! Which cards there are: one for each tag and run, but precision-recall curves of all runs share one, and so do the
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

/// A run's value at the card's step.
pub struct RunValue<'a> {
    pub member: &'a Member,
    pub shown: Arc<MediaValue>,
}

/// The plugin that shows a row's values.
pub fn kind<'a>(row: &TagRow, data: &'a Data) -> &'a str {
    series(row, data).map_or("", MediaSeries::kind)
}

/// The series of a row's first member.
pub fn series<'a>(row: &TagRow, data: &'a Data) -> Option<&'a MediaSeries> {
    row.members.first()?.series(data, &row.tag)
}

/// The tags of a mesh's vertices, faces and colours, as far as it has them.
pub type MeshTags = [Option<Arc<str>>; 3];

/// The meshes on a page, by the keys of their cards.
pub type Meshes = FxHashMap<Arc<str>, MeshTags>;

/// Arranges what the catalogue found.
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

/// Has meshes of one name say whose they are, as other cards of a tag with several runs do.
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

/// What the parts of a mesh have in common in a run: the name that their metadata gives and the scope of their tags. How a
/// tag ends is up to its writer: `_VERTEX` by TensorBoard and torch, `_1` by tensorboardX.
#[derive(Clone, PartialEq, Eq, Hash)]
struct MeshId {
    scope: Box<str>,
    name: Box<str>,
}

/// Which mesh a tag is part of, and which part: 0 to 2 as in [`MeshTags`].
fn part(tag: &str, series: &MediaSeries) -> Option<(MeshId, usize)> {
    let plugin = series.metadata.plugin_data.as_ref().filter(|_| series.kind() == "mesh")?;
    let about = MeshPluginData::decode(&plugin.content[..]).ok()?;
    let part = match about.content_type() {
        ContentType::Vertex => 0,
        ContentType::Face => 1,
        ContentType::Color => 2,
        ContentType::Undefined => return None,
    };
    let scope = tag.rsplit_once('/').map_or("", |(scope, _)| scope);
    Some((MeshId { scope: scope.into(), name: about.name.into() }, part))
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

/// The cache's key of a member's values of a tag.
pub fn cache_key(tag: &str, member: &Member) -> Arc<str> {
    format!("{tag}\n{}", member.label).into()
}

/// The row of another part of a mesh that belongs to `row` of its first one: the one in the same row where both were written
/// together, else the newest of the same step or before it.
pub fn row_of_part(first: &MediaSeries, row: usize, part: &MediaSeries) -> Option<usize> {
    let step = first.rows().get(row)?.step;
    let is_same_step = |at: &usize| part.rows().get(*at).is_some_and(|part| part.step == step);
    Some(row).filter(is_same_step).or_else(|| part.rows().iter().rposition(|part| part.step <= step))
}
