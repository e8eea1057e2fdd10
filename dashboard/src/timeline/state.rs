//! The timeline's state, which commands change. No egui: tests send commands instead of gestures.

use super::{
    command::{ColorBy, Command, LaneId, RangeTab},
    layout::{EasedViewport, Viewport},
    model::{Folding, find, flows, rows::rows},
};
use std::ops::Range;
use trace_analysis::stalls::Stall;
use trace_model::{SliceId, SliceRef};
use trace_store::Store;

/// Initial length of the view of a live trace, ns.
const FOLLOW_NS: i64 = 250_000_000;
/// Greatest delay of a followed view behind now, ns. Slices that arrive later are drawn as open until they arrive.
const MAX_LAG_NS: i64 = 800_000_000;

/// The timeline's state for one trace.
#[derive(Debug, Default)]
pub struct State {
    pub eased: EasedViewport,
    /// Whether the view follows the end of a live trace.
    pub follow: bool,
    /// Recent delay with which slices arrived, ns. The followed view ends this much before now, so that it shows
    /// complete slices.
    lag_ns: i64,
    /// Scroll offset of the rows, points.
    pub scroll: f32,
    pub selected: Option<SliceId>,
    /// The selected stall; `None` while a slice is selected.
    pub stall: Option<Box<Stall>>,
    pub range: Option<Range<i64>>,
    pub folding: Folding,
    pub color_by: ColorBy,
    /// The lane to scroll to in the next frame.
    pub scroll_to: Option<LaneId>,
    /// The tab of the selected range's details.
    pub range_tab: RangeTab,
    /// The name whose durations are shown.
    pub durations_name: Option<String>,
    /// Whether critical paths are shown.
    pub critical: bool,
    /// Whether the log messages are listed.
    pub log: bool,
    /// The last time under the pointer.
    pub cursor: Option<i64>,
    /// The time of the bookmark in the editor, ns.
    pub edited_note: Option<i64>,
    /// The reason why the last command had no effect: "No further slice with this name".
    pub notice: Option<&'static str>,
}

impl State {
    /// The view of an entire finished trace, or of the end of a live trace, which is followed.
    pub fn new(store: &Store, trace: &Range<i64>) -> Self {
        let mut view = Viewport::of_trace(trace);
        let follow = store.is_live();
        if follow && view.ns() > FOLLOW_NS {
            view = Viewport { start: trace.end - FOLLOW_NS, end: trace.end }.ending_at(store.range().end);
        }
        Self { eased: EasedViewport::resting(view), follow, ..Self::default() }
    }

    /// Carries out a command. `trace`: the bounds of the view; `now`: time on the frame's clock, seconds.
    pub fn apply(&mut self, command: Command, store: &Store, trace: &Range<i64>, now: f64) {
        if !matches!(command, Command::Cursor(_)) {
            self.notice = None;
        }
        let Some(command) = self.resolve(command, store) else { return };
        let target = self.eased.target();
        match command {
            Command::Zoom { factor, anchor } => {
                let anchor = if self.follow { 1.0 } else { anchor };
                self.eased.glide(target.zoomed(factor, anchor, trace), now);
            }
            Command::Pan(share) => self.glide_to(target.panned(share, trace), now),
            Command::Drag(ns) => self.jump_to(target.moved(ns, trace)),
            Command::CentreOn(time) => {
                let start = time.saturating_sub(target.ns() / 2);
                self.jump_to(Viewport { start, end: start.saturating_add(target.ns()) }.clamped(trace));
            }
            Command::View(view) => self.jump_to(view.clamped(trace)),
            Command::Scroll(points) => self.scroll += points,
            Command::Fit => self.glide_to(self.fit_target(store, trace), now),
            Command::FitTrace => self.glide_to(Viewport::of_trace(trace), now),
            Command::Show(range) => self.glide_to(Viewport::fitted(&range, trace), now),
            Command::Select(id) => (self.selected, self.stall) = (id, None),
            Command::SelectStall(stall) => {
                self.eased.glide(target.revealing(&(stall.start..stall.end), trace), now);
                (self.selected, self.stall) = (None, Some(stall));
            }
            Command::Reveal(id) => self.reveal(id, store, trace, now),
            Command::SelectRange(range) => self.range = range.filter(|r| r.start < r.end),
            Command::RevealTrack(track) => {
                self.folding.reveal(store, track);
                self.scroll_to = Some(LaneId { track, lane: 0 });
            }
            Command::ToggleFollow => self.toggle_follow(store, trace),
            Command::ColorBy(by) => self.color_by = by,
            Command::ToggleTrack(track) => self.folding.toggle_track(track),
            Command::ToggleProcess(process) => self.folding.toggle_process(process),
            Command::ToggleHost(host) => self.folding.toggle_host(&host),
            Command::HideTrack(track) => self.folding.hide(track),
            Command::TogglePin(track) => self.folding.toggle_pin(track),
            Command::MoveTrack { track, up } => {
                let shown = rows(store, &self.folding).tracks();
                self.folding.move_track(store, &shown, track, up);
            }
            Command::ResizeTrack { track, taller } => self.folding.resize(track, taller),
            Command::FilterTracks(text) => self.folding.set_filter(&text),
            Command::RangeTab(tab) => self.range_tab = tab,
            Command::ShowDurations(name) => self.durations_name = Some(name),
            Command::ToggleCritical => self.critical ^= true,
            Command::ToggleLog => self.log ^= true,
            Command::EditNote(time) => self.edited_note = time,
            // The window stores the bookmark; this state only opens the editor.
            Command::AddNote(at) => self.edited_note = Some(self.note_time(store, at)),
            Command::ShowHidden => self.folding.show_all(),
            // The panel and the window's selection handle these.
            Command::ToggleCompare | Command::CompareStep { .. } => {}
            // `resolve` has replaced these.
            Command::SameName { .. } | Command::AlongFlow { .. } => {}
            Command::FocusSearch | Command::SelectNode(_) => {}
            Command::Cursor(at) => self.cursor = at,
        }
    }

    /// Replaces a command that walks from the selected slice to another one (`SameName`, `AlongFlow`) by one that
    /// reveals that slice. Without such a slice returns `None` and sets a notice.
    pub fn resolve(&mut self, command: Command, store: &Store) -> Option<Command> {
        let selected = self.selected_slice(store);
        let (next, notice) = match command {
            Command::SameName { forward } => {
                (selected.map(|s| find::same_name(store, &s, forward)), "No further slice with this name")
            }
            Command::AlongFlow { forward } => {
                let notice = if forward { "No arrow leaves this slice" } else { "No arrow comes to this slice" };
                (selected.map(|s| flows::neighbour(store, &s, forward)), notice)
            }
            other => return Some(other),
        };
        let found = next.flatten().map(|next: SliceRef| Command::Reveal(next.id));
        if found.is_none() {
            self.notice = Some(if selected.is_some() { notice } else { "Select a slice first" });
        }
        found
    }

    /// The selected slice, if it is in the store.
    pub fn selected_slice(&self, store: &Store) -> Option<SliceRef> {
        store.slice(self.selected?)
    }

    /// Moves a followed view to the end of the live trace. `last_end`: the end of the last slice, ns.
    pub fn follow_end(&mut self, trace: &Range<i64>, last_end: i64, now: f64) {
        if !self.follow {
            return;
        }
        let delay_ns = trace.end.saturating_sub(last_end).clamp(0, MAX_LAG_NS);
        // The lag grows at once but shrinks slowly, so that the view does not jump with every batch of slices.
        self.lag_ns = delay_ns.max(self.lag_ns - self.lag_ns / 64);
        let end = trace.end.saturating_sub(self.lag_ns).max(self.eased.target().end);
        let target = self.eased.target().ending_at(end);
        // A change of zoom under way goes on towards the new end.
        if self.eased.is_moving(now) { self.eased.glide(target, now) } else { self.eased.jump(target) }
    }

    /// The time of a new bookmark: the start of the selection, or else the time at a share of the view's width.
    fn note_time(&self, store: &Store, share: f64) -> i64 {
        let selected = self.selected_slice(store).map(|s| s.start).or_else(|| self.range.as_ref().map(|r| r.start));
        let view = self.eased.target();
        selected.unwrap_or_else(|| view.start.saturating_add((view.ns() as f64 * share).round() as i64))
    }

    fn jump_to(&mut self, target: Viewport) {
        self.follow = false;
        self.eased.jump(target);
    }

    fn glide_to(&mut self, target: Viewport, now: f64) {
        self.follow = false;
        self.eased.glide(target, now);
    }

    fn fit_target(&self, store: &Store, trace: &Range<i64>) -> Viewport {
        let slice = self.selected_slice(store).map(|s| s.start..s.end);
        let stall = || self.stall.as_ref().map(|s| s.start..s.end);
        let selected = slice.or_else(stall).or_else(|| self.range.clone());
        selected.map_or_else(|| Viewport::of_trace(trace), |range| Viewport::fitted(&range, trace))
    }

    fn reveal(&mut self, id: SliceId, store: &Store, trace: &Range<i64>, now: f64) {
        let Some(slice) = store.slice(id) else {
            self.notice = Some("That slice is no longer in memory");
            return;
        };
        (self.selected, self.stall) = (Some(id), None);
        self.scroll_to = Some(LaneId { track: id.track, lane: id.lane });
        self.folding.reveal(store, id.track);
        let target = self.eased.target().revealing(&(slice.start..slice.end), trace);
        if target != self.eased.target() {
            self.glide_to(target, now);
        }
    }

    fn toggle_follow(&mut self, store: &Store, trace: &Range<i64>) {
        self.follow = !self.follow && store.is_live();
        if self.follow {
            let len = self.eased.target().ns().min(FOLLOW_NS);
            let end = store.range().end.min(trace.end);
            self.eased.jump(Viewport { start: end - len, end });
        } else if !store.is_live() {
            self.notice = Some("The trace is finished: nothing to follow");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::testing::demo;

    /// Applies commands 1 s apart to a timeline of three steps; returns the state and the view's `start..end` in µs.
    fn check(commands: &[Command]) -> (State, String) {
        let store = demo(3);
        let trace = store.range();
        let mut state = State::new(&store, &trace);
        for (i, command) in commands.iter().enumerate() {
            state.apply(command.clone(), &store, &trace, i as f64);
        }
        let view = state.eased.target();
        let text = format!("{}..{}", view.start / 1_000, view.end / 1_000);
        (state, text)
    }

    #[test]
    fn the_keys_of_a_session() {
        assert_eq!(check(&[]).1, "4..303");
        assert_eq!(check(&[Command::Zoom { factor: 0.5, anchor: 0.0 }]).1, "4..154");
        assert_eq!(check(&[Command::Zoom { factor: 0.5, anchor: 1.0 }]).1, "154..303");
        assert_eq!(check(&[Command::Zoom { factor: 0.5, anchor: 0.0 }, Command::Pan(0.5)]).1, "79..228");
        assert_eq!(check(&[Command::Zoom { factor: 0.1, anchor: 0.5 }, Command::FitTrace]).1, "4..303");
        assert_eq!(check(&[Command::Show(100_000..200_000)]).1, "90..210");
        assert_eq!(check(&[Command::SelectRange(Some(100_000..110_000)), Command::Fit]).1, "99..111");
        assert_eq!(check(&[Command::Zoom { factor: 0.1, anchor: 0.5 }, Command::Drag(-1 << 40)]).1, "4..34");
    }

    #[test]
    fn walking_over_slices_of_a_name() {
        let store = demo(3);
        let add = find::first_of_node(&store, "layer1/Add", 0).unwrap();
        let next = Command::SameName { forward: true };
        let zoom = Command::Show(70_000..82_000);
        let (state, view) = check(&[zoom, Command::Select(Some(add.id)), next.clone()]);
        assert_eq!(state.selected_slice(&store).unwrap().start, 172_000);
        assert_eq!(view, "168..183", "centred on it at the same zoom");
        assert_eq!(state.scroll_to.map(|r| r.track), state.selected.map(|s| s.track));
        let (state, _) = check(&[Command::Select(Some(add.id)), next.clone(), next.clone(), next.clone()]);
        assert_eq!(state.notice, Some("No further slice with this name"));
        assert_eq!(check(&[next]).0.notice, Some("Select a slice first"));
    }

    #[test]
    fn an_empty_range_is_none() {
        assert_eq!(check(&[Command::SelectRange(Some(5..5))]).0.range, None);
        assert!(check(&[Command::ToggleFollow]).0.notice.is_some());
    }
}
