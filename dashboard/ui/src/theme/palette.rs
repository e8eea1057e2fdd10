//! The colours of the dark and the light theme, as egui's types.
//!
//! A scheme has eight colours of series; `hues` computes further ones. Tests check the contrast: text 4.5:1, lines and
//! marks 3:1 (WCAG 2.2, 1.4.3 and 1.4.11).

use super::{
    hues::{self, N_SERIES, contrast},
    schemes::ColorScheme,
};
use ::palette::{Colors, DARK, LIGHT, OKABE_ITO, Scheme, TENSORBOARD, TOL, channels};
use egui::Color32;
use std::{
    array,
    cell::Cell,
    ops::Deref,
    sync::{LazyLock, OnceLock},
};

/// The colour index of a run that draws nothing.
pub const NO_COLOR: usize = usize::MAX;

/// The colours of one theme, and a scheme's colours for runs and categories.
#[derive(Debug)]
pub struct Palette {
    colors: Colors<Color32>,
    scheme: Scheme<Color32>,
    /// The colours of series beyond the scheme's, computed when one of them is first needed.
    extra_series: OnceLock<Vec<Color32>>,
}

impl Deref for Palette {
    type Target = Colors<Color32>;

    fn deref(&self) -> &Self::Target {
        &self.colors
    }
}

/// The palettes by [`ColorScheme`], the dark one first.
static PALETTES: LazyLock<[[Palette; 2]; 3]> = LazyLock::new(|| {
    [OKABE_ITO, TOL, TENSORBOARD].map(|schemes| {
        array::from_fn(|theme| {
            let colors = [&DARK, &LIGHT][theme].map(rgb, |argb| {
                let [alpha, red, green, blue] = argb.to_be_bytes();
                Color32::from_rgba_premultiplied(red, green, blue, alpha)
            });
            Palette { colors, scheme: schemes[theme].map(rgb), extra_series: OnceLock::new() }
        })
    })
});

/// An opaque colour from `0xRRGGBB`.
fn rgb(color: u32) -> Color32 {
    let [red, green, blue] = channels(color);
    Color32::from_rgb(red, green, blue)
}

thread_local! {
    /// Thread-local, as only the thread that draws reads palettes.
    static SCHEME: Cell<ColorScheme> = const { Cell::new(ColorScheme::OkabeIto) };
}

impl ColorScheme {
    /// Makes the scheme current in this thread.
    pub fn apply(self) {
        SCHEME.set(self);
    }
}

impl Palette {
    /// The palette of the dark or the light theme.
    pub fn for_theme(dark: bool) -> &'static Self {
        &PALETTES[SCHEME.get() as usize][usize::from(!dark)]
    }

    /// Identifies the palette in the keys of cached pictures.
    pub fn id(&'static self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The colour of the `idx`-th run or line; colours repeat after [`N_SERIES`]. [`NO_COLOR`] is grey.
    pub fn series(&self, idx: usize) -> Color32 {
        if idx == NO_COLOR {
            return self.aggregate;
        }
        let (idx, series) = (idx % N_SERIES, &self.scheme.series);
        let extend = || hues::extend_series_colors([self.canvas, self.raised, self.aggregate], series);
        series.get(idx).copied().unwrap_or_else(|| self.extra_series.get_or_init(extend)[idx - series.len()])
    }

    /// The colour of a value at `share` (0 to 1) of the way from the least to the greatest; NaN and infinity are grey.
    pub fn ramp(&self, share: f64) -> Color32 {
        if !share.is_finite() {
            return self.aggregate;
        }
        let position = share.clamp(0.0, 1.0) * (self.ramp.len() - 1) as f64;
        let below = (position as usize).min(self.ramp.len() - 2);
        mix(self.ramp[below], self.ramp[below + 1], (position - below as f64) as f32)
    }

    /// The fill of the `idx`-th category of nodes; fills repeat after twelve.
    pub fn fill(&self, idx: usize) -> Color32 {
        self.scheme.fills[idx % self.scheme.fills.len()]
    }

    /// The fill of an op type or scope by its name, the same in every session.
    pub fn fill_of_name(&self, name: &str) -> Color32 {
        self.fill(hash_of(name))
    }

    /// The colour of slices, bars and points of the `idx`-th category; colours repeat after twelve.
    pub fn mark(&self, idx: usize) -> Color32 {
        self.scheme.marks[idx % self.scheme.marks.len()]
    }

    /// The colour of slices, bars and points of a name, the same in every session.
    pub fn mark_of_name(&self, name: &str) -> Color32 {
        self.mark(hash_of(name))
    }

    /// As [`mark_of_name`](Self::mark_of_name), but never grey, for highlighted slices among grey ones.
    pub fn vivid_mark_of_name(&self, name: &str) -> Color32 {
        self.mark(hash_of(name) % (self.scheme.marks.len() - 1))
    }

    /// The opacity of a bar in whose pixels hardly any slice ran; the opacity grows to 1 with the share of time.
    pub fn min_opacity(&self) -> f32 {
        if self.dark { 0.3 } else { 0.8 }
    }
}

/// FNV-1a of a name.
fn hash_of(name: &str) -> usize {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    (hash >> 32) as usize
}

/// Black or white, whichever has the greater contrast with `fill`.
pub fn on_fill(fill: Color32) -> Color32 {
    if contrast(fill, Color32::BLACK) >= contrast(fill, Color32::WHITE) { rgb(0x0b0e12) } else { Color32::WHITE }
}

/// `a` moved towards `b` by `t` in 0..=1, in gamma space.
pub fn mix(a: Color32, b: Color32, t: f32) -> Color32 {
    a.lerp_to_gamma(b, t.clamp(0.0, 1.0))
}

/// The colour of a surface in `light` from 0 (from the side) to 1 (from the front); no surface is black.
pub fn shaded(color: Color32, light: f32) -> Color32 {
    mix(Color32::BLACK, color, 0.35 + 0.65 * light)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_contrast_on_every_background() {
        for p in PALETTES.as_flattened() {
            for background in [p.canvas, p.panel, p.raised, p.hovered, p.stripe] {
                for text in [p.text, p.text_weak, p.text_strong, p.accent, p.good, p.warning, p.error] {
                    let c = contrast(text, background);
                    assert!(c >= 4.5, "dark {}: {text:?} on {background:?} has {c:.2}", p.dark);
                }
            }
        }
    }

    #[test]
    fn curves_stand_out_and_fills_carry_text() {
        for p in PALETTES.as_flattened() {
            for color in (0..N_SERIES).map(|idx| p.series(idx)) {
                for background in [p.canvas, p.raised] {
                    let c = contrast(color, background);
                    assert!(c >= 3.0, "dark {}: curve {color:?} on {background:?} has {c:.2}", p.dark);
                }
            }
            for mark in p.scheme.marks {
                for background in [p.canvas, p.panel, p.raised, p.stripe] {
                    let c = contrast(mark, background);
                    assert!(c >= 2.95, "dark {}: mark {mark:?} on {background:?} has {c:.2}", p.dark);
                }
                let c = contrast(on_fill(mark), mark);
                assert!(c >= 4.5, "dark {}: text on {mark:?} has {c:.2}", p.dark);
            }
            for share in 0..=20 {
                let color = p.ramp(f64::from(share) / 20.0);
                let c = contrast(color, p.canvas);
                assert!(c >= 3.0, "dark {}: ramp at {share}/20 {color:?} has {c:.2}", p.dark);
            }
            for fill in p.scheme.fills {
                let c = contrast(on_fill(fill), fill);
                assert!(c >= 4.5, "dark {}: text on {fill:?} has {c:.2}", p.dark);
            }
        }
    }
}
