//! What to show: decoded values, cards and their steps. No egui here.

pub mod decode;
pub mod rows;
pub mod steps;
pub mod wav;
