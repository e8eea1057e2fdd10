//! Traces that nobody meant to be read: six shapes at 1 M and 10 M events, opened and analysed, each in a process of its own. What an event
//! costs must not depend on how many there are.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::Command;

use crate::import::OPEN;
use crate::report::{BenchError, Report};
use crate::watched::watch;

/// Events of a file.
const SIZES: [(u64, &str); 2] = [(1_000_000, "1 M"), (10_000_000, "10 M")];
/// Tracks, names and counters have a row of their own in memory, and in life are never that many.
const MANY: u64 = 1_000_000;

/// A shape: what the `i`-th of `n` events is.
struct Shape {
    name: &'static str,
    event: fn(u64, u64) -> String,
}

const SHAPES: [Shape; 6] = [
    Shape { name: "equal", event: |_, _| slice("a", 1, 0, 10) },
    // Each overlaps the next n / 2, and none lies in another.
    Shape { name: "overlapping", event: |i, n| slice("a", 1, i, n / 2) },
    Shape { name: "nested", event: |i, n| slice("a", 1, i, 2 * (n - i)) },
    Shape { name: "a track each", event: |i, _| slice("a", i % MANY, i, 5) },
    Shape { name: "a name each", event: |i, _| slice(&format!("name {}", i % MANY), 1, 10 * i, 5) },
    Shape {
        name: "arrows across",
        event: |i, n| {
            // All leave before the first arrives, in the other order.
            let (part, id) = if i < n / 2 { ('s', i) } else { ('f', n - 1 - i) };
            format!(
                r#"{{"ph":"{part}","name":"x","cat":"x","id":{id},"pid":1,"tid":{},"ts":{i},"bp":"e"}}"#,
                i * 2 / n.max(1)
            )
        },
    },
];

fn slice(name: &str, tid: u64, ts: u64, dur: u64) -> String {
    format!(r#"{{"ph":"X","name":"{name}","cat":"x","pid":1,"tid":{tid},"ts":{ts},"dur":{dur}}}"#)
}

/// Runs the benchmark.
pub fn run(report: &mut Report) -> Result<(), BenchError> {
    for shape in SHAPES {
        for (n, label) in SIZES {
            let case = format!("{}, {label}", shape.name);
            if !report.wants(&case) {
                continue;
            }
            let dir = tempfile::tempdir()?;
            let file = dir.path().join("trace.json");
            write(&file, &shape, n)?;
            for how in ["view", "analyze"] {
                let opened = watch(Command::new(std::env::current_exe()?).arg(OPEN).arg(&file).arg(how))?;
                report.add(format!("{case}: {how}, CPU per event"), opened.cpu_s * 1e9 / n as f64, "ns");
                report.add(format!("{case}: {how}, anonymous memory"), opened.anonymous / 1e6, "MB");
            }
        }
    }
    Ok(())
}

fn write(path: &Path, shape: &Shape, n: u64) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    for i in 0..n {
        let before = if i == 0 { "[" } else { ",\n" };
        write!(out, "{before}{}", (shape.event)(i, n))?;
    }
    out.write_all(b"]\n")?;
    out.flush()
}
