//! The picture of the slices of all visible rows with their labels: wide slices as one mesh, narrow ones as pixels. The
//! picture is cached until its key changes.

use super::{
    cache::{RasterCache, RasterKey},
    colors::Colors,
    labels::{Label, Labels, label_font},
    scene::Scene,
    span_buffer::{SourceVersion, SpanBuffer},
    strips::{BarStyle, StripTexture, Strips, full_rect, middle_rect},
};
use crate::timeline::{
    command::ColorBy,
    layout::{
        Bar, CpuRuns, Frame, LaneBand, RowPosition, Slices,
        bars::{self, match_bars},
    },
    model::{Row, cpu_runs::is_scheduling},
};
use egui::{Color32, Context, Mesh, Painter, Pos2, Rect, Shape, pos2, vec2};
use std::{ops::Range, sync::Arc};
use trace_model::Category;
use trace_store::Store;
use ui::theme::{metrics, on_fill};

/// The inputs of the picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PictureKey {
    /// The trace, its version and its folding.
    pub source: SourceVersion,
    /// The view and its scale.
    pub frame: Frame,
    /// The rectangle of the rows.
    pub body: Rect,
    pub scroll: f32,
    pub color_by: ColorBy,
    /// Identifies the highlighted matches; `None` where nothing is dimmed.
    pub matches: Option<usize>,
    pub palette: usize,
    /// Whether to draw shapes only, for an export of vectors.
    pub shapes_only: bool,
}

impl PictureKey {
    /// The key of the pixels of narrow slices.
    fn raster_key(&self, rows: Range<usize>, dim: bool, in_motion: bool) -> RasterKey {
        let (view_ns, view_px) = (self.frame.view.ns(), self.frame.width_px());
        let Self { source, color_by, palette, .. } = *self;
        RasterKey { source, rows, view_ns, view_px, color_by, palette, dim, in_motion }
    }
}

/// A group of bars: wide ones as rectangles, with narrow ones as strips over them.
#[derive(Default)]
struct BarImage {
    mesh: Arc<Mesh>,
    strips: StripTexture,
}

impl BarImage {
    fn set(&mut self, ctx: &Context, image: BarImageBuilder) {
        self.mesh = Arc::new(image.mesh);
        self.strips.set(ctx, image.strips);
    }

    fn paint(&self, painter: &Painter) {
        painter.add(Shape::Mesh(Arc::clone(&self.mesh)));
        self.strips.paint(painter);
    }
}

/// The cached picture, in the order of painting: backgrounds with wide slices, pixels of narrow slices, highlighted
/// slices and CPUs, labels.
#[derive(Default)]
pub struct Picture {
    key: Option<PictureKey>,
    below: BarImage,
    raster: RasterCache,
    above: BarImage,
    labels: Labels,
    spans: SpanBuffer,
}

impl Picture {
    /// Rebuilds the picture if `key` changed, and paints it.
    pub fn paint(&mut self, painter: &Painter, key: PictureKey, scene: &Scene<'_>) {
        if self.key != Some(key) || self.raster.is_coarse() {
            self.build(painter, &key, scene);
            self.key = Some(key);
        }
        if self.raster.is_coarse() {
            painter.ctx().request_repaint();
        }
        let (top, pixel) = (key.body.top() - key.scroll, 1.0 / key.frame.pixels_per_point);
        let on_screen = |lane: LaneBand| LaneBand { top: top + lane.top, height: lane.height - pixel };
        self.below.paint(painter);
        self.raster.paint(painter, &scene.layout.positions, &key.frame, on_screen);
        self.above.paint(painter);
        for label in &self.labels.all {
            let galley = painter.layout_no_wrap(label.text.to_string(), label_font(), label.color);
            painter.galley(label.pos, galley, label.color);
        }
    }

    fn build(&mut self, painter: &Painter, key: &PictureKey, scene: &Scene<'_>) {
        let ctx = painter.ctx();
        let colors = Colors::new(scene.store, scene.palette, key.color_by);
        let visible = scene.layout.visible_rows(key.scroll, key.scroll + key.body.height());
        let max_side = if key.shapes_only { 0 } else { ctx.input(|i| i.max_texture_side) };
        let new_image = || BarImageBuilder::new(&key.frame, max_side);
        self.labels.start(key.source.trace_idx, key.frame.pixels_per_point);
        let (frame, dim) = (&key.frame, scene.matches.is_some());
        let threads = scheduling_tracks(scene, visible.clone());
        let by_cpu = key.color_by == ColorBy::Cpu;
        let cpu_runs = (by_cpu || !threads.is_empty()).then(|| CpuRuns::new(scene.store, frame));
        let mut drawing = Drawing { painter, key, scene, colors, image: new_image(), labels: &mut self.labels };
        add_lane_backgrounds(&mut drawing.image.mesh, scene, visible.clone(), key);
        if let Some(cpu_runs) = &cpu_runs {
            drawing.add_cpu_runs(&threads, cpu_runs, dim);
        }
        let in_motion = self.key.is_some_and(|previous| previous.frame.view.ns() != frame.view.ns());
        let (source, raster_key) = (key.source, key.raster_key(visible.clone(), dim, in_motion));
        let has_pixels = self.raster.show(ctx, max_side, raster_key, scene, frame, |s| drawing.colors.style(s, dim));
        if has_pixels {
            drawing.add(self.raster.wide_bars(&scene.layout.positions, frame), dim);
        } else {
            drawing.add(bars(&mut self.spans, source, scene, visible.clone(), frame), dim);
        }
        self.below.set(ctx, std::mem::replace(&mut drawing.image, new_image()));
        if let Some(cpu_runs) = cpu_runs.as_ref().filter(|_| by_cpu) {
            drawing.add_cpus_of_slices(bars(&mut self.spans, source, scene, visible.clone(), frame), cpu_runs, dim);
        }
        if let Some(matches) = scene.matches {
            let mut highlighted = Vec::new();
            match_bars(scene.store, matches, scene.layout, visible, frame, &mut highlighted);
            drawing.add(highlighted.into_iter(), false);
        }
        self.above.set(ctx, drawing.image);
    }
}

/// The bars of the visible rows.
fn bars<'a>(
    spans: &'a mut SpanBuffer,
    source: SourceVersion,
    scene: &'a Scene<'_>,
    visible: Range<usize>,
    frame: &'a Frame,
) -> impl Iterator<Item = Bar> + 'a {
    bars::bars(spans.spans(source, scene.store, scene.layout, visible, frame), &scene.layout.positions, frame)
}

/// A picture under construction.
struct Drawing<'a> {
    painter: &'a Painter,
    key: &'a PictureKey,
    scene: &'a Scene<'a>,
    colors: Colors<'a>,
    image: BarImageBuilder,
    labels: &'a mut Labels,
}

impl Drawing<'_> {
    /// The y of the first row on the screen.
    fn top(&self) -> f32 {
        self.key.body.top() - self.key.scroll
    }

    fn on_screen(&self, lane: LaneBand) -> LaneBand {
        LaneBand { top: self.top() + lane.top, height: lane.height - self.image.pixel }
    }

    /// Adds bars, with labels where there is room; dimmed bars have none.
    fn add(&mut self, bars: impl Iterator<Item = Bar>, dim: bool) {
        for bar in bars {
            let style = self.colors.style(&bar.slices, dim);
            self.image.add(self.on_screen(bar.band), bar.x0, bar.x1, style);
            let is_wide = bar.x1 - bar.x0 >= metrics::LABEL_MIN_W && bar.band.height >= metrics::TEXT_SMALL;
            if let Some(fill) = style.full.filter(|_| is_wide && bar.slices.count == 1 && !dim)
                && self.labels.has_room()
            {
                self.add_label(&bar, fill);
            }
        }
    }

    /// Adds the label of a bar, if its name fits when shortened.
    fn add_label(&mut self, bar: &Bar, fill: Color32) {
        let width = bar.x1 - bar.x0 - 2.0 * metrics::GAP;
        let name = name_of(self.scene.store, &bar.slices);
        if let Some(text) = self.labels.fit(self.painter, (bar.slices.node, bar.slices.site), name, width) {
            let pos = self.label_pos(bar.x0, bar.band);
            self.labels.all.push(Label { track: bar.slices.track, pos, text, color: on_fill(fill) });
        }
    }

    fn label_pos(&self, x0: f32, lane: LaneBand) -> Pos2 {
        pos2(x0 + metrics::GAP, self.top() + lane.top + (lane.height - metrics::TEXT_SMALL) / 2.0 - 1.5)
    }

    /// Adds the CPU runs of threads for which only the waits for a CPU are recorded.
    fn add_cpu_runs(&mut self, threads: &[(u32, RowPosition)], cpu_runs: &CpuRuns<'_>, dim: bool) {
        let (left, right) = (self.key.body.left(), self.key.body.right());
        for (track, position) in threads {
            let band = position.lane(0);
            for run in cpu_runs.overlapping(*track, left, right) {
                let fill = self.colors.fade(self.colors.cpu_run(run.cpu), 1.0, dim);
                let style = BarStyle { full: Some(fill), middle: None };
                self.image.add(self.on_screen(band), run.x0, run.x1, style);
                let is_wide = run.x1 - run.x0 >= metrics::LABEL_MIN_W && band.height >= metrics::TEXT_SMALL;
                if is_wide && !dim && self.labels.has_room() {
                    let pos = self.label_pos(run.x0, band);
                    let text = format!("CPU {}", run.cpu).into();
                    self.labels.all.push(Label { track: *track, pos, text, color: on_fill(fill) });
                }
            }
        }
    }

    /// Draws the colours of each slice's CPUs over the slice, and adapts the colours of the labels.
    fn add_cpus_of_slices(&mut self, bars: impl Iterator<Item = Bar>, cpu_runs: &CpuRuns<'_>, dim: bool) {
        for bar in bars.filter(|bar| !self.colors.is_wait(&bar.slices)) {
            let lane = self.on_screen(bar.band);
            for run in cpu_runs.overlapping(bar.slices.track, bar.x0, bar.x1) {
                let fill = self.colors.fade(self.colors.by_number(run.cpu), bar.slices.density, dim);
                self.image.add(lane, run.x0, run.x1, BarStyle { full: Some(fill), middle: None });
            }
        }
        for label in &mut self.labels.all {
            if let Some(run) = cpu_runs.overlapping(label.track, label.pos.x, label.pos.x + 1.0).next() {
                label.color = on_fill(self.colors.by_number(run.cpu));
            }
        }
    }
}

/// The visible tracks on which only a thread's waits for a CPU are recorded, with their positions.
fn scheduling_tracks(scene: &Scene<'_>, visible: Range<usize>) -> Vec<(u32, RowPosition)> {
    // Most traces have no scheduling, for which the search is skipped.
    if !scene.store.sites().iter().any(|site| site.category == Category::OffCpu) {
        return Vec::new();
    }
    let tracks = scene.layout.iter(visible).filter_map(|(row, position)| match row {
        Row::Track { track, .. } => Some((scene.store.track(*track)?, position)),
        _ => None,
    });
    tracks.filter(|(track, _)| is_scheduling(scene.store, track)).map(|(track, at)| (track.id.0, *at)).collect()
}

/// Collects the bars of a [`BarImage`].
struct BarImageBuilder {
    mesh: Mesh,
    strips: Strips,
    pixel: f32,
}

impl BarImageBuilder {
    fn new(frame: &Frame, max_side: usize) -> Self {
        let pixel = 1.0 / frame.pixels_per_point;
        Self { mesh: Mesh::default(), strips: Strips::new(frame, max_side), pixel }
    }

    fn add(&mut self, lane: LaneBand, x0: f32, x1: f32, style: BarStyle) {
        if self.strips.fill(lane, x0, x1, style) {
            return;
        }
        // The gap keeps adjacent bars of one colour distinct.
        let x1 = if x1 - x0 > 3.0 { x1 - self.pixel } else { x1 };
        let full = style.full.map(|color| (full_rect(lane, x0, x1), color));
        let middle = style.middle.map(|color| (middle_rect(lane, x0, x1), color));
        for (rect, color) in full.into_iter().chain(middle) {
            self.mesh.add_colored_rect(rect, color);
        }
    }
}

/// The name of a bar's top slice: its node's, or else its site's.
fn name_of<'a>(store: &'a Store, slices: &Slices) -> &'a str {
    match store.nodes().get(slices.node as usize) {
        Some(node) => &node.name,
        None => store.sites().get(slices.site as usize).map_or("?", |s| &s.name),
    }
}

/// Adds a background for each track and counter, which joins the lanes of a track.
fn add_lane_backgrounds(mesh: &mut Mesh, scene: &Scene<'_>, visible: Range<usize>, key: &PictureKey) {
    let top = key.body.top() - key.scroll;
    for (row, position) in scene.layout.iter(visible) {
        if let Row::Track { .. } | Row::Counter { .. } = row {
            let corner = pos2(key.body.left(), top + position.top);
            let rect = Rect::from_min_size(corner, vec2(key.body.width(), position.height));
            mesh.add_colored_rect(rect, scene.palette.stripe);
        }
    }
}
