//! Graphs and what is made of them: handles, gradients, layers, passes, lowering.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "tests, which print their counts")]

mod fusion;
mod gradients;
mod layers;
mod lowering;
mod passes;
mod products;
mod registries;
mod values;
