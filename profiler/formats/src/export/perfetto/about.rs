//! What Perfetto's descriptors have no field for: in their description, as `stepscope` and a JSON object.

use serde::{Deserialize, Serialize};
use trace_model::TrackKind;
use trace_store::Track;

/// What a description of ours begins with.
const OURS: &str = "stepscope ";

/// Of a track, a counter or a process.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub(crate) struct About {
    #[serde(skip_serializing_if = "String::is_empty")]
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) device: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stream: Option<u64>,
    /// The kernel's thread id, where the descriptor's is not its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tid: Option<u32>,
    /// It holds what overlaps in its parent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) overlaps: bool,
    /// Of a counter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) category: Option<String>,
    /// Of a process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<String>,
}

impl About {
    pub(super) fn of(track: &Track) -> About {
        About {
            kind: track.kind.name().to_owned(),
            device: track.device.clone(),
            stream: track.stream,
            tid: Some(track.tid),
            ..About::default()
        }
    }

    pub(super) fn overlapping() -> About {
        About { overlaps: true, ..About::default() }
    }

    pub(super) fn counter(category: &str) -> About {
        About { category: Some(category.to_owned()), ..About::default() }
    }

    pub(super) fn process(host: &str) -> About {
        About { host: Some(host.to_owned()), ..About::default() }
    }

    pub(super) fn text(&self) -> String {
        format!("{OURS}{}", serde_json::json!(self))
    }

    /// From a description, if it is ours.
    pub(crate) fn parse(description: &str) -> Option<About> {
        serde_json::from_str(description.strip_prefix(OURS)?).ok()
    }

    /// What the track stands for.
    pub(crate) fn kind(&self) -> Option<TrackKind> {
        TrackKind::from_name(&self.kind)
    }
}
