//! The stops of a card's slider: the values that the card can show. No egui here.

use summaries::MediaSeries;

#[derive(Debug, Default)]
pub struct SliderStops {
    of: Vec<usize>,
    steps: Vec<i64>,
}

impl SliderStops {
    /// Adds new stops: for one series each of its rows in order, for several each step that any of them has.
    pub fn update(&mut self, series: &[&MediaSeries]) {
        let of = || series.iter().map(|s| s.len());
        if of().eq(self.of.iter().copied()) {
            return;
        }
        self.of = of().collect();
        self.steps = series.iter().flat_map(|s| s.rows().iter().map(|row| row.step)).collect();
        if series.len() > 1 {
            self.steps.sort_unstable();
            self.steps.dedup();
        }
    }

    pub fn len(&self) -> usize {
        self.steps.len()
    }

    pub fn step(&self, stop: usize) -> Option<i64> {
        self.steps.get(stop).copied()
    }

    /// The newest stop at or before `step`, or else the first.
    pub fn at(&self, step: i64) -> usize {
        self.steps.iter().rposition(|s| *s <= step).unwrap_or(0)
    }

    /// The row of one of the series at a stop; `None` where the series begins later.
    pub fn row(&self, series: &MediaSeries, stop: usize) -> Option<usize> {
        if self.of.len() == 1 {
            return (stop < series.len()).then_some(stop);
        }
        let step = self.step(stop)?;
        series.rows().iter().rposition(|row| row.step <= step)
    }
}
