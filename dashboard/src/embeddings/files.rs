//! Which embeddings there are: the projector's configurations beside the event files. A thread looks and reads. No egui
//! here.

use super::sprites::Sheet;
use crate::{Data, natural};
use formats::plugins::EmbeddingInfo;
use std::{path::PathBuf, sync::Arc};
use summaries::{Embedding, read_projector_config};

/// An embedding that a configuration names.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// The run's name and the tensor's.
    pub name: Arc<str>,
    folder: PathBuf,
    info: EmbeddingInfo,
}

/// What is asked of the thread.
pub enum Request {
    /// Which embeddings these folders have; each with the name of its run.
    List(Vec<(Arc<str>, PathBuf)>),
    /// An embedding's vectors.
    Read(Listed),
}

/// What it found.
pub enum Answer {
    /// Embeddings, and configurations that cannot be read.
    List(Vec<Listed>, Vec<String>),
    /// An embedding, or why there is none.
    Read(Listed, Result<Loaded, String>),
}

/// An embedding as it is shown.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Vectors and what is known of them.
    pub embedding: Arc<Embedding>,
    /// Their images, or why there are none; `None` where none are named.
    pub sheet: Option<Result<Arc<Sheet>, String>>,
}

/// The folders of a logdir and of its runs.
pub fn folders(data: &Data) -> Vec<(Arc<str>, PathBuf)> {
    let tops = data.logdirs.iter().map(|logdir| (logdir.name.clone(), logdir.path.to_path_buf()));
    let runs = data.runs().map(|run| (run.label.clone(), run.run.path.clone()));
    let mut out: Vec<(Arc<str>, PathBuf)> = tops.chain(runs).collect();
    out.sort_by(|a, b| natural::order(&a.1.to_string_lossy(), &b.1.to_string_lossy()).then_with(|| a.1.cmp(&b.1)));
    out.dedup_by(|a, b| a.1 == b.1);
    out
}

/// Answers a request.
pub fn answer(request: Request) -> Answer {
    match request {
        Request::List(folders) => {
            let (mut listed, mut trouble) = (Vec::new(), Vec::new());
            for (run, folder) in folders {
                match read_projector_config(&folder) {
                    Ok(config) => listed.extend(config.into_iter().flat_map(|c| c.embeddings).map(|info| Listed {
                        name: format!("{run}: {}", info.tensor_name).into(),
                        folder: folder.clone(),
                        info,
                    })),
                    // A logdir may be a file: nothing lies in it.
                    Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {}
                    Err(error) => trouble.push(format!("{}: {error}", folder.display())),
                }
            }
            Answer::List(listed, trouble)
        }
        Request::Read(listed) => {
            let loaded = |mut embedding: Embedding| {
                // The file is large, and no longer needed.
                let sheet = embedding.sprites.take().map(|sprites| Sheet::read(&sprites).map(Arc::new));
                Loaded { embedding: Arc::new(embedding), sheet }
            };
            let read = Embedding::read(&listed.folder, &listed.info).map(loaded).map_err(|e| e.to_string());
            Answer::Read(listed, read)
        }
    }
}
