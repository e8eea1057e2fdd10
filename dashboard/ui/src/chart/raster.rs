//! Lines as pixels: a chart of hundreds of lines is drawn once, and then shown in every frame as one picture.
//!
//! A line is the area that a round pen covers on its way. Each column of pixels is divided into [`PARTS`] vertical
//! parts. In each the pen covers an interval, which is computed exactly; a pixel's coverage is the mean over its parts.

use crate::theme::blend_over;
use egui::{Color32, ColorImage};

/// Parts of a column of pixels.
const PARTS: usize = 3;

/// A picture under construction.
pub struct LineRaster {
    size: [usize; 2],
    pixels: Vec<Color32>,
    /// For each part of a column, the interval of y that the line covers; empty where the end is less than the start.
    line: Vec<[f32; 2]>,
    /// For each part of a column, the interval of y that the pen covers.
    pen: Vec<[f32; 2]>,
    /// For each row, the covered share of the pixel in the current column.
    coverage: Vec<f32>,
}

/// An interval without values.
const EMPTY: [f32; 2] = [f32::INFINITY, f32::NEG_INFINITY];

/// The smallest interval that contains both.
fn union(a: [f32; 2], b: [f32; 2]) -> [f32; 2] {
    [a[0].min(b[0]), a[1].max(b[1])]
}

impl LineRaster {
    /// Creates a transparent picture of a size in pixels.
    pub fn new(size: [usize; 2]) -> Self {
        let [width, height] = size;
        let (line, pen) = (vec![EMPTY; width * PARTS], vec![EMPTY; width * PARTS]);
        Self { size, pixels: vec![Color32::TRANSPARENT; width * height], line, pen, coverage: vec![0.0; height] }
    }

    /// Draws a connected line over the picture: points in pixels from the left and top, whose x never decreases. Parts
    /// outside the picture are left out; a single point is a dot of the pen.
    pub fn line(&mut self, points: impl Iterator<Item = [f32; 2]>, width: f32, color: Color32) {
        self.line.fill(EMPTY);
        let mut previous: Option<[f32; 2]> = None;
        let mut is_single = true;
        for point in points {
            if let Some(previous) = previous {
                self.add_segment(previous, point);
                is_single = false;
            }
            previous = Some(point);
        }
        if let Some(dot) = previous.filter(|_| is_single) {
            self.add_segment(dot, dot);
        }
        self.sweep_pen(width / 2.0);
        for column in 0..self.size[0] {
            self.blend(column, color);
        }
    }

    /// Adds the interval of each part that a segment crosses.
    fn add_segment(&mut self, [xa, ya]: [f32; 2], [xb, yb]: [f32; 2]) {
        let (xa, xb) = (xa * PARTS as f32, xb * PARTS as f32);
        let slope = if xb > xa { (yb - ya) / (xb - xa) } else { 0.0 };
        if xb < 0.0 || xa >= self.line.len() as f32 {
            return;
        }
        let last = (xb as usize).min(self.line.len() - 1);
        for part in xa.max(0.0) as usize..=last {
            let y = |x: f32| ya + (x - xa) * slope;
            let y_enter = if (part as f32) < xa { ya } else { y(part as f32) };
            let y_leave = if part as f32 + 1.0 > xb { yb } else { y(part as f32 + 1.0) };
            self.line[part] = union(self.line[part], [y_enter.min(y_leave), y_enter.max(y_leave)]);
        }
    }

    /// Extends the line's intervals to the pen's: the union of the adjacent parts' intervals, each longer by the pen's
    /// height at that distance.
    fn sweep_pen(&mut self, radius: f32) {
        self.pen.fill(EMPTY);
        let n_offsets = (radius * PARTS as f32) as usize;
        for offset in 0..=n_offsets {
            let distance = offset as f32 / PARTS as f32;
            let half_height = (radius * radius - distance * distance).max(0.0).sqrt();
            for part in 0..self.line.len() {
                let [lo, hi] = self.line[part];
                if lo > hi {
                    continue;
                }
                let covered = [lo - half_height, hi + half_height];
                for target in [part.checked_sub(offset), Some(part + offset).filter(|i| *i < self.pen.len())] {
                    let Some(target) = target else { continue };
                    self.pen[target] = union(self.pen[target], covered);
                }
            }
        }
    }

    /// Blends a column of the pen over the picture.
    fn blend(&mut self, column: usize, color: Color32) {
        let [width, height] = self.size;
        let (mut top, mut bottom) = (height, 0);
        for [lo, hi] in &self.pen[column * PARTS..(column + 1) * PARTS] {
            let (lo, hi) = (lo.max(0.0), hi.min(height as f32));
            if lo >= hi {
                continue;
            }
            let rows = lo as usize..(hi.ceil() as usize).min(height);
            (top, bottom) = (top.min(rows.start), bottom.max(rows.end));
            for row in rows {
                let share = hi.min(row as f32 + 1.0) - lo.max(row as f32);
                self.coverage[row] += share / PARTS as f32;
            }
        }
        for row in top..bottom {
            let share = std::mem::take(&mut self.coverage[row]);
            let pixel = &mut self.pixels[row * width + column];
            *pixel = blend_over(*pixel, color, (share * 256.0 + 0.5) as u32);
        }
    }

    /// The picture.
    pub fn into_image(self) -> ColorImage {
        ColorImage::new(self.size, self.pixels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INK: Color32 = crate::theme::UNTINTED;

    /// How much of each pixel is covered, in tenths, a row of digits for each row of pixels.
    fn drawn(size: [usize; 2], points: &[[f32; 2]], width: f32) -> Vec<String> {
        let mut raster = LineRaster::new(size);
        raster.line(points.iter().copied(), width, INK);
        let tenth = |pixel: &Color32| char::from_digit(u32::from(pixel.a()) * 9 / 255, 10).unwrap();
        raster.into_image().pixels.chunks(size[0].max(1)).map(|row| row.iter().map(tenth).collect()).collect()
    }

    #[test]
    fn a_level_line_is_as_thick_as_its_pen() {
        assert_eq!(drawn([4, 4], &[[0.0, 2.0], [4.0, 2.0]], 2.0), ["0000", "9999", "9999", "0000"]);
        assert_eq!(drawn([4, 3], &[[0.0, 1.5], [4.0, 1.5]], 2.0), ["4444", "9999", "4444"]);
        assert_eq!(drawn([4, 3], &[[-9.0, 1.5], [40.0, 1.5]], 1.0)[1], "9999", "from beyond one edge to the other");
    }

    #[test]
    fn steep_lines_and_spikes_are_whole() {
        let up = drawn([5, 4], &[[2.5, 4.0], [2.5, 0.0]], 1.0);
        assert!(up.iter().all(|row| &row[2..3] == "9" && &row[..1] == "0" && &row[4..] == "0"), "{up:?}");
        let spike = drawn([5, 40], &[[0.0, 39.0], [2.4, 39.0], [2.5, 0.0], [2.6, 39.0], [5.0, 39.0]], 1.0);
        assert!(spike[..38].iter().all(|row| &row[2..3] == "9"), "no row of it is missing: {spike:?}");
        let far = drawn([3, 3], &[[0.0, -1e6], [3.0, 1e6]], 1.0);
        assert!(far.iter().any(|row| row.contains('9')), "what goes far beyond is drawn where it passes");
    }

    #[test]
    fn a_lone_point_is_a_dot_and_what_is_outside_is_not_there() {
        let dot = drawn([5, 5], &[[2.5, 2.5]], 3.0);
        assert_eq!((&dot[2][1..4], &dot[0][..1], &dot[4][4..]), ("999", "0", "0"), "{dot:?}");
        let nothing = vec!["000"; 3];
        for outside in [[[-5.0, 1.0], [-2.0, 1.0]], [[9.0, 1.0], [12.0, 1.0]], [[0.0, -9.0], [3.0, -9.0]]] {
            assert_eq!(drawn([3, 3], &outside, 1.0), nothing);
        }
        assert_eq!(drawn([0, 0], &[[0.0, 0.0], [1.0, 1.0]], 1.0), Vec::<String>::new());
    }

    #[test]
    fn later_lines_lie_over_earlier_ones() {
        let mut raster = LineRaster::new([2, 1]);
        let [below, above] = [0, 1].map(|nth| crate::theme::Palette::for_theme(true).series(nth));
        for color in [below, above] {
            raster.line([[0.0, 0.5], [2.0, 0.5]].into_iter(), 2.0, color);
        }
        assert_eq!(raster.into_image().pixels, [above, above]);
    }
}
