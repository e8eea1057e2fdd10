//! What the entries of a folder would be opened as, found out by a thread of its own: a folder on a slow disk, or one that
//! holds half the system, stops no frame.

use super::browse;
use crate::timeline::background::Background;
use egui::Context;
use events::clock;
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};

/// How long an answer is worked on before what is known so far is shown, ns.
const SLICE_NS: i64 = 50_000_000;

/// What a path would be opened as; `None` for what would not be opened.
type Kind = Option<&'static str>;

/// What paths are, as many of those asked for as there was time for.
type Asker = Background<Vec<PathBuf>, Vec<(PathBuf, Kind)>>;

/// See the module's notes.
#[derive(Default)]
pub struct Kinds {
    known: FxHashMap<PathBuf, Kind>,
    asker: Option<Asker>,
}

impl Kinds {
    /// Forgets everything: folders change.
    pub fn clear(&mut self) {
        self.known.clear();
    }

    /// What is known of a path.
    pub fn of(&self, path: &Path) -> Option<Kind> {
        self.known.get(path).copied()
    }

    /// Takes in what was found, and asks for these, of which nothing is known.
    pub fn ask(&mut self, ctx: &Context, unknown: Vec<PathBuf>) {
        if unknown.is_empty() {
            return;
        }
        let ctx = ctx.clone();
        let asker = self.asker.get_or_insert_with(|| Background::start("folder", found, move || ctx.request_repaint()));
        let is_busy = asker.is_busy();
        for (path, kind) in asker.result().iter().flat_map(|found| found.iter()) {
            self.known.entry(path.clone()).or_insert(*kind);
        }
        if !is_busy {
            asker.request(unknown.into_iter().filter(|path| !self.known.contains_key(path)).collect());
        }
    }
}

/// What the first of these are, as many as there is time for, but one at least.
fn found(paths: Vec<PathBuf>) -> Vec<(PathBuf, Kind)> {
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
