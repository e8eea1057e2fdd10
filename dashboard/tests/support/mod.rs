//! The window's contents driven through the accessibility tree.

// Each test program uses a part.
#![allow(dead_code)]

pub mod picture;
pub mod raster;

use dashboard::{Options, Theme, app::App};
use egui_kittest::{Harness, kittest::Queryable};
use raster::{Pixels, Textures};
use std::path::{Path, PathBuf};
use summaries::{SummaryWriter, WriterOptions};
use ui::pace::Pace;

/// Frames that something is waited for.
const PATIENCE: usize = 12_000;

/// The window without a screen.
pub struct Window {
    /// Its contents.
    pub harness: Harness<'static, Option<App>>,
    textures: Textures,
}

impl Window {
    pub fn open(paths: &[PathBuf]) -> Self {
        let paths = paths.to_vec();
        Self::with(move || Options { paths: paths.clone(), theme: Some(Theme::Dark), ..Options::default() })
    }

    pub fn with(options: impl Fn() -> Options + 'static) -> Self {
        Self::sized([1280.0, 800.0], options)
    }

    pub fn sized(size: [f32; 2], options: impl Fn() -> Options + 'static) -> Self {
        let textures = Textures::default();
        let harness = Harness::builder().with_size(size).renderer(textures.clone()).build_ui_state(
            move |ui, app: &mut Option<App>| {
                app.get_or_insert_with(|| App::new(ui.ctx(), options(), Pace::default())).ui(ui);
            },
            None,
        );
        // A caret that blinks is there or not by how many frames something took.
        harness.ctx.on_begin_pass("caret", std::sync::Arc::new(still_caret));
        Self { harness, textures }
    }

    /// What the last frame looks like.
    pub fn picture(&self) -> Pixels {
        let output = self.harness.output();
        let size = self.harness.ctx.content_rect().size();
        let mut pixels = Pixels::new(size.x as usize, size.y as usize);
        let primitives = self.harness.ctx.tessellate(output.shapes.clone(), output.pixels_per_point);
        pixels.draw(&primitives, &self.textures);
        pixels
    }

    /// Shows frames until they look the same for a while, and gives what they look like.
    pub fn settled(&mut self) -> Pixels {
        let mut last = self.picture();
        let mut n_same = 0;
        for _ in 0..PATIENCE {
            self.harness.run_steps(4);
            std::thread::sleep(std::time::Duration::from_millis(20));
            let now = self.picture();
            n_same = if now == last { n_same + 1 } else { 0 };
            if n_same == 3 {
                return now;
            }
            last = now;
        }
        panic!("what is shown does not come to rest");
    }

    /// Shows frames until something is named so.
    pub fn wait_for(&mut self, what: &str) {
        self.wait_for_several(what, 1);
    }

    /// Shows frames until `n` things are named so.
    pub fn wait_for_several(&mut self, what: &str, n: usize) {
        let is_named = |window: &Self| window.harness.query_all_by_label_contains(what).count() >= n;
        self.wait_until(&format!("{n} that are named {what:?}"), is_named);
    }

    /// Shows frames until something holds.
    pub fn wait_until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..PATIENCE {
            self.harness.step();
            if holds(self) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        panic!("never shown: {what}");
    }

    pub fn shows(&self, what: &str) -> bool {
        self.harness.query_all_by_label_contains(what).next().is_some()
    }

    /// Shows a second of frames.
    pub fn wait(&mut self) {
        for _ in 0..8 {
            self.harness.step();
        }
    }

    pub fn ctrl(&mut self, modifiers: egui::Modifiers, key: egui::Key) {
        self.harness.key_press_modifiers(modifiers | egui::Modifiers::COMMAND, key);
        self.harness.run_ok();
    }

    pub fn type_text(&mut self, label: &str, text: &str) {
        self.harness.get_by_label(label).focus();
        self.harness.run_ok();
        self.harness.get_by_label(label).type_text(text);
        self.harness.run_ok();
    }

    /// Presses Ctrl+Shift and a key, and gives what that copied.
    pub fn copied_by(&mut self, key: egui::Key) -> Option<String> {
        // As one frame: what a frame copies is in its own output only.
        self.harness.input_mut().events.push(egui::Event::Key {
            key,
            physical_key: None,
            pressed: true,
            repeat: false,
            modifiers: egui::Modifiers::COMMAND | egui::Modifiers::SHIFT,
        });
        self.harness.step();
        self.copied()
    }

    /// The text that the last frame copied.
    pub fn copied(&self) -> Option<String> {
        self.harness.output().platform_output.commands.iter().find_map(|command| match command {
            egui::OutputCommand::CopyText(text) => Some(text.clone()),
            _ => None,
        })
    }

    /// Saves what the dialog asks a path for, with the last button of this name.
    pub fn save_to(&mut self, path: &Path) {
        self.wait_for("Path to save to");
        self.replace_text("Path to save to", path.to_str().expect("a path of letters"));
        self.harness.get_all_by_label("Save").last().expect("the dialog's button").click();
        self.wait_for("Saved: ");
    }

    /// Types a text in place of a field's.
    pub fn replace_text(&mut self, label: &str, text: &str) {
        self.harness.get_by_label(label).focus();
        self.ctrl(egui::Modifiers::NONE, egui::Key::A);
        self.type_text(label, text);
    }

    pub fn click(&mut self, label: &str) {
        self.harness.get_by_label(label).click();
        self.harness.run_ok();
    }

    pub fn key(&mut self, key: egui::Key) {
        self.harness.key_press(key);
        self.harness.run_ok();
    }
}

fn still_caret(ui: &mut egui::Ui) {
    if ui.global_style().visuals.text_cursor.blink {
        ui.all_styles_mut(|style| style.visuals.text_cursor.blink = false);
    }
}

/// A writer of an event file in `dir`.
pub fn writer(dir: &Path) -> SummaryWriter {
    SummaryWriter::create(dir, WriterOptions::default()).expect("an event file in a fresh folder")
}

/// Two runs, `train` and `eval`, with 100 points of loss each.
pub fn two_runs() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (run, factor) in [("train", 1.0), ("eval", 2.0)] {
        let writer = writer(&dir.path().join(run));
        for step in 0..100_i64 {
            writer.add_scalar("loss", factor / (1.0 + step as f32), step);
            writer.add_scalar("metrics/accuracy", 0.5, step);
        }
        writer.close().expect("the points on disk");
    }
    dir
}
