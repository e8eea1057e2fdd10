//! Other tools' traces: [`mod@import`] reads them into batches, [`mod@export`] writes a store as one of them, [`locate`] says which traces
//! a path holds.

pub mod export;
pub mod import;
pub mod locate;
