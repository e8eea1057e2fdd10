//! What marking costs in Python: ours and other tracers by `python_peer.py`, each case in a process of its own, in rounds. The least of
//! the rounds counts. `STEPSCOPE_TRACERS` names a python that has them, `STEPSCOPE_PACKAGE` the folder of our package.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::report::{BenchError, Report};

const ROUNDS: usize = 5;

/// Runs the benchmark.
pub fn run(report: &mut Report) -> Result<(), BenchError> {
    let variable = |name| std::env::var(name).map_err(|_| format!("{name} is not set: run `cargo xtask bench python`"));
    let (python, package) = (variable("STEPSCOPE_TRACERS")?, variable("STEPSCOPE_PACKAGE")?);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python_peer.py");
    let ask = |case: Option<&str>| -> Result<String, BenchError> {
        let mut command = Command::new(&python);
        let output = command.arg(&script).args(case).env("PYTHONPATH", &package).output()?;
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout)?),
            false => Err(String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("it failed").into()),
        }
    };
    let cases = ask(None)?;
    let mut least: BTreeMap<usize, f64> = BTreeMap::new();
    for round in 0..ROUNDS {
        for (i, case) in cases.lines().enumerate().filter(|(_, case)| report.wants(case)) {
            match ask(Some(case)) {
                Ok(figure) => {
                    let ns: f64 = figure.trim().parse()?;
                    least.entry(i).and_modify(|least| *least = least.min(ns)).or_insert(ns);
                }
                Err(error) if round == 0 => eprintln!("{case}: {error}"),
                Err(_) => {}
            }
        }
    }
    for (i, case) in cases.lines().enumerate() {
        if let Some(ns) = least.get(&i) {
            report.add(case, *ns, "ns");
        }
    }
    Ok(())
}
