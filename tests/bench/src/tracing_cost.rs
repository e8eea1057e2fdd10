//! What full tracing costs training steps: the same step in blocks, tracing on and off in turn, for each model.
//!
//! CPU time of the whole process is compared, the collector's thread included. A block ends only after a pause in
//! which the collector drains what the block left in the rings, so that its work is charged to the block that caused
//! it; the pause itself costs no CPU. The order within a pair changes from pair to pair.

use std::time::Duration;

use events::clock;
use trace_record::{Collector, CollectorOptions};

use crate::report::{BenchError, Report};

/// Twice the collector's interval and a little.
const DRAIN: Duration = Duration::from_millis(45);

/// What is compared: a block of steps.
pub struct Blocks<'a> {
    /// Names the figures.
    pub name: &'a str,
    /// Pairs of blocks, at least 100 for a meaningful interval.
    pub pairs: usize,
    /// Steps of a block.
    pub steps: usize,
    /// Runs a block.
    pub run: &'a mut dyn FnMut() -> Result<(), BenchError>,
}

/// What one block took.
struct Block {
    cpu_ns: f64,
    wall_ns: f64,
}

impl Blocks<'_> {
    fn block(&mut self) -> Result<Block, BenchError> {
        let (cpu, wall) = (clock::cpu_now(), clock::mono_now());
        (self.run)()?;
        let wall_ns = (clock::mono_now() - wall) as f64;
        std::thread::sleep(DRAIN);
        Ok(Block { cpu_ns: (clock::cpu_now() - cpu) as f64, wall_ns })
    }

    /// Compares, and reports the median of the pairs with its interval.
    ///
    /// # Errors
    /// A step fails, or the trace cannot be written.
    pub fn compare(mut self, report: &mut Report) -> Result<(), BenchError> {
        let folder = tempfile::tempdir()?;
        let recording = events::start(folder.path(), events::Options::default())?;
        let collector = Collector::start(folder.path(), CollectorOptions::default())?;
        for on in [false, true] {
            recording.switch(on);
            self.block()?;
        }
        let before = collector.progress().slices;
        let (mut on, mut off) = (Vec::new(), Vec::new());
        for pair in 0..self.pairs {
            for traced in [pair % 2 == 0, pair % 2 == 1] {
                recording.switch(traced);
                let block = self.block()?;
                if traced { &mut on } else { &mut off }.push(block);
            }
        }
        let slices = collector.progress().slices - before;
        drop(recording);
        let collected = collector.stop();
        self.add_figures(report, &on, &off, slices);
        let name = self.name;
        report.add(format!("{name}, dropped events"), collected.dropped as f64, "events");
        let bytes = collected.bytes as f64 / collected.records.max(1) as f64;
        report.add(format!("{name}, bytes per record on disk"), bytes, "bytes");
        Ok(())
    }

    fn add_figures(&self, report: &mut Report, on: &[Block], off: &[Block], slices: u64) {
        let name = self.name;
        let percent = sorted(on.iter().zip(off).map(|(on, off)| (on.cpu_ns / off.cpu_ns - 1.0) * 100.0));
        // The binomial 95 % interval of the median: order statistics n/2 -+ 1.96 sqrt(n)/2.
        let half = 0.98 * (percent.len() as f64).sqrt();
        let at = |i: f64| percent[(i.max(0.0) as usize).min(percent.len() - 1)];
        let middle = percent.len() as f64 / 2.0;
        report.add(format!("{name}, tracing, CPU time, median of pairs"), at(middle), "%");
        report.add(format!("{name}, tracing, CPU time, 95 % interval from"), at(middle - half), "%");
        report.add(format!("{name}, tracing, CPU time, 95 % interval to"), at(middle + half), "%");
        report.add(format!("{name}, pairs"), percent.len() as f64, "pairs");
        let rate = |blocks: &[Block]| {
            let wall = sorted(blocks.iter().map(|block| block.wall_ns));
            self.steps as f64 / (wall[wall.len() / 2] / 1e9)
        };
        report.add(format!("{name}, steps/s, traced"), rate(on), "steps/s");
        report.add(format!("{name}, steps/s, not traced"), rate(off), "steps/s");
        let per_slice = sorted(on.iter().zip(off).map(|(on, off)| on.cpu_ns - off.cpu_ns));
        let per_block = slices as f64 / self.pairs as f64;
        report.add(format!("{name}, slices per step"), per_block / self.steps as f64, "slices");
        let ns = per_slice[per_slice.len() / 2] / per_block;
        report.add(format!("{name}, CPU per slice, emitted and collected"), ns, "ns");
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}
