//! The atomics of [`super::protocol`]; its model puts others in their place.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The order in which records become visible before the position behind them.
pub(crate) const PUBLISH: Ordering = Ordering::Release;
