//! The parts that panels are made of, independent of runs, traces and graphs.
//!
//! [`theme`]: colours, sizes, fonts. [`widgets`]: controls, dialogs, tables. [`chart`]: scales, ticks, lines.
//! [`export`]: the screen as files. [`background`]: computations in threads. [`address`]: a panel's state as text,
//! [`command`]: its commands. [`mod@format`], [`natural`], [`fuzzy`], [`filter`], [`history`], [`pace`]: small helpers.

pub mod address;
pub mod background;
pub mod chart;
pub mod command;
pub mod export;
pub mod filter;
pub mod format;
pub mod fuzzy;
pub mod history;
pub mod natural;
pub mod pace;
pub mod theme;
pub mod widgets;

pub use background::Background;
