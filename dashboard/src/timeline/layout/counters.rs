//! The line of a counter.

use super::frame::Frame;

/// The values of a counter in one pixel column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CounterColumn {
    pub x: f32,
    pub min: f64,
    pub max: f64,
}

/// Returns the least and the greatest value of a counter in each pixel column in which the counter changes, so that
/// steps stay sharp and short spikes are visible, and its values at the edges of the view. Chunks of times and values
/// have equal lengths.
pub fn counter_columns(time_chunks: &[&[i64]], value_chunks: &[&[f64]], frame: &Frame) -> Vec<CounterColumn> {
    let mut out: Vec<CounterColumn> = Vec::new();
    let mut last_value: Option<f64> = None;
    for (times, values) in time_chunks.iter().zip(value_chunks) {
        let from = times.partition_point(|t| *t < frame.view.start);
        let to = times.partition_point(|t| *t < frame.view.end);
        last_value = from.checked_sub(1).and_then(|i| values.get(i)).copied().or(last_value);
        if let (Some(v), true) = (last_value, out.is_empty()) {
            out.push(CounterColumn { x: frame.scale.left(), min: v, max: v });
        }
        for (t, v) in times[from..to].iter().zip(&values[from..to]) {
            let x = (frame.scale.x_from_time(*t) * frame.pixels_per_point).floor() / frame.pixels_per_point;
            match out.last_mut() {
                Some(last) if x - last.x < 0.5 / frame.pixels_per_point => {
                    (last.min, last.max) = (last.min.min(*v), last.max.max(*v));
                }
                _ => out.push(CounterColumn { x, min: *v, max: *v }),
            }
            last_value = Some(*v);
        }
    }
    // The line goes on to the right edge at the newest value, not at the greatest of the last column.
    if let (Some(v), Some(last)) = (last_value, out.last().copied())
        && last.x < frame.scale.right()
    {
        out.push(CounterColumn { x: frame.scale.right(), min: v, max: v });
    }
    out
}
