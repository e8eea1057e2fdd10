//! Turns gestures and keys into commands.
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
use ui::{theme::metrics, widgets::is_keyboard_free};

/// Zoom factor of one press of W or S.
const ZOOM_STEP: f64 = 1.35;
/// Share of the view's length that one press of A or D moves the view.
const PAN_STEP: f64 = 0.2;
/// Points that one press of an arrow key scrolls.
const SCROLL_STEP: f32 = 3.0 * metrics::LANE_H;

/// The effect of the drag under way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Drag {
    #[default]
    None,
    /// Moves the view.
    Pan,
    /// Selects a range with one end at this time.
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

const fn bind(
    keys: &'static [Key],
    key_names: &'static str,
    effect: &'static str,
    id: &'static str,
    make: fn(f64) -> Command,
) -> Binding {
    Binding { keys, entry: Entry::command(id, key_names, effect), make }
}

/// Every command of the panel.
const BINDINGS: &[Binding] = &[
    bind(&[Key::W, Key::Plus], "W or +", "Zoom in at the pointer", "zoom in", |anchor| Command::Zoom {
        factor: 1.0 / ZOOM_STEP,
        anchor,
    }),
    bind(&[Key::S, Key::Minus], "S or -", "Zoom out at the pointer", "zoom out", |anchor| Command::Zoom {
        factor: ZOOM_STEP,
        anchor,
    }),
    bind(&[Key::A, Key::ArrowLeft], "A or Left", "Move left", "left", |_| Command::Pan(-PAN_STEP)),
    bind(&[Key::D, Key::ArrowRight], "D or Right", "Move right", "right", |_| Command::Pan(PAN_STEP)),
    bind(&[Key::ArrowUp], "Up", "Scroll up", "up", |_| Command::Scroll(-SCROLL_STEP)),
    bind(&[Key::ArrowDown], "Down", "Scroll down", "down", |_| Command::Scroll(SCROLL_STEP)),
    bind(&[Key::F], "F", "Fit the selected slice or range", "fit", |_| Command::Fit),
    bind(&[Key::Num0, Key::Home], "0", "Fit the whole trace", "whole", |_| Command::FitTrace),
    bind(&[Key::Period], ".", "Next slice of the same name", "next", |_| Command::SameName { forward: true }),
    bind(&[Key::Comma], ",", "Previous slice of the same name", "previous", |_| Command::SameName { forward: false }),
    bind(&[Key::CloseBracket], "]", "Follow the arrow to what the selected slice led to", "flow out", |_| {
        Command::AlongFlow { forward: true }
    }),
    bind(&[Key::OpenBracket], "[", "Follow the arrow back to what led to the selected slice", "flow in", |_| {
        Command::AlongFlow { forward: false }
    }),
    bind(&[Key::L], "L", "Follow the live trace, or stop", "follow", |_| Command::ToggleFollow),
    bind(&[Key::Slash], "/", "Search slices; Enter goes to the next match", "search", |_| Command::FocusSearch),
    bind(&[Key::C], "C", "Mark the critical path, or stop", "critical", |_| Command::ToggleCritical),
    bind(&[Key::M], "M", "Add a bookmark here", "note", Command::AddNote),
    bind(&[Key::V], "V", "Compare with another step or trace, or stop", "compare", |_| Command::ToggleCompare),
    bind(&[Key::J], "J", "Compare with the next step", "compare next", |_| Command::CompareStep { forward: true }),
    bind(&[Key::K], "K", "Compare with the previous step", "compare previous", |_| Command::CompareStep {
        forward: false,
    }),
    bind(&[Key::G], "G", "Show the log messages, or stop", "log", |_| Command::ToggleLog),
    bind(&[], "", "Colour slices by op", "colour op", |_| Command::ColorBy(ColorBy::Op)),
    bind(&[], "", "Colour slices by category", "colour category", |_| Command::ColorBy(ColorBy::Category)),
    bind(&[], "", "Colour slices by device", "colour device", |_| Command::ColorBy(ColorBy::Device)),
    bind(&[], "", "Colour slices by track", "colour track", |_| Command::ColorBy(ColorBy::Track)),
    bind(&[], "", "Colour slices by thread pool", "colour pool", |_| Command::ColorBy(ColorBy::Pool)),
    bind(&[], "", "Colour slices by process", "colour process", |_| Command::ColorBy(ColorBy::Process)),
    bind(&[], "", "Colour slices by the CPU that ran them", "colour cpu", |_| Command::ColorBy(ColorBy::Cpu)),
    bind(&[], "", "Colour slices by step", "colour step", |_| Command::ColorBy(ColorBy::Step)),
    bind(&[], "", "Colour stalls by cause", "colour cause", |_| Command::ColorBy(ColorBy::Cause)),
    bind(&[], "", "Show all hidden tracks", "show hidden", |_| Command::ShowHidden),
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

/// The command with an id of [`entries`], at the middle of the view.
pub fn command_by_id(id: &str) -> Option<Command> {
    BINDINGS.iter().find(|b| b.entry.id == id).map(|b| (b.make)(0.5))
}

/// Adds the commands of this frame's keys, wheel and pointer.
pub fn add_commands(ui: &Ui, response: &Response, ctx: &FrameContext<'_>, drag: &mut Drag, out: &mut Vec<Command>) {
    let (pointer, scale) = (response.hover_pos(), &ctx.frame.scale);
    let cursor = pointer.filter(|at| ctx.areas.has_time(*at)).map(|at| scale.time_from_x(at.x));
    if cursor.is_some() && cursor != ctx.state.cursor {
        out.push(Command::Cursor(cursor));
    }
    // Keys act on the panel under the pointer.
    let is_elsewhere = ui.input(|i| i.pointer.hover_pos()).is_some_and(|pos| !ctx.content.panel.contains(pos));
    if is_keyboard_free(ui) && !is_elsewhere {
        add_key_commands(ui, pointer.map_or(0.5, |at| share_of_width(at, scale)), out);
    }
    if let Some(pointer) = pointer {
        add_wheel_commands(ui, pointer, ctx, out);
    }
    out.extend(drag_commands(ui, response, ctx, drag).into_iter().flatten());
}

fn share_of_width(pos: Pos2, scale: &Scale) -> f64 {
    f64::from((pos.x - scale.left()) / scale.width()).clamp(0.0, 1.0)
}

/// Adds the commands of the keys. `pointer`: the position of the pointer as a share of the width.
fn add_key_commands(ui: &Ui, pointer: f64, out: &mut Vec<Command>) {
    ui.input_mut(|input| {
        for binding in BINDINGS {
            let n: usize = binding.keys.iter().map(|key| input.count_and_consume_key(Modifiers::NONE, *key)).sum();
            out.extend(std::iter::repeat_with(|| (binding.make)(pointer)).take(n));
        }
    });
    if ui.input_mut(|i| i.consume_key(Modifiers::NONE, Key::Escape)) {
        out.extend([Command::Select(None), Command::SelectRange(None), Command::SelectNode(None)]);
    }
}

fn add_wheel_commands(ui: &Ui, pointer: Pos2, ctx: &FrameContext<'_>, out: &mut Vec<Command>) {
    let scale = &ctx.frame.scale;
    let anchor = share_of_width(pointer, scale);
    // egui turns Ctrl + wheel and pinching into a zoom factor, and Shift + wheel into sideways scrolling.
    let (zoom, scroll) = ui.input(|i| (f64::from(i.zoom_delta()), i.smooth_scroll_delta()));
    if (zoom - 1.0).abs() > 1e-4 {
        out.push(Command::Zoom { factor: 1.0 / zoom, anchor });
    }
    if scroll.x.abs() > 0.01 {
        out.push(Command::Drag(-(f64::from(scroll.x) * scale.ns_per_px()).round() as i64));
    }
    if scroll.y.abs() > 0.01 {
        let is_over_rows = ctx.areas.body.y_range().contains(pointer.y);
        if ctx.is_scrollable() && is_over_rows {
            out.push(Command::Scroll(-scroll.y));
        } else {
            out.push(Command::Zoom { factor: (-f64::from(scroll.y) / 200.0).exp2(), anchor });
        }
    }
}

/// Starts, continues or ends a drag; returns its commands, at most two.
fn drag_commands(ui: &Ui, response: &Response, ctx: &FrameContext<'_>, drag: &mut Drag) -> [Option<Command>; 2] {
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
            let delta = response.drag_delta();
            let ns = -(f64::from(delta.x) * scale.ns_per_px()).round() as i64;
            [Some(Command::Drag(ns)), Some(Command::Scroll(-delta.y))]
        }
        Drag::Range(from) => {
            let to = scale.time_from_x(pointer.x.clamp(scale.left(), scale.right()));
            [Some(Command::SelectRange(Some(from.min(to)..from.max(to)))), None]
        }
        Drag::Minimap => [Some(minimap::centre_on(ctx, pointer.x)), None],
        Drag::None => [None, None],
    }
}
