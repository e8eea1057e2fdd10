//! The segments of a device as bars, with their blocks.

use super::{place, side};
use crate::data::{DeviceHistory, SnapshotData};
use egui::{Color32, Painter, Rect, Sense, Stroke, StrokeKind, Ui, pos2, vec2};
use torch_dumps::{Block, BlockState, Device, HistoryGroups, PoolUsage, Segment, Stacks, Usage};
use ui::{
    address::Choice,
    format,
    theme::{Palette, metrics, palette},
    widgets::{choice_buttons, describe, figure_grid, heading, scroll_area},
};

/// Height of a segment's bar.
const BAR_H: f32 = 18.0;
/// Width of the text before a bar.
const TEXT_W: f32 = 190.0;
/// Frames in a tooltip, at most.
const MAX_FRAMES: usize = 8;

/// The order of segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::memory) enum SortBy {
    #[default]
    Size,
    Address,
    /// Free bytes in segments that are also in use.
    Split,
}

impl Choice for SortBy {
    const TABLE: &'static [(Self, &'static str, &'static str)] =
        &[(Self::Size, "size", "Size"), (Self::Address, "address", "Address"), (Self::Split, "split", "Free inside")];
}

/// The device whose segments are shown.
pub(super) struct Segments<'a> {
    pub snapshot: &'a SnapshotData,
    pub of: &'a DeviceHistory,
    /// The colours of places; `None` until they are known.
    pub groups: Option<&'a HistoryGroups>,
}

impl Segments<'_> {
    fn device(&self) -> &Device {
        &self.snapshot.snapshot.devices[self.of.device]
    }

    fn stacks(&self) -> &Stacks {
        &self.snapshot.snapshot.stacks
    }

    /// Shows the sums and the bars.
    pub(super) fn ui(&self, ui: &mut Ui, sort_by: &mut SortBy) {
        self.sums_ui(ui);
        let mut order: Vec<(usize, &Usage)> = self.of.usage.iter().enumerate().collect();
        let segments = &self.device().segments;
        order.sort_by_key(|(i, usage)| match sort_by {
            SortBy::Size => (std::cmp::Reverse(segments[*i].size), segments[*i].address),
            SortBy::Address => (std::cmp::Reverse(0), segments[*i].address),
            SortBy::Split => (std::cmp::Reverse(usage.inactive_split), segments[*i].address),
        });
        ui.add_space(metrics::GAP_WIDE);
        ui.horizontal(|ui| {
            heading(ui, "Segments");
            ui.weak("sorted by");
            choice_buttons(ui, "Sort segments by", sort_by);
            let p = palette(ui);
            super::super::area::area_legend(ui, p.mark(0), "allocated, by place");
            super::super::area::area_legend(ui, p.text_weak, "freed, a stream may use it");
            super::super::area::area_legend(ui, p.raised, "free");
        });
        let largest = segments.iter().map(|segment| segment.size).max().unwrap_or(1).max(1);
        let height = ui.available_height();
        scroll_area(ui, [false, true], height).auto_shrink(false).show_rows(ui, BAR_H, order.len(), |ui, rows| {
            for (i, usage) in &order[rows] {
                self.segment_ui(ui, &segments[*i], usage, largest);
            }
        });
    }

    fn sums_ui(&self, ui: &mut Ui) {
        heading(ui, "Usage by pool");
        let titles = [
            "Pool",
            "Stream",
            "Blocks",
            "Segments",
            "Reserved",
            "Allocated",
            "Rounding",
            "Free inside",
            "Largest free",
        ];
        figure_grid(ui, "pools", &titles, |ui| {
            for pool in &self.of.pools {
                pool_ui(ui, pool);
            }
        });
    }

    fn segment_ui(&self, ui: &mut Ui, segment: &Segment, usage: &Usage, largest: u64) {
        let p = palette(ui);
        let (row, response) = ui.allocate_exact_size(vec2(ui.available_width(), BAR_H), Sense::hover());
        let share = usage.allocated as f64 / segment.size.max(1) as f64;
        let kind = if segment.is_large { "large" } else { "small" };
        let text = format!("{} {kind}, {} used", format::bytes(segment.size), format::percent(share));
        describe(&response, || format!("Segment {:#x}: {text}", segment.address));
        let text_rect = Rect::from_min_max(row.min, pos2(row.left() + TEXT_W, row.bottom()));
        ui::widgets::text_elided(ui, &text, text_rect, p.text);
        let room = row.width() - TEXT_W - metrics::PAD;
        let width = (room * (segment.size as f64 / largest as f64) as f32).max(metrics::GAP);
        let bar = Rect::from_min_size(pos2(row.left() + TEXT_W, row.top() + 1.0), vec2(width, BAR_H - 3.0));
        self.paint_bar(ui.painter(), p, segment, bar);
        let Some(at) = response.hover_pos() else { return };
        let block =
            if bar.contains(at) { self.block_at(segment, f64::from((at.x - bar.left()) / width)) } else { None };
        if let Some(block) = block {
            let rect = block_rect(segment, block, bar);
            let stroke = Stroke::new(metrics::HAIRLINE, p.highlight);
            ui.painter().rect_stroke(rect, 0.0, stroke, StrokeKind::Inside);
        }
        response.on_hover_ui_at_pointer(|ui| match block {
            Some(block) => self.block_tooltip(ui, block),
            None => self.segment_tooltip(ui, segment, usage),
        });
    }

    fn color(&self, p: &'static Palette, block: &Block) -> Color32 {
        match block.state {
            BlockState::Free => p.raised,
            BlockState::PendingFree => p.text_weak,
            BlockState::Allocated => super::colors::color_of(p, self.groups, block.stack),
        }
    }

    fn paint_bar(&self, painter: &Painter, p: &'static Palette, segment: &Segment, bar: Rect) {
        painter.rect_filled(bar, 0.0, p.raised);
        let blocks = self.device().blocks.get(segment.blocks.clone()).unwrap_or_default();
        let mut mesh = egui::Mesh::default();
        let mut drawn_to = f32::NEG_INFINITY;
        for block in blocks.iter().filter(|block| block.state != BlockState::Free) {
            let mut rect = block_rect(segment, block, bar);
            // Of blocks that share a pixel the first one is drawn, so that millions of them cost no more than pixels.
            rect.max.x = rect.max.x.max(rect.min.x + 1.0);
            if rect.max.x <= drawn_to + 0.5 {
                continue;
            }
            drawn_to = rect.max.x;
            if block.state == BlockState::PendingFree {
                // Lower than what is in use.
                rect.min.y = rect.center().y;
            }
            mesh.add_colored_rect(rect, self.color(p, block));
            if rect.width() > 3.0 {
                // A gap, which separates adjacent blocks.
                let edge = Rect::from_min_max(pos2(rect.right() - 1.0, rect.top()), rect.max);
                mesh.add_colored_rect(edge, p.panel);
            }
        }
        painter.add(mesh);
        painter.rect_stroke(bar, 0.0, Stroke::new(metrics::HAIRLINE, p.border), StrokeKind::Outside);
    }

    fn block_at(&self, segment: &Segment, share: f64) -> Option<&Block> {
        let address = segment.address + (share * segment.size as f64) as u64;
        let blocks = self.device().blocks.get(segment.blocks.clone())?;
        let next = blocks.partition_point(|block| block.address <= address);
        blocks.get(next.checked_sub(1)?).filter(|block| address - block.address < block.size)
    }

    fn block_tooltip(&self, ui: &mut Ui, block: &Block) {
        let state = match block.state {
            BlockState::Allocated => "allocated",
            BlockState::PendingFree => "freed, but a stream may still use it",
            BlockState::Free => "free",
        };
        ui.label(format!("{}, {state}", format::bytes(block.size)));
        if block.state == BlockState::Free {
            return;
        }
        let lost = block.size.saturating_sub(block.requested);
        if lost > 0 {
            ui.weak(format!("{} asked for, {} lost by rounding", format::bytes(block.requested), format::bytes(lost)));
        }
        if let Some(one) = self.of.live_by_address.get(&block.address).and_then(|i| self.of.allocations.get(*i)) {
            let at = if one.begin.is_some() { "at " } else { "" };
            ui.label(format!("allocated {at}{}", side::when(self.device(), one.begin)));
        }
        for frame in place::frames(self.stacks(), block.stack, MAX_FRAMES) {
            ui.weak(place::short(self.stacks(), Some(frame)));
        }
    }

    fn segment_tooltip(&self, ui: &mut Ui, segment: &Segment, usage: &Usage) {
        ui.label(format!("Segment {:#x}, {}", segment.address, format::bytes(segment.size)));
        ui.label(format!(
            "{} allocated, {} free, largest free block {}",
            format::bytes(usage.allocated),
            format::bytes(usage.free()),
            format::bytes(usage.largest_free)
        ));
        ui.weak(format!("pool {}, {}; stream {}", segment.pool.0, segment.pool.1, segment.stream));
        if segment.is_expandable {
            ui.weak("expandable");
        }
        for frame in place::frames(self.stacks(), segment.stack, MAX_FRAMES) {
            ui.weak(place::short(self.stacks(), Some(frame)));
        }
    }
}

fn pool_ui(ui: &mut Ui, pool: &PoolUsage) {
    let usage = &pool.usage;
    ui.label(format!("{}, {}", pool.pool.0, pool.pool.1));
    ui.label(pool.stream.to_string());
    ui.label(if pool.is_large { "large" } else { "small" });
    ui.label(format::count(usage.n_segments));
    let rounding = usage.allocated.saturating_sub(usage.requested);
    for bytes in [usage.reserved, usage.allocated, rounding, usage.inactive_split, usage.largest_free] {
        ui.label(format::bytes(bytes));
    }
    ui.end_row();
}

fn block_rect(segment: &Segment, block: &Block, bar: Rect) -> Rect {
    let x = |address: u64| {
        let share = address.saturating_sub(segment.address) as f64 / segment.size.max(1) as f64;
        bar.left() + share.clamp(0.0, 1.0) as f32 * bar.width()
    };
    let end = block.address.saturating_add(block.size);
    Rect::from_min_max(pos2(x(block.address), bar.top()), pos2(x(end), bar.bottom()))
}
