//! Gestures and keys to commands.
//!
//! The wheel zooms at the cursor while all rows fit and scrolls them otherwise; with Ctrl it always zooms, with Shift it
//! moves in time (as in Perfetto). Over the ruler and the overview it always zooms.

use super::{
    state::{ColorBy, Command},
    viewport::Scale,
};
use crate::{command::Entry, theme::metrics};
use egui::{Key, Modifiers, PointerButton, Pos2, Rect, Response, Ui};
use std::{ops::Range, sync::LazyLock};

/// One notch of W, S or the wheel.
const ZOOM_STEP: f64 = 1.35;
const PAN_STEP: f64 = 0.2;
/// How far the arrow keys scroll.
const SCROLL_STEP: f32 = 3.0 * metrics::LANE_H;

/// Where the parts of the timeline are.
#[derive(Clone, Copy, Debug)]
pub struct Areas {
    /// The overview of the whole trace.
    pub minimap: Rect,
    /// Time ticks and steps.
    pub ruler: Rect,
    /// The rows, right of their names.
    pub body: Rect,
}

/// A drag in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Drag {
    /// None.
    #[default]
    None,
    /// Moves the view.
    Pan,
    /// Selects from this time on.
    Range(i64),
    /// Moves the view in the overview.
    Overview,
}

/// A command with its keys. `make` is given where the pointer is, as a share of the width.
struct Binding {
    keys: &'static [Key],
    entry: Entry,
    make: fn(f64) -> Command,
}

const fn bound(
    keys: &'static [Key],
    text: &'static str,
    what: &'static str,
    id: &'static str,
    make: fn(f64) -> Command,
) -> Binding {
    Binding { keys, entry: Entry::command(id, text, what), make }
}

/// Every command of the panel.
const BINDINGS: &[Binding] = &[
    bound(&[Key::W, Key::Plus], "W or +", "Zoom in at the pointer", "zoom in", |at| Command::Zoom {
        factor: 1.0 / ZOOM_STEP,
        at,
    }),
    bound(&[Key::S, Key::Minus], "S or -", "Zoom out at the pointer", "zoom out", |at| Command::Zoom {
        factor: ZOOM_STEP,
        at,
    }),
    bound(&[Key::A, Key::ArrowLeft], "A or Left", "Move left", "left", |_| Command::Pan(-PAN_STEP)),
    bound(&[Key::D, Key::ArrowRight], "D or Right", "Move right", "right", |_| Command::Pan(PAN_STEP)),
    bound(&[Key::ArrowUp], "Up", "Scroll up", "up", |_| Command::Scroll(-SCROLL_STEP)),
    bound(&[Key::ArrowDown], "Down", "Scroll down", "down", |_| Command::Scroll(SCROLL_STEP)),
    bound(&[Key::F], "F", "Fit the selected slice or range", "fit", |_| Command::Fit),
    bound(&[Key::Num0, Key::Home], "0", "Show the whole trace", "whole", |_| Command::Whole),
    bound(&[Key::Period], ".", "Next slice of the same name", "next", |_| Command::SameName { forward: true }),
    bound(&[Key::Comma], ",", "Previous slice of the same name", "previous", |_| Command::SameName { forward: false }),
    bound(&[Key::CloseBracket], "]", "Along the arrow: what the selected slice led to", "flow out", |_| {
        Command::AlongFlow { forward: true }
    }),
    bound(&[Key::OpenBracket], "[", "Back along the arrow: what led to the selected slice", "flow in", |_| {
        Command::AlongFlow { forward: false }
    }),
    bound(&[Key::L], "L", "Follow the live trace, or stop", "follow", |_| Command::ToggleFollow),
    bound(&[Key::Slash], "/", "Search slices; Enter goes to the next match", "search", |_| Command::FocusSearch),
    bound(&[Key::C], "C", "Mark the critical path, or stop", "critical", |_| Command::ToggleCritical),
    bound(&[Key::M], "M", "Put a bookmark here", "note", Command::AddNote),
    bound(&[Key::V], "V", "Compare with another step or trace below, or stop", "compare", |_| Command::ToggleCompare),
    bound(&[Key::J], "J", "Compare with the next step", "compare next", |_| Command::CompareStep { forward: true }),
    bound(&[Key::K], "K", "Compare with the step before", "compare previous", |_| Command::CompareStep {
        forward: false,
    }),
    bound(&[Key::G], "G", "Show the log messages, or stop", "log", |_| Command::ToggleLog),
    bound(&[], "", "Colour slices by op", "colour op", |_| Command::ColorBy(ColorBy::Op)),
    bound(&[], "", "Colour slices by category", "colour category", |_| Command::ColorBy(ColorBy::Category)),
    bound(&[], "", "Colour slices by device", "colour device", |_| Command::ColorBy(ColorBy::Device)),
    bound(&[], "", "Colour slices by track", "colour track", |_| Command::ColorBy(ColorBy::Track)),
    bound(&[], "", "Colour slices by thread pool", "colour pool", |_| Command::ColorBy(ColorBy::Pool)),
    bound(&[], "", "Colour slices by process", "colour process", |_| Command::ColorBy(ColorBy::Process)),
    bound(&[], "", "Colour slices by the CPU that ran them", "colour cpu", |_| Command::ColorBy(ColorBy::Cpu)),
    bound(&[], "", "Colour slices by step", "colour step", |_| Command::ColorBy(ColorBy::Step)),
    bound(&[], "", "Colour stalls by cause", "colour cause", |_| Command::ColorBy(ColorBy::Cause)),
    bound(&[], "", "Show all hidden tracks", "show hidden", |_| Command::ShowHidden),
];

/// What only the pointer can do, and Esc.
const GESTURES: &[Entry] = &[
    Entry::gesture("Ctrl + wheel", "Zoom at the pointer (without Ctrl where all tracks fit, and over the ruler)"),
    Entry::gesture("Wheel", "Scroll the tracks"),
    Entry::gesture("Shift + wheel, drag", "Move in time"),
    Entry::gesture("Drag on the ruler, Shift + drag", "Select a range: statistics"),
    Entry::gesture("Click", "Select a slice, or a stall where nothing ran"),
    Entry::gesture("Double click", "Fit the slice"),
    Entry::gesture("Right click on a track's name", "Pin, move, height, hide"),
    Entry::gesture("Click a flag in the ruler", "Edit the bookmark"),
    Entry::gesture("Esc", "Deselect"),
];

/// The panel's commands and gestures, for the list of shortcuts and the palette.
pub fn entries() -> &'static [Entry] {
    static ALL: LazyLock<Vec<Entry>> =
        LazyLock::new(|| BINDINGS.iter().map(|b| b.entry).chain(GESTURES.iter().copied()).collect());
    &ALL
}

/// The command with an id of [`entries`].
pub fn command_of(id: &str) -> Option<Command> {
    BINDINGS.iter().find(|b| b.entry.id == id).map(|b| (b.make)(0.5))
}

/// What keys ask for. Only while they are free.
pub fn keys(ui: &Ui, pointer: Option<Pos2>, scale: &Scale) -> Vec<Command> {
    let at = pointer.map_or(0.5, |p| f64::from((p.x - scale.left()) / scale.width()).clamp(0.0, 1.0));
    let mut out = Vec::new();
    ui.input_mut(|input| {
        for binding in BINDINGS {
            let n: usize = binding.keys.iter().map(|key| input.count_and_consume_key(Modifiers::NONE, *key)).sum();
            out.extend(std::iter::repeat_with(|| (binding.make)(at)).take(n));
        }
    });
    if ui.input_mut(|i| i.consume_key(Modifiers::NONE, Key::Escape)) {
        out.extend([Command::Select(None), Command::SelectRange(None), Command::SelectNode(None)]);
    }
    out
}

/// What the wheel asks for. `scrolls`: whether there are more rows than fit.
pub fn wheel(ui: &Ui, pointer: Pos2, areas: &Areas, scale: &Scale, scrolls: bool) -> Vec<Command> {
    let at = f64::from((pointer.x - scale.left()) / scale.width()).clamp(0.0, 1.0);
    let mut out = Vec::new();
    // egui turns Ctrl + wheel and pinching into a zoom factor, and Shift + wheel into sideways scrolling.
    let (zoom, scroll) = ui.input(|i| (f64::from(i.zoom_delta()), i.smooth_scroll_delta()));
    if (zoom - 1.0).abs() > 1e-4 {
        out.push(Command::Zoom { factor: 1.0 / zoom, at });
    }
    if scroll.x.abs() > 0.01 {
        out.push(Command::Drag(-(f64::from(scroll.x) * scale.ns_per_px()).round() as i64));
    }
    if scroll.y.abs() > 0.01 {
        let over_rows = areas.body.y_range().contains(pointer.y);
        if scrolls && over_rows {
            out.push(Command::Scroll(-scroll.y));
        } else {
            out.push(Command::Zoom { factor: (-f64::from(scroll.y) / 200.0).exp2(), at });
        }
    }
    out
}

/// What pressing, dragging and releasing asks for.
pub fn drags(
    ui: &Ui,
    response: &Response,
    areas: &Areas,
    scale: &Scale,
    whole: &Range<i64>,
    drag: &mut Drag,
) -> Vec<Command> {
    let Some(pointer) = response.interact_pointer_pos() else {
        *drag = Drag::None;
        return Vec::new();
    };
    if response.drag_started_by(PointerButton::Primary) || response.drag_started_by(PointerButton::Middle) {
        let origin = ui.input(|i| i.pointer.press_origin()).unwrap_or(pointer);
        let shift = ui.input(|i| i.modifiers.shift);
        *drag = if areas.minimap.contains(origin) {
            Drag::Overview
        } else if areas.ruler.contains(origin) || shift {
            Drag::Range(scale.time_from_x(origin.x))
        } else {
            Drag::Pan
        };
    }
    let overview = Scale::new(super::viewport::Viewport::whole(whole), areas.minimap.left(), areas.minimap.width());
    match *drag {
        Drag::Pan => {
            let moved = response.drag_delta();
            vec![Command::Drag(-(f64::from(moved.x) * scale.ns_per_px()).round() as i64), Command::Scroll(-moved.y)]
        }
        Drag::Range(from) => {
            let to = scale.time_from_x(pointer.x.clamp(scale.left(), scale.right()));
            vec![Command::SelectRange(Some(from.min(to)..from.max(to)))]
        }
        Drag::Overview => vec![Command::CentreOn(overview.time_from_x(pointer.x))],
        Drag::None if response.clicked() && areas.minimap.contains(pointer) => {
            vec![Command::CentreOn(overview.time_from_x(pointer.x))]
        }
        Drag::None => Vec::new(),
    }
}
