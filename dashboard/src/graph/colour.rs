//! What the colours of boxes say.

use super::{
    changes::{Changes, Counts},
    health::Health,
    model::{ItemId, Kind, Model},
    times::{Figure, Times},
};
use crate::theme::{Palette, mix};
use egui::Color32;
use rustc_hash::FxHashMap;

/// What the colours of boxes say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColourBy {
    /// Scopes of identical structure look alike.
    #[default]
    Structure,
    /// The op; scopes show their mix of ops.
    Op,
    /// The device; scopes show their mix of devices.
    Device,
    /// Share of the traced time.
    Time,
    /// Share of what the steps' critical paths ran.
    Path,
    /// Share of the memory at its peak.
    Memory,
    /// Whether the values are finite.
    Health,
    /// What another open graph has not, or otherwise: before and after a pass.
    Change,
}

impl ColourBy {
    /// All, in the order of the menu.
    pub const ALL: [Self; 8] =
        [Self::Structure, Self::Op, Self::Device, Self::Time, Self::Path, Self::Memory, Self::Health, Self::Change];

    /// What to call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Structure => "Structure",
            Self::Op => "Op",
            Self::Device => "Device",
            Self::Time => "Time",
            Self::Path => "Critical path",
            Self::Memory => "Memory",
            Self::Health => "Health",
            Self::Change => "Change",
        }
    }

    /// The figure that a heat stands for, what all of it is called, and what is said where there is none.
    fn heat(self) -> Option<(Figure, &'static str, &'static str)> {
        match self {
            Self::Structure | Self::Op | Self::Device | Self::Health | Self::Change => None,
            Self::Time => Some((|time| time.total_ns, "all op time", "no trace of these nodes is open")),
            Self::Path => {
                Some((|time| time.path_ns, "the critical paths' ops", "no trace of these nodes with steps is open"))
            }
            Self::Memory => {
                Some((|time| time.peak_bytes, "the peak of memory", "no trace of these nodes with memory is open"))
            }
        }
    }
}

/// Gives the structures of scopes that are not the only ones of their kind a colour each, in the order in which they are
/// seen, so that what is opened later changes none.
pub(super) fn see_structures(
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
pub(super) struct Colours<'a> {
    pub by: ColourBy,
    pub palette: &'static Palette,
    pub model: &'a Model,
    pub times: &'a Times,
    /// What another graph has otherwise.
    pub changes: &'a Changes,
    /// Greatest share of a top-level item, of the figure that colours tell.
    pub heat_max: f32,
    classes: &'a FxHashMap<u32, usize>,
}

impl<'a> Colours<'a> {
    /// Prepares a mode. `classes` has the colours of structures: see [`see_structures`].
    pub fn new(
        by: ColourBy,
        palette: &'static Palette,
        model: &'a Model,
        times: &'a Times,
        changes: &'a Changes,
        classes: &'a FxHashMap<u32, usize>,
    ) -> Self {
        let share = |&i: &ItemId| by.heat().map_or(0.0, |(figure, ..)| times.share_of(i, figure));
        let heat_max = model.children(ItemId::ROOT).iter().map(share).fold(0.0, f32::max);
        Self { by, palette, model, times, changes, heat_max, classes }
    }

    /// The fill of a box that is not open.
    pub fn fill(&self, item: ItemId) -> Color32 {
        let p = self.palette;
        let is_op = self.model.is_op(item);
        match self.by {
            ColourBy::Structure => match self.classes.get(&self.model.structure(item).class) {
                Some(&idx) if !is_op => p.fill(idx),
                _ if is_op => p.raised,
                _ => mix(p.raised, p.aggregate, 0.35),
            },
            ColourBy::Op if is_op => p.fill_of_name(self.model.op(item)),
            ColourBy::Device if is_op => self.device_fill(self.times.device(self.model, item)),
            ColourBy::Op | ColourBy::Device => mix(p.raised, p.aggregate, 0.25),
            ColourBy::Change => {
                let counts = self.changes.found().map(|changes| changes.of(item)).unwrap_or_default();
                match counts {
                    Counts { only_here: 1.., .. } if is_op => self.only_here(),
                    Counts { differ: 1.., .. } if is_op => self.differs(),
                    _ if is_op => p.raised,
                    _ => mix(p.raised, p.aggregate, if counts.changed() > 0 { 0.5 } else { 0.25 }),
                }
            }
            ColourBy::Health => match self.times.of(item).health {
                Health { nan: 1.., .. } if is_op => p.error,
                Health { inf: 1.., .. } if is_op => p.warning,
                Health { known: 1.., .. } if is_op => self.finite(),
                _ if is_op => p.raised,
                health => mix(p.raised, p.aggregate, if health.nan + health.inf > 0 { 0.5 } else { 0.25 }),
            },
            by => {
                let share = by.heat().map_or(0.0, |(figure, ..)| self.times.share_of(item, figure));
                self.heat(share / self.heat_max.max(1e-9))
            }
        }
    }

    fn device_fill(&self, device: &str) -> Color32 {
        if device.is_empty() { self.palette.raised } else { self.palette.fill_of_name(device) }
    }

    /// What the other graph has not.
    fn only_here(&self) -> Color32 {
        self.palette.fill(2)
    }

    /// What the other graph has otherwise.
    fn differs(&self) -> Color32 {
        self.palette.fill(1)
    }

    /// Of nodes whose values are all finite: there are many, so it stands back.
    fn finite(&self) -> Color32 {
        mix(self.palette.raised, self.palette.good, 0.45)
    }

    /// White over orange to red, in the theme's terms.
    pub fn heat(&self, share: f32) -> Color32 {
        let p = self.palette;
        let share = share.clamp(0.0, 1.0).sqrt();
        let (cold, warm) = (p.raised, mix(p.warning, p.raised, 0.25));
        if share < 0.5 { mix(cold, warm, share * 2.0) } else { mix(warm, p.error, share * 2.0 - 1.0) }
    }

    /// The mix of a scope's ops or devices: colour and share, most frequent first, at most eight.
    pub fn mix_of(&self, scope: ItemId) -> Vec<(Color32, f32)> {
        let n = self.model.n_nodes(scope).max(1) as f32;
        match self.by {
            ColourBy::Op => {
                let parts = self.model.op_counts(scope).take(8);
                parts.map(|(op, count)| (self.palette.fill_of_name(op), count as f32 / n)).collect()
            }
            ColourBy::Device => {
                let parts = self.times.device_counts(self.model, scope).into_iter().take(8);
                parts.map(|(device, count)| (self.device_fill(device), count as f32 / n)).collect()
            }
            ColourBy::Change => {
                let Counts { differ, only_here } = self.changes.found().map(|c| c.of(scope)).unwrap_or_default();
                let parts = [(self.only_here(), only_here), (self.differs(), differ)];
                parts.into_iter().filter(|part| part.1 > 0).map(|(fill, count)| (fill, count as f32 / n)).collect()
            }
            ColourBy::Health => {
                let health = self.times.of(scope).health;
                let parts = [
                    (self.palette.error, health.nan),
                    (self.palette.warning, health.inf),
                    (self.finite(), health.finite()),
                ];
                parts.into_iter().filter(|part| part.1 > 0).map(|(fill, count)| (fill, count as f32 / n)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// What the health of all nodes comes to.
    fn legend_of_health(&self) -> Vec<(Color32, String)> {
        let (p, health) = (self.palette, self.times.of(ItemId::ROOT).health);
        if health == Health::default() && self.times.is_busy() {
            return vec![(p.raised, "looking at the traces …".to_owned())];
        }
        if health == Health::default() {
            let how = "no trace tells (stepscope train --numerics trace), and no scalar records a node";
            return vec![(p.raised, how.to_owned())];
        }
        let unknown = self.model.n_nodes(ItemId::ROOT).saturating_sub(health.known);
        let mut list = vec![
            (p.error, format!("NaN ({})", health.nan)),
            (p.warning, format!("infinite ({})", health.inf)),
            (self.finite(), format!("finite ({})", health.finite())),
            (p.raised, format!("not known ({unknown})")),
        ];
        if let Some(first) = self.times.first_sick() {
            list.push((self.fill(first), format!("the first: {}", self.model.name(first))));
        }
        list
    }

    /// Colours and what they mean, most important first, at most `max`.
    pub fn legend(&self, max: usize) -> Vec<(Color32, String)> {
        match self.by {
            ColourBy::Structure => {
                let mut entries: Vec<(usize, u32)> = self.classes.iter().map(|(&class, &idx)| (idx, class)).collect();
                entries.sort_unstable();
                let label = |class: u32| {
                    let mut members = self.model.items().filter(|&i| self.model.structure(i).class == class);
                    let first = members.next();
                    // The whole name: several classes may hold a `layer1`.
                    let name = first.map_or("", |i| self.model.name(i));
                    let n = first.map_or(0, |i| self.model.structure(i).n_members);
                    format!("like {name} ({n})")
                };
                let mut list: Vec<_> =
                    entries.iter().take(max).map(|&(idx, class)| (self.palette.fill(idx), label(class))).collect();
                list.push((mix(self.palette.raised, self.palette.aggregate, 0.35), "unique structure".to_owned()));
                list
            }
            ColourBy::Op => {
                let ops = self.model.op_counts(ItemId::ROOT).take(max);
                ops.map(|(op, n)| (self.palette.fill_of_name(op), format!("{op} ({n})"))).collect()
            }
            ColourBy::Device => {
                let devices = self.times.device_counts(self.model, ItemId::ROOT).into_iter().take(max);
                let name = |d: &str| if d.is_empty() { "not known".to_owned() } else { d.to_owned() };
                devices.map(|(d, n)| (self.device_fill(d), format!("{} ({n})", name(d)))).collect()
            }
            ColourBy::Change => {
                let Some(changes) = self.changes.found() else {
                    let why = if self.changes.is_asked() { "comparing …" } else { "no other graph is open" };
                    return vec![(self.palette.raised, why.to_owned())];
                };
                let Counts { differ, only_here } = changes.of(ItemId::ROOT);
                let same = self.model.n_nodes(ItemId::ROOT).saturating_sub(differ + only_here);
                let mut list = vec![
                    (self.only_here(), format!("only in this graph ({only_here})")),
                    (self.differs(), format!("other op, device, inputs or attributes ({differ})")),
                    (self.palette.raised, format!("the same in both ({same})")),
                ];
                let n_missing = changes.missing("").len();
                if n_missing > 0 {
                    list.push((self.palette.canvas, format!("only in the other graph ({n_missing})")));
                }
                list
            }
            ColourBy::Health => self.legend_of_health(),
            by => by.heat().map_or_else(Vec::new, |(_, all, missing)| {
                if self.heat_max <= 0.0 {
                    return vec![(self.palette.raised, missing.to_owned())];
                }
                let line = |share: f32| {
                    let percent = crate::format::percent(f64::from(share * self.heat_max));
                    (self.heat(share), format!("{percent} of {all}"))
                };
                [0.0, 0.25, 0.5, 1.0].map(line).to_vec()
            }),
        }
    }
}
