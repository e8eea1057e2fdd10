//! The messages that this process sends. MPI makes progress only while it is called, so a thread calls it while any
//! message is under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use net::{Body, NetError};
use parking_lot::Mutex;
use threads::Condvar;

use crate::calls::{Communicator, MAX_MESSAGE, Request};

/// The number of tags that every MPI supports.
const N_TAGS: u32 = 32_767;
/// While messages are under way, MPI is polled without pause; after `SPIN_TIME` without progress, once in each
/// `POLL_PERIOD`.
const SPIN_TIME: Duration = Duration::from_millis(5);
const POLL_PERIOD: Duration = Duration::from_micros(100);

/// The bodies that this process sends.
#[derive(Default)]
pub struct Sends {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    under_way: Vec<BodySend>,
    next_tag: u32,
    is_closed: bool,
}

/// A body whose messages are under way.
struct BodySend {
    requests: Vec<Request>,
    tag: u32,
    /// The messages' memory.
    _body: Vec<Body>,
    bytes: u64,
    /// The bytes under way to the receiver, this body's among them.
    peer_bytes: Arc<AtomicU64>,
}

impl Drop for BodySend {
    fn drop(&mut self) {
        self.peer_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Sends {
    /// Begins to send a body of `bytes`, which are added to `peer_bytes` until they are sent. Returns the tag of the
    /// body's messages.
    pub fn begin(
        &self,
        communicator: Communicator,
        to: u32,
        body: Vec<Body>,
        bytes: u64,
        peer_bytes: &Arc<AtomicU64>,
    ) -> Result<u32, NetError> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(NetError::Closed);
        }
        let tag = state.allocate_tag()?;
        peer_bytes.fetch_add(bytes, Ordering::Relaxed);
        let (requests, peer_bytes) = (Vec::new(), Arc::clone(peer_bytes));
        let mut send = BodySend { requests, tag, _body: Vec::new(), bytes, peer_bytes };
        let mut result = Ok(tag);
        for message in body.iter().flat_map(|piece| (**piece).as_ref().chunks(MAX_MESSAGE)) {
            // SAFETY: the body stays in `send` until all its requests are over, or for ever; moving the boxes moves no
            // bytes.
            match unsafe { communicator.send(message, to as i32, tag as i32) } {
                Ok(request) => send.requests.push(request),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        send._body = body;
        state.under_way.push(send);
        drop(state);
        self.changed.notify_one();
        result
    }

    /// Calls MPI while any body is under way, until [`Sends::end`].
    pub fn run(&self) {
        let mut last_progress = threads::now();
        loop {
            let (done, is_closed) = {
                let mut state = self.state.lock();
                if state.under_way.is_empty() && !state.is_closed {
                    self.changed.wait(&mut state);
                    last_progress = threads::now();
                }
                let done: Vec<BodySend> = state.under_way.extract_if(.., BodySend::is_over).collect();
                (done, state.is_closed)
            };
            if is_closed {
                return;
            }
            match done.is_empty() && threads::since(last_progress) > SPIN_TIME {
                true => threads::sleep(POLL_PERIOD),
                false => threads::yield_now(),
            }
            if !done.is_empty() {
                last_progress = threads::now();
            }
        }
    }

    /// Refuses further bodies and waits for those under way, for at most `timeout`. Returns whether all were sent.
    pub fn end(&self, timeout: Duration) -> bool {
        let begin = threads::now();
        loop {
            {
                let mut state = self.state.lock();
                state.is_closed = true;
                state.under_way.retain_mut(|send| !send.is_over());
                if state.under_way.is_empty() || threads::since(begin) > timeout {
                    self.changed.notify_all();
                    return state.under_way.is_empty();
                }
            }
            threads::sleep(POLL_PERIOD);
        }
    }
}

impl State {
    /// Allocates a tag that no body under way has. A body that is never received keeps its tag.
    fn allocate_tag(&mut self) -> Result<u32, NetError> {
        for _ in 0..N_TAGS {
            self.next_tag = (self.next_tag + 1) % N_TAGS;
            if self.under_way.iter().all(|send| send.tag != self.next_tag) {
                return Ok(self.next_tag);
            }
        }
        Err(NetError::TooLarge { what: "what waits to be sent by MPI", bytes: N_TAGS.into(), limit: N_TAGS.into() })
    }
}

impl BodySend {
    /// Whether all messages were sent. A request that MPI cannot test counts as under way: MPI may still read its
    /// memory.
    fn is_over(&mut self) -> bool {
        self.requests.retain_mut(|request| !request.is_over().unwrap_or(false));
        self.requests.is_empty()
    }
}
