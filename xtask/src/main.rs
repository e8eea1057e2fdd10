//! `cargo xtask`: starts the checks, tests and benchmarks.

fn main() {}
