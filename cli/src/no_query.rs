//! `stepscope query` where the program was built without it.

use crate::args::{Query, Verbosity};
use crate::outcome::{Failure, Outcome};

/// Says how to get it.
pub fn run(_: &Query, _: Verbosity) -> Outcome {
    Err(Failure::wrong_use("this program was built without SQL; build it with: cargo build --release --features query"))
}
