//! Something that draws, in a context without a window.

use crate::report::{BenchError, Report};
use ::dashboard::{Options, app::App};
use ::events::clock;
use std::{
    path::Path,
    sync::mpsc::{self, Receiver},
    time::Duration,
};
use ui::{pace::Pace, theme};

/// What is waited for, at most.
const PATIENCE_NS: i64 = 120_000_000_000;
/// Between two frames while something is waited for: what a screen of 240 Hz gives.
const BETWEEN: Duration = Duration::from_millis(4);
/// Between two frames of a screen of 60 Hz.
const FRAME: Duration = Duration::from_micros(16_667);
/// Frames in which whatever eases comes to rest.
const REST: usize = 30;

/// 1920 x 1200 points at 60 frames a second.
pub struct Screen<S> {
    ctx: egui::Context,
    /// What the panels are drawn from.
    pub state: S,
    draw: fn(&mut egui::Ui, &mut S),
    time: f64,
    /// When frames were asked for, once somebody waits for that.
    requests: Option<Receiver<i64>>,
}

/// What a frame came to.
pub struct Frame {
    /// Of the UI thread: UI and tessellation.
    pub cpu_ms: f64,
    /// What is shown, by its accessible names; only of frames in which something is waited for.
    pub says: Vec<String>,
}

impl Screen<App> {
    /// The whole window on a path, led to an address.
    pub fn window(path: &Path, at: &str) -> Result<Self, BenchError> {
        let ctx = egui::Context::default();
        let (paths, at) = (vec![path.to_owned()], Some(at.parse()?));
        let app = App::new(&ctx, Options { paths, at, ..Options::default() }, Pace::default());
        Ok(Self { ctx, state: app, draw: |ui, app| app.ui(ui), time: 0.0, requests: None })
    }
}

impl<S> Screen<S> {
    /// One panel.
    pub fn new(make: impl FnOnce(&egui::Context) -> S, draw: fn(&mut egui::Ui, &mut S)) -> Self {
        let ctx = egui::Context::default();
        theme::install(&ctx);
        let state = make(&ctx);
        Self { ctx, state, draw, time: 0.0, requests: None }
    }

    /// One frame.
    pub fn frame(&mut self, events: Vec<egui::Event>) -> Frame {
        self.time += 1.0 / 60.0;
        let screen_rect = Some(egui::Rect::from_min_size(egui::Pos2::ZERO, egui::vec2(1920.0, 1200.0)));
        let raw = egui::RawInput { screen_rect, time: Some(self.time), events, ..egui::RawInput::default() };
        let begin = clock::thread_cpu_now();
        let (state, draw) = (&mut self.state, self.draw);
        let output = self.ctx.run_ui(raw, |ui| draw(ui, state));
        std::hint::black_box(self.ctx.tessellate(output.shapes, output.pixels_per_point));
        let cpu_ms = ms(clock::thread_cpu_now() - begin);
        let nodes = output.platform_output.accesskit_update.map(|update| update.nodes).unwrap_or_default();
        let says = nodes.iter().filter_map(|(_, node)| node.label().map(str::to_owned)).collect();
        Frame { cpu_ms, says }
    }

    /// Frames without input.
    pub fn frames(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.frame(Vec::new()).cpu_ms).collect()
    }

    /// A frame, and what is left of its sixtieth of a second, in which other threads work; its CPU ms.
    pub fn paced(&mut self, events: Vec<egui::Event>) -> f64 {
        let begin = clock::mono_now();
        let cpu_ms = self.frame(events).cpu_ms;
        let spent = Duration::from_nanos((clock::mono_now() - begin).max(0) as u64);
        std::thread::sleep(FRAME.saturating_sub(spent));
        cpu_ms
    }

    /// Lets whatever eases come to rest.
    pub fn rest(&mut self) {
        self.frames(REST);
    }

    /// A frame with a key pressed; its CPU ms.
    pub fn key(&mut self, key: egui::Key) -> f64 {
        let (physical_key, repeat, modifiers) = (None, false, egui::Modifiers::NONE);
        let event = |pressed| egui::Event::Key { key, physical_key, pressed, repeat, modifiers };
        self.frame(vec![event(true), event(false)]).cpu_ms
    }

    /// Frames until `is_there`, which gets the state and what is shown; how long that took, in ms of wall time.
    ///
    /// # Errors
    /// That it does not come.
    pub fn until(&mut self, what: &str, is_there: impl Fn(&S, &[String]) -> bool) -> Result<f64, BenchError> {
        let begin = clock::mono_now();
        self.ctx.enable_accesskit();
        loop {
            let says = self.frame(Vec::new()).says;
            let took = clock::mono_now() - begin;
            if is_there(&self.state, &says) {
                self.ctx.disable_accesskit();
                return Ok(ms(took));
            }
            if took > PATIENCE_NS {
                return Err(format!("no {what} within two minutes").into());
            }
            std::thread::sleep(BETWEEN);
        }
    }

    /// From here on frames come when they are asked for, with [`Screen::shown_when_woken`] and its like, and time passes as
    /// the clock says.
    pub fn woken(&mut self) -> Result<(), BenchError> {
        let (sender, receiver) = mpsc::channel();
        // One frame at once: while a request from before stands, egui hands on no later one.
        sender.send(clock::mono_now())?;
        self.ctx.set_request_repaint_callback(move |request| {
            let delay = i64::try_from(request.delay.as_nanos()).unwrap_or(i64::MAX);
            // The screen may be gone.
            let _ = sender.send(clock::mono_now().saturating_add(delay));
        });
        self.requests = Some(receiver);
        self.ctx.enable_accesskit();
        self.cpu_when_woken(Duration::from_secs(2)).map(drop)
    }

    /// Draws frames as they are asked for, until one shows it.
    ///
    /// # Errors
    /// That it does not come.
    pub fn shown_when_woken(&mut self, what: &str, is_there: impl Fn(&[String]) -> bool) -> Result<(), BenchError> {
        let latest = clock::mono_now() + PATIENCE_NS;
        while clock::mono_now() < latest {
            if self.next_wish(latest).is_some_and(|frame| is_there(&frame.says)) {
                return Ok(());
            }
        }
        Err(format!("no {what} within two minutes").into())
    }

    /// What is shown once no frame is due.
    pub fn says_when_woken(&mut self) -> Result<Vec<String>, BenchError> {
        let soon = clock::mono_now();
        while self.next_wish(soon).is_some() {}
        Ok(self.frame(Vec::new()).says)
    }

    /// Percent of a core that the whole process takes while frames come as they are asked for.
    pub fn cpu_when_woken(&mut self, time: Duration) -> Result<f64, BenchError> {
        let (begin, cpu) = (clock::mono_now(), clock::cpu_now());
        let latest = begin + i64::try_from(time.as_nanos())?;
        while clock::mono_now() < latest {
            self.next_wish(latest);
        }
        Ok((clock::cpu_now() - cpu) as f64 / (clock::mono_now() - begin) as f64 * 100.0)
    }

    /// The frame that is asked for next, if one is until then.
    fn next_wish(&mut self, latest: i64) -> Option<Frame> {
        let requests = self.requests.as_ref()?;
        let mut due = i64::MAX;
        loop {
            let now = clock::mono_now();
            if due <= now {
                self.time = now as f64 / 1e9;
                return Some(self.frame(Vec::new()));
            }
            if now >= latest {
                return None;
            }
            let pause = Duration::from_nanos((due.min(latest) - now).unsigned_abs());
            if let Ok(request) = requests.recv_timeout(pause) {
                due = due.min(request);
            }
        }
    }
}

/// Nanoseconds as milliseconds.
pub fn ms(ns: i64) -> f64 {
    ns as f64 / 1e6
}

/// Adds the median and the worst of some frames.
pub fn add_frames(report: &mut Report, case: &str, mut frames: Vec<f64>) {
    frames.sort_by(f64::total_cmp);
    if let (Some(median), Some(worst)) = (frames.get(frames.len() / 2), frames.last()) {
        report.add(format!("{case}: median"), *median, "ms");
        report.add(format!("{case}: worst"), *worst, "ms");
    }
}
