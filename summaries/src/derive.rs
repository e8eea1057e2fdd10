//! What is made of scalars: smoothed, combined, aligned and grouped. Pure functions; where they need no more, they take
//! plain numbers.
//!
//! - [`smooth`]: TensorBoard's debiased moving average, running median, Gaussian.
//! - [`align`]: points by step, by time or by another tag's value; ratio and difference of two series.
//! - [`group`]: runs by a pattern in their name or a hyperparameter, and the band that a group's runs span.

pub mod align;
pub mod group;
pub mod smooth;
