//! Colours of series beyond those of a scheme: each looks as different as possible from all before it.
//!
//! Distances are Euclidean in Oklab (Björn Ottosson, "A perceptual color space for image processing", 2020).

use egui::{Color32, Rgba};

/// Colours of series before they repeat.
pub(super) const N_SERIES: usize = 24;
/// Hues around the colour circle of which candidates are made.
const N_HUES: usize = 48;
/// Oklab lightness of the candidates, from 0 (black) to 1 (white).
const LIGHTNESS: [f32; 4] = [0.45, 0.55, 0.65, 0.78];
/// Oklab chroma of the candidates: their distance from grey.
const CHROMA: [f32; 2] = [0.09, 0.16];
/// Least WCAG contrast of a series with its background: 3 (criterion 1.4.11) with room for rounding.
const MIN_CONTRAST: f32 = 3.05;

/// A colour that may be added to a palette.
struct Candidate {
    color: Color32,
    lab: [f32; 3],
    /// Oklab distance to the nearest colour of the palette.
    distance: f32,
}

/// Extends the `first` colours of a palette to [`N_SERIES`]; returns the added ones. Series are drawn on `canvas` and
/// `raised`; `aggregate` is the grey of aggregates, which no series may resemble.
pub(super) fn extend_series_colors([canvas, raised, aggregate]: [Color32; 3], first: &[Color32]) -> Vec<Color32> {
    let is_visible = |color: &Color32| [canvas, raised].iter().all(|back| contrast(*color, *back) >= MIN_CONTRAST);
    let color_at = |hue: usize, lightness: f32, chroma: f32| {
        let (sin, cos) = (std::f32::consts::TAU * hue as f32 / N_HUES as f32).sin_cos();
        from_oklab([lightness, chroma * cos, chroma * sin])
    };
    let grid =
        (0..N_HUES).flat_map(|hue| LIGHTNESS.iter().flat_map(move |l| CHROMA.iter().map(move |c| (hue, *l, *c))));
    let colors = grid.filter_map(|(hue, l, c)| color_at(hue, l, c)).filter(is_visible);
    let mut candidates: Vec<Candidate> =
        colors.map(|color| Candidate { color, lab: oklab(color), distance: f32::INFINITY }).collect();
    first.iter().chain([&aggregate]).for_each(|color| lower_distances(&mut candidates, *color));
    let mut added = Vec::new();
    while first.len() + added.len() < N_SERIES {
        let farthest =
            candidates.iter().max_by(|a, b| a.distance.total_cmp(&b.distance)).map_or(aggregate, |c| c.color);
        lower_distances(&mut candidates, farthest);
        added.push(farthest);
    }
    added
}

/// Lowers the distances of the candidates to which `color`, the newest colour of the palette, is the nearest.
fn lower_distances(candidates: &mut [Candidate], color: Color32) {
    let lab = oklab(color);
    candidates.iter_mut().for_each(|c| c.distance = c.distance.min(distance(c.lab, lab)));
}

/// WCAG contrast of two opaque colours, 1 to 21.
pub(super) fn contrast(a: Color32, b: Color32) -> f32 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// WCAG relative luminance, 0 to 1.
fn luminance(color: Color32) -> f32 {
    let linear = Rgba::from(color);
    0.2126 * linear.r() + 0.7152 * linear.g() + 0.0722 * linear.b()
}

/// Euclidean distance of two Oklab colours.
fn distance(a: [f32; 3], b: [f32; 3]) -> f32 {
    (0..3).map(|i| (a[i] - b[i]).powi(2)).sum::<f32>().sqrt()
}

/// Lightness, a and b of a colour in Oklab.
fn oklab(color: Color32) -> [f32; 3] {
    let c = Rgba::from(color);
    let (r, g, b) = (c.r(), c.g(), c.b());
    let l = (0.412_221_47 * r + 0.536_332_54 * g + 0.051_445_99 * b).cbrt();
    let m = (0.211_903_5 * r + 0.680_699_5 * g + 0.107_396_96 * b).cbrt();
    let s = (0.088_302_46 * r + 0.281_718_85 * g + 0.629_978_7 * b).cbrt();
    [
        0.210_454_26 * l + 0.793_617_8 * m - 0.004_072_047 * s,
        1.977_998_5 * l - 2.428_592_2 * m + 0.450_593_7 * s,
        0.025_904_037 * l + 0.782_771_77 * m - 0.808_675_77 * s,
    ]
}

/// The sRGB colour of an Oklab colour; `None` outside sRGB.
fn from_oklab([l, a, b]: [f32; 3]) -> Option<Color32> {
    let (x, y, z) = (
        (l + 0.396_337_78 * a + 0.215_803_76 * b).powi(3),
        (l - 0.105_561_346 * a - 0.063_854_17 * b).powi(3),
        (l - 0.089_484_18 * a - 1.291_485_5 * b).powi(3),
    );
    let linear = [
        4.076_741_7 * x - 3.307_711_6 * y + 0.230_969_94 * z,
        -1.268_438 * x + 2.609_757_4 * y - 0.341_319_38 * z,
        -0.004_196_086_3 * x - 0.703_418_6 * y + 1.707_614_7 * z,
    ];
    let [r, g, b] = linear;
    linear.iter().all(|x| (-0.001..=1.001).contains(x)).then(|| Rgba::from_rgb(r, g, b).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        address::Choice as _,
        theme::{ColorScheme, Palette},
    };

    #[test]
    fn no_color_comes_twice_and_all_differ() {
        for scheme in ColorScheme::all() {
            scheme.apply();
            for dark in [true, false] {
                let p = Palette::for_theme(dark);
                let all: Vec<[f32; 3]> = (0..N_SERIES).map(|idx| oklab(p.series(idx))).collect();
                for (i, a) in all.iter().enumerate() {
                    for (j, b) in all.iter().enumerate().take(i) {
                        let apart = distance(*a, *b);
                        assert!(apart > 0.04, "{} dark {dark}: {i} and {j} are {apart:.3} apart", scheme.title());
                    }
                }
                assert_eq!(p.series(N_SERIES), p.series(0));
            }
        }
        ColorScheme::default().apply();
    }

    #[test]
    fn there_and_back() {
        for color in [Color32::WHITE, Color32::from_rgb(18, 52, 200), Color32::from_rgb(200, 20, 60)] {
            assert_eq!(from_oklab(oklab(color)), Some(color));
        }
    }
}
