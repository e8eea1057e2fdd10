//! `stepscope query` in a program that was built without SQL.

use crate::args::{Query, Verbosity};
use crate::outcome::{Failure, Outcome};

/// Fails with the command that builds a program with SQL and runs this query.
pub fn run(_: &Query, _: Verbosity) -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).map(|arg| quoted(&arg)).collect();
    let command = args.join(" ");
    Err(Failure::wrong_use(format_args!(
        "this program was built without SQL; to have it: pip install 'stepscope[sql]', or, built from source: cargo run --release --features query -- {command}"
    )))
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
