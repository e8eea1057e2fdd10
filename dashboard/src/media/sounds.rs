//! Sounds: a waveform that plays from where it is clicked, and a button that saves the file.

use super::{
    decode::{MediaValue, Sound},
    player::{self, Playback},
    wav::Wav,
};
use egui::{Mesh, Rect, Response, ScrollArea, Sense, Stroke, Ui, pos2, vec2};
use std::{path::PathBuf, sync::Arc, sync::OnceLock};
use ui::{
    format,
    theme::{metrics, palette},
    widgets::{self, Icon, icon_button},
};

/// Time between frames while a sound plays, seconds.
const REDRAW_S: f32 = 0.05;

/// The sound that plays, and the position of each sound.
#[derive(Default)]
pub struct SoundCard {
    of: Option<Arc<MediaValue>>,
    /// The position in each sound, seconds.
    at: Vec<f64>,
    playing: Option<(usize, Playback, f64)>,
    trouble: Option<String>,
    color_idx: usize,
}

/// The program that plays sounds; the search runs once.
fn program() -> Option<&'static (PathBuf, &'static [&'static str])> {
    static FOUND: OnceLock<Option<(PathBuf, &'static [&'static str])>> = OnceLock::new();
    FOUND.get_or_init(player::find).as_ref()
}

impl SoundCard {
    /// Shows the sounds of a step in the run's colour; `save` receives a file to save.
    pub fn ui(
        &mut self,
        ui: &mut Ui,
        tag: &str,
        shown: &Arc<MediaValue>,
        sounds: &[Sound],
        color_idx: usize,
        save: &mut Option<(String, Vec<u8>)>,
    ) {
        if !self.of.as_ref().is_some_and(|of| Arc::ptr_eq(of, shown)) {
            *self = Self { of: Some(Arc::clone(shown)), at: vec![0.0; sounds.len()], ..Self::default() };
        }
        self.color_idx = color_idx;
        self.follow(ui);
        let height =
            (ui.available_height() / sounds.len().max(1) as f32 - 2.0 * metrics::ROW_H).max(metrics::COUNTER_H);
        ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
            for (i, sound) in sounds.iter().enumerate() {
                ui.push_id(i, |ui| self.sound_ui(ui, tag, (i, height), sound, save));
            }
            if let Some(trouble) = &self.trouble {
                ui.colored_label(palette(ui).error, trouble);
            }
        });
    }

    /// Moves the position of the sound that plays.
    fn follow(&mut self, ui: &Ui) {
        let Some((i, playing, since)) = &mut self.playing else { return };
        let now = ui.input(|input| input.time);
        self.at[*i] += now - *since;
        *since = now;
        let i = *i;
        match playing.outcome() {
            None => ui.ctx().request_repaint_after_secs(REDRAW_S),
            Some(is_played) => {
                if !is_played {
                    self.trouble = Some("Cannot play the sound: there may be no audio output".into());
                }
                self.at[i] = 0.0;
                self.playing = None;
            }
        }
    }

    fn sound_ui(
        &mut self,
        ui: &mut Ui,
        tag: &str,
        (i, height): (usize, f32),
        sound: &Sound,
        save: &mut Option<(String, Vec<u8>)>,
    ) {
        match &sound.wav {
            Ok(wav) => self.curve_ui(ui, tag, (i, height), wav, &sound.bytes),
            Err(why) => _ = ui.weak(format!("No curve: {why}")),
        }
        ui.horizontal(|ui| {
            if let (Ok(wav), Some(program)) = (&sound.wav, program()) {
                let is_playing = self.playing.as_ref().is_some_and(|(nth, ..)| *nth == i);
                let (icon, name) = if is_playing { (Icon::Pause, "Pause") } else { (Icon::Play, "Play") };
                if icon_button(ui, icon, &format!("{name} {tag}"), is_playing).clicked() {
                    self.playing = None;
                    if !is_playing {
                        self.play(ui, i, program, &wav.rest_from(&sound.bytes, self.at[i]));
                    }
                }
            }
            let extension = if sound.wav.is_ok() { "wav" } else { "audio" };
            if ui.button("Save").on_hover_text("Save the sound as a file").clicked() {
                *save = Some((format!("{}.{extension}", tag.replace('/', "-")), sound.bytes.clone()));
            }
            if ui.button("Open").on_hover_text("Open it with the system's player").clicked()
                && let Err(error) = player::open_outside(extension, &sound.bytes)
            {
                self.trouble = Some(format!("It cannot be opened outside: {error}."));
            }
            if let Ok(wav) = &sound.wav {
                let at = format::duration_ns((self.at[i].min(wav.seconds()) * 1e9) as i64);
                let all = format::duration_ns((wav.seconds() * 1e9) as i64);
                let channels = format::count_of(u64::from(wav.n_channels), "channel");
                ui.weak(format!("{at} of {all} · {} Hz · {channels}", format::count(u64::from(wav.sample_rate))));
            }
            if !sound.label.is_empty() {
                ui.add(egui::Label::new(&sound.label).truncate());
            }
        });
    }

    fn play(&mut self, ui: &Ui, i: usize, (program, arguments): &(PathBuf, &[&str]), wav: &[u8]) {
        match Playback::start((program, arguments), wav) {
            Ok(playing) => self.playing = Some((i, playing, ui.input(|input| input.time))),
            Err(error) => self.trouble = Some(format!("{} does not start: {error}.", program.display())),
        }
        ui.ctx().request_repaint();
    }

    /// Shows the waveform; a click moves the position.
    fn curve_ui(&mut self, ui: &mut Ui, tag: &str, (i, height): (usize, f32), wav: &Wav, bytes: &[u8]) {
        let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), height), Sense::click());
        widgets::describe(&response, || format!("Sound {tag}: {}", format::duration_ns((wav.seconds() * 1e9) as i64)));
        paint(ui, rect, wav, palette(ui).series(self.color_idx));
        let share = (self.at[i] / wav.seconds()).clamp(0.0, 1.0) as f32;
        let p = palette(ui);
        ui.painter().vline(rect.left() + share * rect.width(), rect.y_range(), Stroke::new(metrics::LINE, p.accent));
        self.seek(ui, i, &response, wav, bytes);
    }

    fn seek(&mut self, ui: &Ui, i: usize, response: &Response, wav: &Wav, bytes: &[u8]) {
        let Some(at) = response.interact_pointer_pos().filter(|_| response.clicked()) else { return };
        let share = f64::from((at.x - response.rect.left()) / response.rect.width());
        self.at[i] = share.clamp(0.0, 1.0) * wav.seconds();
        if self.playing.take().is_some_and(|(nth, ..)| nth == i)
            && let Some(program) = program()
        {
            self.play(ui, i, program, &wav.rest_from(bytes, self.at[i]));
        }
    }
}

fn paint(ui: &Ui, rect: Rect, wav: &Wav, color: egui::Color32) {
    let p = palette(ui);
    let painter = ui.painter_at(rect);
    painter.hline(rect.x_range(), rect.center().y, Stroke::new(metrics::HAIRLINE, p.grid));
    let width = rect.width() / wav.peaks.len() as f32;
    let y = |sample: f32| rect.center().y - sample.clamp(-1.0, 1.0) * rect.height() / 2.0;
    let mut mesh = Mesh::default();
    let mut before = wav.peaks.first().copied().unwrap_or_default();
    for (i, [lo, hi]) in wav.peaks.iter().copied().enumerate() {
        let x = rect.left() + i as f32 * width;
        // Extended to the previous column's range, so that columns of one sample join to a line.
        let (low, high) = (lo.min(before[1]), hi.max(before[0]));
        before = [lo, hi];
        let (top, bottom) = (y(high), y(low).max(y(high) + metrics::HAIRLINE));
        mesh.add_colored_rect(Rect::from_min_max(pos2(x, top), pos2(x + width.max(1.0), bottom)), color);
    }
    painter.add(mesh);
}
