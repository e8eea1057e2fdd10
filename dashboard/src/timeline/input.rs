//! Gestures and keys to commands.
//!
//! The wheel zooms at the pointer while all rows fit and scrolls the rows otherwise. With Ctrl it always zooms, with
//! Shift it moves the view in time (as in Perfetto); over the ruler and the minimap it always zooms.

use super::{
    command::{ColorBy, Command},
    layers::{FrameContext, minimap},
    layout::Scale,
};
use crate::command::Entry;
use egui::{Key, Modifiers, PointerButton, Pos2, Response, Ui};
use std::sync::LazyLock;
use ui::{theme::metrics, widgets::keys_are_free};

/// Factor of one key press of W or S, or one notch of the wheel.
const ZOOM_STEP: f64 = 1.35;
const PAN_STEP: f64 = 0.2;
/// Points that one press of an arrow key scrolls.
const SCROLL_STEP: f32 = 3.0 * metrics::LANE_H;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Drag {
    #[default]
    None,
    /// Moves the view.
    Pan,
    /// Selects a range that begins at this time.
    Range(i64),
    /// Moves the view in the minimap.
    Minimap,
}

/// A command with its keys. `make` gets the position of the pointer as a share of the width.
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
    bound(&[Key::Num0, Key::Home], "0", "Fit the whole trace", "whole", |_| Command::FitTrace),
    bound(&[Key::Period], ".", "Next slice of the same name", "next", |_| Command::SameName { forward: true }),
    bound(&[Key::Comma], ",", "Previous slice of the same name", "previous", |_| Command::SameName { forward: false }),
    bound(&[Key::CloseBracket], "]", "Follow the arrow to what the selected slice led to", "flow out", |_| {
        Command::AlongFlow { forward: true }
    }),
    bound(&[Key::OpenBracket], "[", "Follow the arrow back to what led to the selected slice", "flow in", |_| {
        Command::AlongFlow { forward: false }
    }),
    bound(&[Key::L], "L", "Follow the live trace, or stop", "follow", |_| Command::ToggleFollow),
    bound(&[Key::Slash], "/", "Search slices; Enter goes to the next match", "search", |_| Command::FocusSearch),
    bound(&[Key::C], "C", "Mark the critical path, or stop", "critical", |_| Command::ToggleCritical),
    bound(&[Key::M], "M", "Add a bookmark here", "note", Command::AddNote),
    bound(&[Key::V], "V", "Compare with another step or trace, or stop", "compare", |_| Command::ToggleCompare),
    bound(&[Key::J], "J", "Compare with the next step", "compare next", |_| Command::CompareStep { forward: true }),
    bound(&[Key::K], "K", "Compare with the previous step", "compare previous", |_| Command::CompareStep {
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

/// The gestures of the pointer, and Esc.
const GESTURES: &[Entry] = &[
    Entry::gesture("Ctrl + wheel", "Zoom at the pointer (without Ctrl where all tracks fit, and over the ruler)"),
    Entry::gesture("Wheel", "Scroll the tracks"),
    Entry::gesture("Shift + wheel, drag", "Move in time"),
    Entry::gesture("Drag on the ruler, Shift + drag", "Select a range: statistics"),
    Entry::gesture("Click", "Select a slice, or a stall where nothing ran"),
    Entry::gesture("Double-click", "Fit the slice"),
    Entry::gesture("Right-click on a track's name", "Pin, move, height, hide"),
    Entry::gesture("Click a flag in the ruler", "Edit the bookmark"),
    Entry::gesture("Esc", "Deselect"),
];

/// The panel's commands and gestures, for the list of shortcuts and the command palette.
pub fn entries() -> &'static [Entry] {
    static ALL: LazyLock<Vec<Entry>> =
        LazyLock::new(|| BINDINGS.iter().map(|b| b.entry).chain(GESTURES.iter().copied()).collect());
    &ALL
}

/// The command with an id of [`entries`].
pub fn command_of(id: &str) -> Option<Command> {
    BINDINGS.iter().find(|b| b.entry.id == id).map(|b| (b.make)(0.5))
}

/// Adds the commands of this frame's keys, wheel and pointer.
pub fn commands(ui: &Ui, response: &Response, ctx: &FrameContext<'_>, drag: &mut Drag, out: &mut Vec<Command>) {
    let (pointer, scale) = (response.hover_pos(), &ctx.frame.scale);
    let cursor = pointer.filter(|at| ctx.areas.have_time(*at)).map(|at| scale.time_from_x(at.x));
    if cursor.is_some() && cursor != ctx.state.cursor {
        out.push(Command::Cursor(cursor));
    }
    // Keys act on the panel under the pointer.
    let elsewhere = ui.input(|i| i.pointer.hover_pos()).is_some_and(|pos| !ctx.content.panel.contains(pos));
    if keys_are_free(ui) && !elsewhere {
        keys(ui, pointer.map_or(0.5, |at| share_of_width(at, scale)), out);
    }
    if let Some(pointer) = pointer {
        wheel(ui, pointer, ctx, out);
    }
    out.extend(drags(ui, response, ctx, drag).into_iter().flatten());
}

fn share_of_width(at: Pos2, scale: &Scale) -> f64 {
    f64::from((at.x - scale.left()) / scale.width()).clamp(0.0, 1.0)
}

/// Adds the commands of the keys. `at`: the position of the pointer as a share of the width.
fn keys(ui: &Ui, at: f64, out: &mut Vec<Command>) {
    ui.input_mut(|input| {
        for binding in BINDINGS {
            let n: usize = binding.keys.iter().map(|key| input.count_and_consume_key(Modifiers::NONE, *key)).sum();
            out.extend(std::iter::repeat_with(|| (binding.make)(at)).take(n));
        }
    });
    if ui.input_mut(|i| i.consume_key(Modifiers::NONE, Key::Escape)) {
        out.extend([Command::Select(None), Command::SelectRange(None), Command::SelectNode(None)]);
    }
}

fn wheel(ui: &Ui, pointer: Pos2, ctx: &FrameContext<'_>, out: &mut Vec<Command>) {
    let scale = &ctx.frame.scale;
    let at = share_of_width(pointer, scale);
    // egui turns Ctrl + wheel and pinching into a zoom factor, and Shift + wheel into sideways scrolling.
    let (zoom, scroll) = ui.input(|i| (f64::from(i.zoom_delta()), i.smooth_scroll_delta()));
    if (zoom - 1.0).abs() > 1e-4 {
        out.push(Command::Zoom { factor: 1.0 / zoom, at });
    }
    if scroll.x.abs() > 0.01 {
        out.push(Command::Drag(-(f64::from(scroll.x) * scale.ns_per_px()).round() as i64));
    }
    if scroll.y.abs() > 0.01 {
        let over_rows = ctx.areas.body.y_range().contains(pointer.y);
        if ctx.scrolls() && over_rows {
            out.push(Command::Scroll(-scroll.y));
        } else {
            out.push(Command::Zoom { factor: (-f64::from(scroll.y) / 200.0).exp2(), at });
        }
    }
}

/// The commands of a drag: at most two.
fn drags(ui: &Ui, response: &Response, ctx: &FrameContext<'_>, drag: &mut Drag) -> [Option<Command>; 2] {
    let Some(pointer) = response.interact_pointer_pos() else {
        *drag = Drag::None;
        return [None, None];
    };
    let (areas, scale) = (&ctx.areas, &ctx.frame.scale);
    if response.drag_started_by(PointerButton::Primary) || response.drag_started_by(PointerButton::Middle) {
        let origin = ui.input(|i| i.pointer.press_origin()).unwrap_or(pointer);
        let shift = ui.input(|i| i.modifiers.shift);
        *drag = if areas.minimap.contains(origin) {
            Drag::Minimap
        } else if areas.ruler.contains(origin) || shift {
            Drag::Range(scale.time_from_x(origin.x))
        } else {
            Drag::Pan
        };
    }
    match *drag {
        Drag::Pan => {
            let moved = response.drag_delta();
            let ns = -(f64::from(moved.x) * scale.ns_per_px()).round() as i64;
            [Some(Command::Drag(ns)), Some(Command::Scroll(-moved.y))]
        }
        Drag::Range(from) => {
            let to = scale.time_from_x(pointer.x.clamp(scale.left(), scale.right()));
            [Some(Command::SelectRange(Some(from.min(to)..from.max(to)))), None]
        }
        Drag::Minimap => [Some(minimap::centre_on(ctx, pointer.x)), None],
        Drag::None => [None, None],
    }
}
