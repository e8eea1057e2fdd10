//! Kinds of a folder's entries, detected in a thread, so that a slow disk or a huge folder blocks no frame.

use super::browse;
use egui::Context;
use events::clock;
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};
use ui::background::Background;

/// Time after which a partial result is returned, ns.
const SLICE_NS: i64 = 50_000_000;

/// The kind of a path's contents; `None` where it cannot be opened.
type Kind = Option<&'static str>;

/// Detects the kinds of paths, as many as possible in [`SLICE_NS`].
type Detector = Background<Vec<PathBuf>, Vec<(PathBuf, Kind)>>;

/// The known kinds of entries.
#[derive(Default)]
pub(super) struct EntryKinds {
    known: FxHashMap<PathBuf, Kind>,
    detector: Option<Detector>,
}

impl EntryKinds {
    /// Forgets all kinds, as a folder's contents may have changed. The detector's last result goes too.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The kind of a path, if known.
    pub fn get(&self, path: &Path) -> Option<Kind> {
        self.known.get(path).copied()
    }

    /// Collects results and requests the kinds of these paths.
    pub fn request(&mut self, ctx: &Context, unknown: Vec<PathBuf>) {
        if unknown.is_empty() {
            return;
        }
        let ctx = ctx.clone();
        let detector =
            self.detector.get_or_insert_with(|| Background::start("folder", detect, move || ctx.request_repaint()));
        let is_busy = detector.is_busy();
        for (path, kind) in detector.result().iter().flat_map(|found| found.iter()) {
            self.known.entry(path.clone()).or_insert(*kind);
        }
        if !is_busy {
            detector.request(unknown.into_iter().filter(|path| !self.known.contains_key(path)).collect());
        }
    }
}

/// The kinds of the first of these paths, at least of one, within [`SLICE_NS`].
fn detect(paths: Vec<PathBuf>) -> Vec<(PathBuf, Kind)> {
    let begin = clock::mono_now();
    let mut found = Vec::new();
    for path in paths {
        if !found.is_empty() && clock::mono_now() - begin > SLICE_NS {
            break;
        }
        let kind = browse::kind_text(&path);
        found.push((path, kind));
    }
    found
}
