//! Samples of call stacks, and the other perf events of a command's threads.
//!
//! In reading order: [`perf`] opens the kernel's rings, [`poll`] reads them, [`parse`] decodes their records, [`maps`]
//! has the executable mappings of each process, [`elf`] reads a mapped file, [`unwind`] finds the callers, [`stacks`]
//! stores each stack once.

mod elf;
pub(crate) mod maps;
pub(crate) mod parse;
pub(crate) mod perf;
pub(crate) mod poll;
pub(crate) mod stacks;
pub(crate) mod unwind;
