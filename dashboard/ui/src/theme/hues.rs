//! More colours for runs than a scheme has: those that are farthest from all before them, to the eye.
//!
//! Distances are Euclidean in Oklab (Björn Ottosson, "A perceptual color space for image processing", 2020).

use egui::{Color32, Rgba};

/// Colours of runs before one comes again.
pub(super) const N_SERIES: usize = 24;
/// Steps of hue, and the lightness and colourfulness that are tried.
const HUES: usize = 48;
const LIGHTNESS: [f32; 4] = [0.45, 0.55, 0.65, 0.78];
const CHROMA: [f32; 2] = [0.09, 0.16];
/// What a curve needs on its background, with some room for rounding.
const CONTRAST: f32 = 3.05;

/// The colours of a palette after its `first` ones. Its greys: two backgrounds and the colour of aggregates.
pub(super) fn more([canvas, raised, aggregate]: [Color32; 3], first: &[Color32]) -> Vec<Color32> {
    let stands_out = |color: &Color32| [canvas, raised].iter().all(|g| contrast(*color, *g) >= CONTRAST);
    let at = |hue: usize, l: f32, c: f32| {
        let (sin, cos) = (std::f32::consts::TAU * hue as f32 / HUES as f32).sin_cos();
        from_oklab([l, c * cos, c * sin])
    };
    let all = (0..HUES).flat_map(|hue| LIGHTNESS.iter().flat_map(move |l| CHROMA.iter().map(move |c| (hue, *l, *c))));
    let candidates: Vec<Color32> = all.filter_map(|(hue, l, c)| at(hue, l, c)).filter(stands_out).collect();
    // Text's and aggregates' greys are taken.
    let mut taken: Vec<[f32; 3]> = first.iter().chain([&aggregate]).map(|color| oklab(*color)).collect();
    let mut out = Vec::new();
    while first.len() + out.len() < N_SERIES {
        let nearest =
            |color: &&Color32| taken.iter().map(|t| distance(oklab(**color), *t)).fold(f32::INFINITY, f32::min);
        let next = candidates.iter().max_by(|a, b| nearest(a).total_cmp(&nearest(b))).copied().unwrap_or(aggregate);
        taken.push(oklab(next));
        out.push(next);
    }
    out
}

/// WCAG contrast of two opaque colours, 1 to 21.
pub(super) fn contrast(a: Color32, b: Color32) -> f32 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

fn luminance(color: Color32) -> f32 {
    let linear = Rgba::from(color);
    0.2126 * linear.r() + 0.7152 * linear.g() + 0.0722 * linear.b()
}

fn distance(a: [f32; 3], b: [f32; 3]) -> f32 {
    (0..3).map(|i| (a[i] - b[i]).powi(2)).sum::<f32>().sqrt()
}

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

/// `None` where the screen has no such colour.
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
                let p = Palette::of(dark);
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
