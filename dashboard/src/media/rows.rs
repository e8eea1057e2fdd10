//! Which cards there are: one for each tag and run, but precision-recall curves of all runs share one, and so do the
//! parts of a mesh. No egui here.

use crate::{
    Data,
    catalogue::{Catalogue, Member, TagRow},
};
use formats::plugins::{MeshPluginData, mesh_plugin_data::ContentType};
use prost::Message;
use std::sync::Arc;
use summaries::MediaSeries;

/// The plugin that shows a row's values.
pub fn kind<'a>(row: &TagRow, data: &'a Data) -> &'a str {
    series(row, data).map_or("", MediaSeries::kind)
}

/// The series of a row's first member.
pub fn series<'a>(row: &TagRow, data: &'a Data) -> Option<&'a MediaSeries> {
    row.members.first()?.series(data, &row.tag)
}

/// Arranges what the catalogue found.
pub fn arrange(catalogue: &mut Catalogue, data: &Data) {
    for group in &mut catalogue.groups {
        let has_vertices: Vec<Arc<str>> =
            group.rows.iter().filter(|r| part(r, data) == ContentType::Vertex).map(|r| r.tag.clone()).collect();
        let is_extra = |row: &TagRow| match part(row, data) {
            ContentType::Face | ContentType::Color => has_vertices.iter().any(|tag| stem(tag) == stem(&row.tag)),
            _ => false,
        };
        group.rows.retain(|row| !is_extra(row));
        for row in &mut group.rows {
            if part(row, data) == ContentType::Vertex {
                row.name = stem(&row.name).into();
            }
        }
    }
    catalogue.groups.retain(|group| !group.rows.is_empty());
    catalogue.split_by_run(|row| kind(row, data) != "pr_curves");
}

fn part(row: &TagRow, data: &Data) -> ContentType {
    let Some(series) = series(row, data).filter(|s| s.kind() == "mesh") else { return ContentType::Undefined };
    let content = series.metadata.plugin_data.as_ref().map_or(&[][..], |plugin| &plugin.content);
    MeshPluginData::decode(content).map_or(ContentType::Undefined, |about| about.content_type())
}

/// A mesh's name: its tag without the part's.
fn stem(tag: &str) -> &str {
    ["_VERTEX", "_FACE", "_COLOR"].iter().find_map(|suffix| tag.strip_suffix(suffix)).unwrap_or(tag)
}

/// The tags that hold the vertices, faces and colours of a row's mesh.
pub fn mesh_tags(row: &TagRow) -> [String; 3] {
    ["VERTEX", "FACE", "COLOR"].map(|part| format!("{}_{part}", stem(&row.tag)))
}

/// What a member's values of a tag are called on the shelf.
pub fn shelf_key(tag: &str, member: &Member) -> Arc<str> {
    format!("{tag}\n{}", member.label).into()
}
