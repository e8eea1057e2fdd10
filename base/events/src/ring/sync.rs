//! The atomics of [`super::protocol`], which `tests/ring_model.rs` replaces by those of a model checker.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The order in which records become visible before the position behind them.
pub(crate) const PUBLISH: Ordering = Ordering::Release;
