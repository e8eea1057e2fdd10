//! The frame of a chart: background, grid lines and their labels.

use super::{
    Bounds, Scale,
    ticks::{Tick, Unit, log_ticks, ticks},
};
use crate::theme::{metrics, palette};
use egui::{Align2, FontId, Painter, Pos2, Rect, Stroke, Ui, pos2};

/// The geometry of a chart.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The rectangle of the curves.
    pub inner: Rect,
    /// The bounds in plot space.
    pub bounds: Bounds,
    /// The mapping of y values to plot space.
    pub scale: Scale,
    /// The mapping of x values to plot space.
    pub x_scale: Scale,
}

impl Frame {
    /// Creates a frame in `outer`, with room for labels at the left and below.
    pub fn new(outer: Rect, bounds: Bounds, scale: Scale) -> Self {
        let mut inner = outer;
        inner.min.x += metrics::AXIS_LABEL_W;
        inner.max.y -= metrics::AXIS_LABEL_H;
        inner.min.y += metrics::GAP;
        inner.max.x -= metrics::PAD;
        Self { inner, bounds, scale, x_scale: Scale::Linear }
    }

    /// Sets the scale of the x axis.
    #[must_use]
    pub fn with_x_scale(self, x_scale: Scale) -> Self {
        Self { x_scale, ..self }
    }

    /// The position of a point of plot space.
    pub fn pos(&self, x: f64, plot_y: f64) -> Pos2 {
        pos2(self.x(x), self.y(plot_y))
    }

    /// The screen x of a plot-space x; at most one frame's width outside the frame.
    pub fn x(&self, x: f64) -> f32 {
        self.inner.left() + self.bounds.across(x).clamp(-1.0, 2.0) as f32 * self.inner.width()
    }

    /// The screen y of a plot-space y. The limit is necessary as the rasteriser fails on far greater coordinates.
    pub fn y(&self, plot_y: f64) -> f32 {
        self.inner.bottom() - self.bounds.up(plot_y).clamp(-1e4, 1e4) as f32 * self.inner.height()
    }

    /// Draws background, grid and labels.
    pub fn paint(&self, ui: &Ui, x_unit: Unit) {
        self.paint_units(ui, [x_unit, Unit::Number]);
    }

    /// Draws background, grid and labels with these units of x and y.
    pub fn paint_units(&self, ui: &Ui, [x_unit, y_unit]: [Unit; 2]) {
        let painter = ui.painter();
        let p = palette(ui);
        painter.rect_filled(self.inner, 0.0, p.canvas);
        let n_rows = (self.inner.height() / metrics::TICK_EVERY_Y).round().max(2.0) as usize;
        let [y_lo, y_hi] = self.bounds.y;
        let rows = match self.scale {
            Scale::Linear => ticks(y_unit, y_lo, y_hi, n_rows),
            Scale::Log10 => log_ticks(y_lo, y_hi, n_rows),
        };
        let n_columns = (self.inner.width() / metrics::TICK_EVERY_X).round().max(2.0) as usize;
        let [x_lo, x_hi] = self.bounds.x;
        let columns = match self.x_scale {
            Scale::Linear => ticks(x_unit, x_lo, x_hi, n_columns),
            Scale::Log10 => log_ticks(x_lo, x_hi, n_columns),
        };
        let line = Stroke::new(metrics::HAIRLINE, p.grid);
        let font = FontId::proportional(metrics::TEXT_TICK);
        for row in &rows {
            let y = self.y(row.at);
            painter.hline(self.inner.x_range(), y, line);
            let at = pos2(self.inner.left() - metrics::GAP, y);
            painter.text(at, Align2::RIGHT_CENTER, &row.label, font.clone(), p.text_weak);
        }
        for column in &columns {
            painter.vline(self.x(column.at), self.inner.y_range(), line);
        }
        self.paint_x_labels(painter, &columns, &font, p.text_weak);
    }

    /// Paints the labels of the x axis, except those that would touch their left neighbour.
    fn paint_x_labels(&self, painter: &Painter, columns: &[Tick], font: &FontId, color: egui::Color32) {
        let mut free_from = f32::NEG_INFINITY;
        for column in columns {
            let galley = painter.layout_no_wrap(column.label.clone(), font.clone(), color);
            let mut left = self.x(column.at) - galley.size().x / 2.0;
            left = left.min(self.inner.right() + metrics::PAD - galley.size().x);
            if left < free_from {
                continue;
            }
            free_from = left + galley.size().x + metrics::PAD;
            painter.galley(pos2(left, self.inner.bottom() + metrics::GAP / 2.0), galley, color);
        }
    }
}
