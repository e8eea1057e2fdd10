//! The progress of training on stderr.

use std::sync::Arc;
use std::time::Duration;

use text::{count, duration, ratio};
use train::{Progress, Snapshot};

use crate::args::Verbosity;
use crate::out;
use crate::progress::{HiddenGuard, Ticker};

/// Prints progress until the result is dropped, except with `-q`: on a terminal a line that is updated, elsewhere a
/// line every few seconds, and a last line at the end.
pub fn start(progress: Arc<Progress>, verbosity: Verbosity) -> Option<Ticker> {
    let on_terminal = out::is_stderr_terminal();
    let period = if on_terminal { Duration::from_millis(100) } else { Duration::from_secs(2) };
    let mut hidden = None;
    let print = move |is_over: bool| {
        let Some(snapshot) = progress.snapshot(events::clock::mono_now()) else { return Duration::from_millis(20) };
        hidden.get_or_insert_with(HiddenGuard::begin);
        match line(&snapshot) {
            line if on_terminal && !is_over => out::progress(&line),
            line => note!("{line}"),
        }
        period
    };
    // The first line comes early, to show that training has begun.
    (verbosity > Verbosity::Quiet).then(|| Ticker::start(Duration::from_millis(100), print))
}

/// `step 1,200 of 10,000  812 steps/s  loss 0.0312  test accuracy 0.9720  10.8 s left`
fn line(snapshot: &Snapshot) -> String {
    let Snapshot { n_done, steps, steps_per_second, .. } = snapshot;
    let mut line = format!("step {} of {}  {steps_per_second:.0} steps/s", count(*n_done), count(*steps));
    if let Some(loss) = snapshot.loss {
        line += &format!("  loss {loss:.4}");
    }
    if let Some((name, quality)) = &snapshot.quality {
        line += &format!("  {name} {}", ratio(*quality));
    }
    if let Some(left) = snapshot.left_ns {
        line += &format!("  {} left", duration(left));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_rate_and_time_left() {
        let quality = Some(("test accuracy".into(), 0.9));
        let (loss, left_ns) = (Some(0.5), Some(3_000_000_000));
        let snapshot = Snapshot { n_done: 250, steps: 1000, steps_per_second: 250.0, loss, quality, left_ns };
        let shown = line(&snapshot);
        assert_eq!(shown, "step 250 of 1,000  250 steps/s  loss 0.5000  test accuracy 0.9000  3.00 s left");
        let ended = Snapshot { n_done: 1000, loss: None, quality: None, left_ns: None, ..snapshot };
        assert_eq!(line(&ended), "step 1,000 of 1,000  250 steps/s");
    }
}
