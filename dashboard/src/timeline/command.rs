//! The timeline's commands. Gestures, keys, panels and other views all become commands.

use super::layout::Viewport;
use std::{ops::Range, sync::Arc};
use trace_analysis::stalls::Stall;
use trace_model::SliceId;
use ui::address::Choice;

/// The property of a slice that determines its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ColorBy {
    /// The op type or name: the same colour in every session.
    #[default]
    Op,
    /// The slice's category: op, kernel, copy, wait, ...
    Category,
    /// The device of the slice's node, or of its track.
    Device,
    Track,
    /// The pool of threads: their names differ in a number only.
    Pool,
    Process,
    /// The CPU that the slice's thread ran on, where scheduling was recorded.
    Cpu,
    Step,
    /// Slices are muted; stalls have a colour for each cause.
    Cause,
}

impl Choice for ColorBy {
    const TABLE: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Op, "op", "op"),
        (Self::Category, "category", "category"),
        (Self::Device, "device", "device"),
        (Self::Track, "track", "track"),
        (Self::Pool, "thread pool", "thread pool"),
        (Self::Process, "process", "process"),
        (Self::Cpu, "CPU", "CPU"),
        (Self::Step, "step", "step"),
        (Self::Cause, "stall cause", "stall cause"),
    ];
}

#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Multiplies the length of the view by `factor`; the time at `anchor` stays where it is.
    Zoom {
        /// Below 1 zooms in.
        factor: f64,
        /// The fixed time as a share of the width: 0 is the left edge, 1 the right one.
        anchor: f64,
    },
    /// Moves the view smoothly by a share of its width.
    Pan(f64),
    /// Moves the view by this many ns at once, with the pointer that drags it.
    Drag(i64),
    /// Centres the view on a time, as a click in the minimap does.
    CentreOn(i64),
    /// Scrolls the rows by this many points, down when positive.
    Scroll(f32),
    /// Fits the selected slice or range, or else the entire trace.
    Fit,
    /// Fits the entire trace.
    FitTrace,
    Show(Range<i64>),
    Select(Option<SliceId>),
    /// Selects a slice and brings it into view.
    Reveal(SliceId),
    SelectStall(Box<Stall>),
    SelectRange(Option<Range<i64>>),
    /// Selects the next or previous slice with the same name.
    SameName {
        forward: bool,
    },
    /// Selects the slice at the other end of one of the selected slice's arrows.
    AlongFlow {
        /// Whether to follow an arrow that leaves the slice, rather than one that enters it.
        forward: bool,
    },
    /// Shows this view at once.
    View(Viewport),
    RevealTrack(u32),
    /// Starts or stops following a live trace.
    ToggleFollow,
    ColorBy(ColorBy),
    ToggleTrack(u32),
    ToggleProcess(u32),
    ToggleHost(String),
    HideTrack(u32),
    /// Pins a track above all others, or unpins it.
    TogglePin(u32),
    /// Moves a track up or down by one row.
    MoveTrack {
        track: u32,
        /// Whether to move it up, rather than down.
        up: bool,
    },
    /// Changes the height of a track's lanes.
    ResizeTrack {
        track: u32,
        /// Whether to make them taller, rather than shorter.
        taller: bool,
    },
    /// Shows only the tracks whose names match.
    FilterTracks(String),
    /// Shows or hides the critical paths of the steps on the screen.
    ToggleCritical,
    /// Shows or hides the log messages.
    ToggleLog,
    /// Notes the time under the pointer; `None` without one.
    Cursor(Option<i64>),
    /// Chooses a tab of the selected range's details.
    RangeTab(RangeTab),
    /// Shows the durations of slices with this name in the selected range.
    ShowDurations(String),
    /// Adds a bookmark at the selected slice or range, or else at this share of the width.
    AddNote(f64),
    /// Opens the editor of the bookmark at this time, or closes it.
    EditNote(Option<i64>),
    ShowHidden,
    /// Starts or ends a comparison with another step or trace.
    ToggleCompare,
    /// Compares with the next or previous step.
    CompareStep {
        forward: bool,
    },
    /// Moves the cursor into the search box.
    FocusSearch,
    /// Selects a node in all panels, or clears that selection.
    SelectNode(Option<Arc<str>>),
}

/// A tab of the selected range's details.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RangeTab {
    /// Ops and the largest stalls.
    #[default]
    Ops,
    Names,
    /// The utilisation of each track.
    Tracks,
    /// A flame graph of the slices.
    Flame,
    Samples,
}

impl Choice for RangeTab {
    const TABLE: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Ops, "ops", "Ops and stalls"),
        (Self::Names, "durations", "Durations"),
        (Self::Tracks, "tracks", "Tracks"),
        (Self::Flame, "flame", "Flame graph"),
        (Self::Samples, "samples", "Samples"),
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneId {
    pub track: u32,
    pub lane: u32,
}

impl Command {
    /// Whether the command selects a slice or stall in one of two compared pictures.
    pub fn selects(&self) -> bool {
        let is_selection = matches!(self, Self::Select(_) | Self::Reveal(_) | Self::SelectStall(_));
        is_selection || (self.needs_selection() && *self != Self::Fit)
    }

    /// Whether the command starts from the selected slice.
    pub fn needs_selection(&self) -> bool {
        matches!(self, Self::SameName { .. } | Self::AlongFlow { .. } | Self::Fit)
    }

    /// Whether the command starts, ends or changes the comparison.
    pub fn changes_comparison(&self) -> bool {
        matches!(self, Self::ToggleCompare | Self::CompareStep { .. })
    }

    /// Whether the command acts on both pictures of a comparison; then it is applied to the upper picture's state.
    pub fn is_shared(&self) -> bool {
        matches!(
            self,
            Self::SelectRange(_)
                | Self::ColorBy(_)
                | Self::ToggleCritical
                | Self::ToggleLog
                | Self::ToggleFollow
                | Self::FocusSearch
                | Self::SelectNode(_)
        ) || self.changes_comparison()
    }

    /// Shifts the command's times by `ns`.
    #[must_use]
    pub fn shifted(self, ns: i64) -> Self {
        match self {
            Self::SelectRange(Some(range)) => Self::SelectRange(Some(shifted(&range, ns))),
            other => other,
        }
    }
}

/// Shifts a range by `ns`.
pub fn shifted(range: &Range<i64>, ns: i64) -> Range<i64> {
    range.start.saturating_add(ns)..range.end.saturating_add(ns)
}
