//! Properties for which Perfetto's descriptors have no field: `stepscope` and a JSON object in their description.

use serde::{Deserialize, Serialize};
use trace_model::TrackKind;
use trace_store::Track;

/// The begin of a description that this program wrote.
const PREFIX: &str = "stepscope ";

/// Properties of a track, a counter or a process.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub(crate) struct ExtraProperties {
    #[serde(skip_serializing_if = "String::is_empty")]
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) device: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stream: Option<u64>,
    /// The kernel's thread id; that of the descriptor may be made up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tid: Option<u32>,
    /// Whether the track has the slices that overlap others of its parent track.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) overlaps: bool,
    /// Category of a counter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) category: Option<String>,
    /// Host of a process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<String>,
}

impl ExtraProperties {
    pub(super) fn new(track: &Track) -> ExtraProperties {
        ExtraProperties {
            kind: track.kind.name().to_owned(),
            device: track.device.clone(),
            stream: track.stream,
            tid: Some(track.tid),
            ..ExtraProperties::default()
        }
    }

    pub(super) fn overlapping() -> ExtraProperties {
        ExtraProperties { overlaps: true, ..ExtraProperties::default() }
    }

    pub(super) fn counter(category: &str) -> ExtraProperties {
        ExtraProperties { category: Some(category.to_owned()), ..ExtraProperties::default() }
    }

    pub(super) fn process(host: &str) -> ExtraProperties {
        ExtraProperties { host: Some(host.to_owned()), ..ExtraProperties::default() }
    }

    pub(super) fn text(&self) -> String {
        format!("{PREFIX}{}", serde_json::json!(self))
    }

    /// Parses a description; `None` if another program wrote it.
    pub(crate) fn parse(description: &str) -> Option<ExtraProperties> {
        serde_json::from_str(description.strip_prefix(PREFIX)?).ok()
    }

    /// Kind of the track.
    pub(crate) fn kind(&self) -> Option<TrackKind> {
        TrackKind::from_name(&self.kind)
    }
}
