//! Data sets and batches: the bundled digits, the user's own CSV, shuffled epochs.

mod batches;
mod digits;
mod shuffle;

pub use batches::Batches;
pub use digits::{DataError, Digits, digits, digits_from};
