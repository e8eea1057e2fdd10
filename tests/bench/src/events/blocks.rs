//! Blocks of slices, one for each way to emit them.

use ::events::{NodeId, SiteId, emit_close, emit_slice, now, open, slice};
use std::hint::black_box;

/// Slices per block: a tenth of a millisecond, and a sixteenth of a ring.
pub const BLOCK: u64 = 4096;

pub fn two_stamps(_: SiteId) {
    for _ in 0..BLOCK {
        black_box((now(), now()));
    }
}

pub fn one_stamp(_: SiteId) {
    for _ in 0..BLOCK {
        black_box(now());
    }
}

pub fn stamps_given(site: SiteId) {
    for i in 0..BLOCK {
        let (begin, end) = (now(), now());
        emit_slice(begin, end, site, NodeId::new(7), 3, i);
    }
}

pub fn open_and_close(site: SiteId) {
    for i in 0..BLOCK {
        let running = open(now(), site, NodeId::new(7));
        emit_close(running, now(), 3, i);
    }
}

pub fn guard(site: SiteId) {
    for _ in 0..BLOCK {
        let _running = slice(black_box(site));
    }
}

pub fn chained(site: SiteId) {
    let mut begin = now();
    for i in 0..BLOCK {
        let end = now();
        emit_slice(begin, end, site, NodeId::new(7), 3, i);
        begin = end;
    }
}

pub fn span(_: SiteId) {
    for _ in 0..BLOCK {
        let _running = tracing::info_span!("bench").entered();
    }
}
