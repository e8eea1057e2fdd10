//! `libstepscope`: the events of stepscope for programs in C, C++ and other languages; docs/use/c.md shows its use.
//!
//! 1. [`recording`]: starting and stopping, threads and forks;
//! 2. [`sites`]: names, which a program looks up once;
//! 3. [`slices`]: slices of the calling thread, with [`args`]; [`points`]: instants, counters, flows; [`steps`];
//! 4. [`tracks`]: work that is on no thread, such as a device's;
//! 5. [`errors`]: the text of the last error.
//!
//! `include/stepscope.h` is generated from these files and `helpers.h`; `tests/header.rs` compares it.
//!
//! No function unwinds into its caller. A null pointer and text that is not UTF-8 are errors.

// The names of a C library.
#![allow(non_camel_case_types)]

pub mod args;
pub mod errors;
pub mod points;
pub mod recording;
pub mod sites;
pub mod slices;
pub mod steps;
pub mod tracks;
