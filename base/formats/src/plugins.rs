//! Messages of TensorBoard's plugins, generated from `proto/tensorboard/plugins.proto`.

use prost::Message as _;
use prost_reflect::{DynamicMessage, ReflectMessage as _};

use crate::graph_file::{DESCRIPTOR_POOL, check_depth};

// The generated code: its documentation is the comments of the .proto file, which do not cover every field.
#[allow(missing_docs, unused_qualifications, clippy::all)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/tensorboard.rs"));
}

pub use generated::*;

/// Why a text is not a projector configuration.
#[derive(Debug, Clone, thiserror::Error)]
#[error("not a projector configuration: {0}")]
pub struct ProjectorTextError(String);

impl ProjectorConfig {
    /// Parses the text of `projector_config.pbtxt`.
    ///
    /// # Errors
    /// The text is not a `ProjectorConfig`; the error has the line and column.
    pub fn from_text(text: &str) -> Result<Self, ProjectorTextError> {
        let error = |e: &dyn std::fmt::Display| ProjectorTextError(e.to_string());
        check_depth(text).map_err(|e| error(&e))?;
        let message = DynamicMessage::parse_text_format(Self::empty().descriptor(), text).map_err(|e| error(&e))?;
        message.transcode_to().map_err(|e| error(&e))
    }

    /// The text of `projector_config.pbtxt`.
    pub fn to_text(&self) -> String {
        let mut message = Self::empty();
        // Both types are generated from the same description, so the bytes of one decode as the other.
        message.merge(&self.encode_to_vec()[..]).expect("a message decodes as itself");
        message.to_text_format()
    }

    fn empty() -> DynamicMessage {
        let descriptor = DESCRIPTOR_POOL.get_message_by_name("tensorboard.ProjectorConfig");
        DynamicMessage::new(descriptor.expect("the build script compiled plugins.proto"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projector_configurations_in_text() {
        let text =
            "embeddings {\n  tensor_name: \"e\"\n  metadata_path: \"m.tsv\"\n  tensor_shape: 3\n  tensor_shape: 2\n}";
        let config = ProjectorConfig::from_text(text).unwrap();
        assert_eq!(config.embeddings[0].tensor_shape, [3, 2]);
        assert_eq!(ProjectorConfig::from_text(&config.to_text()).unwrap(), config);
        assert!(ProjectorConfig::from_text("embeddings { nonsense }").is_err());
    }
}
