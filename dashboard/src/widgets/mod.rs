//! Small parts that several views use.

mod empty;
mod name;

pub use empty::empty_state;
pub use name::{describe, named};
