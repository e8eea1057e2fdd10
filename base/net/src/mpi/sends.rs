//! The messages that this process sends. MPI makes progress only while it is called, so a thread calls it while any
//! message is under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use threads::Condvar;

use super::calls::{Communicator, MESSAGE, Request};
use crate::NetError;
use crate::frame::Body;

/// The number of tags that every MPI supports.
const N_TAGS: u32 = 32_767;
/// While messages are under way, MPI is polled without pause; after `BUSY` without progress, once in each `PAUSE`.
const BUSY: Duration = Duration::from_millis(5);
const PAUSE: Duration = Duration::from_micros(100);

/// The bodies that this process sends.
#[derive(Default)]
pub struct Sends {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    under_way: Vec<Sending>,
    next_tag: u32,
    is_over: bool,
}

/// A body whose messages are under way.
struct Sending {
    requests: Vec<Request>,
    tag: u32,
    /// The messages' memory.
    _body: Vec<Body>,
    bytes: u64,
    of_peer: Arc<AtomicU64>,
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.of_peer.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Sends {
    /// Begins to send a body; returns the tag of its messages.
    pub fn begin(
        &self,
        all: Communicator,
        to: u32,
        body: Vec<Body>,
        bytes: u64,
        of_peer: &Arc<AtomicU64>,
    ) -> Result<u32, NetError> {
        let mut state = self.state.lock();
        if state.is_over {
            return Err(NetError::Closed);
        }
        let tag = state.free_tag()?;
        of_peer.fetch_add(bytes, Ordering::Relaxed);
        let mut sending = Sending { requests: Vec::new(), tag, _body: Vec::new(), bytes, of_peer: Arc::clone(of_peer) };
        let mut begun = Ok(tag);
        for message in body.iter().flat_map(|piece| (**piece).as_ref().chunks(MESSAGE)) {
            // SAFETY: the body stays in `sending` until all its requests are over, or for ever; moving the boxes moves
            // no bytes.
            match unsafe { all.send(message, to as i32, tag as i32) } {
                Ok(request) => sending.requests.push(request),
                Err(error) => {
                    begun = Err(error);
                    break;
                }
            }
        }
        sending._body = body;
        state.under_way.push(sending);
        drop(state);
        self.changed.notify_one();
        begun
    }

    /// Calls MPI while anything is under way, until [`Sends::end`].
    pub fn run(&self) {
        let mut busy_since = threads::now();
        loop {
            let (done, is_over) = {
                let mut state = self.state.lock();
                if state.under_way.is_empty() && !state.is_over {
                    self.changed.wait(&mut state);
                    busy_since = threads::now();
                }
                let done: Vec<Sending> = state.under_way.extract_if(.., Sending::is_over).collect();
                (done, state.is_over)
            };
            if is_over {
                return;
            }
            match done.is_empty() && threads::since(busy_since) > BUSY {
                true => threads::sleep(PAUSE),
                false => threads::yield_now(),
            }
            if !done.is_empty() {
                busy_since = threads::now();
            }
        }
    }

    /// Refuses further bodies and waits for those under way, for at most `within`. Returns whether all were sent.
    pub fn end(&self, within: Duration) -> bool {
        let begin = threads::now();
        loop {
            {
                let mut state = self.state.lock();
                state.is_over = true;
                state.under_way.retain_mut(|sending| !sending.is_over());
                if state.under_way.is_empty() || threads::since(begin) > within {
                    self.changed.notify_all();
                    return state.under_way.is_empty();
                }
            }
            threads::sleep(PAUSE);
        }
    }
}

impl State {
    /// Allocates a tag that no body under way has. A body that is never received keeps its tag.
    fn free_tag(&mut self) -> Result<u32, NetError> {
        for _ in 0..N_TAGS {
            self.next_tag = (self.next_tag + 1) % N_TAGS;
            if self.under_way.iter().all(|sending| sending.tag != self.next_tag) {
                return Ok(self.next_tag);
            }
        }
        Err(NetError::TooLarge { what: "what waits to be sent by MPI", bytes: N_TAGS.into(), limit: N_TAGS.into() })
    }
}

impl Sending {
    /// Whether all messages were sent. A request that MPI cannot test counts as under way: MPI may still read its
    /// memory.
    fn is_over(&mut self) -> bool {
        self.requests.retain_mut(|request| !request.is_over().unwrap_or(false));
        self.requests.is_empty()
    }
}
