//! The colours of slices.

use super::strips::BarStyle;
use crate::timeline::{command::ColorBy, layout::Slices, model::cpu_runs::cpu_number};
use egui::Color32;
use trace_model::{Category, TrackKind};
use trace_store::Store;
use ui::theme::{Palette, blend_over, mix};

/// Opacity of dimmed slices.
const DIM_OPACITY: f32 = 0.22;

/// The colours of slices, computed once per picture.
pub struct Colors<'a> {
    store: &'a Store,
    by: ColorBy,
    /// For each site: its colour, and whether its slices are waits.
    sites: Vec<(Color32, bool)>,
    /// The colour of each node.
    nodes: Vec<Color32>,
    /// The colour of each track.
    tracks: Vec<Color32>,
    /// Colours of CPUs and steps, by number.
    by_number: Vec<Color32>,
    background: Color32,
    /// The opacity of a bar in which hardly any slice ran.
    min_opacity: f32,
    /// The colour of threads that ran, where only scheduling is recorded.
    cpu_run: Color32,
    /// The colour of waits.
    wait: Color32,
    /// The colour of work where only stalls have colours.
    muted: Color32,
}

impl<'a> Colors<'a> {
    /// Computes the colours of a store.
    pub fn new(store: &'a Store, palette: &Palette, by: ColorBy) -> Self {
        let site_color = |s: &trace_model::SiteInfo| {
            // A step covers everything below it, so its colour is near the background.
            let fill = match (s.category, by) {
                (Category::Step, _) => mix(palette.stripe, palette.aggregate, 0.5),
                (_, ColorBy::Category) => palette.mark_of_name(&s.category_name),
                _ => palette.mark_of_name(&s.name),
            };
            (fill, is_wait(s.category))
        };
        let track_color = |t: &trace_store::Track| match by {
            ColorBy::Device if t.device.is_empty() => mix(palette.stripe, palette.aggregate, 0.8),
            ColorBy::Device => palette.mark_of_name(&t.device),
            ColorBy::Pool => palette.mark_of_name(pool_of(&t.name)),
            ColorBy::Process => palette.mark(t.process as usize),
            ColorBy::Cpu if t.kind == TrackKind::Cpu => palette.mark(cpu_number(t)),
            ColorBy::Cpu => mix(palette.stripe, palette.aggregate, 0.6),
            _ => palette.mark(t.id.0 as usize),
        };
        let node_color = |n: &trace_model::NodeInfo| match by {
            ColorBy::Device => palette.mark_of_name(&n.device),
            _ => palette.aggregate,
        };
        Self {
            store,
            by,
            sites: store.sites().iter().map(site_color).collect(),
            nodes: store.nodes().iter().map(node_color).collect(),
            tracks: store.tracks().iter().map(track_color).collect(),
            by_number: (0..12).map(|i| palette.mark(i)).collect(),
            background: palette.stripe,
            min_opacity: palette.min_opacity(),
            cpu_run: palette.good,
            wait: mix(palette.stripe, palette.aggregate, 0.4),
            muted: mix(palette.stripe, palette.aggregate, 0.6),
        }
    }

    /// The colour of a CPU or step.
    pub fn by_number(&self, number: usize) -> Color32 {
        self.by_number[number % self.by_number.len()]
    }

    /// The colour of a thread's run on a CPU. As waits have all other colours, it is the same for all CPUs unless
    /// slices are coloured by CPU.
    pub fn cpu_run(&self, cpu: usize) -> Color32 {
        match self.by {
            ColorBy::Cpu => self.by_number(cpu),
            _ => self.cpu_run,
        }
    }

    /// Whether the slices are waits.
    pub fn is_wait(&self, slices: &Slices) -> bool {
        self.sites.get(slices.site as usize).is_some_and(|s| s.1)
    }

    /// The colours of a bar.
    pub fn style(&self, slices: &Slices, dim: bool) -> BarStyle {
        let fill = self.fill(slices, dim);
        match self.is_wait(slices) {
            true => BarStyle { full: None, middle: Some(fill) },
            false if slices.wait_share == 0.0 => BarStyle { full: Some(fill), middle: None },
            false => BarStyle { full: Some(fill), middle: Some(self.wait_over(fill, slices.wait_share, dim)) },
        }
    }

    fn fill(&self, slices: &Slices, dim: bool) -> Color32 {
        let track_color = || self.tracks.get(slices.track as usize).copied().unwrap_or(self.wait);
        let full = match self.by {
            _ if self.is_wait(slices) => self.wait,
            ColorBy::Op | ColorBy::Category => self.sites.get(slices.site as usize).map_or(self.wait, |s| s.0),
            ColorBy::Device => self.nodes.get(slices.node as usize).copied().unwrap_or_else(track_color),
            ColorBy::Track | ColorBy::Pool | ColorBy::Process | ColorBy::Cpu => track_color(),
            ColorBy::Step => self.by_number(slices.step(self.store).unwrap_or(0) as usize),
            // Only stalls have colours.
            ColorBy::Cause => self.muted,
        };
        self.fade(full, slices.density, dim)
    }

    /// The colour of a wait that shares a bar with work of the colour `fill`, as opaque as its share of the time.
    fn wait_over(&self, fill: Color32, share: f32, dim: bool) -> Color32 {
        let wait = if dim { mix(self.background, self.wait, DIM_OPACITY) } else { self.wait };
        blend_over(fill, wait, (256.0 * share) as u32)
    }

    /// The colour of merged slices, or of one below a pixel: as opaque as the share of busy time, but always visible.
    pub fn fade(&self, full: Color32, density: f32, dim: bool) -> Color32 {
        let color = if density < 1.0 {
            blend_over(self.background, full, (256.0 * egui::lerp(self.min_opacity..=1.0, density)) as u32)
        } else {
            full
        };
        if dim { mix(self.background, color, DIM_OPACITY) } else { color }
    }
}

/// The name of a thread's pool: the thread's name without its number.
fn pool_of(name: &str) -> &str {
    name.trim_end_matches(|c: char| {
        c.is_ascii_digit() || c == ')' || c == '(' || c == '-' || c == '_' || c == ' ' || c == '#'
    })
}

/// Whether slices of a category are drawn as waits.
fn is_wait(category: Category) -> bool {
    category == Category::Wait
}
