//! Forks. A forked child has a copy of the parent's memory and of one thread: locks that other threads held would stay
//! locked in it, and the session, the rings and the meta file that it inherits are still the parent's.
//!
//! The handlers hold the crate's global locks during a fork, so that the child finds them free and what they guard whole.

use crate::local::{FORK_DEPTH, OFF, STATE, detach};
use crate::names::{self, NamesGuard};
use crate::rings::{self, SessionGuard};
use crate::system;
use std::cell::RefCell;
use std::sync::Once;
use std::sync::atomic::Ordering;

thread_local! {
    /// What a thread that forks holds meanwhile.
    static HELD: RefCell<Option<(SessionGuard, NamesGuard)>> = const { RefCell::new(None) };
}

/// Installs the handlers, once: before the process has its first session.
pub(crate) fn install_handlers() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| system::on_fork(before, in_parent, in_child));
}

extern "C" fn before() {
    // In the order of `session::start`. A thread that forks while it ends holds nothing.
    let _ = HELD.try_with(|held| held.replace(Some((rings::lock_session(), names::lock_names()))));
}

extern "C" fn in_parent() {
    let _ = HELD.try_with(RefCell::take);
}

extern "C" fn in_child() {
    FORK_DEPTH.fetch_add(1, Ordering::Relaxed);
    STATE.store(OFF, Ordering::Relaxed);
    // A slice that was open at the fork would end in the parent's ring.
    detach(false);
    in_parent();
}
