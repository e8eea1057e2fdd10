//! The timeline of a growing trace: what of it is in memory, 50 tracks of 10M slices.

use super::screen::{Screen, add_frames, ms};
use crate::report::{BenchError, Report};
use ::dashboard::{Data, Selection, View as _, timeline::TimelineView};
use ::events::clock;
use trace_model::{Batch, Event, EventKind, NO_NODE, Name, TrackKey};
use trace_store::{Store, StoreOptions};

const TRACKS: u32 = 50;
const N_SLICES: usize = 10_000_000;
const FRAMES: usize = 40;

pub fn run(report: &mut Report) -> Result<(), BenchError> {
    let begin = clock::mono_now();
    let store = store(N_SLICES / TRACKS as usize);
    report.add("growing, 10 M: build the store", ms(clock::mono_now() - begin), "ms");
    let data = Data::default().with_trace("bench", store);
    let mut screen = Screen::new(
        |_| (TimelineView::default(), data, Selection::default()),
        |ui, (view, data, selection)| view.ui(ui, data, selection),
    );
    for zoom in [0, 4, 8, 12, 16] {
        screen.key(egui::Key::Num0);
        screen.rest();
        for _ in 0..zoom {
            screen.key(egui::Key::W);
        }
        screen.rest();
        let pan = |i: usize| if i.is_multiple_of(2) { egui::Key::D } else { egui::Key::A };
        let moving = (0..FRAMES).map(|i| screen.key(pan(i))).collect();
        add_frames(report, &format!("growing, 10 M: frame at 1/{}, moving", 1_u64 << zoom), moving);
    }
    Ok(())
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
                args: trace_model::NO_ARGS,
            };
            batch.track(TrackKey { pid, ring }).events.push(event);
            at += dur + dur / 2;
        }
        store.apply(batch);
    }
    store
}
