//! The contents of a card: ridges of bins, bands of quantiles. No egui here.

pub mod bands;
pub mod bins;
