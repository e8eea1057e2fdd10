//! Series derived from scalars: combined, aligned and grouped. Pure functions.
//!
//! - [`align`]: a series' values by step, and between two steps.
//! - [`group`]: runs by a pattern in their name or a hyperparameter, and the band that a group's runs span.

pub mod align;
pub mod group;
