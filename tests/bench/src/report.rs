//! Figures of a benchmark: a table for the reader, JSON lines for the history.

use ::events::clock;
use serde_json::json;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

/// The error of a benchmark: it is printed and the others run.
pub type BenchError = Box<dyn std::error::Error>;

/// The figures of one benchmark's run.
pub struct Report {
    bench: &'static str,
    /// Part of the names of the cases that are wanted.
    cases: String,
    figures: Vec<Figure>,
}

struct Figure {
    case: String,
    value: f64,
    unit: &'static str,
}

impl Report {
    /// A report without figures, on the cases whose names contain `cases`.
    pub fn new(bench: &'static str, cases: &str) -> Self {
        Self { bench, cases: cases.to_owned(), figures: Vec::new() }
    }

    /// Whether the case of this name is asked for.
    pub fn wants(&self, case: &str) -> bool {
        case.contains(&self.cases)
    }

    /// Whether this case alone is asked for.
    pub fn is_asked_for(&self, case: &str) -> bool {
        self.cases == case
    }

    /// Adds a figure.
    pub fn add(&mut self, case: impl Into<String>, value: f64, unit: &'static str) {
        self.figures.push(Figure { case: case.into(), value, unit });
    }

    /// The figures as text, one line each.
    pub fn table(&self) -> String {
        let width = self.figures.iter().map(|f| f.case.len()).max().unwrap_or(0);
        let mut text = format!("{}\n", self.bench);
        for Figure { case, value, unit } in &self.figures {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {case:width$}  {value:12.3} {unit}");
        }
        text
    }

    /// Appends the figures to `tests/bench/bench.jsonl` of the checkout that this program was built from.
    ///
    /// # Errors
    /// That the file cannot be written.
    pub fn append(&self) -> io::Result<()> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench.jsonl");
        let (date, commit, cpu) = (date(clock::wall_now_ns()), commit(), cpu_model());
        let mut lines = String::new();
        for Figure { case, value, unit } in &self.figures {
            let line = json!({
                "date": date, "commit": commit, "cpu": cpu,
                "bench": self.bench, "case": case, "value": value, "unit": unit,
            });
            let _ = writeln!(lines, "{line}");
        }
        OpenOptions::new().create(true).append(true).open(path)?.write_all(lines.as_bytes())
    }
}

/// Unix nanoseconds as `YYYY-MM-DDTHH:MM:SSZ`.
fn date(unix_ns: i64) -> String {
    let seconds = unix_ns.div_euclid(1_000_000_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years that begin in March end with the leap day; 400 of them have 146,097 days.
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year_of_era + next_year;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The commit of the checkout, with `+` when files differ from it; empty outside a checkout.
fn commit() -> String {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(head) = git(&["rev-parse", "--short=12", "HEAD"]) else { return String::new() };
    let clean = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|s| s.is_empty());
    if clean { head } else { head + "+" }
}

/// The processor's name as the system gives it.
fn cpu_model() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|l| l.starts_with("model name"));
    line.and_then(|l| l.split_once(": ")).map_or(std::env::consts::ARCH, |(_, name)| name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::date;

    /// Against `date -u -d @SECONDS +%FT%TZ`.
    #[test]
    fn dates() {
        let got = [0, 951_782_399, 951_782_400, 1_767_225_599, 4_107_542_400].map(|s| date(s * 1_000_000_000));
        let want = [
            "1970-01-01T00:00:00Z",
            "2000-02-28T23:59:59Z",
            "2000-02-29T00:00:00Z",
            "2025-12-31T23:59:59Z",
            "2100-03-01T00:00:00Z",
        ];
        assert_eq!(got, want);
    }
}
