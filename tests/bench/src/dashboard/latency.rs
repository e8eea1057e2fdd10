//! From a write to the frame that shows it: a point of a scalar, and a slice of a program that is recorded. The window
//! draws when it is woken, as on a screen, and its CPU time in between is measured.

use super::screen::{Screen, add_frames, ms};
use crate::report::{BenchError, Report};
use ::events::{self as emit, clock};
use std::{thread, time::Duration};
use summaries::{SummaryWriter, WriterOptions};
use trace_record::{Collector, CollectorOptions};

const WRITES: i64 = 60;
/// How long what stands still is watched.
const STILL: Duration = Duration::from_secs(5);

pub fn run(report: &mut Report) -> Result<(), BenchError> {
    scalar(report)?;
    slice(report)
}

/// Between two writes: at another moment of every rhythm each time.
fn pause(nth: i64) {
    thread::sleep(Duration::from_millis(60 + (nth as u64 * 37) % 101));
}

fn scalar(report: &mut Report) -> Result<(), BenchError> {
    let dir = tempfile::tempdir()?;
    let writer = SummaryWriter::create(dir.path(), WriterOptions::default())?;
    writer.add_scalar("loss", 0.0, 0);
    let mut screen = Screen::window(dir.path(), "scalars")?;
    screen.until("first point", |_, says| says.iter().any(|s| s.starts_with("loss: 1 run, 1 point")))?;
    screen.woken()?;
    let mut waits = Vec::new();
    for step in 1..=WRITES {
        pause(step);
        let sign = format!("loss: 1 run, {} points", step + 1);
        let begin = clock::mono_now();
        writer.add_scalar("loss", 1.0 / step as f32, step);
        screen.shown_when_woken(&sign, |says| says.iter().any(|s| s.starts_with(&sign)))?;
        waits.push(ms(clock::mono_now() - begin));
    }
    add_frames(report, "live: a scalar, from the write to its frame", waits);
    let cpu = screen.cpu_when_woken(STILL)?;
    report.add("live: CPU while the run writes nothing, without drawing", cpu, "%");
    Ok(())
}

fn slice(report: &mut Report) -> Result<(), BenchError> {
    let dir = tempfile::tempdir()?;
    let recording = emit::start(dir.path(), emit::Options::default())?;
    let collector = Collector::start(dir.path(), CollectorOptions::default())?;
    let site = emit::site("op", "Work");
    drop(emit::slice(site));
    let mut screen = Screen::window(dir.path(), "timeline?follow=1")?;
    let slices = |says: &[String]| says.iter().find_map(|s| n_slices(s));
    screen.until("first slice", |_, says| slices(says).is_some_and(|n| n > 0))?;
    screen.woken()?;
    let mut waits = Vec::new();
    for nth in 1..=WRITES {
        pause(nth);
        let before = slices(&screen.says_when_woken()?).unwrap_or(0);
        let begin = clock::mono_now();
        drop(emit::slice(site));
        screen.shown_when_woken("slice", |says| slices(says).is_some_and(|n| n > before))?;
        waits.push(ms(clock::mono_now() - begin));
    }
    add_frames(report, "live: a slice, from its end to its frame", waits);
    drop(recording);
    collector.stop();
    Ok(())
}

/// Of the timeline's own words: `Timeline: 1 track, 12 slices, ...`.
fn n_slices(says: &str) -> Option<u64> {
    let before = says.strip_prefix("Timeline: ")?.split(" slice").next()?;
    before.rsplit(' ').next()?.replace(',', "").parse().ok()
}
