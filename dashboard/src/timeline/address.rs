//! The timeline's part of an address: trace, view, selection, colours, folding and hidden tracks, search.

use super::{
    command::{ColorBy, Command},
    layout::Viewport,
    model::Folding,
    panels::compare::Compare,
    state::State,
};
use crate::Data;
use std::ops::Range;
use trace_model::SliceId;
use trace_store::Store;
use ui::address::{Accepts, AddressState as _, Choice as _, Names, Params, Value as _};

/// Writes a timeline's state into the parameters of an address.
pub(super) fn set_state(out: &mut Params, state: &State) {
    if state.follow {
        out.set("follow", 1);
    } else {
        out.set_range("view", &state.eased.target().range());
    }
    if let Some(range) = &state.range {
        out.set_range("range", range);
    }
    out.set_some("slice", state.selected.map(|s| format!("{}.{}.{}", s.track, s.lane, s.ordinal)));
    out.set_some("colour", (state.color_by != ColorBy::default()).then(|| state.color_by.id()));
    state.folding.params().iter().for_each(|(name, value)| out.set(name, value));
    out.set_some("critical", state.critical.then_some(1));
    out.set_some("log", state.log.then_some(1));
}

/// Writes a comparison into the parameters: the lower trace and the starts of the two steps.
pub(super) fn set_comparison(out: &mut Params, compare: &Compare, data: &Data) {
    out.set_some("below", data.traces.get(compare.trace_idx).map(|t| &t.name));
    if let Some([above, below]) = &compare.steps {
        out.set("step", above.range.start);
        out.set("step-below", below.range.start);
    }
}

/// Applies an address to the state; returns commands for the parts that only commands can change.
pub(super) fn apply(params: &Params, state: &mut State, store: &Store, trace_range: &Range<i64>) -> Vec<Command> {
    state.folding.go_to(params);
    state.critical = params.get("critical").is_some();
    state.log = params.get("log").is_some();
    state.color_by = params.get("colour").and_then(ColorBy::by_id).unwrap_or_default();
    let slice = params.get("slice").and_then(slice_id).filter(|id| store.slice(*id).is_some());
    let mut out = vec![Command::Select(slice), Command::SelectRange(params.read_range("range"))];
    if params.get("follow").is_some() && store.is_live() {
        if !state.follow {
            out.push(Command::ToggleFollow);
        }
    } else {
        let view = params.read_range("view").map(|r| Viewport { start: r.start, end: r.end });
        out.push(Command::View(view.unwrap_or_else(|| Viewport::of_trace(trace_range))));
    }
    out
}

/// The comparison that an address asks for; `None` without one, or where the lower trace is not open or is empty.
pub(super) fn comparison(params: &Params, data: &Data, above: &Store) -> Option<Compare> {
    let name = params.get("below")?;
    let idx = data.traces.iter().position(|t| *t.name == *name && !t.store.tracks().is_empty())?;
    let mut compare = Compare::with_trace(data, idx);
    let step_start = |name: &str| params.get(name)?.parse().ok();
    if let Some(starts) = step_start("step").zip(step_start("step-below")) {
        compare.align(above, &data.traces[idx].store, starts.into());
    }
    Some(compare)
}

/// Parses `track.lane.ordinal`.
fn slice_id(text: &str) -> Option<SliceId> {
    let mut parts = text.split('.');
    let id = SliceId {
        track: parts.next()?.parse().ok()?,
        lane: parts.next()?.parse().ok()?,
        ordinal: parts.next()?.parse().ok()?,
    };
    parts.next().is_none().then_some(id)
}

/// The parameters of this panel's addresses.
pub fn accepts() -> Names {
    let state_params = [
        ("trace", Accepts::Text),
        ("below", Accepts::Text),
        ("slice", Accepts::Text),
        ("search", Accepts::Text),
        ("colour", ColorBy::accepts()),
        ("view", Accepts::Range),
        ("range", Accepts::Range),
        ("step", Accepts::Number),
        ("step-below", Accepts::Number),
        ("critical", Accepts::Flag),
        ("log", Accepts::Flag),
        ("follow", Accepts::Flag),
    ];
    state_params.into_iter().chain(Folding::accepts()).collect()
}
