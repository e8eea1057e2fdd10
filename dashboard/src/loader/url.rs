//! URLs and the sources at them.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
};
use trace_store::remote::Transport;

/// A source at a URL.
pub enum RemoteSource {
    /// A trace, fetched as far as it is shown.
    Trace(Arc<dyn Transport>),
    /// A local copy of a logdir, which the sender updates.
    Logdir(PathBuf),
}

/// Sources at a URL as they appear, each with its own URL. The channel closes when no more can appear.
pub type RemoteSources = mpsc::Receiver<(String, RemoteSource)>;

/// Opens a URL; waits for the other machine. An error is a sentence for the user.
pub type OpenRemote = Arc<dyn Fn(&str) -> Result<RemoteSources, String> + Send + Sync>;

/// Whether a path is a URL.
pub fn is_url(path: &Path) -> bool {
    path.to_str()
        .and_then(|path| path.split_once("://"))
        .is_some_and(|(scheme, _)| !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric()))
}
