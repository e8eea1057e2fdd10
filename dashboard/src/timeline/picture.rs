//! The slices of all visible rows with their labels: wide ones as one mesh, narrow ones as pixels; kept until something that
//! they depend on changes.

use super::{
    buffer::SpanBuffer,
    cores::{self, Cores},
    find::Matches,
    layout::{self, Bar, Frame, Place},
    model::{Row, Rows},
    state::ColorBy,
    strips::{self, Strips},
};
use crate::theme::{Palette, laid_over, metrics, mix, on_fill};
use egui::{Color32, FontId, Mesh, Painter, Pos2, Rect, Shape, pos2, vec2};
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

struct Label {
    track: u32,
    pos: Pos2,
    text: Arc<str>,
    color: Color32,
}

/// What fits of a name: its node and site, and the room in whole points.
type Fit = (u32, u32, u16);

/// The kept mesh with its labels.
#[derive(Default)]
pub struct Picture {
    key: Option<Key>,
    mesh: Arc<Mesh>,
    strips: strips::Shown,
    labels: Vec<Label>,
    n_bars: usize,
    bars: Vec<Bar>,
    spans: SpanBuffer,
    /// What was cut to fit before; names come again and again. For one trace and scale.
    fits: FxHashMap<Fit, Option<Arc<str>>>,
    fits_of: Option<(usize, u32)>,
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
        if self.key != Some(key) {
            self.build(painter, &key, scene);
            self.key = Some(key);
        }
        painter.add(Shape::Mesh(Arc::clone(&self.mesh)));
        self.strips.paint(painter);
        for label in &self.labels {
            let galley = painter.layout_no_wrap(label.text.to_string(), label_font(), label.color);
            painter.galley(label.pos, galley, label.color);
        }
    }

    /// How many rectangles the picture has.
    pub fn n_bars(&self) -> usize {
        self.n_bars
    }

    fn build(&mut self, painter: &Painter, key: &Key, scene: &Scene<'_>) {
        let colors = Colors::new(scene.store, scene.palette, key.color_by);
        let visible = layout::visible(scene.places, key.scroll, key.scroll + key.body.height());
        let max_side = if key.shapes { 0 } else { painter.ctx().input(|i| i.max_texture_side) };
        let mut ground = Ground { mesh: Mesh::default(), strips: Strips::new(&key.frame, max_side) };
        self.labels.clear();
        let fits_of = Some((key.trace_idx, key.frame.pixels_per_point.to_bits()));
        if self.fits_of != fits_of || self.fits.len() > MAX_FITS {
            self.fits.clear();
            self.fits_of = fits_of;
        }
        lane_grounds(&mut ground.mesh, scene, visible.clone(), key);
        self.bars.clear();
        let source = (key.trace_idx, key.version, key.folding);
        let lanes = self.spans.of(source, scene.store, scene.rows, visible.clone(), &key.frame);
        layout::bars(lanes, scene.places, &key.frame, &mut self.bars);
        let dim = scene.matches.is_some();
        let threads = scheduling(scene, visible.clone());
        let by_cpu = key.color_by == ColorBy::Cpu;
        let cores = (by_cpu || !threads.is_empty()).then(|| Cores::of(scene.store, &key.frame));
        if let Some(cores) = &cores {
            self.add_stays(&mut ground, key, &threads, cores, &colors, dim);
        }
        self.add(painter, &mut ground, key, scene, &colors, dim);
        if let Some(cores) = cores.as_ref().filter(|_| by_cpu) {
            self.add_cores(&mut ground, key, cores, &colors, dim);
        }
        self.n_bars = self.bars.len();
        if let Some(matches) = scene.matches {
            self.bars.clear();
            layout::match_bars(scene.store, matches, scene.rows, scene.places, visible, &key.frame, &mut self.bars);
            self.add(painter, &mut ground, key, scene, &colors, false);
        }
        self.mesh = Arc::new(ground.mesh);
        self.strips.set(painter.ctx(), ground.strips);
    }

    /// Adds the bars, and labels where there is room. Dimmed bars have none.
    fn add(
        &mut self,
        painter: &Painter,
        ground: &mut Ground,
        key: &Key,
        scene: &Scene<'_>,
        colors: &Colors<'_>,
        dim: bool,
    ) {
        let top = key.body.top() - key.scroll;
        let pixel = 1.0 / key.frame.pixels_per_point;
        for bar in &self.bars {
            let y = top + bar.y;
            let quiet = colors.is_quiet(bar);
            let (inset, height) =
                if quiet { ((bar.h - metrics::QUIET_H) / 2.0, metrics::QUIET_H) } else { (0.0, bar.h - pixel) };
            // A gap after wide slices, so that two of one colour stay two.
            let gap = if bar.x1 - bar.x0 > 3.0 { pixel } else { 0.0 };
            let rect = Rect::from_min_max(pos2(bar.x0, y + inset), pos2(bar.x1 - gap, y + inset + height));
            let fill = colors.of(bar, dim);
            ground.add(rect, fill);
            if bar.waiting > 0.0 {
                // Where a wait is drawn that has the place for itself.
                let wait = Rect::from_center_size(rect.center(), vec2(rect.width(), metrics::QUIET_H));
                ground.add(wait, colors.wait_over(fill, bar.waiting, dim));
            }
            let room = bar.x1 - bar.x0 - 2.0 * metrics::GAP;
            let labelled =
                bar.count == 1 && bar.h >= metrics::TEXT_SMALL && !quiet && !dim && self.labels.len() < MAX_LABELS;
            if labelled && bar.x1 - bar.x0 >= metrics::LABEL_MIN_W {
                let full = bar_name(scene.store, bar);
                let known = self.fits.entry((bar.node, bar.site, room as u16));
                let fit = known.or_insert_with(|| fitted(painter, full, room.floor()).map(Into::into));
                if let Some(text) = fit.clone() {
                    let pos = pos2(bar.x0 + metrics::GAP, y + (bar.h - metrics::TEXT_SMALL) / 2.0 - 1.5);
                    self.labels.push(Label { track: bar.track, pos, text, color: on_fill(fill) });
                }
            }
        }
    }

    /// Adds where the threads ran of which only the waits for a CPU are known, between these.
    fn add_stays(
        &mut self,
        ground: &mut Ground,
        key: &Key,
        threads: &[(u32, Place)],
        cores: &Cores<'_>,
        colors: &Colors<'_>,
        dim: bool,
    ) {
        let pixel = 1.0 / key.frame.pixels_per_point;
        let (left, right) = (key.body.left(), key.body.right());
        for (track, place) in threads {
            let y = key.body.top() - key.scroll + place.top;
            for stay in cores.stays(*track, left, right) {
                let fill = colors.faded(colors.of_stay(stay.cpu), 1.0, dim);
                ground.add(Rect::from_min_max(pos2(stay.x0, y), pos2(stay.x1, y + place.lane_h - pixel)), fill);
                let has_room = stay.x1 - stay.x0 >= metrics::LABEL_MIN_W && place.lane_h >= metrics::TEXT_SMALL;
                if has_room && !dim && self.labels.len() < MAX_LABELS {
                    let pos = pos2(stay.x0 + metrics::GAP, y + (place.lane_h - metrics::TEXT_SMALL) / 2.0 - 1.5);
                    let text = format!("CPU {}", stay.cpu).into();
                    self.labels.push(Label { track: *track, pos, text, color: on_fill(fill) });
                }
            }
        }
    }

    /// Adds where each slice ran over the slices, and gives the labels the ground that they have now.
    fn add_cores(&mut self, ground: &mut Ground, key: &Key, cores: &Cores<'_>, colors: &Colors<'_>, dim: bool) {
        let top = key.body.top() - key.scroll;
        let pixel = 1.0 / key.frame.pixels_per_point;
        for bar in self.bars.iter().filter(|bar| !colors.is_quiet(bar)) {
            for stay in cores.stays(bar.track, bar.x0, bar.x1) {
                let (left, right) = (pos2(stay.x0, top + bar.y), pos2(stay.x1, top + bar.y + bar.h - pixel));
                let fill = colors.faded(colors.fills[stay.cpu % colors.fills.len()], bar.density, dim);
                ground.add(Rect::from_min_max(left, right), fill);
            }
        }
        for label in &mut self.labels {
            if let Some(stay) = cores.stays(label.track, label.pos.x, label.pos.x + 1.0).next() {
                label.color = on_fill(colors.fills[stay.cpu % colors.fills.len()]);
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
}

impl Ground {
    fn add(&mut self, rect: Rect, fill: Color32) {
        if !self.strips.fill(rect, fill) {
            self.mesh.add_colored_rect(rect, fill);
        }
    }
}

/// The font of labels on slices.
pub fn label_font() -> FontId {
    FontId::proportional(metrics::TEXT_SMALL)
}

fn bar_name<'a>(store: &'a Store, bar: &Bar) -> &'a str {
    match store.nodes().get(bar.node as usize) {
        Some(node) => &node.name,
        None => store.sites().get(bar.site as usize).map_or("?", |s| &s.name),
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
                (_, ColorBy::Category) => palette.fill_of_name(&s.category_name),
                _ => palette.fill_of_name(&s.name),
            };
            (fill, quiet)
        };
        let of_track = |t: &profiler::Track| match by {
            ColorBy::Device if t.device.is_empty() => mix(palette.stripe, palette.aggregate, 0.8),
            ColorBy::Device => palette.fill_of_name(&t.device),
            ColorBy::Pool => palette.fill_of_name(pool_of(&t.name)),
            ColorBy::Process => palette.fill(t.process as usize),
            ColorBy::Cpu if t.kind == TrackKind::Cpu => palette.fill(cores::number_of(t)),
            ColorBy::Cpu => mix(palette.stripe, palette.aggregate, 0.6),
            _ => palette.fill(t.id.0 as usize),
        };
        let of_node = |n: &profiler::NodeInfo| match by {
            ColorBy::Device => palette.fill_of_name(&n.device),
            _ => palette.aggregate,
        };
        Self {
            store,
            by,
            sites: store.sites().iter().map(of_site).collect(),
            nodes: store.nodes().iter().map(of_node).collect(),
            tracks: store.tracks().iter().map(of_track).collect(),
            fills: (0..12).map(|i| palette.fill(i)).collect(),
            ground: palette.stripe,
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

    fn is_quiet(&self, bar: &Bar) -> bool {
        self.sites.get(bar.site as usize).is_some_and(|s| s.1)
    }

    fn of(&self, bar: &Bar, dim: bool) -> Color32 {
        let track = || self.tracks.get(bar.track as usize).copied().unwrap_or(self.quiet);
        let full = match self.by {
            _ if self.is_quiet(bar) => self.quiet,
            ColorBy::Op | ColorBy::Category => self.sites.get(bar.site as usize).map_or(self.quiet, |s| s.0),
            ColorBy::Device => self.nodes.get(bar.node as usize).copied().unwrap_or_else(track),
            ColorBy::Track | ColorBy::Pool | ColorBy::Process | ColorBy::Cpu => track(),
            ColorBy::Step => self.fills[bar.step(self.store).unwrap_or(0) as usize % self.fills.len()],
            // The stalls have the colours.
            ColorBy::Cause => self.muted,
        };
        self.faded(full, bar.density, dim)
    }

    /// A wait that shares a bar with work of the colour `fill`: as full as its share of the time.
    fn wait_over(&self, fill: Color32, share: f32, dim: bool) -> Color32 {
        let quiet = if dim { mix(self.ground, self.quiet, 0.22) } else { self.quiet };
        laid_over(fill, quiet, (256.0 * share) as u32)
    }

    /// Several slices, or one that is less than a pixel: as full as the time was busy, but never invisible.
    fn faded(&self, full: Color32, density: f32, dim: bool) -> Color32 {
        let color = if density < 1.0 { laid_over(self.ground, full, (77.0 + 179.0 * density) as u32) } else { full };
        if dim { mix(self.ground, color, 0.22) } else { color }
    }
}

/// What threads of one pool have in common: the name without its number.
fn pool_of(name: &str) -> &str {
    name.trim_end_matches(|c: char| {
        c.is_ascii_digit() || c == ')' || c == '(' || c == '-' || c == '_' || c == ' ' || c == '#'
    })
}
