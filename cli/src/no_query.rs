//! `stepscope query` where the program was built without it.

use crate::args::{Query, Verbosity};
use crate::outcome::{Failure, Outcome};

/// Says how to get it: the same command by a program that has it.
pub fn run(_: &Query, _: Verbosity) -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).map(|arg| quoted(&arg)).collect();
    let command = args.join(" ");
    Err(Failure::wrong_use(format_args!(
        "this program was built without SQL, which takes much longer to build; to have it: cargo run --release --features query -- {command}"
    )))
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
