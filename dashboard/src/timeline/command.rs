//! What the user can do to the timeline. Gestures, keys, panels and other views become these.

use super::layout::Viewport;
use std::{ops::Range, sync::Arc};
use trace_analysis::stalls::Stall;
use trace_model::SliceId;
use ui::address::Choice;

/// What decides a slice's colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ColorBy {
    /// Its op type or name: the same colour in every session.
    #[default]
    Op,
    /// The category of its slices: op, kernel, copy, wait, ...
    Category,
    /// The device of its node, or of its track.
    Device,
    Track,
    /// The threads whose names differ by a number only.
    Pool,
    Process,
    /// The CPU that its thread ran on, where scheduling was recorded.
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
    /// Shows `factor` times as much; the time at `at` (0 left, 1 right) stays.
    Zoom {
        /// Below 1 zooms in.
        factor: f64,
        /// Where, as a share of the width.
        at: f64,
    },
    /// Moves by a share of the width, smoothly.
    Pan(f64),
    /// Moves by ns, at once: the pointer drags.
    Drag(i64),
    /// Shows from here on, at once: the minimap.
    CentreOn(i64),
    /// Scrolls the rows by points, down when positive.
    Scroll(f32),
    /// Shows the selected slice or range; everything if there is none.
    Fit,
    /// Shows everything.
    FitTrace,
    Show(Range<i64>),
    Select(Option<SliceId>),
    /// Selects a slice and brings it into view.
    Reveal(SliceId),
    SelectStall(Box<Stall>),
    SelectRange(Option<Range<i64>>),
    /// Selects the next or previous slice of the same name.
    SameName {
        forward: bool,
    },
    /// Selects the slice at the other end of an arrow of the selected one.
    AlongFlow {
        /// To what it led; else to what led to it.
        forward: bool,
    },
    /// Shows exactly this, at once.
    View(Viewport),
    RevealTrack(u32),
    /// Follows a live trace, or stops.
    ToggleFollow,
    ColorBy(ColorBy),
    ToggleTrack(u32),
    ToggleProcess(u32),
    ToggleHost(String),
    HideTrack(u32),
    /// Puts a track above all others, or back.
    TogglePin(u32),
    /// Moves a track by one row.
    MoveTrack {
        track: u32,
        /// Else down.
        up: bool,
    },
    /// Makes a track's lanes taller or shorter.
    ResizeTrack {
        track: u32,
        /// Else shorter.
        taller: bool,
    },
    /// Shows only the tracks whose names match.
    FilterTracks(String),
    /// Marks the critical paths of the steps on the screen, or stops.
    ToggleCritical,
    /// Shows the log messages, or stops.
    ToggleLog,
    /// The pointer is at this time.
    Cursor(Option<i64>),
    /// Shows this about the selected range.
    RangeTab(RangeTab),
    /// Shows the durations of this name in the selected range.
    ShowDurations(String),
    /// Puts a bookmark at the selected slice or range, or else at this share of the width.
    AddNote(f64),
    /// Opens the bookmark at this time to be edited, or closes it.
    EditNote(Option<i64>),
    ShowHidden,
    /// Shows another step or trace below, or stops.
    ToggleCompare,
    /// Takes the next step below, or the one before.
    CompareStep {
        forward: bool,
    },
    /// Moves the cursor into the search box.
    FocusSearch,
    /// Selects everything that has the selected slice's node.
    SelectNode(Option<Arc<str>>),
}

/// What is shown about the selected range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RangeTab {
    /// Ops and the largest stalls.
    #[default]
    Ops,
    Names,
    /// How busy each track was.
    Tracks,
    /// Slices by what they are nested in.
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
    /// Whether it selects something in one picture.
    pub fn selects(&self) -> bool {
        let picks = matches!(self, Self::Select(_) | Self::Reveal(_) | Self::SelectStall(_));
        picks || (self.needs_selection() && *self != Self::Fit)
    }

    /// Whether it goes on from what is selected.
    pub fn needs_selection(&self) -> bool {
        matches!(self, Self::SameName { .. } | Self::AlongFlow { .. } | Self::Fit)
    }

    /// Whether it starts, ends or changes the comparison.
    pub fn changes_comparison(&self) -> bool {
        matches!(self, Self::ToggleCompare | Self::CompareStep { .. })
    }

    /// Whether it acts on both pictures of a comparison: the upper one's state carries it out.
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

    /// The same, `ns` later in the trace.
    #[must_use]
    pub fn shifted(self, ns: i64) -> Self {
        match self {
            Self::SelectRange(Some(range)) => Self::SelectRange(Some(shifted(&range, ns))),
            other => other,
        }
    }
}

/// The range, `ns` later.
pub fn shifted(range: &Range<i64>, ns: i64) -> Range<i64> {
    range.start.saturating_add(ns)..range.end.saturating_add(ns)
}
