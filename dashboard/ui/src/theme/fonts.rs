//! The system's fonts, for letters that the built-in fonts lack: Chinese, Japanese, Korean, Arabic, emoji and others.
//!
//! The search starts when the first such letter is to be painted. A thread asks the system; until the answer
//! comes, the letter is a box, and no frame waits. A letter that no font has stays a box, and [`SystemFonts::missing`]
//! reports it.

use egui::{Context, FallbackRequest, FontFamily, FontInsert, FontProvider};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

/// Letters that are looked for, at most: a hostile file may contain every letter.
const MAX_REQUESTED: usize = 4096;
/// Letters that a report lists, at most.
const MAX_LISTED: usize = 6;

/// A letter with its combining marks, and the family of fonts to look in.
type LetterRequest = (FontFamily, String);
/// Opens the system's fonts, which may take long.
type OpenFonts = Box<dyn FnOnce() -> Arc<dyn FontProvider> + Send>;

/// The search for fonts of missing letters. Dropping it ends its thread.
pub struct SystemFonts {
    state: Arc<Mutex<FontState>>,
}

/// The state shared by frames and the thread. Frames lock egui around this lock, never the other way round.
#[derive(Default)]
struct FontState {
    /// The function that opens the fonts; `None` once the first letter was missing.
    open: Option<(Context, OpenFonts)>,
    /// Requests to the thread; `None` while the thread does not run.
    queue: Option<Sender<LetterRequest>>,
    /// Letters that were looked for.
    requested: FxHashSet<(FontFamily, char)>,
    /// The fonts found so far, with the family that each extends.
    fonts: Vec<(FontFamily, FontInsert)>,
    /// Letters that no font has.
    missing: BTreeSet<char>,
}

impl SystemFonts {
    /// Installs this system's fonts as the last resort of `ctx`.
    pub fn install(ctx: &Context) -> Self {
        Self::install_from(ctx, || Arc::new(egui_system_font_provider::SystemFontProvider::new()))
    }

    /// Installs the fonts that `open` returns as the last resort of `ctx`. A thread calls `open` when the first letter
    /// is missing.
    pub fn install_from(ctx: &Context, open: impl FnOnce() -> Arc<dyn FontProvider> + Send + 'static) -> Self {
        let open: (_, OpenFonts) = (ctx.clone(), Box::new(open));
        let state = Arc::new(Mutex::new(FontState { open: Some(open), ..FontState::default() }));
        ctx.set_font_providers(vec![Arc::new(Fallback(Arc::clone(&state)))]);
        Self { state }
    }

    /// A report on letters that no font has.
    pub fn missing(&self) -> Option<String> {
        let state = self.state.lock();
        if state.missing.is_empty() {
            return None;
        }
        let listed: Vec<String> =
            state.missing.iter().take(MAX_LISTED).map(|c| format!("U+{:04X}", u32::from(*c))).collect();
        let more = match state.missing.len() - listed.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let rest = match state.requested.len() {
            MAX_REQUESTED.. => format!(" Of more than {MAX_REQUESTED} letters no more are looked for."),
            _ => String::new(),
        };
        Some(format!(
            "No font of this system has the letters {}{more}: they are shown as boxes. Install a font that has them (Noto Sans \
             CJK, say, or Noto Color Emoji) and open the window again.{rest}",
            listed.join(", ")
        ))
    }
}

impl Drop for SystemFonts {
    fn drop(&mut self) {
        // Ends the thread, which has a reference to the window's context.
        let mut state = self.state.lock();
        (state.open, state.queue) = (None, None);
    }
}

/// The provider that egui asks for fonts of missing letters, in the middle of a frame.
struct Fallback(Arc<Mutex<FontState>>);

impl FontProvider for Fallback {
    fn fonts_for_family(&self, family: &FontFamily) -> Vec<FontInsert> {
        let state = self.0.lock();
        state.fonts.iter().filter(|(font_family, _)| font_family == family).map(|(_, font)| font.clone()).collect()
    }

    /// Always `None`: the font is added to the family once it is found.
    fn font_for(&self, request: &FallbackRequest<'_>) -> Option<FontInsert> {
        let first = request.cluster.chars().next()?;
        let mut state = self.0.lock();
        if state.requested.len() >= MAX_REQUESTED || !state.requested.insert((request.family.clone(), first)) {
            return None;
        }
        if let Some((ctx, open)) = state.open.take() {
            let (queue, requests) = channel();
            let shared = Arc::clone(&self.0);
            // Where no thread can be started, missing letters stay boxes.
            let started =
                thread::Builder::new().name("fonts".into()).spawn(move || search(&ctx, &shared, &requests, open));
            state.queue = started.ok().map(|_| queue);
        }
        if let Some(queue) = &state.queue {
            // The receiver is gone only when the window closes.
            let _ = queue.send((request.family.clone(), request.cluster.to_owned()));
        }
        None
    }
}

/// Searches for requested letters until the window closes.
fn search(ctx: &Context, state: &Arc<Mutex<FontState>>, requests: &Receiver<LetterRequest>, open: OpenFonts) {
    let provider = open();
    while let Ok(first) = requests.recv() {
        let mut is_new = false;
        // All letters that a frame needs are handled as a group, as each new font lays all text out anew.
        for (family, cluster) in std::iter::once(first).chain(requests.try_iter()) {
            let font = provider.font_for(&FallbackRequest { cluster: &cluster, family: &family });
            let mut state = state.lock();
            match font {
                Some(font) if !state.fonts.iter().any(|(f, other)| *f == family && other.name == font.name) => {
                    state.fonts.push((family, font));
                    is_new = true;
                }
                Some(_) => {}
                None => state.missing.extend(cluster.chars().next()),
            }
        }
        if is_new {
            ctx.set_font_providers(vec![Arc::new(Fallback(Arc::clone(state)))]);
        }
        ctx.request_repaint();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use egui::{FontData, FontDefinitions, FontId};
    use std::time::Duration;

    /// Letters that the window writes by itself are in its own fonts, whatever the system has: nothing of it is a box.
    #[test]
    fn the_windows_own_words_need_no_other_font() {
        let mut sources = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))];
        let mut letters = BTreeSet::new();
        while let Some(path) = sources.pop() {
            if path.is_dir() {
                sources.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.lines().take_while(|line| !line.contains("#[cfg(test)]"));
                let code = code.filter(|line| !line.trim_start().starts_with("//"));
                letters.extend(code.flat_map(str::chars).filter(|c| !c.is_ascii()));
            }
        }
        assert!(letters.contains(&'…'), "{letters:?}");
        let ctx = Context::default();
        ctx.run_ui(egui::RawInput::default(), |ui| {
            for font in [FontId::proportional(12.0), FontId::monospace(12.0)] {
                let lacks: Vec<_> = letters.iter().filter(|c| !ui.fonts_mut(|f| f.has_glyph(&font, **c))).collect();
                assert!(lacks.is_empty(), "{font:?} lacks {lacks:?}");
            }
        })
        .textures_delta
        .clear();
    }

    /// Hack has signs of logic, Ubuntu has not; neither has Chinese.
    fn hack() -> Arc<dyn FontProvider> {
        let data = FontData::clone(&FontDefinitions::default().font_data["Hack"]);
        let has = |c: char| c == '∀' || c == '∃';
        Arc::new(move |request: &FallbackRequest<'_>| {
            let is_known = request.cluster.starts_with(has);
            is_known.then(|| FontInsert::new("system:Hack", data.clone(), Vec::new()))
        })
    }

    #[test]
    fn a_font_comes_when_a_letter_needs_it_and_what_no_font_has_is_reported() {
        let ctx = Context::default();
        let (opened, is_open) = channel();
        let fonts = SystemFonts::install_from(&ctx, move || {
            opened.send(thread::current().name().map(str::to_owned)).unwrap();
            hack()
        });
        let has = |letters: &str| {
            let mut has = false;
            let mut output = ctx.run_ui(egui::RawInput::default(), |ui| {
                has = ui.fonts_mut(|f| f.has_glyphs(&FontId::proportional(12.0), letters));
            });
            output.textures_delta.clear();
            has
        };
        assert!(has("loss ä"));
        assert!(is_open.try_recv().is_err(), "the window's own letters open nothing");
        let wait = |what: &str, until: &dyn Fn() -> bool| {
            let deadline = events::clock::mono_now() + 20_000_000_000;
            while !until() {
                assert!(events::clock::mono_now() < deadline, "{what}");
                thread::sleep(Duration::from_millis(2));
            }
        };
        wait("a letter gets its font", &|| has("∀"));
        assert_eq!(is_open.try_recv().unwrap().as_deref(), Some("fonts"), "in a thread of its own");
        assert!(has("∃"), "the font is there for its other letters too");
        assert_eq!(fonts.missing(), None);
        assert!(!has("日") && !has("本"));
        wait("what is missing is reported", &|| fonts.missing().is_some_and(|text| text.contains("U+65E5, U+672C:")));
        assert!(has("∀"), "and nothing is forgotten");
    }
}
