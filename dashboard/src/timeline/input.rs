//! Gestures and keys to commands.
//!
//! The wheel zooms at the cursor while all rows fit and scrolls them otherwise; with Ctrl it always zooms, with Shift it
//! moves in time (as in Perfetto). Over the ruler and the overview it always zooms.

use super::{state::Command, viewport::Scale};
use crate::theme::metrics;
use egui::{Key, Modifiers, PointerButton, Pos2, Rect, Response, Ui};
use std::ops::Range;

/// Keys and gestures for the window's list of shortcuts.
pub const SHORTCUTS: &[(&str, &str)] = &[
    ("W / S", "zoom in / out at the pointer"),
    ("A / D, ← / →", "move left / right"),
    ("Ctrl + wheel", "zoom at the pointer (without Ctrl where all tracks fit, and over the ruler)"),
    ("Wheel", "scroll the tracks"),
    ("Shift + wheel, drag", "move in time"),
    ("F", "fit the selected slice or range"),
    ("0", "show the whole trace"),
    ("Drag on the ruler, Shift + drag", "select a range: statistics"),
    ("Click", "select a slice"),
    (". / ,", "next / previous slice of the same name"),
    ("/", "search slices; Enter goes to the next match"),
    ("L", "follow the live trace"),
    ("Esc", "deselect"),
];

/// One notch of W, S or the wheel.
const ZOOM_STEP: f64 = 1.35;
const PAN_STEP: f64 = 0.2;

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

/// What keys ask for. Only while no text field has the keyboard.
pub fn keys(ui: &Ui, pointer: Option<Pos2>, scale: &Scale) -> Vec<Command> {
    let at = pointer.map_or(0.5, |p| f64::from((p.x - scale.left()) / scale.width()).clamp(0.0, 1.0));
    let bindings: [(Key, Command); 15] = [
        (Key::W, Command::Zoom { factor: 1.0 / ZOOM_STEP, at }),
        (Key::S, Command::Zoom { factor: ZOOM_STEP, at }),
        (Key::Plus, Command::Zoom { factor: 1.0 / ZOOM_STEP, at }),
        (Key::Minus, Command::Zoom { factor: ZOOM_STEP, at }),
        (Key::A, Command::Pan(-PAN_STEP)),
        (Key::D, Command::Pan(PAN_STEP)),
        (Key::ArrowLeft, Command::Pan(-PAN_STEP)),
        (Key::ArrowRight, Command::Pan(PAN_STEP)),
        (Key::F, Command::Fit),
        (Key::Num0, Command::Whole),
        (Key::Home, Command::Whole),
        (Key::Period, Command::SameName { forward: true }),
        (Key::Comma, Command::SameName { forward: false }),
        (Key::L, Command::ToggleFollow),
        (Key::Slash, Command::FocusSearch),
    ];
    let mut out: Vec<Command> = ui.input_mut(|input| {
        let mut pressed = Vec::new();
        for (key, command) in bindings {
            let n = input.count_and_consume_key(Modifiers::NONE, key);
            pressed.extend(std::iter::repeat_n(command, n));
        }
        let step = metrics::LANE_H * 3.0;
        for (key, points) in [(Key::ArrowUp, -step), (Key::ArrowDown, step)] {
            if input.count_and_consume_key(Modifiers::NONE, key) > 0 {
                pressed.push(Command::Scroll(points));
            }
        }
        pressed
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
