//! The configuration that is stored between runs of the window.

use crate::config::Config;
use std::path::PathBuf;

/// Time to wait for more changes before the file is written, seconds.
const WAIT_S: f64 = 1.0;

/// The configuration in force and its file.
#[derive(Default)]
pub struct Memory {
    /// The settings in force, recent paths, layouts, notes.
    pub config: Config,
    path: Option<PathBuf>,
    /// The contents of the file.
    written: Config,
    /// When a change was first seen.
    changed_at: Option<f64>,
    error: Option<String>,
}

impl Memory {
    /// Reads the file at `path`; without one nothing is stored.
    pub fn open(path: Option<PathBuf>) -> Self {
        let mut memory = Self::default();
        let Some(path) = path else { return memory };
        match Config::load(&path) {
            Ok(config) => {
                memory.written = config.clone();
                memory.config = config;
                memory.path = Some(path);
            }
            // The broken file may be of value to the user, so it is not overwritten.
            Err(error) => memory.error = Some(format!("Settings are not stored: {}: {error}", path.display())),
        }
        memory
    }

    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Writes changes after a short delay. Call once a frame.
    pub fn store(&mut self, ctx: &egui::Context) {
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
            self.error = Some(format!("Settings are not stored: {}: {error}", path.display()));
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
