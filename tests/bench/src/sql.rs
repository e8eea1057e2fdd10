//! SQL over a sealed trace: windows of time, full scans and a join, in rounds with DuckDB over the same files where the python of
//! `STEPSCOPE_PYTHON` has it.

use crate::report::{BenchError, Report};
use ::events::clock;
use ::query::{Database, Format, Options};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const ROUNDS: usize = 7;

/// A query on its first line, answered by a line with wall time, CPU time (ns) and the sum of the first column.
const PEER: &str = r#"
import sys, json, time, glob, os, duckdb
for path in glob.glob(sys.argv[1] + "/*.parquet"):
    duckdb.sql(f"create view {os.path.basename(path)[:-8]} as select * from '{path}'")
for line in sys.stdin:
    wall, cpu = time.perf_counter_ns(), time.process_time_ns()
    rows = duckdb.sql(json.loads(line)).fetchall()
    wall, cpu = time.perf_counter_ns() - wall, time.process_time_ns() - cpu
    print(json.dumps([wall, cpu, sum(row[0] for row in rows)]), flush=True)
"#;

/// DuckDB in a process of its own.
struct Peer {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It ends by itself as well, when its input does.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Peer {
    fn start(folder: &Path) -> Result<Option<Peer>, BenchError> {
        let Some(python) = std::env::var_os("STEPSCOPE_PYTHON") else { return Ok(None) };
        let mut command = Command::new(python);
        command.args(["-c", PEER]).arg(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let (Some(requests), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("the peer's pipes are missing".into());
        };
        Ok(Some(Peer { process, requests, answers: BufReader::new(answers) }))
    }

    /// Wall and CPU time in ns, and the sum of the first column.
    fn measure(&mut self, sql: &str) -> Result<(i64, i64, i64), BenchError> {
        writeln!(self.requests, "{}", Value::from(sql))?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(serde_json::from_str(&line).map_err(|_| "DuckDB gave no answer")?)
    }
}

fn own(database: &Database, sql: &str) -> Result<(i64, i64, i64), BenchError> {
    let (wall, cpu) = (clock::mono_now(), clock::cpu_now());
    let mut out = Vec::new();
    database.query(sql, None, Format::Csv, &mut out)?;
    let (wall, cpu) = (clock::mono_now() - wall, clock::cpu_now() - cpu);
    let text = String::from_utf8(out)?;
    let first = |line: &str| line.split(',').next().and_then(|n| n.parse::<i64>().ok()).unwrap_or(0);
    Ok((wall, cpu, text.lines().skip(1).map(first).sum()))
}

/// Runs the benchmark.
pub fn run(report: &mut Report) -> Result<(), BenchError> {
    let (dir, label) = crate::sealed::made()?;
    let folder = dir.path().join("trace");
    let begun = clock::cpu_now();
    let database = Database::open(&folder.to_string_lossy(), Options::default())?;
    report.add(format!("{label}: open, checksums included (CPU)"), (clock::cpu_now() - begun) as f64 / 1e6, "ms");
    let (_, _, last) = own(&database, "select max(ts_ns) from slices")?;
    let mut peer = Peer::start(&folder)?;
    for (what, share) in [("0.1 %", Some(1_000)), ("1 %", Some(100)), ("10 %", Some(10)), ("all", None)] {
        let window = share.map_or_else(String::new, |share| {
            format!("where ts_ns >= {} and ts_ns < {}", last / 2, last / 2 + last / share)
        });
        let sql = format!(
            "select count(*), coalesce(node, name) n, sum(dur_ns), max(dur_ns) from slices {window} group by n order by 3 desc limit 20"
        );
        case(report, &format!("{label}: top names, {what}"), &database, peer.as_mut(), &sql)?;
    }
    let gaps = "select count(*), track_id, sum(gap) from (select track_id, ts_ns - lag(ts_ns + dur_ns) over
        (partition by track_id, lane order by ts_ns) gap from slices) group by 2";
    case(
        report,
        &format!("{label}: gaps by track (a window function over all)"),
        &database,
        peer.as_mut(),
        &gaps.replace('\n', " "),
    )
}

/// Both in turn, so that what else the machine does meets both; medians.
fn case(
    report: &mut Report,
    name: &str,
    database: &Database,
    mut peer: Option<&mut Peer>,
    sql: &str,
) -> Result<(), BenchError> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(own(database, sql)?);
        if let Some(peer) = &mut peer {
            theirs.push(peer.measure(sql)?);
            if theirs.last().map(|t| t.2) != ours.last().map(|o| o.2) {
                return Err(format!("{name}: DuckDB's rows are others").into());
            }
        }
    }
    for (who, times) in [("", &ours), (", DuckDB", &theirs)] {
        let median = |pick: fn(&(i64, i64, i64)) -> i64| {
            let mut values: Vec<i64> = times.iter().map(pick).collect();
            values.sort_unstable();
            values.get(values.len() / 2).map(|ns| *ns as f64 / 1e6)
        };
        if let (Some(wall), Some(cpu)) = (median(|t| t.0), median(|t| t.1)) {
            report.add(format!("{name}{who}"), wall, "ms");
            report.add(format!("{name}{who} (CPU)"), cpu, "ms");
        }
    }
    Ok(())
}
