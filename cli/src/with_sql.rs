//! The program with SQL that `pip install stepscope[sql]` puts next to one without: it runs in place of this one.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Runs the same command with SQL, where there is such a program; then this one ends.
pub fn run_instead() {
    let full = std::env::current_exe().map(|program| program.with_file_name("stepscope-sql"));
    let Some(program) = full.ok().filter(|program| program.is_file()) else { return };
    let error = Command::new(&program).arg0("stepscope").args(std::env::args_os().skip(1)).exec();
    note!("warning: this program runs without SQL, as {} does not start: {error}", program.display());
}
