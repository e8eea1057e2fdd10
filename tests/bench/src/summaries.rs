//! Event files: how soon a written point is visible, how long writing holds up a step, how fast a logdir loads.

use std::{path::Path, thread, time::Duration};

use ::events::clock;
use ::summaries::{Logdir, SummaryWriter, WriterOptions};

use crate::report::{BenchError, Report};

mod cost;
#[cfg(feature = "window")]
mod draw;
pub mod load;
pub mod logs;
mod minimal;
mod rustboard;

/// A window's loader polls this often, and whenever the system reports a write.
const POLL_EVERY: Duration = Duration::from_millis(30);
const N_POINTS: i64 = 200;
const N_STEPS: i64 = 10_000;
const N_TAGS: usize = 100;

pub fn run(report: &mut Report) -> Result<(), BenchError> {
    let dir = tempfile::tempdir()?;
    latency(&dir.path().join("latency"), report)?;
    write(&dir.path().join("write"), report)?;
    #[cfg(feature = "window")]
    draw::run(report);
    load::run(report)
}

/// From the call that adds a point to the poll that commits it, with the default flush interval of 30 ms. What is left of
/// it without that interval is the time from the write to the store.
fn latency(logdir: &Path, report: &mut Report) -> Result<(), BenchError> {
    let writer = SummaryWriter::create(logdir, WriterOptions::default())?;
    let mut reader = Logdir::open(&[logdir.to_owned()])?;
    let loader = thread::current();
    reader.on_activity(move || loader.unpark());
    let (mut added_ns, mut seen_ns) = (Vec::new(), Vec::new());
    thread::scope(|scope| {
        let adding = scope.spawn(|| {
            let add = |step: i64| {
                // Not a multiple of the flush interval or the poll: every phase occurs.
                thread::sleep(Duration::from_micros(17_300));
                let now_ns = clock::mono_now();
                writer.add_scalar("loss", step as f32, step);
                now_ns
            };
            (0..N_POINTS).map(add).collect::<Vec<_>>()
        });
        while seen_ns.len() < N_POINTS as usize {
            let n_new = reader.poll().n_points;
            let now_ns = clock::mono_now();
            seen_ns.extend((0..n_new).map(|_| now_ns));
            thread::park_timeout(POLL_EVERY);
        }
        added_ns = adding.join().unwrap_or_default();
    });
    let mut delays_ms: Vec<f64> =
        added_ns.iter().zip(&seen_ns).map(|(added, seen)| (seen - added) as f64 / 1e6).collect();
    delays_ms.sort_by(f64::total_cmp);
    for (case, rank) in
        [("added to visible, median", 0.5), ("added to visible, p99", 0.99), ("added to visible, longest", 1.0)]
    {
        let idx = ((delays_ms.len() - 1) as f64 * rank) as usize;
        report.add(case, delays_ms[idx], "ms");
    }
    Ok(())
}

/// What one call costs the training thread, and the size of the file.
fn write(logdir: &Path, report: &mut Report) -> Result<(), BenchError> {
    let tags: Vec<String> = (0..N_TAGS).map(|i| format!("group{}/tag{i}", i % 7)).collect();
    let writer = SummaryWriter::create(logdir, WriterOptions::default())?;
    let begin_ns = clock::mono_now();
    for step in 0..N_STEPS {
        for tag in &tags {
            writer.add_scalar(tag, step as f32, step);
        }
    }
    let added_ns = clock::mono_now() - begin_ns;
    let bytes = writer.path().to_owned();
    writer.close()?;
    report.add("add_scalar, a million in a row", added_ns as f64 / (N_STEPS * N_TAGS as i64) as f64, "ns");
    report.add("file of a million points", std::fs::metadata(bytes)?.len() as f64 / 1e6, "MB");
    Ok(())
}
