//! The window's frames and waits, headless: the panels' code and egui's tessellation, no GL. [`window`] has the real one.
//!
//! `dashboard=graph` runs one part: `timeline`, `panels`, `growing`, `live`, `graph`, `flat`, `scalars`, `window`; and `timeline100m`,
//! which takes minutes and is run by its name only. Frames are CPU ms of the UI thread; waits are ms of wall time, from the act to the
//! end of the frame that shows its outcome.

mod flat;
mod graph;
mod growing;
mod latency;
mod scalars;
mod screen;
mod timeline;
pub mod window;

use crate::report::{BenchError, Report};

/// Runs the parts that are asked for.
pub fn run(report: &mut Report) -> Result<(), BenchError> {
    type Part = fn(&mut Report) -> Result<(), BenchError>;
    let parts: [(&str, Part); 8] = [
        ("timeline", timeline::run),
        ("panels", timeline::panels),
        ("growing", growing::run),
        ("live", latency::run),
        ("graph", graph::run),
        ("flat", flat::run),
        ("scalars", scalars::run),
        ("window", window::run),
    ];
    if report.is_asked_for("timeline100m") {
        return timeline::huge(report);
    }
    for (name, part) in parts {
        if report.wants(name) {
            part(report)?;
        }
    }
    Ok(())
}
