//! A model of the ring: loom runs the interleavings of producer and consumer, weak memory included, on the code of
//! `ring/protocol.rs` itself.

#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(dead_code, missing_docs, reason = "the module under test is compiled here on loom's types")]

mod model;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
    pub(crate) const PUBLISH: Ordering = Ordering::Release;
}

#[path = "../src/ring/protocol.rs"]
mod protocol;

#[test]
fn what_is_consumed_is_whole_and_complete() {
    model::check(model::consumed);
}

#[test]
fn what_is_read_while_it_is_written_over_is_whole() {
    model::check(model::overwritten);
}
