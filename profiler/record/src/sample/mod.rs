//! Call stacks of running threads, taken many times a second, and what else perf events report a command's threads.
//!
//! In reading order: [`perf`] opens the kernel's rings, [`poll`] reads them, [`parse`] takes their records apart, [`maps`] knows what code lies where in each
//! process, [`elf`] reads a file of code, [`unwind`] finds the callers, [`stacks`] keeps each stack once.

mod elf;
pub(crate) mod maps;
pub(crate) mod parse;
pub(crate) mod perf;
pub(crate) mod poll;
pub(crate) mod stacks;
pub(crate) mod unwind;
