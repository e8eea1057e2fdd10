//! Results compared with those of TensorFlow and of ONNX.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "tests, which print their counts")]

#[path = "../common/cases.rs"]
mod cases;
mod control_flow;
mod dtypes;
mod found_graphs;
mod kernels;
mod math;
mod nn;
mod onnx;
mod random_programs;
