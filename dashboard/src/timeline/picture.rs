//! The slices of all visible rows with their labels: wide ones as one mesh, narrow ones as pixels; kept until something that
//! they depend on changes.

use super::{
    buffer::{Source, SpanBuffer},
    cores::{self, Cores},
    find::Matches,
    layout::{self, Bar, Frame, Place, Slices},
    model::{Row, Rows},
    plate::{Of, Plate},
    state::ColorBy,
    strips::{self, Ink, Lane, Strips},
};
use crate::theme::{Palette, laid_over, metrics, mix, on_fill};
use egui::{Color32, Context, FontId, Mesh, Painter, Pos2, Rect, Shape, pos2, vec2};
use profiler::{Category, Store, TrackKind};
use rustc_hash::FxHashMap;
use std::{ops::Range, sync::Arc};

/// Labels of a picture, at most.
const MAX_LABELS: usize = 1_000;
/// Labels cut to fit that are kept, at most.
const MAX_FITS: usize = 20_000;

/// Everything that the mesh depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key {
    /// Which trace.
    pub trace_idx: usize,
    /// Its store's version.
    pub version: u64,
    /// What is shown, where and how large.
    pub frame: Frame,
    /// Where the rows are on the screen.
    pub body: Rect,
    /// How far they are scrolled.
    pub scroll: f32,
    /// What is folded.
    pub folding: u64,
    /// What gives colours.
    pub color_by: ColorBy,
    /// Identity of the matches that stand out; `None` when nothing is dimmed.
    pub matches: Option<usize>,
    /// Theme and colours.
    pub palette: usize,
    /// Whether everything is to be a shape, for a picture in vectors.
    pub shapes: bool,
}

impl Key {
    /// What the pixels of narrow slices depend on.
    fn of(&self, rows: Range<usize>, dim: bool, in_motion: bool) -> Of {
        let source = (self.trace_idx, self.version, self.folding);
        let (ns, px) = (self.frame.view.ns(), self.frame.width_px());
        Of { source, rows, ns, px, color_by: self.color_by, palette: self.palette, dim, in_motion }
    }
}

struct Label {
    track: u32,
    pos: Pos2,
    text: Arc<str>,
    color: Color32,
}

/// What fits of a name: its node and site, and the room in whole points.
type Fit = (u32, u32, u16);

/// The labels of a picture.
#[derive(Default)]
struct Labels {
    all: Vec<Label>,
    /// What was cut to fit before; names come again and again. For one trace and scale.
    fits: FxHashMap<Fit, Option<Arc<str>>>,
    fits_of: Option<(usize, u32)>,
}

impl Labels {
    /// None yet, for a picture of `key`.
    fn start(&mut self, key: &Key) {
        self.all.clear();
        let fits_of = Some((key.trace_idx, key.frame.pixels_per_point.to_bits()));
        if self.fits_of != fits_of || self.fits.len() > MAX_FITS {
            self.fits.clear();
            self.fits_of = fits_of;
        }
    }

    fn have_room(&self) -> bool {
        self.all.len() < MAX_LABELS
    }
}

/// What is painted together: rectangles, and strips on them.
#[derive(Default)]
struct Layer {
    mesh: Arc<Mesh>,
    strips: strips::Shown,
}

impl Layer {
    fn set(&mut self, ctx: &Context, ground: Ground) {
        self.mesh = Arc::new(ground.mesh);
        self.strips.set(ctx, ground.strips);
    }

    fn paint(&self, painter: &Painter) {
        painter.add(Shape::Mesh(Arc::clone(&self.mesh)));
        self.strips.paint(painter);
    }
}

/// The kept picture: slices with what is below them, those of a few pixels over that, what is above all slices, and labels.
#[derive(Default)]
pub struct Picture {
    key: Option<Key>,
    below: Layer,
    plate: Plate,
    above: Layer,
    labels: Labels,
    spans: SpanBuffer,
}

/// What a picture is made from.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// The trace.
    pub store: &'a Store,
    /// Its rows.
    pub rows: &'a Rows,
    /// Where they are.
    pub places: &'a [Place],
    /// What stands out, if anything does.
    pub matches: Option<&'a Matches>,
    /// Colours.
    pub palette: &'a Palette,
}

impl Picture {
    /// Makes the picture anew if `key` changed, and paints it.
    pub fn paint(&mut self, painter: &Painter, key: Key, scene: &Scene<'_>) {
        if self.key != Some(key) || self.plate.is_coarse() {
            self.build(painter, &key, scene);
            self.key = Some(key);
        }
        if self.plate.is_coarse() {
            painter.ctx().request_repaint();
        }
        let (top, pixel) = (key.body.top() - key.scroll, 1.0 / key.frame.pixels_per_point);
        let lane = |y, h| Lane { top: top + y, height: h - pixel };
        self.below.paint(painter);
        self.plate.paint(painter, scene.places, &key.frame, lane);
        self.above.paint(painter);
        for label in &self.labels.all {
            let galley = painter.layout_no_wrap(label.text.to_string(), label_font(), label.color);
            painter.galley(label.pos, galley, label.color);
        }
    }

    fn build(&mut self, painter: &Painter, key: &Key, scene: &Scene<'_>) {
        let ctx = painter.ctx();
        let colors = Colors::new(scene.store, scene.palette, key.color_by);
        let visible = layout::visible(scene.places, key.scroll, key.scroll + key.body.height());
        let max_side = if key.shapes { 0 } else { ctx.input(|i| i.max_texture_side) };
        let ground = || Ground::new(&key.frame, max_side);
        self.labels.start(key);
        let (frame, dim) = (&key.frame, scene.matches.is_some());
        let threads = scheduling(scene, visible.clone());
        let by_cpu = key.color_by == ColorBy::Cpu;
        let cores = (by_cpu || !threads.is_empty()).then(|| Cores::of(scene.store, frame));
        let mut drawing = Drawing { painter, key, scene, colors, ground: ground(), labels: &mut self.labels };
        lane_grounds(&mut drawing.ground.mesh, scene, visible.clone(), key);
        if let Some(cores) = &cores {
            drawing.add_stays(&threads, cores, dim);
        }
        let in_motion = self.key.is_some_and(|last| last.frame.view.ns() != frame.view.ns());
        let of = key.of(visible.clone(), dim, in_motion);
        let source = of.source;
        let has_pixels = self.plate.show((ctx, max_side), of, scene, frame, |slices| drawing.colors.ink(slices, dim));
        if has_pixels {
            drawing.add(self.plate.wide(scene.places, frame), dim);
        } else {
            drawing.add(bars(&mut self.spans, source, scene, visible.clone(), frame), dim);
        }
        self.below.set(ctx, std::mem::replace(&mut drawing.ground, ground()));
        if let Some(cores) = cores.as_ref().filter(|_| by_cpu) {
            drawing.add_cores(bars(&mut self.spans, source, scene, visible.clone(), frame), cores, dim);
        }
        if let Some(matches) = scene.matches {
            let mut found = Vec::new();
            layout::match_bars(scene.store, matches, scene.rows, scene.places, visible, frame, &mut found);
            drawing.add(found.into_iter(), false);
        }
        self.above.set(ctx, drawing.ground);
    }
}

/// The bars of the visible rows.
fn bars<'a>(
    spans: &'a mut SpanBuffer,
    source: Source,
    scene: &'a Scene<'_>,
    visible: Range<usize>,
    frame: &'a Frame,
) -> impl Iterator<Item = Bar> + 'a {
    layout::bars(spans.of(source, scene.store, scene.rows, visible, frame), scene.places, frame)
}

/// A picture while it is made.
struct Drawing<'a> {
    painter: &'a Painter,
    key: &'a Key,
    scene: &'a Scene<'a>,
    colors: Colors<'a>,
    ground: Ground,
    labels: &'a mut Labels,
}

impl Drawing<'_> {
    /// Where the rows begin on the screen.
    fn top(&self) -> f32 {
        self.key.body.top() - self.key.scroll
    }

    /// Where a bar is on the screen.
    fn lane(&self, y: f32, h: f32) -> Lane {
        Lane { top: self.top() + y, height: h - self.ground.pixel }
    }

    /// Adds the bars, and labels where there is room; how many bars. Dimmed bars have no labels.
    fn add(&mut self, bars: impl Iterator<Item = Bar>, dim: bool) {
        for bar in bars {
            let ink = self.colors.ink(&bar.slices, dim);
            self.ground.add(self.lane(bar.y, bar.h), (bar.x0, bar.x1), ink);
            let is_wide = bar.x1 - bar.x0 >= metrics::LABEL_MIN_W && bar.h >= metrics::TEXT_SMALL;
            if let Some(fill) = ink.whole.filter(|_| is_wide && bar.slices.count == 1 && !dim)
                && self.labels.have_room()
            {
                self.label(&bar, fill);
            }
        }
    }

    /// Writes a bar's name on it, or what fits of that.
    fn label(&mut self, bar: &Bar, fill: Color32) {
        let room = bar.x1 - bar.x0 - 2.0 * metrics::GAP;
        let full = name_of(self.scene.store, &bar.slices);
        let known = self.labels.fits.entry((bar.slices.node, bar.slices.site, room as u16));
        let fit = known.or_insert_with(|| fitted(self.painter, full, room.floor()).map(Into::into));
        if let Some(text) = fit.clone() {
            let pos = self.label_pos(bar.x0, bar.y, bar.h);
            self.labels.all.push(Label { track: bar.slices.track, pos, text, color: on_fill(fill) });
        }
    }

    fn label_pos(&self, x0: f32, y: f32, h: f32) -> Pos2 {
        pos2(x0 + metrics::GAP, self.top() + y + (h - metrics::TEXT_SMALL) / 2.0 - 1.5)
    }

    /// Adds where the threads ran of which only the waits for a CPU are known, between these.
    fn add_stays(&mut self, threads: &[(u32, Place)], cores: &Cores<'_>, dim: bool) {
        let (left, right) = (self.key.body.left(), self.key.body.right());
        for (track, place) in threads {
            for stay in cores.stays(*track, left, right) {
                let fill = self.colors.faded(self.colors.of_stay(stay.cpu), 1.0, dim);
                let lane = self.lane(place.top, place.lane_h);
                self.ground.add(lane, (stay.x0, stay.x1), Ink { whole: Some(fill), middle: None });
                let has_room = stay.x1 - stay.x0 >= metrics::LABEL_MIN_W && place.lane_h >= metrics::TEXT_SMALL;
                if has_room && !dim && self.labels.have_room() {
                    let pos = self.label_pos(stay.x0, place.top, place.lane_h);
                    let text = format!("CPU {}", stay.cpu).into();
                    self.labels.all.push(Label { track: *track, pos, text, color: on_fill(fill) });
                }
            }
        }
    }

    /// Adds where each slice ran over the slices, and gives the labels the ground that they have now.
    fn add_cores(&mut self, bars: impl Iterator<Item = Bar>, cores: &Cores<'_>, dim: bool) {
        let n_fills = self.colors.fills.len();
        for bar in bars.filter(|bar| !self.colors.is_quiet(&bar.slices)) {
            let lane = self.lane(bar.y, bar.h);
            for stay in cores.stays(bar.slices.track, bar.x0, bar.x1) {
                let fill = self.colors.faded(self.colors.fills[stay.cpu % n_fills], bar.slices.density, dim);
                self.ground.add(lane, (stay.x0, stay.x1), Ink { whole: Some(fill), middle: None });
            }
        }
        for label in &mut self.labels.all {
            if let Some(stay) = cores.stays(label.track, label.pos.x, label.pos.x + 1.0).next() {
                label.color = on_fill(self.colors.fills[stay.cpu % n_fills]);
            }
        }
    }
}

/// The visible tracks of which only a thread's waits for a CPU are known, and where they are.
fn scheduling(scene: &Scene<'_>, visible: Range<usize>) -> Vec<(u32, Place)> {
    // Most traces have no scheduling: nothing is looked up for them.
    if !scene.store.sites().iter().any(|site| site.category == Category::OffCpu) {
        return Vec::new();
    }
    let rows = scene.rows.rows[visible.clone()].iter().zip(&scene.places[visible]);
    let tracks = rows.filter_map(|(row, place)| match row {
        Row::Track { track, .. } => Some((scene.store.track(*track)?, place)),
        _ => None,
    });
    tracks.filter(|(track, _)| cores::is_scheduling(scene.store, track)).map(|(track, at)| (track.id.0, *at)).collect()
}

/// What bars are drawn on.
struct Ground {
    mesh: Mesh,
    strips: Strips,
    /// A physical pixel.
    pixel: f32,
}

impl Ground {
    fn new(frame: &Frame, max_side: usize) -> Self {
        let pixel = 1.0 / frame.pixels_per_point;
        Self { mesh: Mesh::default(), strips: Strips::new(frame, max_side), pixel }
    }

    fn add(&mut self, lane: Lane, (x0, x1): (f32, f32), ink: Ink) {
        if self.strips.fill(lane, (x0, x1), ink) {
            return;
        }
        // A gap after wide ones, so that two of one colour stay two.
        let x1 = if x1 - x0 > 3.0 { x1 - self.pixel } else { x1 };
        let whole = ink.whole.map(|color| (lane.whole(x0, x1), color));
        let middle = ink.middle.map(|color| (lane.middle(x0, x1), color));
        for (rect, color) in whole.into_iter().chain(middle) {
            self.mesh.add_colored_rect(rect, color);
        }
    }
}

/// The font of labels on slices.
pub fn label_font() -> FontId {
    FontId::proportional(metrics::TEXT_SMALL)
}

fn name_of<'a>(store: &'a Store, slices: &Slices) -> &'a str {
    match store.nodes().get(slices.node as usize) {
        Some(node) => &node.name,
        None => store.sites().get(slices.site as usize).map_or("?", |s| &s.name),
    }
}

/// A name cut to `room` points: whole, or its last part (`MatMul` of `layer1/MatMul`), or the beginning of that.
pub fn fitted(painter: &Painter, full: &str, room: f32) -> Option<String> {
    let width = |text: &str| painter.layout_no_wrap(text.to_owned(), label_font(), Color32::PLACEHOLDER).size().x;
    if width(full) <= room {
        return Some(full.to_owned());
    }
    let leaf = full.rsplit('/').next().unwrap_or(full);
    if leaf.len() < full.len() && width(leaf) <= room {
        return Some(leaf.to_owned());
    }
    let galley = painter.layout_no_wrap(leaf.to_owned(), label_font(), Color32::PLACEHOLDER);
    let row = galley.rows.first()?;
    let dots = metrics::TEXT_SMALL * 0.75;
    let n = row.glyphs.iter().take_while(|g| g.max_x() <= room - dots).count();
    (n >= 2).then(|| leaf.chars().take(n).chain(['…']).collect())
}

/// Every second track on a ground of its own, so that lanes read as belonging together.
fn lane_grounds(mesh: &mut Mesh, scene: &Scene<'_>, visible: Range<usize>, key: &Key) {
    let top = key.body.top() - key.scroll;
    for i in visible {
        if let Row::Track { .. } | Row::Counter { .. } = scene.rows.rows[i] {
            let place = scene.places[i];
            let rect =
                Rect::from_min_size(pos2(key.body.left(), top + place.top), vec2(key.body.width(), place.height));
            mesh.add_colored_rect(rect, scene.palette.stripe);
        }
    }
}

/// The colours of slices, worked out once per picture.
struct Colors<'a> {
    store: &'a Store,
    by: ColorBy,
    /// By row of the sites: its colour, and whether nothing ran.
    sites: Vec<(Color32, bool)>,
    /// By row of the nodes.
    nodes: Vec<Color32>,
    /// By row of the tracks.
    tracks: Vec<Color32>,
    fills: Vec<Color32>,
    ground: Color32,
    /// What of a colour is left where hardly anything ran.
    least: f32,
    /// What threads did of which only scheduling is known, when they ran.
    ran: Color32,
    quiet: Color32,
    muted: Color32,
}

impl<'a> Colors<'a> {
    fn new(store: &'a Store, palette: &Palette, by: ColorBy) -> Self {
        let of_site = |s: &profiler::SiteInfo| {
            let quiet = layout::is_quiet(s.category);
            // A step covers everything below it: it stays in the background.
            let fill = match (s.category, by) {
                (Category::Step, _) => mix(palette.stripe, palette.aggregate, 0.5),
                (_, ColorBy::Category) => palette.mark_of_name(&s.category_name),
                _ => palette.mark_of_name(&s.name),
            };
            (fill, quiet)
        };
        let of_track = |t: &profiler::Track| match by {
            ColorBy::Device if t.device.is_empty() => mix(palette.stripe, palette.aggregate, 0.8),
            ColorBy::Device => palette.mark_of_name(&t.device),
            ColorBy::Pool => palette.mark_of_name(pool_of(&t.name)),
            ColorBy::Process => palette.mark(t.process as usize),
            ColorBy::Cpu if t.kind == TrackKind::Cpu => palette.mark(cores::number_of(t)),
            ColorBy::Cpu => mix(palette.stripe, palette.aggregate, 0.6),
            _ => palette.mark(t.id.0 as usize),
        };
        let of_node = |n: &profiler::NodeInfo| match by {
            ColorBy::Device => palette.mark_of_name(&n.device),
            _ => palette.aggregate,
        };
        Self {
            store,
            by,
            sites: store.sites().iter().map(of_site).collect(),
            nodes: store.nodes().iter().map(of_node).collect(),
            tracks: store.tracks().iter().map(of_track).collect(),
            fills: (0..12).map(|i| palette.mark(i)).collect(),
            ground: palette.stripe,
            least: palette.least_density(),
            ran: palette.good,
            quiet: mix(palette.stripe, palette.aggregate, 0.4),
            muted: mix(palette.stripe, palette.aggregate, 0.6),
        }
    }

    /// Of a thread that ran on a CPU: one colour, unless CPUs have theirs, since waits have all others.
    fn of_stay(&self, cpu: usize) -> Color32 {
        match self.by {
            ColorBy::Cpu => self.fills[cpu % self.fills.len()],
            _ => self.ran,
        }
    }

    fn is_quiet(&self, slices: &Slices) -> bool {
        self.sites.get(slices.site as usize).is_some_and(|s| s.1)
    }

    /// What slices are drawn with.
    fn ink(&self, slices: &Slices, dim: bool) -> Ink {
        let fill = self.of(slices, dim);
        match self.is_quiet(slices) {
            true => Ink { whole: None, middle: Some(fill) },
            false if slices.waiting == 0.0 => Ink { whole: Some(fill), middle: None },
            false => Ink { whole: Some(fill), middle: Some(self.wait_over(fill, slices.waiting, dim)) },
        }
    }

    fn of(&self, slices: &Slices, dim: bool) -> Color32 {
        let track = || self.tracks.get(slices.track as usize).copied().unwrap_or(self.quiet);
        let full = match self.by {
            _ if self.is_quiet(slices) => self.quiet,
            ColorBy::Op | ColorBy::Category => self.sites.get(slices.site as usize).map_or(self.quiet, |s| s.0),
            ColorBy::Device => self.nodes.get(slices.node as usize).copied().unwrap_or_else(track),
            ColorBy::Track | ColorBy::Pool | ColorBy::Process | ColorBy::Cpu => track(),
            ColorBy::Step => self.fills[slices.step(self.store).unwrap_or(0) as usize % self.fills.len()],
            // The stalls have the colours.
            ColorBy::Cause => self.muted,
        };
        self.faded(full, slices.density, dim)
    }

    /// A wait that shares a bar with work of the colour `fill`: as full as its share of the time.
    fn wait_over(&self, fill: Color32, share: f32, dim: bool) -> Color32 {
        let quiet = if dim { mix(self.ground, self.quiet, 0.22) } else { self.quiet };
        laid_over(fill, quiet, (256.0 * share) as u32)
    }

    /// Several slices, or one that is less than a pixel: as full as the time was busy, but never invisible.
    fn faded(&self, full: Color32, density: f32, dim: bool) -> Color32 {
        let color = if density < 1.0 {
            laid_over(self.ground, full, (256.0 * egui::lerp(self.least..=1.0, density)) as u32)
        } else {
            full
        };
        if dim { mix(self.ground, color, 0.22) } else { color }
    }
}

/// What threads of one pool have in common: the name without its number.
fn pool_of(name: &str) -> &str {
    name.trim_end_matches(|c: char| {
        c.is_ascii_digit() || c == ')' || c == '(' || c == '-' || c == '_' || c == ' ' || c == '#'
    })
}
