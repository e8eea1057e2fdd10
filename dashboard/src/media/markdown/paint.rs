//! Shows the blocks of a text.
//!
//! There is no bold font. Bold text is painted twice, a pixel apart, as on typewriters and old screens, which works for
//! every script and font.

use super::model::{Block, Line, SpanStyle};
use egui::{
    Color32, FontFamily, FontId, Frame, Galley, Grid, Label, Rect, Response, Role, Sense, Stroke, TextFormat, Ui,
    UiBuilder, Vec2, WidgetInfo, epaint::TextShape, pos2, text::LayoutJob, text_selection::LabelSelectionState, vec2,
};
use std::sync::Arc;
use ui::{
    theme::{metrics, palette},
    widgets::{Icon, icon_button},
};

/// Time for which a button shows that it copied, seconds.
const COPIED_S: f64 = 1.5;

/// Shows the blocks below each other in the available width.
pub fn blocks_ui(ui: &mut Ui, blocks: &[Block]) {
    ui.spacing_mut().item_spacing.y = metrics::PAD;
    for (nth, block) in blocks.iter().enumerate() {
        ui.push_id(nth, |ui| block_ui(ui, block));
    }
}

fn block_ui(ui: &mut Ui, block: &Block) {
    match block {
        Block::Heading(level, line) => {
            let size = metrics::HEADINGS[(*level).min(metrics::HEADINGS.len() - 1)];
            line_ui(ui, line, size, true);
        }
        Block::Paragraph(line) => line_ui(ui, line, metrics::TEXT, false),
        Block::Code(text) => code_ui(ui, text),
        Block::Quote(blocks) => quote_ui(ui, blocks),
        Block::List(from, items) => list_ui(ui, *from, items),
        Block::Table(rows) => table_ui(ui, rows),
        Block::Rule => _ = ui.separator(),
    }
}

/// Shows selectable text; bold parts are painted a second time.
fn line_ui(ui: &mut Ui, line: &Line, size: f32, is_heading: bool) {
    let shift = ui.pixels_per_point().recip().max(size * metrics::BOLD_SHARE);
    let is_bold = |style: SpanStyle| is_heading || style.is_bold;
    let job = job(ui, line, size, &is_bold, shift);
    let has_link = line.spans.iter().any(|span| span.link.is_some());
    let label = Label::new(job).sense(if has_link { Sense::click() } else { Sense::hover() });
    let (pos, galley, response) = label.layout_in_ui(ui);
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, galley.text()));
    if !ui.is_rect_visible(response.rect) {
        return;
    }
    if has_link {
        link_ui(ui, line, &galley, pos, &response);
    }
    let again = line.spans.iter().any(|span| is_bold(span.style)).then(|| {
        let mut job = LayoutJob::clone(&galley.job);
        for (section, span) in job.sections.iter_mut().zip(&line.spans) {
            let format = &mut section.format;
            (format.background, format.strikethrough, format.underline) =
                (Color32::TRANSPARENT, Stroke::NONE, Stroke::NONE);
            if !is_bold(span.style) {
                format.color = Color32::TRANSPARENT;
            }
        }
        ui.fonts_mut(|fonts| fonts.layout_job(job))
    });
    let color = ui.visuals().text_color();
    LabelSelectionState::label_text_selection(ui, &response, pos, galley, color, Stroke::NONE);
    if let Some(again) = again {
        ui.painter().add(TextShape::new(pos + vec2(shift, 0.0), again, color));
    }
}

fn job(ui: &Ui, line: &Line, size: f32, is_bold: &dyn Fn(SpanStyle) -> bool, shift: f32) -> LayoutJob {
    let p = palette(ui);
    let mut job = LayoutJob { break_on_newline: true, ..LayoutJob::default() };
    for span in &line.spans {
        let style = span.style;
        let color = match style {
            _ if span.link.is_some() => p.accent,
            style if is_bold(style) => p.text_strong,
            _ => p.text,
        };
        let family = if style.is_code { FontFamily::Monospace } else { FontFamily::Proportional };
        // Letters of the fixed font are wider than the others of their size.
        let size = if style.is_code { size * metrics::TEXT_SMALL / metrics::TEXT } else { size };
        let format = TextFormat {
            font_id: FontId::new(size, family),
            extra_letter_spacing: if is_bold(style) { shift / 2.0 } else { 0.0 },
            color,
            background: if style.is_code { p.raised } else { Color32::TRANSPARENT },
            italics: style.is_italic,
            underline: if span.link.is_some() { Stroke::new(metrics::HAIRLINE, p.accent) } else { Stroke::NONE },
            strikethrough: if style.is_struck { Stroke::new(metrics::HAIRLINE, color) } else { Stroke::NONE },
            valign: egui::Align::Center,
            ..TextFormat::default()
        };
        job.append(&line.text[span.range.clone()], 0.0, format);
    }
    job
}

/// Shows a tooltip with the address of the link under the pointer; a click copies the address.
fn link_ui(ui: &Ui, line: &Line, galley: &Galley, pos: egui::Pos2, response: &Response) {
    let Some(pointer) = response.hover_pos() else { return };
    let Some(link) = link_at(line, galley, pointer - pos) else { return };
    ui.ctx().set_cursor_icon(egui::CursorIcon::PointingHand);
    response.clone().on_hover_text(format!("{link}\nA click copies it."));
    if response.clicked() {
        ui.ctx().copy_text(link.to_string());
    }
}

fn link_at<'a>(line: &'a Line, galley: &Galley, at: Vec2) -> Option<&'a Arc<str>> {
    // The nearest letter may be far from the pointer.
    galley.rows.iter().find(|row| row.rect().contains(at.to_pos2()))?;
    let nth = galley.cursor_from_pos(at).index;
    let (byte, _) = line.text.char_indices().nth(nth.into())?;
    line.spans.iter().find(|span| span.range.contains(&byte))?.link.as_ref()
}

fn code_ui(ui: &mut Ui, text: &str) {
    let p = palette(ui);
    let frame = Frame::new().fill(p.canvas).stroke(Stroke::new(metrics::HAIRLINE, p.border)).inner_margin(metrics::PAD);
    let frame = frame.corner_radius(metrics::RADIUS);
    let rect = frame
        .show(ui, |ui| {
            ui.set_min_width(ui.available_width());
            // The first row ends before the button.
            let room = ui.available_width() - metrics::ROW_H;
            ui.scope(|ui| {
                ui.set_max_width(room);
                ui.add(Label::new(egui::RichText::new(text).monospace().color(p.text)).wrap());
            });
        })
        .response
        .rect;
    let corner = Rect::from_min_size(
        pos2(rect.right() - metrics::ROW_H - metrics::GAP, rect.top() + metrics::GAP),
        Vec2::splat(metrics::ROW_H),
    );
    let id = ui.scope_id().with("copied");
    let now = ui.input(|i| i.time);
    let copied_at: Option<f64> = ui.data(|data| data.get_temp(id));
    let is_copied = copied_at.is_some_and(|at| now - at < COPIED_S);
    let mut corner = ui.new_child(UiBuilder::new().max_rect(corner));
    if icon_button(&mut corner, Icon::Copy, if is_copied { "Copied" } else { "Copy" }, is_copied).clicked() {
        ui.ctx().copy_text(text.to_owned());
        ui.data_mut(|data| data.insert_temp(id, now));
        ui.ctx().request_repaint_after_secs(COPIED_S as f32);
    }
}

fn quote_ui(ui: &mut Ui, blocks: &[Block]) {
    let inner = ui.horizontal_top(|ui| {
        ui.add_space(metrics::GAP_WIDE);
        ui.vertical(|ui| blocks_ui(ui, blocks));
    });
    let rect = inner.response.rect;
    let x = rect.left() + metrics::GAP;
    ui.painter().vline(x, rect.y_range(), Stroke::new(metrics::LINE_STRONG, palette(ui).aggregate));
}

fn list_ui(ui: &mut Ui, from: Option<u64>, items: &[Vec<Block>]) {
    ui.spacing_mut().item_spacing.y = metrics::GAP;
    for (nth, item) in items.iter().enumerate() {
        ui.push_id(nth, |ui| {
            ui.horizontal_top(|ui| {
                let p = palette(ui);
                let row = ui.text_style_height(&egui::TextStyle::Body);
                match from {
                    Some(from) => _ = ui.label(format!("{}.", from.saturating_add(nth as u64))),
                    None => {
                        let (rect, _) = ui.allocate_exact_size(vec2(metrics::GAP_WIDE, row), Sense::hover());
                        ui.painter().circle_filled(rect.center(), metrics::BULLET, p.text);
                    }
                }
                ui.vertical(|ui| blocks_ui(ui, item));
            });
        });
    }
}

fn table_ui(ui: &mut Ui, rows: &[Vec<Line>]) {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let most = (ui.available_width() / n_columns as f32 - metrics::GAP_WIDE).max(metrics::VALUE_W);
    let grid = Grid::new("table").num_columns(n_columns).striped(true).spacing(vec2(metrics::GAP_WIDE, metrics::GAP));
    let contents = |ui: &mut Ui| {
        for (nth, row) in rows.iter().enumerate() {
            for cell in row {
                ui.scope(|ui| {
                    ui.set_max_width(most);
                    line_ui(ui, cell, metrics::TEXT, nth == 0);
                });
            }
            ui.end_row();
        }
    };
    let stroke = Stroke::new(metrics::HAIRLINE, palette(ui).border);
    Frame::new().stroke(stroke).inner_margin(metrics::GAP).show(ui, |ui| grid.show(ui, contents));
}
