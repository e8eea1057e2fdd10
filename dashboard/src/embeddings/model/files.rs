//! Embeddings on disk: the projector's configurations next to the event files, listed and read in a thread.

use super::sprites::SpriteSheet;
use crate::Data;
use formats::plugins::EmbeddingInfo;
use std::{path::PathBuf, sync::Arc};
use summaries::{Embedding, read_projector_config};
use ui::{background::Question, natural};

/// An embedding that a configuration names.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedEmbedding {
    /// The names of the run and of the tensor: `run: tensor`.
    pub name: Arc<str>,
    folder: PathBuf,
    info: EmbeddingInfo,
}

/// Folders that may hold a projector's configuration, under the names shown.
pub type Folders = Vec<(Arc<str>, PathBuf)>;

/// The embeddings that configurations name.
#[derive(Debug, Default)]
pub struct Listing {
    pub embeddings: Vec<ListedEmbedding>,
    /// Configurations that cannot be read.
    pub errors: Vec<String>,
}

impl Question for ListedEmbedding {}

/// An embedding with its images.
#[derive(Clone, Debug)]
pub struct LoadedEmbedding {
    /// Vectors with their metadata.
    pub embedding: Arc<Embedding>,
    /// The images, or the error; `None` if the configuration names none.
    pub sheet: Option<Result<Arc<SpriteSheet>, String>>,
}

/// Returns the folders of all logdirs and runs, without duplicates, in natural order of their paths.
pub fn folders(data: &Data) -> Folders {
    let tops = data.logdirs.iter().map(|logdir| (logdir.name.clone(), logdir.path.to_path_buf()));
    let runs = data.runs().map(|run| (run.label.clone(), run.run.path.clone()));
    let mut out: Folders = tops.chain(runs).collect();
    out.sort_by(|a, b| natural::order(&a.1.to_string_lossy(), &b.1.to_string_lossy()).then_with(|| a.1.cmp(&b.1)));
    out.dedup_by(|a, b| a.1 == b.1);
    out
}

/// Lists the embeddings of these folders, each with the name of its run.
pub fn list(folders: Folders) -> Listing {
    let mut out = Listing::default();
    for (run, folder) in folders {
        match read_projector_config(&folder) {
            Ok(config) => {
                let infos = config.into_iter().flat_map(|c| c.embeddings);
                out.embeddings.extend(infos.map(|info| ListedEmbedding {
                    name: format!("{run}: {}", info.tensor_name).into(),
                    folder: folder.clone(),
                    info,
                }));
            }
            // A logdir may be a file.
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {}
            Err(error) => out.errors.push(format!("{}: {error}", folder.display())),
        }
    }
    out
}

/// Reads an embedding with its images; returns it with its listing, as the key of the result.
pub fn read(listed: ListedEmbedding) -> (ListedEmbedding, Result<LoadedEmbedding, String>) {
    let with_images = |mut embedding: Embedding| {
        // The file is large. Taking it out frees it once it is decoded.
        let sheet = embedding.sprites.take().map(|sprites| SpriteSheet::read(&sprites).map(Arc::new));
        LoadedEmbedding { embedding: Arc::new(embedding), sheet }
    };
    let read = Embedding::read(&listed.folder, &listed.info).map(with_images).map_err(|e| e.to_string());
    (listed, read)
}
