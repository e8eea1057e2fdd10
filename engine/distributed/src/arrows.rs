//! The messages that run a step, as arrows of the trace (docs/formats/trace-format.md): what a task waited for between its steps is what its
//! master did, and through the answers what the other tasks did.

use events::{Kind, NodeId, SiteId, site};

/// Which of the messages that run a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// Master to worker: run a part.
    Run,
    /// Worker to master: it ran.
    Ran,
}

impl MessageKind {
    fn site(self) -> SiteId {
        match self {
            MessageKind::Run => site!("edge", "run"),
            MessageKind::Ran => site!("edge", "ran"),
        }
    }
}

/// A message leaves this thread: its number, 0 where it is not traced.
pub fn leaves(message: MessageKind) -> u32 {
    if !events::is_on() {
        return 0;
    }
    let number = events::next_flow_id();
    events::flow_out(message.site(), number);
    number
}

/// A message that came.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// In ticks.
    at: u64,
    message: MessageKind,
    number: u32,
}

impl Arrival {
    /// A message with this number came; `None` where it is not traced.
    pub fn now(message: MessageKind, number: u32) -> Option<Arrival> {
        (number != 0 && events::is_on()).then(|| Arrival { at: events::clock::now(), message, number })
    }

    /// Its arrow ends on this thread, which waited for it.
    pub fn emit(self) {
        events::emit_event_at(Kind::FlowIn, self.at, self.message.site(), NodeId::NONE, self.number, 0);
    }
}
