//! Values derived from scalar series: aligned by step, grouped by run. Pure functions.
//!
//! - [`align`]: a series' values by step, and between two steps.
//! - [`group`]: runs by a pattern in their name or a hyperparameter, and the band that the series of a group span.

pub mod align;
pub mod group;
