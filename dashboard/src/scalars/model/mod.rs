//! The contents of cards: points, curves, bands, figures of a range, and the layouts of runs. No egui here.

pub mod band;
pub mod curve;
pub mod layouts;
pub mod paired;
pub mod points;
pub mod range;
pub mod smooth;

#[cfg(test)]
mod testing {
    use summaries::{Point, ScalarSeries};

    /// A series with these steps and values.
    pub fn series(points: &[(i64, f64)]) -> ScalarSeries {
        points.iter().map(|&(step, value)| Point { step, wall: 0.0, value }).collect()
    }
}
