//! What a trace is made of: the words that recording, storing, converting and analysing share. It holds no trace itself.
//!
//! 1. [`track`], [`slice`], [`rows`], [`names`], [`site`], [`stack`], [`thread_state`], [`warning`]: the rows of a trace.
//! 2. [`batch`]: what a source of events hands to a store; [`args`]: arguments of slices.
//! 3. [`layout`]: the files of a trace folder; [`chunks`]: what a collector writes; [`clocks`]: other machines' clocks.
//! 4. [`lod`]: level of detail; [`cold`] and [`pages`]: slices that are not in memory.
//! 5. [`scheduling`]: from the kernel's scheduler events to slices, for recordings and imports; [`radix`]: sorting by time.

pub mod args;
pub mod batch;
pub mod chunks;
pub mod clocks;
pub mod cold;
pub mod layout;
pub mod lod;
pub mod names;
pub mod pages;
pub mod radix;
pub mod rows;
pub mod scheduling;
pub mod site;
pub mod slice;
pub mod stack;
pub mod thread_state;
pub mod track;
pub mod warning;
