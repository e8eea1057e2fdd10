//! The model of `ring_model.rs` finds what it is for: here records are published without the order that makes them visible first.

#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(dead_code, missing_docs, reason = "the module under test is compiled here on loom's types")]

mod model;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
    pub(crate) const PUBLISH: Ordering = Ordering::Relaxed;

    pub(crate) fn fence(order: Ordering) {
        // A relaxed fence is none; loom and the standard library refuse it.
        if order != Ordering::Relaxed {
            loom::sync::atomic::fence(order);
        }
    }
}

#[path = "../src/ring/protocol.rs"]
mod protocol;

#[test]
fn the_planted_bug_is_found() {
    for model in [model::consumed as fn(), model::overwritten] {
        let found = std::panic::catch_unwind(|| model::check(model));
        assert!(found.is_err(), "a record that is published too early goes unnoticed");
    }
}
