//! One frame of the picture: input becomes commands, then every layer is drawn.

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
use ui::{
    theme::metrics,
    widgets::{describe, pointer},
};

/// What the rows depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RowsKey {
    trace_idx: usize,
    version: u64,
    folding: u64,
    lane_h: f32,
}

/// The rows and layers, which are cached between frames.
pub struct Canvas {
    rows_key: Option<RowsKey>,
    rows: RowLayout,
    layers: Vec<ClippedLayer>,
    drag: Drag,
}

impl Default for Canvas {
    fn default() -> Self {
        Self { rows_key: None, rows: RowLayout::default(), layers: layers::all(), drag: Drag::None }
    }
}

impl Canvas {
    /// The rows of the last frame.
    pub fn rows(&self) -> &Rows {
        &self.rows.rows
    }

    /// Shows the frame. `commands` and those of the input go to `act` before anything is painted.
    pub fn ui(
        &mut self,
        ui: &mut Ui,
        content: &Content<'_>,
        state: &mut State,
        mut commands: Vec<Command>,
        mut act: impl FnMut(&mut State, Command),
    ) {
        let (_, all) = ui.allocate_space(ui.available_size());
        // An id of its own: the panel under the picture comes and goes during a drag.
        let response = ui.interact(all, ui.scope_id().with("timeline canvas"), Sense::click_and_drag());
        let areas = Areas::new(all);
        self.update_rows(ui, content, state);
        let ctx = FrameContext::new(ui, content, state, &self.rows, areas);
        input::commands(ui, &response, &ctx, &mut self.drag, &mut commands);
        if response.clicked()
            && let Some(at) = response.interact_pointer_pos()
        {
            response.request_focus();
            commands.extend(self.layers.iter().rev().find_map(|l| l.layer.click(&ctx, at)));
        }
        if response.double_clicked() {
            commands.push(Command::Fit);
        }
        let acted = commands.iter().any(|c| !matches!(c, Command::Cursor(_)));
        for command in commands {
            act(state, command);
        }
        if acted {
            self.update_rows(ui, content, state);
            ui.ctx().request_repaint();
        }
        self.settle_scroll(state, areas.body.height());
        let mut ctx = FrameContext::new(ui, content, state, &self.rows, areas);
        ctx.pointer = pointer(ui).filter(|_| self.drag == Drag::None);
        let n_paths = content.findings.filter(|_| state.critical).map_or(0, |f| f.paths.len());
        describe(&response, || {
            summary(content.store, &self.rows.rows, &ticks::range_text(&ctx.frame.view.range()), n_paths)
        });
        paint(ui, all, &mut self.layers, &mut ctx);
        let folds = track_labels_ui(ui, &ctx);
        if self.drag == Drag::None {
            hover(&response, &self.layers, &ctx);
        }
        for command in folds {
            act(state, command);
            ui.ctx().request_repaint();
        }
    }

    /// Middle of a lane relative to the top of all rows.
    #[cfg(test)]
    pub(super) fn lane_middle(&self, track: u32, lane: u32) -> Option<f32> {
        self.rows.lane(track, lane).map(|band| band.top + band.height / 2.0)
    }

    fn update_rows(&mut self, ui: &Ui, content: &Content<'_>, state: &State) {
        let sizes = layers::sizes(ui);
        let (version, folding) = (content.store.version(), state.folding.revision());
        let key = RowsKey { trace_idx: content.trace_idx, version, folding, lane_h: sizes.lane_h };
        if self.rows_key != Some(key) {
            self.rows = RowLayout::new(rows(content.store, &state.folding), &sizes);
            self.rows_key = Some(key);
        }
    }

    /// Scrolls to the slice that is to be seen, and keeps the rows in the window.
    fn settle_scroll(&self, state: &mut State, height: f32) {
        if let Some(lane) = state.scroll_to.take()
            && let Some(band) = self.rows.lane(lane.track, lane.lane)
            && (band.top < state.scroll || band.top + band.height > state.scroll + height)
        {
            state.scroll = band.top - height / 3.0;
        }
        let most = (self.rows.height() - height).max(0.0);
        state.scroll = state.scroll.clamp(0.0, most).round();
    }
}

fn paint(ui: &Ui, all: Rect, layers: &mut [ClippedLayer], ctx: &mut FrameContext<'_>) {
    let painter = ui.painter_at(all);
    painter.rect_filled(all, 0.0, ctx.palette.canvas);
    let timed = painter.with_clip_rect(ctx.areas.timed());
    let mut tags = Tags::default();
    for ClippedLayer { layer, .. } in &*layers {
        layer.tag(ctx, &timed, &mut tags);
    }
    ctx.tags = tags;
    for ClippedLayer { layer, area } in layers {
        layer.paint(ctx, &painter.with_clip_rect(area(&ctx.areas)));
    }
    if ctx.scrolls() {
        scroll_mark(&painter, ctx);
    }
}

/// Shows the tooltip of what is under the pointer.
fn hover(response: &Response, layers: &[ClippedLayer], ctx: &FrameContext<'_>) {
    let Some(at) = response.hover_pos() else { return };
    if let Some(tooltip) = layers.iter().rev().find_map(|l| l.layer.hit(ctx, at)) {
        response.clone().on_hover_ui_at_pointer(tooltip);
    }
}

/// A mark of the part of the rows that is on the screen.
fn scroll_mark(painter: &Painter, ctx: &FrameContext<'_>) {
    let body = ctx.areas.body;
    let share = body.height() / ctx.rows.height();
    let top = body.top() + ctx.state.scroll * share;
    let rect = Rect::from_min_size(pos2(body.right() - metrics::GAP, top), vec2(3.0, body.height() * share));
    painter.rect_filled(rect, 1.0, ctx.palette.text_weak.gamma_multiply(0.6));
}
