//! The contents of cards: decoded values, and the series and steps of each card. No egui here.

pub mod decode;
pub mod rows;
pub mod steps;
pub mod wav;
