//! The system's fonts, for letters that the window's own lack: Chinese, Japanese, Korean, Arabic, emoji and all others.
//!
//! Nothing is looked for until such a letter is to be painted. Then a thread asks the system, and the letter is a box until
//! the answer is there; no frame waits for it. What no font has stays a box, and [`SystemFonts::missing`] reports it.

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

/// Letters that the system is asked for, at most: a hostile file may hold all there are.
const MAX_ASKED: usize = 4096;
/// Letters that are listed one by one.
const MAX_LISTED: usize = 6;

/// A letter, with what belongs to it, and the kind of font that it is wanted in.
type LetterRequest = (FontFamily, String);
/// Begins to look at fonts: may take its time.
type Open = Box<dyn FnOnce() -> Arc<dyn FontProvider> + Send>;

/// The search for fonts of letters that are missing; it ends when this is dropped.
pub struct SystemFonts {
    known: Arc<Mutex<FontState>>,
}

/// What frames and the thread share. The frames' lock on egui is held around this one, never the other way round.
#[derive(Default)]
struct FontState {
    /// Until the first letter that is missing.
    open: Option<(Context, Open)>,
    queue: Option<Sender<LetterRequest>>,
    asked: FxHashSet<(FontFamily, char)>,
    found: Vec<(FontFamily, FontInsert)>,
    missing: BTreeSet<char>,
}

impl SystemFonts {
    /// The fonts of this system, as `ctx`'s last resort.
    pub fn install(ctx: &Context) -> Self {
        Self::install_from(ctx, || Arc::new(egui_system_font_provider::SystemFontProvider::new()))
    }

    /// Those that `open` gives, as `ctx`'s last resort. It is called in a thread, for the first letter that is missing.
    pub fn install_from(ctx: &Context, open: impl FnOnce() -> Arc<dyn FontProvider> + Send + 'static) -> Self {
        let open: (_, Open) = (ctx.clone(), Box::new(open));
        let known = Arc::new(Mutex::new(FontState { open: Some(open), ..FontState::default() }));
        ctx.set_font_providers(vec![Arc::new(Fallback(Arc::clone(&known)))]);
        Self { known }
    }

    /// What to say of letters that no font has.
    pub fn missing(&self) -> Option<String> {
        let known = self.known.lock();
        if known.missing.is_empty() {
            return None;
        }
        let listed: Vec<String> =
            known.missing.iter().take(MAX_LISTED).map(|c| format!("U+{:04X}", u32::from(*c))).collect();
        let more = match known.missing.len() - listed.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let rest = match known.asked.len() {
            MAX_ASKED.. => format!(" Of more than {MAX_ASKED} letters no more are looked for."),
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
        // Ends the thread, which holds the window's context as this does.
        let mut known = self.known.lock();
        (known.open, known.queue) = (None, None);
    }
}

/// What egui asks, in the middle of a frame.
struct Fallback(Arc<Mutex<FontState>>);

impl FontProvider for Fallback {
    fn fonts_for_family(&self, family: &FontFamily) -> Vec<FontInsert> {
        let known = self.0.lock();
        known.found.iter().filter(|(of, _)| of == family).map(|(_, font)| font.clone()).collect()
    }

    /// Never the font itself: that comes with the fonts of the family, once it is there.
    fn font_for(&self, request: &FallbackRequest<'_>) -> Option<FontInsert> {
        let first = request.cluster.chars().next()?;
        let mut known = self.0.lock();
        if known.asked.len() >= MAX_ASKED || !known.asked.insert((request.family.clone(), first)) {
            return None;
        }
        if let Some((ctx, open)) = known.open.take() {
            let (queue, wanted) = channel();
            let theirs = Arc::clone(&self.0);
            // Without a thread the letters stay boxes.
            let started =
                thread::Builder::new().name("fonts".into()).spawn(move || search(&ctx, &theirs, &wanted, open));
            known.queue = started.ok().map(|_| queue);
        }
        if let Some(queue) = &known.queue {
            // Gone only with the window.
            let _ = queue.send((request.family.clone(), request.cluster.to_owned()));
        }
        None
    }
}

/// Looks for what is wanted until nobody wants anything any more.
fn search(ctx: &Context, known: &Arc<Mutex<FontState>>, wanted: &Receiver<LetterRequest>, open: Open) {
    let system = open();
    while let Ok(first) = wanted.recv() {
        let mut is_new = false;
        // What a frame wants is answered at once: all text is laid out anew where a font comes.
        for (family, cluster) in std::iter::once(first).chain(wanted.try_iter()) {
            let font = system.font_for(&FallbackRequest { cluster: &cluster, family: &family });
            let mut known = known.lock();
            match font {
                Some(font) if !known.found.iter().any(|(of, other)| *of == family && other.name == font.name) => {
                    known.found.push((family, font));
                    is_new = true;
                }
                Some(_) => {}
                None => known.missing.extend(cluster.chars().next()),
            }
        }
        if is_new {
            ctx.set_font_providers(vec![Arc::new(Fallback(Arc::clone(known)))]);
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
            let found = request.cluster.starts_with(has);
            found.then(|| FontInsert::new("system:Hack", data.clone(), Vec::new()))
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
