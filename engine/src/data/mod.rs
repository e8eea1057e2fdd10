//! Data sets and batches: the bundled digits, the user's own CSV, text of known entropy, shuffled epochs.

mod batches;
mod cifar;
mod digits;
mod files;
mod grammar;
mod idx;
mod resize;
mod shuffle;

pub use batches::Batches;
pub use cifar::{cifar10, cifar100};
pub use digits::{DataError, Digits, digits, digits_from};
pub use files::FileError;
pub use grammar::Grammar;
pub use idx::{LabelledImages, mnist, read_idx};
pub use resize::enlarged;
pub use shuffle::SplitMix64 as Draws;
