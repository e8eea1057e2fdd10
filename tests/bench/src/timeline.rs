//! CPU time of a frame of the timeline, headless: the panel's code and egui's tessellation, no GL.
//!
//! 50 tracks at 1920 x 1200 points, 1M and 10M slices, from the whole trace down to 1/65536 of it. Each frame's view differs
//! a little from the one before, so that the picture is built anew every time; `still` frames keep theirs.

use crate::{BenchError, report::Report};
use dashboard::{Data, Selection, View as _, theme, timeline::TimelineView};
use profiler::{
    Batch, Store,
    batch::{Event, EventKind, NO_NODE, Name, TrackKey},
    store::StoreOptions,
};

const TRACKS: u32 = 50;
const FRAMES: usize = 30;

pub fn run(report: &mut Report) -> Result<(), BenchError> {
    for n_slices in [1_000_000, 10_000_000] {
        let begin = events::clock::mono_now();
        let store = store(n_slices / TRACKS as usize);
        let millions = n_slices / 1_000_000;
        report.add(format!("{millions}M build store"), ms(events::clock::mono_now() - begin), "ms");
        let mut window = Window::new(store);
        for zoom in [0, 4, 8, 12, 16] {
            window.frame(&[]);
            for _ in 0..zoom {
                window.key(egui::Key::W);
            }
            let mut moving: Vec<f64> = (0..FRAMES)
                .map(|i| {
                    // A pan of a fifth of the view, to and fro; the easing gives each frame a view of its own.
                    let key = if i % 2 == 0 { egui::Key::D } else { egui::Key::A };
                    window.key(key)
                })
                .collect();
            for _ in 0..20 {
                window.frame(&[]);
            }
            let mut still: Vec<f64> = (0..FRAMES).map(|_| window.frame(&[])).collect();
            let case = |what: &str| format!("{millions}M zoom 1/{} {what}", 1_u64 << zoom);
            report.add(case("moving"), median(&mut moving), "ms");
            report.add(case("still"), median(&mut still), "ms");
            window.key(egui::Key::Num0);
            for _ in 0..20 {
                window.frame(&[]);
            }
        }
    }
    Ok(())
}

/// The panel in a context without a window.
struct Window {
    ctx: egui::Context,
    view: TimelineView,
    data: Data,
    selection: Selection,
    time: f64,
}

impl Window {
    fn new(store: Store) -> Self {
        let ctx = egui::Context::default();
        theme::install(&ctx);
        let data = Data::default().with_trace("bench", store);
        Self { ctx, view: TimelineView::default(), data, selection: Selection::default(), time: 0.0 }
    }

    /// A frame with a key pressed; gives back its CPU ms.
    fn key(&mut self, key: egui::Key) -> f64 {
        let event = |pressed| egui::Event::Key {
            key,
            physical_key: None,
            pressed,
            repeat: false,
            modifiers: egui::Modifiers::NONE,
        };
        self.frame(&[event(true), event(false)])
    }

    fn frame(&mut self, input: &[egui::Event]) -> f64 {
        self.time += 1.0 / 60.0;
        let raw = egui::RawInput {
            screen_rect: Some(egui::Rect::from_min_size(egui::Pos2::ZERO, egui::vec2(1920.0, 1200.0))),
            time: Some(self.time),
            events: input.to_vec(),
            ..egui::RawInput::default()
        };
        let begin = events::clock::mono_now();
        let (view, data, selection) = (&mut self.view, &self.data, &mut self.selection);
        let output = self.ctx.run_ui(raw, |ui| view.ui(ui, data, selection));
        let meshes = self.ctx.tessellate(output.shapes, output.pixels_per_point);
        std::hint::black_box(meshes);
        ms(events::clock::mono_now() - begin)
    }
}

fn ms(ns: i64) -> f64 {
    ns as f64 / 1e6
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Slices of 1 to 4 µs with gaps of half that, of ten op types, on every track.
fn store(per_track: usize) -> Store {
    let pid = 1;
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    let mut batch = Batch::new();
    batch.set_origin(0);
    for op in 0..10_u32 {
        let name = format!("Op{op}");
        batch.name(Name::Site { pid, id: op, category: "op".into(), name: name.clone() });
        batch.name(Name::Node { pid, id: op, name: format!("layer/{name}"), op: name, device: "cpu:0".into() });
    }
    for ring in 0..TRACKS {
        let name = format!("worker {ring}");
        batch.name(Name::Thread { key: TrackKey { pid, ring }, name, tid: ring });
    }
    store.apply(batch);
    for ring in 0..TRACKS {
        let mut seed = u64::from(ring) + 1;
        let mut at = 0_i64;
        let mut batch = Batch::new();
        for _ in 0..per_track {
            // xorshift: cheap and the same every time.
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let op = (seed % 10) as u32;
            let dur = 1_000 + (seed >> 32) as i64 % 3_000;
            let event = Event {
                kind: EventKind::Slice,
                depth: 0,
                start: at,
                end: at + dur,
                site: op,
                node: op,
                correlation: NO_NODE,
                arg: 0,
                args: profiler::batch::NO_ARGS,
            };
            batch.track(TrackKey { pid, ring }).events.push(event);
            at += dur + dur / 2;
        }
        store.apply(batch);
    }
    store
}
