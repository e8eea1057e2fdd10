//! One frame of the canvas: input becomes commands, then every layer is drawn.

use super::{
    command::Command,
    input::{self, Drag},
    layers::{self, Areas, ClippedLayer, Content, FrameContext, Tags, track_labels::track_labels_ui},
    layout::{RowLayout, ticks},
    model::{
        Rows,
        rows::{rows, summary},
    },
    state::State,
};
use egui::{Painter, Rect, Response, Sense, Ui, pos2, vec2};
use trace_model::TrackId;
use ui::{
    theme::metrics,
    widgets::{describe, pointer},
};

/// The key of the cached rows.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RowsKey {
    trace_idx: usize,
    version: u64,
    folding: u64,
    lane_h: f32,
}

/// The canvas with its rows and layers, which are cached between frames.
pub struct Canvas {
    rows_key: Option<RowsKey>,
    layout: RowLayout,
    layers: Vec<ClippedLayer>,
    drag: Drag,
}

impl Default for Canvas {
    fn default() -> Self {
        Self { rows_key: None, layout: RowLayout::default(), layers: layers::all(), drag: Drag::None }
    }
}

impl Canvas {
    /// The rows of the last frame.
    pub fn rows(&self) -> &Rows {
        &self.layout.rows
    }

    /// Shows the frame. `apply` carries out `commands` and the input's commands before anything is painted.
    pub fn ui(
        &mut self,
        ui: &mut Ui,
        content: &Content<'_>,
        state: &mut State,
        mut commands: Vec<Command>,
        mut apply: impl FnMut(&mut State, Command),
    ) {
        let (_, canvas_rect) = ui.allocate_space(ui.available_size());
        // A fixed id: an automatic one would change, and end a drag, when the panel below the canvas opens or closes.
        let response = ui.interact(canvas_rect, ui.scope_id().with("timeline canvas"), Sense::click_and_drag());
        let areas = Areas::new(canvas_rect);
        self.update_rows(ui, content, state);
        let ctx = FrameContext::new(ui, content, state, &self.layout, areas);
        input::add_commands(ui, &response, &ctx, &mut self.drag, &mut commands);
        if response.clicked()
            && let Some(pos) = response.interact_pointer_pos()
        {
            response.request_focus();
            commands.extend(self.layers.iter().rev().find_map(|l| l.layer.click(&ctx, pos)));
        }
        if response.double_clicked() {
            commands.push(Command::Fit);
        }
        let is_changed = commands.iter().any(|c| !matches!(c, Command::Cursor(_)));
        for command in commands {
            apply(state, command);
        }
        if is_changed {
            self.update_rows(ui, content, state);
            ui.ctx().request_repaint();
        }
        self.settle_scroll(state, areas.body.height());
        let mut ctx = FrameContext::new(ui, content, state, &self.layout, areas);
        ctx.pointer = pointer(ui).filter(|_| self.drag == Drag::None);
        let n_paths = content.findings.filter(|_| state.critical).map_or(0, |f| f.paths.len());
        describe(&response, || {
            summary(content.store, &self.layout.rows, &ticks::range_text(&ctx.frame.view.range()), n_paths)
        });
        paint(ui, canvas_rect, &mut self.layers, &mut ctx);
        let label_commands = track_labels_ui(ui, &ctx);
        if self.drag == Drag::None {
            show_tooltip(&response, &self.layers, &ctx);
        }
        for command in label_commands {
            apply(state, command);
            ui.ctx().request_repaint();
        }
    }

    /// The y of a lane's middle, below the top of all rows.
    #[cfg(test)]
    pub(super) fn lane_middle(&self, track: u32, lane: u32) -> Option<f32> {
        self.layout.lane_band(TrackId(track), lane).map(|band| band.top + band.height / 2.0)
    }

    fn update_rows(&mut self, ui: &Ui, content: &Content<'_>, state: &State) {
        let sizes = layers::sizes(ui);
        let (version, folding) = (content.store.version(), state.folding.revision());
        let key = RowsKey { trace_idx: content.trace_idx, version, folding, lane_h: sizes.lane_h };
        if self.rows_key != Some(key) {
            self.layout = RowLayout::new(rows(content.store, &state.folding), &sizes);
            self.rows_key = Some(key);
        }
    }

    /// Scrolls to the lane that `state` asks for, and keeps the scroll offset within the rows.
    fn settle_scroll(&self, state: &mut State, height: f32) {
        if let Some(lane) = state.scroll_to.take()
            && let Some(band) = self.layout.lane_band(TrackId(lane.track), lane.lane)
            && (band.top < state.scroll || band.top + band.height > state.scroll + height)
        {
            state.scroll = band.top - height / 3.0;
        }
        let max_scroll = (self.layout.height() - height).max(0.0);
        state.scroll = state.scroll.clamp(0.0, max_scroll).round();
    }
}

fn paint(ui: &Ui, canvas_rect: Rect, layers: &mut [ClippedLayer], ctx: &mut FrameContext<'_>) {
    let painter = ui.painter_at(canvas_rect);
    painter.rect_filled(canvas_rect, 0.0, ctx.palette.canvas);
    let timed_painter = painter.with_clip_rect(ctx.areas.timed());
    let mut tags = Tags::default();
    for ClippedLayer { layer, .. } in &*layers {
        layer.add_tags(ctx, &timed_painter, &mut tags);
    }
    ctx.tags = tags;
    for ClippedLayer { layer, area } in layers {
        layer.paint(ctx, &painter.with_clip_rect(area(&ctx.areas)));
    }
    if ctx.is_scrollable() {
        paint_scroll_bar(&painter, ctx);
    }
}

/// Shows the tooltip of the topmost layer that has one under the pointer.
fn show_tooltip(response: &Response, layers: &[ClippedLayer], ctx: &FrameContext<'_>) {
    let Some(pos) = response.hover_pos() else { return };
    if let Some(tooltip) = layers.iter().rev().find_map(|l| l.layer.tooltip(ctx, pos)) {
        response.clone().on_hover_ui_at_pointer(tooltip);
    }
}

/// Paints a scroll bar, which takes no input, at the right edge of the rows.
fn paint_scroll_bar(painter: &Painter, ctx: &FrameContext<'_>) {
    let body = ctx.areas.body;
    let share = body.height() / ctx.layout.height();
    let top = body.top() + ctx.state.scroll * share;
    let rect = Rect::from_min_size(pos2(body.right() - metrics::GAP, top), vec2(3.0, body.height() * share));
    painter.rect_filled(rect, 1.0, ctx.palette.text_weak.gamma_multiply(0.6));
}
