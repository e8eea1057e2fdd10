//! A counter's line.

use super::frame::Frame;

/// The least and the greatest value of a counter in each pixel column, so that steps stay sharp and short spikes are
/// visible.
pub fn counter_columns(time: &[&[i64]], value: &[&[f64]], frame: &Frame) -> Vec<(f32, f64, f64)> {
    let mut out: Vec<(f32, f64, f64)> = Vec::new();
    let mut value_before: Option<f64> = None;
    for (times, values) in time.iter().zip(value) {
        let from = times.partition_point(|t| *t < frame.view.start);
        let to = times.partition_point(|t| *t < frame.view.end);
        value_before = from.checked_sub(1).and_then(|i| values.get(i)).copied().or(value_before);
        if let (Some(v), true) = (value_before, out.is_empty()) {
            out.push((frame.scale.left(), v, v));
        }
        for (t, v) in times[from..to].iter().zip(&values[from..to]) {
            let x = (frame.scale.x_from_time(*t) * frame.pixels_per_point).floor() / frame.pixels_per_point;
            match out.last_mut() {
                Some(last) if x - last.0 < 0.5 / frame.pixels_per_point => {
                    (last.1, last.2) = (last.1.min(*v), last.2.max(*v));
                }
                _ => out.push((x, *v, *v)),
            }
            value_before = Some(*v);
        }
    }
    // The line goes on to the right edge at the newest value, not at the greatest of the last column.
    if let (Some(v), Some(last)) = (value_before, out.last().copied())
        && last.0 < frame.scale.right()
    {
        out.push((frame.scale.right(), v, v));
    }
    out
}
