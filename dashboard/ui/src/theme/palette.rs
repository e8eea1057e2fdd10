//! The colours, dark and light.
//!
//! Series colours are Okabe and Ito's eight (told apart by colour-blind readers), made lighter or darker where the
//! background asks for it; beyond eight they are made (see `hues`). Tests hold the contrast: text 4.5:1, curves and marks 3:1 (WCAG 2.2, 1.4.3 and 1.4.11).

use super::{
    hues::{self, N_SERIES, contrast},
    schemes::{Colours, rgb},
};
use ::palette::{
    Colors, DARK, LIGHT, OKABE_ITO_DARK, OKABE_ITO_LIGHT, Scheme, TENSORBOARD_DARK, TENSORBOARD_LIGHT, TOL_DARK,
    TOL_LIGHT,
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

/// The colours of a theme as egui has them, with those of a scheme for runs and categories.
const fn palette(colors: &Colors, scheme: &Scheme) -> Palette {
    let [red, green, blue, alpha] = colors.selected;
    Palette {
        dark: colors.dark,
        canvas: rgb(colors.canvas),
        panel: rgb(colors.panel),
        raised: rgb(colors.raised),
        hovered: rgb(colors.hovered),
        border: rgb(colors.border),
        grid: rgb(colors.grid),
        stripe: rgb(colors.stripe),
        text: rgb(colors.text),
        text_weak: rgb(colors.text_weak),
        text_strong: rgb(colors.text_strong),
        accent: rgb(colors.accent),
        selected: Color32::from_rgba_premultiplied(red, green, blue, alpha),
        highlight: rgb(colors.highlight),
        good: rgb(colors.good),
        warning: rgb(colors.warning),
        error: rgb(colors.error),
        aggregate: rgb(colors.aggregate),
        series: all(&scheme.series),
        ramp: all(&colors.ramp),
        fills: all(&scheme.fills),
        marks: all(&scheme.marks),
    }
}

const fn all<const N: usize>(colors: &[u32; N]) -> [Color32; N] {
    let mut out = [Color32::BLACK; N];
    let mut i = 0;
    while i < N {
        out[i] = rgb(colors[i]);
        i += 1;
    }
    out
}

/// By [`Colours`], the dark one first.
static ALL: [[Palette; 2]; Colours::ALL.len()] = [
    [palette(&DARK, &OKABE_ITO_DARK), palette(&LIGHT, &OKABE_ITO_LIGHT)],
    [palette(&DARK, &TOL_DARK), palette(&LIGHT, &TOL_LIGHT)],
    [palette(&DARK, &TENSORBOARD_DARK), palette(&LIGHT, &TENSORBOARD_LIGHT)],
];

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
