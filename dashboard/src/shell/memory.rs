//! What is remembered between runs of the window, and when it is written.

use crate::config::Config;
use std::path::PathBuf;

/// After a change, how long to wait for more of it before the file is written, seconds.
const WAIT_S: f64 = 1.0;

/// See the module's notes.
#[derive(Default)]
pub struct Memory {
    /// The settings in force, recent paths, layouts, notes.
    pub config: Config,
    path: Option<PathBuf>,
    /// What the file holds.
    written: Config,
    /// When a change was first seen.
    changed_at: Option<f64>,
    error: Option<String>,
}

impl Memory {
    /// Reads the file at `path`; without one nothing is remembered.
    pub fn open(path: Option<PathBuf>) -> Self {
        let mut memory = Self::default();
        let Some(path) = path else { return memory };
        match Config::load(&path) {
            Ok(config) => {
                memory.written = config.clone();
                memory.config = config;
                memory.path = Some(path);
            }
            // It may be worth something to somebody: it is left alone.
            Err(error) => memory.error = Some(format!("Settings are not remembered: {}: {error}", path.display())),
        }
        memory
    }

    /// Why nothing is remembered.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Writes what changed, a moment after it did. Call once a frame.
    pub fn keep(&mut self, ctx: &egui::Context) {
        if self.path.is_none() || self.config == self.written {
            return;
        }
        let now = ctx.input(|i| i.time);
        let since = *self.changed_at.get_or_insert(now);
        if now - since >= WAIT_S {
            self.write();
        } else {
            ctx.request_repaint_after_secs(WAIT_S as f32);
        }
    }

    fn write(&mut self) {
        let Some(path) = &self.path else { return };
        self.changed_at = None;
        if let Err(error) = self.config.save(path) {
            self.error = Some(format!("Settings are not remembered: {}: {error}", path.display()));
            self.path = None;
        }
        self.written = self.config.clone();
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.config != self.written {
            self.write();
        }
    }
}
