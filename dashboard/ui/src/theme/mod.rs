//! The appearance of the window: the only place that names colours and sizes.
//!
//! Panels read the colours of the current theme from [`fn@palette`] and sizes from [`metrics`].

mod fonts;
mod hues;
pub mod metrics;
mod palette;
mod schemes;
mod style;

pub use self::palette::{NO_COLOR, Palette, mix, on_fill, shaded};
pub use fonts::SystemFonts;
pub use schemes::ColorScheme;
pub use style::install;

use crate::address::Choice;
use serde::{Deserialize, Serialize};

/// The theme of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum Theme {
    /// The desktop's theme.
    #[default]
    System,
    /// Dark.
    Dark,
    /// Light.
    Light,
}

impl Choice for Theme {
    const TABLE: &'static [(Self, &'static str, &'static str)] =
        &[(Self::System, "System", "System"), (Self::Dark, "Dark", "Dark"), (Self::Light, "Light", "Light")];
}

impl Theme {
    /// The next theme, for a toggle.
    pub fn next(self) -> Self {
        Self::TABLE[(self as usize + 1) % Self::TABLE.len()].0
    }

    /// Applies the theme.
    pub fn apply(self, ctx: &egui::Context) {
        ctx.set_theme(match self {
            Self::System => egui::ThemePreference::System,
            Self::Dark => egui::ThemePreference::Dark,
            Self::Light => egui::ThemePreference::Light,
        });
    }
}

/// The density of controls and tracks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum Density {
    /// Shows the most on the screen.
    Compact,
    /// Between the other two.
    #[default]
    Normal,
    /// Large controls and wide gaps.
    #[serde(alias = "Roomy")]
    Comfortable,
}

impl Choice for Density {
    const TABLE: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Compact, "Compact", "Compact"),
        (Self::Normal, "Normal", "Normal"),
        (Self::Comfortable, "Comfortable", "Comfortable"),
    ];
}

impl Density {
    /// Factor for the heights of controls and lanes.
    pub fn factor(self) -> f32 {
        match self {
            Self::Compact => 0.8,
            Self::Normal => 1.0,
            Self::Comfortable => 1.35,
        }
    }

    /// Applies the density.
    pub fn apply(self, ctx: &egui::Context) {
        ctx.all_styles_mut(|style| style::fill_spacing(style, self.factor()));
    }
}

/// The colours of `ui`'s theme.
pub fn palette(ui: &egui::Ui) -> &'static Palette {
    Palette::for_theme(ui.visuals().dark_mode)
}

/// A colour from a file, which belongs to no theme.
pub fn rgb(red: u8, green: u8, blue: u8) -> egui::Color32 {
    egui::Color32::from_rgb(red, green, blue)
}

/// Blends `share` of 256 parts of a colour over another one. Both colours are premultiplied, so that no channel
/// overflows.
pub fn blend_over(below: egui::Color32, above: egui::Color32, share: u32) -> egui::Color32 {
    let share = share.min(256);
    let below_share = 256 - (u32::from(above.a()) * share + 127) / 255;
    let [below, above] = [below, above].map(|color| u32::from_le_bytes(color.to_array()));
    // Two channels at a time: neither sum exceeds 16 bits.
    let even_channels = |color: u32| color & 0x00ff_00ff;
    let [low, high] = [0, 8].map(|bits| {
        let [below, above] = [below, above].map(|color| even_channels(color >> bits));
        even_channels((below * below_share + above * share) >> 8) << bits
    });
    let [r, g, b, a] = (low | high).to_le_bytes();
    egui::Color32::from_rgba_premultiplied(r, g, b, a)
}

/// The tint that leaves a picture's colours unchanged.
pub const UNTINTED: egui::Color32 = egui::Color32::WHITE;

/// A picture from a file, whose colours belong to no theme: red, green, blue and alpha of each pixel, row by row.
pub fn picture(size: [usize; 2], rgba: &[u8]) -> egui::ColorImage {
    egui::ColorImage::from_rgba_unmultiplied(size, rgba)
}

#[cfg(test)]
mod tests {
    use super::*;
    use egui::Color32;

    #[test]
    fn colors_lie_over_each_other_channel_by_channel() {
        let colors = [0, 1, 60, 128, 254, 255].map(|alpha| Color32::from_rgba_unmultiplied(255, alpha, 7, alpha));
        for (below, above) in colors.iter().flat_map(|below| colors.map(|above| (*below, above))) {
            for share in (0..=256_u32).step_by(16).chain([1, 255, 300]) {
                let (part, opaque) = (f64::from(share.min(256)) / 256.0, f64::from(above.a()) / 255.0);
                let expected = |i: usize| {
                    f64::from(below.to_array()[i]) * (1.0 - part * opaque) + f64::from(above.to_array()[i]) * part
                };
                let got = blend_over(below, above, share).to_array();
                for (i, got) in got.into_iter().enumerate() {
                    assert!((f64::from(got) - expected(i)).abs() < 1.6, "{below:?} {above:?} {share}: {got}");
                }
            }
        }
    }
}
