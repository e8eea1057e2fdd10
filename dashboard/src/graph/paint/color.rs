//! The colours of boxes and their legend, by mode.

use crate::graph::{
    analysis::{ChangeCounts, Changes, Health, Metric, Times},
    model::{ItemId, Kind, Model},
};
use egui::Color32;
use rustc_hash::FxHashMap;
use ui::command::Entry;
use ui::theme::{Palette, mix};

/// The property of boxes that colours show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColorBy {
    /// Scopes of identical structure have the same colour.
    #[default]
    Structure,
    /// The op; scopes show their mix of ops.
    Op,
    /// The device; scopes show their mix of devices.
    Device,
    /// Share of the traced time.
    Time,
    /// Share of the steps' critical paths.
    Path,
    /// Share of the peak memory.
    Memory,
    /// Whether the values are finite.
    Health,
    /// Differences from another open graph: before and after a pass.
    Change,
}

/// A row of the table of modes.
pub(crate) struct ColorMode {
    pub by: ColorBy,
    /// The name in the window and in addresses.
    pub title: &'static str,
    /// The command with its help text.
    pub command: Entry,
}

/// Colours with their meaning, most important first.
pub(crate) type Legend = Vec<(Color32, String)>;

/// A figure as a colour scale.
struct Heat {
    metric: Metric,
    /// Name of the total that shares refer to.
    total: &'static str,
    /// The legend where no trace has the figure.
    missing: &'static str,
}

const fn mode(by: ColorBy, title: &'static str, id: &'static str, help: &'static str) -> ColorMode {
    ColorMode { by, title, command: Entry::command(id, "", help) }
}

/// All modes, in the order of [`ColorBy`] and of the menu.
pub(crate) const COLOR_MODES: [ColorMode; 8] = [
    mode(ColorBy::Structure, "Structure", "colour structure", "Colour nodes by structure"),
    mode(ColorBy::Op, "Op", "colour op", "Colour nodes by op"),
    mode(ColorBy::Device, "Device", "colour device", "Colour nodes by device"),
    mode(ColorBy::Time, "Time", "colour time", "Colour nodes by time"),
    mode(ColorBy::Path, "Critical path", "colour path", "Colour nodes by share of the critical paths"),
    mode(ColorBy::Memory, "Memory", "colour memory", "Colour nodes by peak memory"),
    mode(ColorBy::Health, "Health", "colour health", "Colour nodes by whether their values are finite"),
    mode(ColorBy::Change, "Change", "colour change", "Colour nodes by difference from another open graph"),
];

impl ColorBy {
    /// Returns all modes, in the order of the menu.
    pub fn all() -> impl Iterator<Item = Self> {
        COLOR_MODES.iter().map(|mode| mode.by)
    }

    /// The name in the window and in addresses.
    pub fn title(self) -> &'static str {
        COLOR_MODES[self as usize].title
    }

    /// The figure that the colours show, if it is one.
    fn heat(self) -> Option<Heat> {
        let (metric, total, missing): (Metric, _, _) = match self {
            Self::Time => (|node| node.total_ns, "all op time", "no trace of these nodes is open"),
            Self::Path => {
                (|node| node.path_ns, "the critical paths' ops", "no trace of these nodes with steps is open")
            }
            Self::Memory => (|node| node.peak_bytes, "peak memory", "no trace of these nodes with memory is open"),
            _ => return None,
        };
        Some(Heat { metric, total, missing })
    }
}

/// Assigns a colour to each structure shared by several scopes, in the order in which they become visible, so that
/// opening more changes none.
pub(crate) fn assign_structure_colors(
    model: &Model,
    visible: impl Iterator<Item = ItemId>,
    classes: &mut FxHashMap<u32, usize>,
) {
    for item in visible.filter(|&i| model.kind(i) == Kind::Scope && model.structure(i).n_members > 1) {
        let next = classes.len();
        classes.entry(model.structure(item).class).or_insert(next);
    }
}

/// Colours of a model's items in one mode, and their meaning.
pub(crate) struct Colors<'a> {
    pub by: ColorBy,
    pub palette: &'static Palette,
    pub model: &'a Model,
    pub times: &'a Times,
    /// Differences from another graph.
    pub changes: &'a Changes,
    /// Colour by class of structure: see [`assign_structure_colors`].
    pub structures: &'a FxHashMap<u32, usize>,
    /// Greatest share of a top-level item of the figure that colours show.
    pub heat_max: f32,
}

impl Colors<'_> {
    /// Scales the colours of a figure to its greatest share.
    pub fn scaled(mut self) -> Self {
        let share = |&i: &ItemId| self.share(i);
        self.heat_max = self.model.children(ItemId::ROOT).iter().map(share).fold(0.0, f32::max);
        self
    }

    /// An item's share of the figure that colours show.
    fn share(&self, item: ItemId) -> f32 {
        self.by.heat().map_or(0.0, |heat| self.times.share_of(item, heat.metric))
    }

    /// The fill of a box that is not open.
    pub fn fill(&self, item: ItemId) -> Color32 {
        let p = self.palette;
        let is_op = self.model.is_op(item);
        match self.by {
            ColorBy::Structure => match self.structures.get(&self.model.structure(item).class) {
                Some(&idx) if !is_op => p.fill(idx),
                _ if is_op => p.raised,
                _ => mix(p.raised, p.aggregate, 0.35),
            },
            ColorBy::Op if is_op => p.fill_of_name(self.model.op(item)),
            ColorBy::Device if is_op => self.device_fill(self.times.device(self.model, item)),
            ColorBy::Op | ColorBy::Device => mix(p.raised, p.aggregate, 0.25),
            ColorBy::Change => {
                let counts = self.changes.diff().map(|changes| changes.counts(item)).unwrap_or_default();
                match counts {
                    ChangeCounts { n_only_here: 1.., .. } if is_op => self.only_here_color(),
                    ChangeCounts { n_differ: 1.., .. } if is_op => self.differs_color(),
                    _ if is_op => p.raised,
                    _ => mix(p.raised, p.aggregate, if counts.n_changed() > 0 { 0.5 } else { 0.25 }),
                }
            }
            ColorBy::Health => match self.times.get(item).health {
                Health { n_nan: 1.., .. } if is_op => p.error,
                Health { n_inf: 1.., .. } if is_op => p.warning,
                Health { n_checked: 1.., .. } if is_op => self.finite_color(),
                _ if is_op => p.raised,
                health => mix(p.raised, p.aggregate, if health.n_nan + health.n_inf > 0 { 0.5 } else { 0.25 }),
            },
            ColorBy::Time | ColorBy::Path | ColorBy::Memory => {
                self.heat_color(self.share(item) / self.heat_max.max(1e-9))
            }
        }
    }

    fn device_fill(&self, device: &str) -> Color32 {
        if device.is_empty() { self.palette.raised } else { self.palette.fill_of_name(device) }
    }

    /// The colour of nodes that only this graph has.
    fn only_here_color(&self) -> Color32 {
        self.palette.fill(2)
    }

    /// The colour of nodes that differ between the graphs.
    fn differs_color(&self) -> Color32 {
        self.palette.fill(1)
    }

    /// The colour of nodes whose values are all finite: muted, because most are.
    fn finite_color(&self) -> Color32 {
        mix(self.palette.raised, self.palette.good, 0.45)
    }

    /// Returns the colour of a share: from the theme's white over orange to red.
    fn heat_color(&self, share: f32) -> Color32 {
        let p = self.palette;
        let share = share.clamp(0.0, 1.0).sqrt();
        let (cold, warm) = (p.raised, mix(p.warning, p.raised, 0.25));
        if share < 0.5 { mix(cold, warm, share * 2.0) } else { mix(warm, p.error, share * 2.0 - 1.0) }
    }

    /// The mix of a scope's ops or devices: colour and share, most frequent first, at most eight.
    pub fn mix_of(&self, scope: ItemId) -> Vec<(Color32, f32)> {
        let n = self.model.n_nodes(scope).max(1) as f32;
        let parts: Vec<(Color32, u32)> = match self.by {
            ColorBy::Op => {
                self.model.op_counts(scope).map(|(op, n)| (self.palette.fill_of_name(op), n)).take(8).collect()
            }
            ColorBy::Device => {
                let counts = self.times.device_counts(self.model, scope).into_iter().take(8);
                counts.map(|(device, n)| (self.device_fill(device), n)).collect()
            }
            ColorBy::Change => {
                let ChangeCounts { n_differ, n_only_here } =
                    self.changes.diff().map(|c| c.counts(scope)).unwrap_or_default();
                vec![(self.only_here_color(), n_only_here), (self.differs_color(), n_differ)]
            }
            ColorBy::Health => {
                let (p, health) = (self.palette, self.times.get(scope).health);
                vec![(p.error, health.n_nan), (p.warning, health.n_inf), (self.finite_color(), health.n_finite())]
            }
            _ => Vec::new(),
        };
        parts.into_iter().filter(|part| part.1 > 0).map(|(fill, count)| (fill, count as f32 / n)).collect()
    }

    fn legend_of_health(&self) -> Legend {
        let (p, health) = (self.palette, self.times.get(ItemId::ROOT).health);
        if health == Health::default() && self.times.is_busy() {
            return vec![(p.raised, "Reading the traces…".to_owned())];
        }
        if health == Health::default() {
            let how = "no trace has values (stepscope train --numerics trace), and no scalar records a node";
            return vec![(p.raised, how.to_owned())];
        }
        let unknown = self.model.n_nodes(ItemId::ROOT).saturating_sub(health.n_checked);
        let mut list = vec![
            (p.error, format!("NaN ({})", health.n_nan)),
            (p.warning, format!("infinite ({})", health.n_inf)),
            (self.finite_color(), format!("finite ({})", health.n_finite())),
            (p.raised, format!("unknown ({unknown})")),
        ];
        if let Some(first) = self.times.first_non_finite() {
            list.push((self.fill(first), format!("first: {}", self.model.name(first))));
        }
        list
    }

    /// Colours with their meaning, most important first, at most `max`.
    pub fn legend(&self, max: usize) -> Legend {
        match self.by {
            ColorBy::Structure => self.legend_of_structure(max),
            ColorBy::Op => self.legend_of_ops(max),
            ColorBy::Device => self.legend_of_devices(max),
            ColorBy::Health => self.legend_of_health(),
            ColorBy::Change => self.legend_of_changes(),
            ColorBy::Time | ColorBy::Path | ColorBy::Memory => self.legend_of_heat(),
        }
    }

    fn legend_of_structure(&self, max: usize) -> Legend {
        let mut entries: Vec<(usize, u32)> = self.structures.iter().map(|(&class, &idx)| (idx, class)).collect();
        entries.sort_unstable();
        let label = |class: u32| {
            let first = self.model.items().find(|&i| self.model.structure(i).class == class);
            // The full name: several classes may have a `layer1`.
            let name = first.map_or("", |i| self.model.name(i));
            let n = first.map_or(0, |i| self.model.structure(i).n_members);
            format!("Same structure as {name} ({n})")
        };
        let mut list: Legend =
            entries.iter().take(max).map(|&(idx, class)| (self.palette.fill(idx), label(class))).collect();
        list.push((mix(self.palette.raised, self.palette.aggregate, 0.35), "unique structure".to_owned()));
        list
    }

    fn legend_of_ops(&self, max: usize) -> Legend {
        let ops = self.model.op_counts(ItemId::ROOT).take(max);
        ops.map(|(op, n)| (self.palette.fill_of_name(op), format!("{op} ({n})"))).collect()
    }

    fn legend_of_devices(&self, max: usize) -> Legend {
        let devices = self.times.device_counts(self.model, ItemId::ROOT).into_iter().take(max);
        let name = |d: &str| if d.is_empty() { "unknown".to_owned() } else { d.to_owned() };
        devices.map(|(d, n)| (self.device_fill(d), format!("{} ({n})", name(d)))).collect()
    }

    fn legend_of_changes(&self) -> Legend {
        let Some(diff) = self.changes.diff() else {
            let why = if self.changes.is_requested() { "Comparing…" } else { "no other graph is open" };
            return vec![(self.palette.raised, why.to_owned())];
        };
        let ChangeCounts { n_differ, n_only_here } = diff.counts(ItemId::ROOT);
        let same = self.model.n_nodes(ItemId::ROOT).saturating_sub(n_differ + n_only_here);
        let mut list = vec![
            (self.only_here_color(), format!("only in this graph ({n_only_here})")),
            (self.differs_color(), format!("other op, device, inputs or attributes ({n_differ})")),
            (self.palette.raised, format!("the same in both ({same})")),
        ];
        let n_missing = diff.missing("").len();
        if n_missing > 0 {
            list.push((self.palette.canvas, format!("only in the other graph ({n_missing})")));
        }
        list
    }

    fn legend_of_heat(&self) -> Legend {
        let Some(Heat { total, missing, .. }) = self.by.heat() else { return Vec::new() };
        if self.heat_max <= 0.0 {
            return vec![(self.palette.raised, missing.to_owned())];
        }
        let line = |share: f32| {
            let percent = ui::format::percent(f64::from(share * self.heat_max));
            (self.heat_color(share), format!("{percent} of {total}"))
        };
        [0.0, 0.25, 0.5, 1.0].map(line).to_vec()
    }
}
