//! What every panel of the window is made of. It knows nothing of runs, traces and graphs.
//!
//! [`theme`]: colours, sizes, fonts. [`widgets`]: controls, dialogs, tables. [`chart`]: scales, ticks, curves. [`export`]: the screen
//! as files. [`background`]: one thread that computes what a frame asked for. [`address`]: a panel's state as text, [`command`]: what
//! can be done in it. [`mod@format`], [`natural`], [`fuzzy`], [`filter`], [`history`], [`pace`]: small helpers.

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
