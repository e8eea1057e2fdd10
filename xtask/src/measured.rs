//! `cargo xtask measured`: writes docs/measured.md, the newest figure of each benchmark's case, from tests/bench/bench.jsonl.

use crate::steps::Failed;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A line of bench.jsonl.
#[derive(Deserialize)]
struct Figure {
    bench: String,
    case: String,
    value: f64,
    unit: String,
    date: String,
    cpu: String,
}

/// Further figures of a case, which stand in its row: the end of their names, and the column's text before the value.
const RATIOS: &[&str] =
    &["time ratio to TensorFlow", "of TensorFlow's time", "CPU of trace_processor's", "of our guard's"];
const PEERS: &[&str] = &["TensorFlow", "DuckDB", "Open MPI"];

/// Figures that say less than the median of the same case.
const LEFT_OUT: &[&str] =
    &[", least", ", min", ", first decile", ", pairs", "interval from", "interval to", "least times"];

const HEAD: &str = "\
# Measured

The newest figure of each case in [tests/bench/bench.jsonl](../tests/bench/bench.jsonl), which keeps every run with its commit.
`cargo xtask bench NAME` measures and appends; `cargo xtask measured` writes this page, and a test compares the two.

Times are medians, with the worst in brackets where it was noted.
*Peer* is the figure of another program for the same work in the same run.
*Ratio* is our time over the peer's, below 1 where ours is faster; in `events`, the other tracer's time over our guard's.
Compare figures of one machine only: \"Xeon\" and \"EPYC\" are virtual machines with two cores each, which other programs shared.
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn generate() -> Result<String, Failed> {
    let path = root().join("tests/bench/bench.jsonl");
    let failed = |error: &dyn std::fmt::Display| Failed(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(&path).map_err(|error| failed(&error))?;
    let lines = text.lines().map(serde_json::from_str::<Figure>);
    let figures = lines.collect::<Result<Vec<_>, _>>().map_err(|error| failed(&error))?;
    Ok(page(&figures))
}

/// Writes the page.
pub fn write() -> Result<(), Failed> {
    let path = root().join("docs/measured.md");
    std::fs::write(&path, generate()?).map_err(|error| Failed(format!("{}: {error}", path.display())))
}

/// The page of these figures, which are in order of time.
fn page(figures: &[Figure]) -> String {
    let mut newest: HashMap<(&str, &str, &str), &Figure> = HashMap::new();
    let mut order: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for figure in figures {
        let (bench, case, unit) = (&*figure.bench, &*figure.case, &*figure.unit);
        if newest.insert((bench, case, unit), figure).is_none() {
            order.entry(bench).or_default().push((case, unit));
        }
    }
    let mut text = HEAD.to_owned();
    for (bench, cases) in order {
        let _ = write!(
            text,
            "\n## {bench}\n\n| case | value | peer | ratio | date | machine |\n|---|---:|---:|---:|---|---|\n"
        );
        let find = |case: &str, unit: &str| newest.get(&(bench, case, unit)).copied();
        let rows =
            cases.iter().filter(|(case, _)| !belongs_to_another(case, |other| cases.iter().any(|c| c.0 == other)));
        for (case, unit) in rows {
            text += &row(case, unit, &find);
        }
    }
    text
}

/// Whether a case stands in another's row, or nowhere.
fn belongs_to_another(case: &str, is_case: impl Fn(&str) -> bool) -> bool {
    let stem = [", ", ": "]
        .iter()
        .filter_map(|mark| case.rsplit_once(mark))
        .find(|(_, end)| RATIOS.contains(end) || PEERS.contains(end) || *end == "worst");
    let of = stem.is_some_and(|(stem, end)| {
        let median = if end == "worst" { ": median" } else { ", median" };
        is_case(stem) || is_case(&format!("{stem}{median}")) || is_case(&format!("{stem}, CPU"))
    });
    of || LEFT_OUT.iter().any(|end| case.ends_with(end))
}

fn row<'a>(case: &str, unit: &str, find: &impl Fn(&str, &str) -> Option<&'a Figure>) -> String {
    let figure = find(case, unit).expect("the case has a figure");
    let name = case.trim_end_matches(": median").trim_end_matches(", median");
    let mut value = with_unit(figure.value, unit);
    if let Some(worst) = case.strip_suffix(": median").and_then(|stem| find(&format!("{stem}: worst"), unit)) {
        let _ = write!(value, " ({})", number(worst.value));
    }
    let same_run = |other: &&Figure| other.date == figure.date;
    let peer = PEERS.iter().find_map(|peer| {
        let other = find(&format!("{case}, {peer}"), unit).filter(same_run)?;
        Some(format!("{peer} {}", number(other.value)))
    });
    let stem = name.trim_end_matches(", CPU");
    let ratio = RATIOS.iter().find_map(|end| {
        let units = ["", "times", "%"].iter();
        let other = units.filter_map(|unit| find(&format!("{stem}, {end}"), unit)).find(same_run)?;
        let is_percent = other.unit == "%";
        Some(number(if is_percent { other.value / 100.0 } else { other.value }))
    });
    let machine = if figure.cpu.contains("Xeon") { "Xeon" } else { figure.cpu.trim_start_matches("AMD ") };
    let (peer, ratio, date) = (peer.unwrap_or_default(), ratio.unwrap_or_default(), &figure.date[..10]);
    format!("| {} | {value} | {peer} | {ratio} | {date} | {machine} |\n", name.replace('|', "\\|"))
}

fn with_unit(value: f64, unit: &str) -> String {
    format!("{} {unit}", number(value)).trim_end().to_owned()
}

/// Three digits that count, with commas from 1,000 on.
fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 999.5 {
        let digits = format!("{size:.0}");
        let groups: Vec<&str> =
            digits.as_bytes().rchunks(3).rev().filter_map(|g| std::str::from_utf8(g).ok()).collect();
        return format!("{}{}", if value < 0.0 { "-" } else { "" }, groups.join(","));
    }
    let decimals = if size == 0.0 { 0.0 } else { (2.0 - size.log10().floor()).clamp(0.0, 6.0) };
    let text = format!("{value:.*}", decimals as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::{generate, number, root};

    #[test]
    fn the_page_has_the_newest_figures() {
        let page = std::fs::read_to_string(root().join("docs/measured.md")).expect("docs/measured.md");
        assert!(page == generate().expect("the figures"), "run `cargo xtask measured`");
    }

    #[test]
    fn numbers_have_three_digits() {
        let got = [0.0, 0.002, 0.17, 3.0, 27.54, 999.6, 37_380.37, -0.45].map(number);
        assert_eq!(got, ["0", "0.002", "0.17", "3", "27.5", "1,000", "37,380", "-0.45"]);
    }
}
