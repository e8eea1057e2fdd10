//! The parts at the edges of a panel: lists at a side, details below. However small the window, the panel's main
//! contents have room. A strip along its border resizes a part: the strip shows the resize cursor and a line; a drag or
//! the arrow keys move the border, a double click resets it. [`side_sizes`] returns the sizes chosen by the user.

use super::named;
use crate::theme::{metrics, palette};
use egui::{
    Context, CursorIcon, EventFilter, Frame, Id, Key, Margin, Modifiers, Panel, Pos2, Rect, Response, Role, Sense,
    Stroke, Ui,
};
use std::{collections::BTreeMap, sync::Arc};

/// The sizes that the user chose, by the part's id, points.
pub type SideSizes = Arc<BTreeMap<String, f32>>;

/// The edge of a panel that a part is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// At the left.
    Left,
    /// At the right.
    Right,
    /// Above.
    Top,
    /// Below.
    Bottom,
}

/// The default size of a part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Extent {
    /// Points, limited by the room.
    Points(f32),
    /// A share of the room.
    Share(f32),
}

impl Edge {
    /// Whether the part's border is upright, so that the part has a width.
    fn is_upright(self) -> bool {
        matches!(self, Self::Left | Self::Right)
    }

    /// Whether the part is before the main contents: at the left or above.
    fn is_first(self) -> bool {
        matches!(self, Self::Left | Self::Top)
    }

    /// The size of a part whose border's strip is centred on the pointer.
    fn size_at(self, room: Rect, pointer: Pos2) -> f32 {
        let axis = usize::from(!self.is_upright());
        let edge = if self.is_first() { room.min } else { room.max };
        let to_pointer = (pointer[axis] - edge[axis]) * if self.is_first() { 1.0 } else { -1.0 };
        to_pointer + metrics::SIDE_BORDER / 2.0
    }

    /// The rectangle of a part of `size` points at this edge of `room`.
    fn part_rect(self, mut room: Rect, size: f32) -> Rect {
        let axis = usize::from(!self.is_upright());
        if self.is_first() {
            room.max[axis] = room.min[axis] + size;
        } else {
            room.min[axis] = room.max[axis] - size;
        }
        room
    }

    /// The strip along the part's border, inside the part.
    fn strip_rect(self, part: Rect) -> Rect {
        self.opposite().part_rect(part, metrics::SIDE_BORDER)
    }

    fn opposite(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
            Self::Top => Self::Bottom,
            Self::Bottom => Self::Top,
        }
    }

    /// The inner margin of a part, with room for the strip.
    fn margin(self) -> Margin {
        // The upper part is a picture, as wide as the one below.
        let across = if self == Self::Top { 0 } else { metrics::PAD as i8 };
        let mut margin = Margin { left: across, right: across, top: 0, bottom: 0 };
        *match self {
            Self::Left => &mut margin.right,
            Self::Right => &mut margin.left,
            Self::Top => &mut margin.bottom,
            Self::Bottom => &mut margin.top,
        } = metrics::SIDE_BORDER as i8;
        margin
    }

    /// The egui panel, and the keys that shrink and enlarge the part.
    fn panel(self, id: &'static str) -> (Panel, [Key; 2]) {
        match self {
            Self::Left => (Panel::left(id), [Key::ArrowLeft, Key::ArrowRight]),
            Self::Right => (Panel::right(id), [Key::ArrowRight, Key::ArrowLeft]),
            Self::Top => (Panel::top(id), [Key::ArrowUp, Key::ArrowDown]),
            Self::Bottom => (Panel::bottom(id), [Key::ArrowDown, Key::ArrowUp]),
        }
    }
}

fn sizes_id() -> Id {
    Id::unique("sizes of sides")
}

/// The sizes that the user chose.
pub fn side_sizes(ctx: &Context) -> SideSizes {
    ctx.data(|data| data.get_temp(sizes_id())).unwrap_or_default()
}

/// Sets the sizes of parts, as the configuration has them.
pub fn set_side_sizes(ctx: &Context, sizes: SideSizes) {
    ctx.data_mut(|data| data.insert_temp(sizes_id(), sizes));
}

/// Sets the size of a part; `None` resets it to the default.
fn set_size(ctx: &Context, id: &str, size: Option<f32>) {
    let mut sizes = side_sizes(ctx);
    let sizes_by_id = Arc::make_mut(&mut sizes);
    match size {
        Some(size) => sizes_by_id.insert(id.to_owned(), size.round()),
        None => sizes_by_id.remove(id),
    };
    set_side_sizes(ctx, sizes);
}

/// Shows a part at an edge of `ui`; the remaining space is for what follows. The user's size is stored under `id`.
pub fn side<R>(ui: &mut Ui, edge: Edge, id: &'static str, default: Extent, contents: impl FnOnce(&mut Ui) -> R) -> R {
    let room = ui.available_rect_before_wrap();
    let extent = if edge.is_upright() { room.width() } else { room.height() };
    let border_id = ui.scope_id().with(("border", id));
    // The strip's response in the previous frame, so that a drag has no delay.
    let last_response = ui.read_response(border_id);
    let pointer = last_response.filter(Response::dragged).and_then(|response| response.interact_pointer_pos());
    let dragged_size = pointer.map(|pos| edge.size_at(room, pos));
    let size = limited_size(dragged_size.or_else(|| side_sizes(ui).get(id).copied()), default, extent);
    if dragged_size.is_some() {
        set_size(ui, id, Some(size));
    }
    let frame = Frame::new().fill(palette(ui).panel).inner_margin(edge.margin());
    let (panel, keys) = edge.panel(id);
    let panel = panel.frame(frame).resizable(false).show_separator_line(false).exact_size(size);
    let panel_response = panel.show(ui, contents);
    let response = ui.interact(edge.strip_rect(edge.part_rect(room, size)), border_id, Sense::click_and_drag());
    border_ui(ui, edge.is_upright(), &response, id, size, keys);
    panel_response.inner
}

/// The size of a part along an edge of `extent` points: the user's or the default, limited so that the main contents
/// have room.
fn limited_size(user_size: Option<f32>, default: Extent, extent: f32) -> f32 {
    let default_size = match default {
        Extent::Points(points) => points.min(extent * metrics::SIDE_DEFAULT_SHARE),
        Extent::Share(share) => extent * share,
    };
    let max_size = (extent * metrics::SIDE_SHARE).max(0.0);
    user_size.unwrap_or(default_size).clamp(metrics::SIDE_MIN.min(max_size), max_size).round()
}

/// Paints the line, brighter under the pointer; handles the keys and the double click.
fn border_ui(ui: &Ui, is_upright: bool, response: &Response, id: &str, size: f32, [smaller, larger]: [Key; 2]) {
    let (p, strip) = (palette(ui), response.rect);
    named(response, Role::Splitter, &format!("Border of {id}"));
    let is_active = response.hovered() || response.dragged() || response.has_focus();
    let stroke =
        if is_active { Stroke::new(metrics::LINE_STRONG, p.accent) } else { Stroke::new(metrics::HAIRLINE, p.border) };
    if is_upright {
        ui.painter().vline(strip.center().x, strip.y_range(), stroke);
    } else {
        ui.painter().hline(strip.x_range(), strip.center().y, stroke);
    }
    if response.hovered() || response.dragged() {
        ui.set_cursor_icon(if is_upright { CursorIcon::ResizeHorizontal } else { CursorIcon::ResizeVertical });
    }
    if response.double_clicked() {
        set_size(ui, id, None);
    }
    if response.has_focus() {
        let arrows = EventFilter { horizontal_arrows: true, vertical_arrows: true, ..EventFilter::default() };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, arrows));
        let pressed = |key| ui.input_mut(|input| input.count_and_consume_key(Modifiers::NONE, key)) as f32;
        let delta = metrics::SIDE_STEP * (pressed(larger) - pressed(smaller));
        if delta != 0.0 {
            set_size(ui, id, Some(size + delta));
            ui.request_repaint();
        }
    }
}

/// Shows the list at the left of a page.
pub fn side_panel(ui: &mut Ui, id: &'static str, contents: impl FnOnce(&mut Ui)) {
    side(ui, Edge::Left, id, Extent::Points(metrics::SIDE_W), contents);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_leaves_the_rest_its_room() {
        let list = Extent::Points(metrics::SIDE_W);
        assert_eq!(limited_size(None, list, 1280.0), metrics::SIDE_W);
        for width in [427.0, 200.0, 50.0, 0.0] {
            for user_size in [None, Some(5_000.0), Some(-3.0)] {
                let size = limited_size(user_size, list, width);
                assert!((0.0..=width * metrics::SIDE_SHARE + 0.5).contains(&size), "{user_size:?} of {width}: {size}");
            }
        }
        assert_eq!(limited_size(None, Extent::Share(0.3), 600.0), 180.0);
        assert_eq!(limited_size(Some(300.0), Extent::Share(0.3), 600.0), 300.0, "what the user gave it");
    }
}
