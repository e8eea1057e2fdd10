//! All benchmarks; `cargo xtask bench` starts them.

fn main() {}
