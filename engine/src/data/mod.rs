//! Data sets and batches: the bundled digits, the user's own CSV, text of known entropy, shuffled epochs.

mod batches;
mod digits;
mod grammar;
mod resize;
mod shuffle;

pub use batches::Batches;
pub use digits::{DataError, Digits, digits, digits_from};
pub use grammar::Grammar;
pub use resize::enlarged;
