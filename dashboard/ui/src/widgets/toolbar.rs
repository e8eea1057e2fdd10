//! The controls at the top of a panel. They take a limited share of the panel's height, in entire lines, so that the
//! contents have room. Where the share is too small, a button shows the other lines, and the wheel scrolls to them.

use super::{Icon, icon_button, scroll_area};
use crate::theme::{metrics, palette};
use egui::{Align, Frame, Layout, Margin, Panel, RichText, Ui, UiBuilder, vec2};

/// The toolbar's state from the previous frame.
#[derive(Clone, Copy, Default, PartialEq)]
struct BarState {
    /// The height of all lines.
    height: f32,
    /// Whether the user opened the toolbar to show all lines.
    is_open: bool,
}

/// Shows `contents` above the rest of `ui`.
pub fn toolbar<R>(ui: &mut Ui, contents: impl FnOnce(&mut Ui) -> R) -> R {
    let margin = Margin::symmetric(metrics::PAD as i8, metrics::GAP as i8);
    let frame = Frame::new().fill(palette(ui).panel).inner_margin(margin);
    let id = ui.scope_id().with("bar");
    let previous: BarState = ui.data(|data| data.get_temp(id)).unwrap_or_default();
    let (line, gap) = (ui.spacing().interact_size.y, ui.spacing().item_spacing.y);
    let share = if previous.is_open { metrics::TOOLBAR_OPEN_SHARE } else { metrics::TOOLBAR_SHARE };
    let n_lines = ((ui.available_height() * share + gap) / (line + gap)).floor().max(1.0);
    let max_height = n_lines * (line + gap) - gap;
    // A height that exceeds the limit by less than a gap includes a horizontal scroll bar, not another line.
    let is_cut = previous.height > max_height + gap;
    let mut next = BarState { is_open: previous.is_open && (is_cut || previous.height > line + gap), ..previous };
    let has_button = is_cut || next.is_open;
    let panel = Panel::top("toolbar").frame(frame).show(ui, |ui| {
        let room = ui.available_rect_before_wrap();
        let (button_size, mut lines_rect) = (vec2(line, line), room);
        if has_button {
            lines_rect.max.x -= button_size.x + gap;
        }
        let lines = ui.scope_builder(UiBuilder::new().max_rect(lines_rect), |ui| {
            scroll_area(ui, [true, true], max_height).auto_shrink([false, true]).show(ui, contents)
        });
        next.height = lines.inner.content_size.y;
        if has_button {
            let button_rect =
                egui::Rect::from_min_size(egui::pos2(room.right() - button_size.x, room.top()), button_size);
            let label = if next.is_open { "Fewer controls" } else { "More controls" };
            let button = ui.scope_builder(UiBuilder::new().max_rect(button_rect), |ui| {
                icon_button(ui, Icon::More, label, next.is_open)
            });
            next.is_open ^= button.inner.clicked();
        }
        lines.inner.inner
    });
    if next != previous {
        ui.data_mut(|data| data.insert_temp(id, next));
        ui.request_repaint();
    }
    panel.inner
}

/// Shows controls as a group in a row that wraps (`horizontal_wrapped`): on the next line if the group does not fit
/// A line separates the group from the controls before it on the same line.
pub fn group<R>(ui: &mut Ui, name: &'static str, contents: impl FnOnce(&mut Ui) -> R) -> R {
    let id = ui.scope_id().with(("together", name));
    let stored_width: Option<f32> = ui.data(|data| data.get_temp(id));
    let (row_width, gap) = (ui.max_rect().width(), ui.spacing().item_spacing.x);
    let separator = metrics::GAP_WIDE;
    if has_widget(ui) {
        if stored_width.is_some_and(|width| width + separator + gap > ui.available_size_before_wrap().x) {
            ui.end_row();
        } else {
            ui.add(egui::Separator::default().spacing(separator));
        }
    }
    let wraps = stored_width.is_some_and(|width| width > row_width);
    let layout = Layout::left_to_right(Align::Center).with_main_wrap(wraps);
    let size = vec2(ui.available_size_before_wrap().x, ui.spacing().interact_size.y);
    let group = ui.allocate_ui_with_layout(size, layout, |ui| {
        ui.spacing_mut().slider_width = metrics::SLIDER_W.min(row_width * metrics::SLIDER_SHARE);
        contents(ui)
    });
    let width = group.response.rect.width().ceil();
    if !wraps && stored_width != Some(width) {
        ui.data_mut(|data| data.insert_temp(id, width));
        ui.request_repaint();
    }
    group.inner
}

/// Shows text at the right end of a row that wraps, or on the next line if the text does not fit.
pub fn trailing_text(ui: &mut Ui, text: &str) {
    if has_widget(ui) && ui.available_size_before_wrap().x < metrics::BAR_NOTE_W {
        ui.end_row();
    }
    let layout =
        if has_widget(ui) { Layout::right_to_left(Align::Center) } else { Layout::left_to_right(Align::Center) };
    let size = vec2(ui.available_size_before_wrap().x, ui.spacing().interact_size.y);
    ui.allocate_ui_with_layout(size, layout, |ui| {
        ui.add(egui::Label::new(RichText::new(text).color(palette(ui).text_weak)).truncate());
    });
}

/// Whether the current line already has a widget.
fn has_widget(ui: &Ui) -> bool {
    ui.cursor().left() > ui.max_rect().left() + 1.0
}
