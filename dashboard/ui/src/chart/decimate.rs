//! Reduces a line to the resolution of the pixels.
//!
//! Of each column of pixels the first, least, greatest and last point stay, in their order: at most four points per
//! column, whatever the length of the series. So no spike is lost, and the line enters and leaves each column where the
//! full line would. One point on either side of the window stays too. A value that is not finite interrupts the line
//! and becomes a mark, one for each column and kind.

use std::ops::Range;

/// Points per column up to which points are read one by one.
const MAX_SPARSE_POINTS: usize = 64;

/// The columns of pixels under a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct XWindow {
    /// x at the left edge.
    pub lo: f64,
    /// x at the right edge.
    pub hi: f64,
    /// Columns between them.
    pub n_columns: u32,
}

impl XWindow {
    fn column(&self, x: f64) -> i64 {
        let column = (x - self.lo) / (self.hi - self.lo) * f64::from(self.n_columns);
        // Points left of the window count as one column, points right of it as another. NaN counts as left.
        if column >= 0.0 { (column as i64).min(i64::from(self.n_columns)) } else { -1 }
    }
}

/// The kind of a value without a place on the y axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// NaN, or a value without a place on a logarithmic axis.
    Nan,
    /// Plus infinity.
    PosInf,
    /// Minus infinity.
    NegInf,
}

/// A value without a place on the y axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// The x of the value.
    pub x: f64,
    /// The kind of the value.
    pub kind: MarkKind,
}

/// Connected lines and marks. Clear and fill them again to reuse their memory.
#[derive(Clone, Debug, Default)]
pub struct Polylines {
    points: Vec<[f64; 2]>,
    /// The index of each line's first point.
    starts: Vec<usize>,
    marks: Vec<Mark>,
}

impl Polylines {
    /// Removes everything but keeps the memory.
    pub fn clear(&mut self) {
        self.points.clear();
        self.starts.clear();
        self.marks.clear();
    }

    /// The connected lines, each in drawing order.
    pub fn lines(&self) -> impl Iterator<Item = &[[f64; 2]]> {
        let ends = self.starts.iter().skip(1).copied().chain([self.points.len()]);
        self.starts.iter().zip(ends).map(|(&start, end)| &self.points[start..end]).filter(|line| !line.is_empty())
    }

    /// The marks.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// The number of points of all lines.
    pub fn n_points(&self) -> usize {
        self.points.len()
    }

    /// Adds the curve of `rows`, whose x never decreases. Columns of few points are treated as in [`add`](Self::add).
    /// Of a column of many points the first, least, greatest and last value are looked up, so that the time depends on
    /// the columns and not on the points. `extent` returns the least and greatest value of rows that are all finite.
    /// `to_plot` maps a value to plot space and is monotonic; columns with values that have no place there are read
    /// point by point.
    pub fn add_numbers(
        &mut self,
        rows: Range<usize>,
        window: XWindow,
        x: impl Fn(usize) -> f64,
        value: impl Fn(usize) -> f64,
        extent: impl Fn(Range<usize>) -> Option<[f64; 2]>,
        to_plot: impl Fn(f64) -> f64,
    ) {
        let first = rows.start + lower_bound(rows.len(), |i| x(rows.start + i) < window.lo).saturating_sub(1);
        let end = (rows.start + lower_bound(rows.len(), |i| x(rows.start + i) <= window.hi) + 1).min(rows.end);
        if end.saturating_sub(first) <= MAX_SPARSE_POINTS * window.n_columns as usize {
            return self.add(rows.len(), window, |i| (x(rows.start + i), to_plot(value(rows.start + i))));
        }
        self.starts.push(self.points.len());
        let mut row = first;
        for column in -1..=i64::from(window.n_columns) {
            let next = row + lower_bound(end - row, |i| window.column(x(row + i)) <= column);
            self.add_column(row..next, window, &x, &value, &extent, &to_plot);
            row = next;
        }
    }

    /// Adds the rows of one column to the current line.
    fn add_column(
        &mut self,
        rows: Range<usize>,
        window: XWindow,
        x: &impl Fn(usize) -> f64,
        value: &impl Fn(usize) -> f64,
        extent: &impl Fn(Range<usize>) -> Option<[f64; 2]>,
        to_plot: &impl Fn(f64) -> f64,
    ) {
        let xy = |row: usize| (x(row), to_plot(value(row)));
        if rows.len() <= MAX_SPARSE_POINTS {
            return self.add_points(rows, window, xy);
        }
        let ends = extent(rows.clone()).map(|ends| ends.map(to_plot)).filter(|ends| ends.iter().all(|y| y.is_finite()));
        let Some([least, greatest]) = ends else { return self.add_points(rows, window, xy) };
        let (first, last) = (xy(rows.start), xy(rows.end - 1));
        let middle = x(rows.start + rows.len() / 2);
        self.points.extend([[first.0, first.1], [middle, least], [middle, greatest], [last.0, last.1]]);
    }

    /// Adds a curve of `n` points whose x never decreases. `xy` returns a point by index, with y in plot space.
    pub fn add(&mut self, n: usize, window: XWindow, xy: impl Fn(usize) -> (f64, f64)) {
        // With one point beyond each edge, the line reaches the edges.
        let first = lower_bound(n, |i| xy(i).0 < window.lo).saturating_sub(1);
        let end = (lower_bound(n, |i| xy(i).0 <= window.hi) + 1).min(n);
        self.points.reserve(end.saturating_sub(first).min(4 * (window.n_columns as usize + 2)));
        self.starts.push(self.points.len());
        self.add_points(first..end, window, xy);
    }

    /// Adds rows to the current line.
    fn add_points(&mut self, rows: Range<usize>, window: XWindow, xy: impl Fn(usize) -> (f64, f64)) {
        let mut bucket: Option<Bucket> = None;
        let mut last_mark = self.marks.last().map(|mark| (window.column(mark.x), mark.kind));
        for i in rows {
            let (x, y) = xy(i);
            let column = window.column(x);
            if !y.is_finite() {
                if let Some(bucket) = bucket.take() {
                    bucket.flush(&mut self.points);
                }
                if self.starts.last() != Some(&self.points.len()) {
                    self.starts.push(self.points.len());
                }
                let kind = match y {
                    f64::INFINITY => MarkKind::PosInf,
                    f64::NEG_INFINITY => MarkKind::NegInf,
                    _ => MarkKind::Nan,
                };
                if last_mark != Some((column, kind)) {
                    last_mark = Some((column, kind));
                    self.marks.push(Mark { x, kind });
                }
                continue;
            }
            match &mut bucket {
                Some(bucket) if bucket.column == column => bucket.add(x, y),
                other => {
                    if let Some(full) = other.replace(Bucket::new(column, x, y)) {
                        full.flush(&mut self.points);
                    }
                }
            }
        }
        if let Some(bucket) = bucket {
            bucket.flush(&mut self.points);
        }
    }
}

/// The points of one column.
struct Bucket {
    column: i64,
    n_points: u32,
    first: [f64; 2],
    last: [f64; 2],
    /// The point of least y, with its index in the column.
    least: ([f64; 2], u32),
    /// The point of greatest y, with its index in the column.
    greatest: ([f64; 2], u32),
}

impl Bucket {
    fn new(column: i64, x: f64, y: f64) -> Self {
        let point = [x, y];
        Self { column, n_points: 1, first: point, last: point, least: (point, 0), greatest: (point, 0) }
    }

    fn add(&mut self, x: f64, y: f64) {
        let point = [x, y];
        if y < self.least.0[1] {
            self.least = (point, self.n_points);
        }
        if y > self.greatest.0[1] {
            self.greatest = (point, self.n_points);
        }
        self.last = point;
        self.n_points += 1;
    }

    /// Adds the points that stay to `out`, in their order.
    fn flush(self, out: &mut Vec<[f64; 2]>) {
        let extremes =
            if self.least.1 <= self.greatest.1 { [self.least, self.greatest] } else { [self.greatest, self.least] };
        out.push(self.first);
        let last_idx = self.n_points - 1;
        for (point, idx) in extremes {
            if idx != 0 && idx != last_idx && out.last() != Some(&point) {
                out.push(point);
            }
        }
        if last_idx > 0 {
            out.push(self.last);
        }
    }
}

/// The first index in `0..n` for which `below` is false; `below` must be true for a prefix.
pub fn lower_bound(n: usize, below: impl Fn(usize) -> bool) -> usize {
    let (mut lo, mut hi) = (0, n);
    while lo < hi {
        let mid = lo + (hi - lo) / 2;
        if below(mid) { lo = mid + 1 } else { hi = mid }
    }
    lo
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart;
    use proptest::prelude::*;

    fn polylines(points: &[(f64, f64)], window: XWindow) -> Polylines {
        let mut out = Polylines::default();
        out.add(points.len(), window, |i| points[i]);
        out
    }

    #[test]
    fn few_points_stay_as_they_are() {
        let points = [(0.0, 1.0), (1.0, 5.0), (2.0, -3.0), (3.0, 0.0)];
        let out = polylines(&points, XWindow { lo: 0.0, hi: 3.0, n_columns: 100 });
        let lines: Vec<_> = out.lines().collect();
        assert_eq!(lines, [&[[0.0, 1.0], [1.0, 5.0], [2.0, -3.0], [3.0, 0.0]][..]]);
    }

    #[test]
    fn non_finite_values_break_the_line_and_are_marked() {
        let points = [(0.0, 1.0), (1.0, f64::NAN), (2.0, f64::INFINITY), (3.0, 2.0), (4.0, 3.0)];
        let out = polylines(&points, XWindow { lo: 0.0, hi: 4.0, n_columns: 100 });
        assert_eq!(out.lines().map(<[_]>::len).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(out.marks().iter().map(|m| m.kind).collect::<Vec<_>>(), [MarkKind::Nan, MarkKind::PosInf]);
    }

    #[test]
    fn one_point_beyond_each_edge_stays() {
        let points: Vec<_> = (0..100).map(|i| (f64::from(i), 0.0)).collect();
        let out = polylines(&points, XWindow { lo: 49.5, hi: 50.5, n_columns: 10 });
        let xs: Vec<f64> = out.lines().flatten().map(|p| p[0]).collect();
        assert_eq!(xs, [49.0, 50.0, 51.0]);
    }

    proptest! {
        #[test]
        fn looked_up_columns_span_what_the_points_span(
            seed in prop::collection::vec(-100.0..100.0f64, 1..50),
            odd in prop::collection::vec(0usize..20_000, 0..4),
            ends in (0.0..1.0f64, 0.0..1.0f64),
        ) {
            let n = 20_000;
            let value = |row: usize| if odd.contains(&row) { f64::NAN } else { seed[row % seed.len()] + row as f64 * 1e-3 };
            let values: Vec<f64> = (0..n).map(value).collect();
            let (lo, hi) = (ends.0.min(ends.1) * n as f64, ends.0.max(ends.1) * n as f64 + 1.0);
            let window = XWindow { lo, hi, n_columns: 20 };
            let (mut fast, mut slow) = (Polylines::default(), Polylines::default());
            let extent = |rows: Range<usize>| {
                let of = &values[rows];
                of.iter().all(|y| y.is_finite()).then(|| chart::extent(of.iter().copied()))
            };
            fast.add_numbers(0..n, window, |row| row as f64, |row| values[row], extent, |y| y);
            slow.add(n, window, |row| (row as f64, value(row)));
            prop_assert_eq!(fast.marks(), slow.marks());
            let span = |lines: &Polylines, column: i64| {
                let of_column = lines.points.iter().filter(|p| window.column(p[0]) == column);
                chart::extent(of_column.map(|p| p[1]))
            };
            for column in 0..20 {
                prop_assert_eq!(span(&fast, column), span(&slow, column), "column {}", column);
            }
        }

        #[test]
        fn bounded_by_the_columns_and_extremes_survive(
            ys in prop::collection::vec(prop_oneof![8 => -100.0..100.0f64, 1 => Just(f64::NAN)], 1..2000),
            n_columns in 1u32..64,
        ) {
            let points: Vec<_> = ys.iter().enumerate().map(|(i, y)| (i as f64, *y)).collect();
            let window = XWindow { lo: 0.0, hi: (ys.len() - 1).max(1) as f64, n_columns };
            let out = polylines(&points, window);
            let n_breaks = ys.iter().filter(|y| y.is_nan()).count();
            prop_assert!(out.n_points() <= 4 * (n_columns as usize + 2 + n_breaks));
            let drawn = || out.lines().flatten().map(|p| p[1]);
            let all = || ys.iter().copied().filter(|y| y.is_finite());
            prop_assert_eq!(chart::extent(drawn()), chart::extent(all()));
            let xs: Vec<f64> = out.lines().flatten().map(|p| p[0]).collect();
            prop_assert!(xs.is_sorted());
        }
    }
}
