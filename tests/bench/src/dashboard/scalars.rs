//! The scalars of 100 runs with 50 tags of 1,000 steps, in the whole window.

use super::screen::{Screen, add_frames};
use crate::{
    report::{BenchError, Report},
    sealed,
    summaries::logs::LOGS,
};
use egui::{Event, Modifiers, MouseWheelSource, MouseWheelUnit, TouchPhase, pos2, vec2};

const LOG: &str = "100 runs x 50 tags x 1k steps";
const FRAMES: usize = 40;
/// Frames after which what was read is drawn.
const SETTLE: usize = 90;

pub fn run(report: &mut Report) -> Result<(), BenchError> {
    let dir = tempfile::tempdir()?;
    let log = LOGS.iter().find(|log| log.name == LOG).ok_or("the log has another name")?;
    log.write(dir.path())?;
    let rss = sealed::rss_bytes();
    let mut screen = Screen::window(dir.path(), "scalars")?;
    let says = |all: &[String], what: &str| all.iter().any(|s| s.contains(what));
    let first = screen.until("card", |_, all| says(all, "metric_"))?;
    report.add(format!("scalars, {LOG}: first cards"), first, "ms");
    let all = screen.until("card", |_, all| says(all, "group0/metric_0: 100 runs"))?;
    report.add(format!("scalars, {LOG}: all runs on them"), first + all, "ms");
    let settled = screen.until("end of loading", |_, all| !says(all, "oading"))?;
    report.add(format!("scalars, {LOG}: all read"), first + all + settled, "ms");
    // Sixty frames a second, as a screen has it: other threads draw the curves meanwhile.
    for _ in 0..SETTLE {
        screen.paced(Vec::new());
    }
    add_frames(report, &format!("scalars, {LOG}: frame, still"), screen.frames(FRAMES));
    let hover = |i: usize| vec![Event::PointerMoved(pos2(900.0 + 5.0 * i as f32, 300.0))];
    let pointed = (0..FRAMES).map(|i| screen.frame(hover(i)).cpu_ms).collect();
    add_frames(report, &format!("scalars, {LOG}: frame, pointer over a chart"), pointed);
    let wheel = |i: usize| {
        let delta = vec2(0.0, if i < FRAMES / 2 { -60.0 } else { 60.0 });
        let (unit, modifiers) = (MouseWheelUnit::Point, Modifiers::NONE);
        let (phase, source) = (TouchPhase::Move, MouseWheelSource::Trackpad);
        vec![Event::MouseWheel { unit, delta, modifiers, phase, source }]
    };
    let scrolled = (0..FRAMES).map(|i| screen.paced(wheel(i))).collect();
    add_frames(report, &format!("scalars, {LOG}: frame, scrolling"), scrolled);
    report.add(format!("scalars, {LOG}: memory"), (sealed::rss_bytes() - rss) as f64 / 1e6, "MB");
    Ok(())
}
