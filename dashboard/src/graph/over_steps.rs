//! What the selected item took in each of the last steps: summed up by a thread of its own, shown as bars.

use super::model::{ItemId, Model};
use crate::{
    Data,
    data::Shared,
    format,
    theme::{metrics, palette},
    timeline::background::Background,
    widgets::describe,
};
use egui::{Context, Mesh, Rect, Sense, Stroke, StrokeKind, Ui, pos2, vec2};
use profiler::{Category, Residency, Store};
use rustc_hash::FxHashMap;
use std::{ops::Range, sync::Arc};

/// Steps that are shown, at most: the newest of each trace.
const MAX_STEPS: usize = 120;
/// Least time between two readings of growing traces, seconds.
const EVERY: f64 = 1.0;

/// An item's part of a step.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StepCost {
    /// Place among the open traces.
    pub trace_idx: usize,
    /// What the step is called: `train 120`.
    pub name: String,
    /// When it was.
    pub range: Range<i64>,
    /// What the item's kernels took of it, one beside another counted twice.
    pub total_ns: i64,
}

struct Request {
    model: Arc<Model>,
    item: ItemId,
    stores: Vec<Shared<Store>>,
}

struct Answer {
    model: Arc<Model>,
    item: ItemId,
    steps: Vec<StepCost>,
}

/// The selected item's steps.
#[derive(Default)]
pub(super) struct OverSteps {
    thread: Option<Background<Request, Answer>>,
    asked: Option<(ItemId, Vec<u64>)>,
    asked_at: f64,
    found: Option<Arc<Answer>>,
}

impl OverSteps {
    /// Has the steps of `item` summed up where something changed.
    pub fn update(&mut self, ctx: &Context, model: &Arc<Model>, item: ItemId, data: &Data, now: f64) {
        if data.traces.is_empty() {
            return;
        }
        let wake = ctx.clone();
        let thread = self.thread.get_or_insert_with(|| {
            Background::start("graph steps", |asked| sum(&asked), move || wake.request_repaint())
        });
        self.found = thread.result().filter(|found| found.item == item && Arc::ptr_eq(&found.model, model));
        let question = (item, data.traces.iter().map(|trace| trace.store.version()).collect());
        if self.asked.as_ref() == Some(&question) {
            return;
        }
        let is_same_item = self.asked.as_ref().is_some_and(|(asked, _)| *asked == item);
        let due = self.asked_at + thread.refresh_s(EVERY);
        if thread.is_busy() || (is_same_item && now < due) {
            ctx.request_repaint_after_secs((due - now).max(EVERY) as f32);
            return;
        }
        (self.asked, self.asked_at) = (Some(question), now);
        let stores = data.traces.iter().map(|trace| trace.store.shared()).collect();
        thread.request(Request { model: Arc::clone(model), item, stores });
    }

    /// The steps, as far as they are known.
    pub fn steps(&self) -> &[StepCost] {
        self.found.as_ref().map_or(&[], |found| &found.steps)
    }
}

fn sum(asked: &Request) -> Answer {
    let of_trace = |(trace_idx, store): (usize, &Shared<Store>)| {
        // Recursive: a loader that waits to write must not hold up the window behind this read.
        costs(&store.read_recursive(), trace_idx, &asked.model, asked.item)
    };
    let steps = asked.stores.iter().enumerate().flat_map(of_trace).collect();
    Answer { model: Arc::clone(&asked.model), item: asked.item, steps }
}

/// The newest steps of a trace that ran the item; none where it ran in none of them, or where they are not all here.
fn costs(store: &Store, trace_idx: usize, model: &Model, item: ItemId) -> Vec<StepCost> {
    let newest = &store.steps()[store.steps().len().saturating_sub(MAX_STEPS)..];
    let (Some(start), Some(end)) = (newest.iter().map(|s| s.start).min(), newest.iter().map(|s| s.end).max()) else {
        return Vec::new();
    };
    let span = start..end;
    if store.residency(&span) != Residency::Resident {
        return Vec::new();
    }
    let is_mine = |name: &str| model.find(name).is_some_and(|found| model.is_below(found, item));
    let mine: Vec<bool> = store.nodes().iter().map(|node| is_mine(&node.name)).collect();
    // A step's number is unique in its process.
    let process = |track: u32| store.tracks().get(track as usize).map_or(0, |track| track.process);
    let key = |(i, step): (usize, &profiler::Step)| ((process(step.slice.track), step.id), i);
    let place: FxHashMap<(u32, u32), usize> = newest.iter().enumerate().map(key).collect();
    let mut totals = vec![0; newest.len()];
    for track in store.tracks() {
        for slice in track.lanes.iter().flat_map(|lane| lane.slices(&span)) {
            let is_run = mine.get(slice.node as usize) == Some(&true) && store.category(&slice) == Category::Op;
            let id = is_run.then(|| store.step_id_of(&slice)).flatten();
            if let Some(i) = id.and_then(|id| place.get(&(track.process, id))) {
                totals[*i] += slice.dur();
            }
        }
    }
    if totals.iter().all(|total| *total == 0) {
        return Vec::new();
    }
    let cost = |(step, total_ns): (&profiler::Step, i64)| {
        let label = store.sites().get(step.site as usize).map_or("step", |site| &site.name);
        let number = if step.summary_step >= 0 { step.summary_step } else { i64::from(step.id) };
        let name = format!("{label} {}", format::step(number));
        StepCost { trace_idx, name, range: step.start..step.end, total_ns }
    };
    newest.iter().zip(totals).map(cost).collect()
}

/// The bars; the step that was clicked.
pub(super) fn chart_ui<'a>(ui: &mut Ui, steps: &'a [StepCost]) -> Option<&'a StepCost> {
    let p = palette(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), metrics::graph::STEPS_H), Sense::click());
    describe(&response, || summary(steps));
    let painter = ui.painter_at(rect);
    painter.rect_filled(rect, f32::from(metrics::RADIUS), p.canvas);
    let most = steps.iter().map(|s| s.total_ns).max().unwrap_or(0).max(1);
    let width = rect.width() / steps.len().max(1) as f32;
    let bar = |i: usize, share: f64| {
        let (left, top) = (rect.left() + i as f32 * width, rect.bottom() - rect.height() * share as f32);
        Rect::from_min_max(pos2(left, top), pos2(left + width, rect.bottom()))
    };
    let mut mesh = Mesh::default();
    for (i, step) in steps.iter().enumerate() {
        mesh.add_colored_rect(bar(i, step.total_ns as f64 / most as f64), p.series(0));
    }
    painter.add(mesh);
    let pointed = response.hover_pos().map(|at| ((at.x - rect.left()) / width) as usize);
    let (i, step) = pointed.and_then(|i| Some((i, steps.get(i)?)))?;
    painter.rect_stroke(bar(i, 1.0), 0.0, Stroke::new(metrics::HAIRLINE, p.highlight), StrokeKind::Inside);
    response.clone().on_hover_ui_at_pointer(|ui| {
        ui.label(format!("{}: {}", step.name, format::duration_ns(step.total_ns)));
        ui.weak("click: show in Timeline");
    });
    response.clicked().then_some(step)
}

/// The bars in one sentence.
pub(super) fn summary(steps: &[StepCost]) -> String {
    let of = |f: fn(i64, i64) -> i64| steps.iter().map(|s| s.total_ns).reduce(f).unwrap_or(0);
    let mean = steps.iter().map(|s| s.total_ns).sum::<i64>() / steps.len().max(1) as i64;
    let [least, mean, most] = [of(i64::min), mean, of(i64::max)].map(format::duration_ns);
    format!("Over {}: {mean} on average, from {least} to {most}", format::counted(steps.len() as u64, "step"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{graph::model::tests::graph, timeline::testing::demo};

    #[test]
    fn a_node_and_its_scope_over_the_steps() {
        let model = Model::build(graph("layer1/MatMul = MatMul()\nlayer1/Add = Add()\nlayer2/never = MatMul()"));
        let store = demo(3);
        let of = |name: &str| {
            let found = costs(&store, 0, &model, model.find(name).unwrap());
            found.iter().map(|step| step.total_ns).collect::<Vec<_>>()
        };
        assert_eq!(of("layer1/MatMul"), [50_000; 3]);
        assert_eq!(of("layer1"), [58_000; 3], "a scope has what is in it");
        assert!(of("layer2/never").is_empty());
        let found = costs(&store, 0, &model, model.find("layer1").unwrap());
        assert_eq!(summary(&found), "Over 3 steps: 58.0 µs on average, from 58.0 µs to 58.0 µs");
        assert_eq!(found[1].range, store.steps()[1].start..store.steps()[1].end);
    }
}
