//! The colours, dark and light.
//!
//! Series colours are Okabe and Ito's eight (told apart by colour-blind readers), made lighter or darker where the
//! background asks for it; beyond eight they are made (see `hues`). Tests hold the contrast: text 4.5:1, curves and marks 3:1 (WCAG 2.2, 1.4.3 and 1.4.11).

use super::{
    hues::{self, N_SERIES, contrast},
    schemes::{Colours, Scheme, TENSORBOARD_DARK, TENSORBOARD_LIGHT, TOL_DARK, TOL_LIGHT, rgb},
};
use egui::Color32;
use std::cell::Cell;

/// The index of the colour of what draws nothing.
pub const NO_COLOR: usize = usize::MAX;

/// Every colour of one theme.
#[derive(Debug)]
pub struct Palette {
    /// Whether light text stands on a dark ground.
    pub dark: bool,
    /// The ground of charts, the graph and the timeline.
    pub canvas: Color32,
    /// The ground of panels.
    pub panel: Color32,
    /// Cards, buttons and fields on a panel.
    pub raised: Color32,
    /// A control under the pointer.
    pub hovered: Color32,
    /// Borders and separators.
    pub border: Color32,
    /// Grid lines of charts and rulers.
    pub grid: Color32,
    /// Every second row of a list.
    pub stripe: Color32,
    /// Body text.
    pub text: Color32,
    /// Text that stands back: units, hints, axis labels.
    pub text_weak: Color32,
    /// Titles and selected tabs.
    pub text_strong: Color32,
    /// Links, focus, the selected tab's line.
    pub accent: Color32,
    /// Ground of selected rows and ranges (translucent).
    pub selected: Color32,
    /// Outline of what is selected.
    pub highlight: Color32,
    /// All is well; live.
    pub good: Color32,
    /// Something was lost or is late.
    pub warning: Color32,
    /// Something failed; stalls.
    pub error: Color32,
    /// Aggregates, unknown categories, what a filter dims.
    pub aggregate: Color32,
    /// Curves, runs: legible as lines on `canvas` and `raised`.
    series: [Color32; 8],
    /// From the least to the greatest of a measured value, evenly apart: legible as lines on `canvas`.
    ramp: [Color32; 5],
    /// Fills of nodes: legible under the text that [`on_fill`] picks.
    fills: [Color32; 12],
    /// Slices, bars and points: as `fills`, and legible on every ground themselves.
    marks: [Color32; 12],
}

const DARK: Palette = Palette {
    dark: true,
    canvas: rgb(0x14171c),
    panel: rgb(0x1b1f26),
    raised: rgb(0x242932),
    hovered: rgb(0x303742),
    border: rgb(0x343b47),
    grid: rgb(0x2a303a),
    stripe: rgb(0x1f242c),
    text: rgb(0xdfe3ea),
    text_weak: rgb(0xa3adbb),
    text_strong: rgb(0xffffff),
    accent: rgb(0x56b4e9),
    selected: Color32::from_rgba_premultiplied(0x17, 0x30, 0x3e, 0x70),
    highlight: rgb(0xffffff),
    good: rgb(0x2fc08d),
    warning: rgb(0xf0b429),
    error: rgb(0xff8066),
    aggregate: rgb(0x6b7480),
    series: [
        rgb(0x56b4e9),
        rgb(0xe69f00),
        rgb(0x1fbf8f),
        rgb(0xe58fbd),
        rgb(0xf0e442),
        rgb(0xf2703a),
        rgb(0x6a9ff0),
        rgb(0xb9c0ca),
    ],
    ramp: [rgb(0x5b7bd5), rgb(0x4fb0c6), rgb(0x7fce8e), rgb(0xd9d35a), rgb(0xfff3a0)],
    fills: [
        rgb(0x3d8fc4),
        rgb(0xc98a0a),
        rgb(0x0f9a73),
        rgb(0xb86a98),
        rgb(0xb8ad2b),
        rgb(0xc9591f),
        rgb(0x4a6fc0),
        rgb(0x9a7ac9),
        rgb(0x4f9a9a),
        rgb(0x7f9a3c),
        rgb(0xb57d62),
        rgb(0x7a8594),
    ],
    marks: [
        rgb(0x3d8fc4),
        rgb(0xc98a0a),
        rgb(0x0f9a73),
        rgb(0xb86a98),
        rgb(0xb8ad2b),
        rgb(0xc9591f),
        rgb(0x4a6fc0),
        rgb(0x9a7ac9),
        rgb(0x4f9a9a),
        rgb(0x7f9a3c),
        rgb(0xb57d62),
        rgb(0x7a8594),
    ],
};

const LIGHT: Palette = Palette {
    dark: false,
    canvas: rgb(0xffffff),
    panel: rgb(0xf4f5f7),
    raised: rgb(0xffffff),
    hovered: rgb(0xe6e9ee),
    border: rgb(0xd0d5dd),
    grid: rgb(0xe6e9ee),
    stripe: rgb(0xf8f9fb),
    text: rgb(0x24292f),
    text_weak: rgb(0x5a6472),
    text_strong: rgb(0x0b0e12),
    accent: rgb(0x0068a8),
    selected: Color32::from_rgba_premultiplied(0x10, 0x2a, 0x3a, 0x48),
    highlight: rgb(0x0b0e12),
    good: rgb(0x00785a),
    warning: rgb(0x8f5f00),
    error: rgb(0xbf3600),
    aggregate: rgb(0xa9b1bc),
    series: [
        rgb(0x0072b2),
        rgb(0xb87a00),
        rgb(0x008f68),
        rgb(0xb0578c),
        rgb(0x8a7f00),
        rgb(0xd55e00),
        rgb(0x4357b8),
        rgb(0x505a66),
    ],
    ramp: [rgb(0x9a8700), rgb(0x3f8f5a), rgb(0x1f7a8c), rgb(0x34539b), rgb(0x3b1f6b)],
    fills: [
        rgb(0x8cc9ee),
        rgb(0xf2c14e),
        rgb(0x7fd1b3),
        rgb(0xe6b3d0),
        rgb(0xe9e07a),
        rgb(0xf0a070),
        rgb(0xa3b8ee),
        rgb(0xc7b2e6),
        rgb(0x9ed3d3),
        rgb(0xc3d68a),
        rgb(0xdbb6a0),
        rgb(0xc3cad3),
    ],
    marks: [
        rgb(0x3377a3),
        rgb(0x976808),
        rgb(0x0d8161),
        rgb(0x9e5b83),
        rgb(0x79721c),
        rgb(0xb9521d),
        rgb(0x4a6fc0),
        rgb(0x7e64a5),
        rgb(0x3f7b7b),
        rgb(0x63782f),
        rgb(0x946650),
        rgb(0x69727f),
    ],
};

/// By [`Colours`], the dark one first.
static ALL: [[Palette; 2]; Colours::ALL.len()] = [
    [DARK, LIGHT],
    [in_scheme(&DARK, TOL_DARK), in_scheme(&LIGHT, TOL_LIGHT)],
    [in_scheme(&DARK, TENSORBOARD_DARK), in_scheme(&LIGHT, TENSORBOARD_LIGHT)],
];

const fn in_scheme(of: &Palette, Scheme { series, fills, marks }: Scheme) -> Palette {
    Palette { series, fills, marks, ..*of }
}

thread_local! {
    static COLOURS: Cell<Colours> = const { Cell::new(Colours::OkabeIto) };
}

impl Colours {
    /// Puts the colours in force, in this thread.
    pub fn apply(self) {
        COLOURS.set(self);
    }
}

impl Palette {
    /// The palette of the dark or the light theme.
    pub fn of(dark: bool) -> &'static Self {
        &ALL[COLOURS.get() as usize][usize::from(!dark)]
    }

    /// What tells it from all others: pictures that are kept hold while it is the same.
    pub fn id(&'static self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The colour of the `idx`-th run or curve; it repeats after [`N_SERIES`]. What draws none ([`NO_COLOR`]) is grey.
    pub fn series(&self, idx: usize) -> Color32 {
        match idx {
            NO_COLOR => self.aggregate,
            _ => match self.series.get(idx % N_SERIES) {
                Some(color) => *color,
                None => hues::more([self.canvas, self.raised, self.aggregate], &self.series)
                    [idx % N_SERIES - self.series.len()],
            },
        }
    }

    /// The colour of a value at `share` (0 to 1) of the way from the least to the greatest; what has no place is grey.
    pub fn ramp(&self, share: f64) -> Color32 {
        if !share.is_finite() {
            return self.aggregate;
        }
        let place = share.clamp(0.0, 1.0) * (self.ramp.len() - 1) as f64;
        let below = (place as usize).min(self.ramp.len() - 2);
        mix(self.ramp[below], self.ramp[below + 1], (place - below as f64) as f32)
    }

    /// The fill of the `idx`-th category of nodes; it repeats after twelve.
    pub fn fill(&self, idx: usize) -> Color32 {
        self.fills[idx % self.fills.len()]
    }

    /// A fill for a name that is the same in every session (op types, scopes).
    pub fn fill_of_name(&self, name: &str) -> Color32 {
        self.fill(hash_of(name))
    }

    /// The colour of slices, bars and points of the `idx`-th category; it repeats after twelve.
    pub fn mark(&self, idx: usize) -> Color32 {
        self.marks[idx % self.marks.len()]
    }

    /// The colour of slices, bars and points of a name, the same in every session.
    pub fn mark_of_name(&self, name: &str) -> Color32 {
        self.mark(hash_of(name))
    }

    /// The same without the grey, for what stands out among grey slices.
    pub fn vivid_mark_of_name(&self, name: &str) -> Color32 {
        self.mark(hash_of(name) % (self.marks.len() - 1))
    }

    /// How much of its colour a slice has that hardly ever ran in its pixel: from here to all of it with the share of time.
    pub fn least_density(&self) -> f32 {
        if self.dark { 0.3 } else { 0.8 }
    }
}

/// FNV-1a of a name.
fn hash_of(name: &str) -> usize {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    (hash >> 32) as usize
}

/// Black or white, whichever stands out more on `fill`.
pub fn on_fill(fill: Color32) -> Color32 {
    if contrast(fill, Color32::BLACK) >= contrast(fill, Color32::WHITE) { rgb(0x0b0e12) } else { Color32::WHITE }
}

/// `a` moved towards `b` by `t` in 0..=1, in gamma space.
pub fn mix(a: Color32, b: Color32, t: f32) -> Color32 {
    a.lerp_to_gamma(b, t.clamp(0.0, 1.0))
}

/// A surface of this colour in light of 0 (from the side) to 1 (from the front); none is black.
pub fn shaded(color: Color32, light: f32) -> Color32 {
    mix(Color32::BLACK, color, 0.35 + 0.65 * light)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_contrast_on_every_ground() {
        for p in ALL.as_flattened() {
            for ground in [p.canvas, p.panel, p.raised, p.hovered, p.stripe] {
                for text in [p.text, p.text_weak, p.text_strong, p.accent, p.good, p.warning, p.error] {
                    let c = contrast(text, ground);
                    assert!(c >= 4.5, "dark {}: {text:?} on {ground:?} has {c:.2}", p.dark);
                }
            }
        }
    }

    #[test]
    fn curves_stand_out_and_fills_carry_text() {
        for p in ALL.as_flattened() {
            for color in (0..N_SERIES).map(|idx| p.series(idx)) {
                for ground in [p.canvas, p.raised] {
                    let c = contrast(color, ground);
                    assert!(c >= 3.0, "dark {}: curve {color:?} on {ground:?} has {c:.2}", p.dark);
                }
            }
            for mark in p.marks {
                for ground in [p.canvas, p.panel, p.raised, p.stripe] {
                    let c = contrast(mark, ground);
                    assert!(c >= 2.95, "dark {}: mark {mark:?} on {ground:?} has {c:.2}", p.dark);
                }
                let c = contrast(on_fill(mark), mark);
                assert!(c >= 4.5, "dark {}: text on {mark:?} has {c:.2}", p.dark);
            }
            for share in 0..=20 {
                let color = p.ramp(f64::from(share) / 20.0);
                let c = contrast(color, p.canvas);
                assert!(c >= 3.0, "dark {}: ramp at {share}/20 {color:?} has {c:.2}", p.dark);
            }
            for fill in p.fills {
                let c = contrast(on_fill(fill), fill);
                assert!(c >= 4.5, "dark {}: text on {fill:?} has {c:.2}", p.dark);
            }
        }
    }
}
