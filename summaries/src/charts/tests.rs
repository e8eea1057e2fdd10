//! Charts as text, as SVG and as pixels.

use super::*;
use crate::histogram::Bucket;

fn histogram(shift: f64) -> Histogram {
    let bucket = |i: i32| Bucket {
        left: f64::from(i) + shift,
        right: f64::from(i + 1) + shift,
        count: f64::from((i + 1) * (10 - i)),
    };
    Histogram::from_buckets((0..10).map(bucket).collect())
}

fn curves(label: &str, points: Vec<(f64, f64)>, band: Vec<(f64, f64, f64)>) -> Shape {
    Shape::Curves { x: "step".into(), y: String::new(), curves: vec![Curve { label: label.into(), points, band }] }
}

fn of_every_shape() -> Vec<Shape> {
    let rows = vec![(10, histogram(0.0)), (20, histogram(3.0))];
    let bars = [("matmul", 3.0), ("relu", 1.0)];
    let bar = |(name, value): (&str, f64)| Bar { name: name.into(), value, value_text: format!("{value} ms") };
    vec![
        curves("mlp", vec![(0.0, 1.0), (9.0, 2.0)], vec![(0.0, 0.5, 1.5), (9.0, 1.0, 3.0)]),
        Shape::Ridges(rows.clone()),
        Shape::Distributions(rows),
        Shape::Bars(bars.map(bar).into()),
    ]
}

/// Width, height and RGB pixels.
fn decoded(png: &[u8]) -> (u32, u32, Vec<u8>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    (reader.info().width, reader.info().height, pixels)
}

#[test]
fn odd_data_is_drawn_all_the_same() {
    let odd = [f64::NAN, f64::INFINITY, f64::MAX, f64::MIN, 0.0, 1.0];
    let points: Vec<(f64, f64)> = (0..).map(f64::from).zip(odd).collect();
    let band: Vec<_> = points.iter().map(|&(x, y)| (x, y - 1.0, y + 1.0)).collect();
    let empty = Histogram::from_buckets(Vec::new());
    let bars = vec![Bar { name: String::new(), value: f64::NAN, value_text: String::new() }];
    let mut shapes = vec![Shape::Bars(bars), Shape::Bars(Vec::new())];
    for points in [Vec::new(), points, vec![(1.0, 1.0)]] {
        shapes.push(curves("a", points, band.clone()));
    }
    for rows in [Vec::new(), vec![(0, empty)]] {
        shapes.extend([Shape::Ridges(rows.clone()), Shape::Distributions(rows)]);
    }
    for shape in shapes {
        let chart = Chart { title: "odd & <strange> 日本".into(), shape };
        let svg = chart.svg(Style::default()).unwrap();
        assert!(svg.contains("odd &amp; &lt;strange&gt;") && !svg.contains("NaN"), "{svg}");
        chart.png(Style::default()).unwrap();
    }
}

#[test]
fn every_shape_has_its_background_and_legible_letters() {
    for (theme, name, background) in [(Theme::Light, "#FFFFFF", [255; 3]), (Theme::Dark, "#14171C", [20, 23, 28])] {
        for shape in of_every_shape() {
            let chart = Chart { title: "weights".into(), shape };
            let style = Style { theme, ..Style::default() };
            let svg = chart.svg(style).unwrap();
            assert!(svg.contains(name) && svg.contains("weights"));
            let sizes =
                svg.split("font-size=\"").skip(1).filter_map(|rest| rest.split('"').next()?.parse::<f64>().ok());
            // plotters gives SVG letters 1/1.24 of their height.
            assert!(sizes.fold(f64::INFINITY, f64::min) > 9.0, "legible letters");
            let (width, height, pixels) = decoded(&chart.png(style).unwrap());
            assert_eq!((width, pixels.len()), (600, 600 * height as usize * 3));
            assert_eq!(pixels[..3], background, "the corner is background");
            let n_drawn = pixels.chunks_exact(3).filter(|pixel| **pixel != background).count();
            assert!(n_drawn > 1_000, "{n_drawn} pixels are drawn");
        }
    }
}

/// The same curve in both formats: the pixels at its height have its colour.
#[test]
fn pixels_are_where_the_values_are() {
    let flat = |y: f64| vec![(0.0, y), (1.0, y)];
    let line = |label: &str, y: f64| Curve { label: label.into(), points: flat(y), band: Vec::new() };
    let curves = vec![line("", 0.0), line("", 10.0)];
    let chart = Chart { title: String::new(), shape: Shape::Curves { x: String::new(), y: String::new(), curves } };
    let (width, _, pixels) = decoded(&chart.png(Style::default()).unwrap());
    let blue = |pixel: &[u8]| pixel[2] > 150 && pixel[0] < 60;
    let orange = |pixel: &[u8]| pixel[0] > 180 && pixel[2] < 60;
    let row_of = |is: &dyn Fn(&[u8]) -> bool| {
        let rows = pixels.chunks_exact(width as usize * 3);
        rows.enumerate().max_by_key(|(_, row)| row.chunks_exact(3).filter(|p| is(p)).count()).unwrap().0
    };
    let (low, high) = (row_of(&blue), row_of(&orange));
    // 10 is near the top, 0 near the bottom: 5 % of the span from either end.
    assert!(high < 60 && low > 220 && low < 290, "0 at row {low}, 10 at row {high}");
}
