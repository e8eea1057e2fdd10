//! The rendezvous of a step that several tasks run: what is for another task is pushed there; the rest meets here.

use std::sync::Arc;

use engine::run::rendezvous::{Key, Message, Receiver, Rendezvous, RendezvousError};
use net::NetError;

use super::peers::{Routes, lost};
use super::shared::Shared;
use super::steps::Step;
use crate::protocol::{Head, Push};
use crate::wire;

/// A task's side of a step.
pub(super) struct TaskRendezvous {
    pub shared: Arc<Shared>,
    pub routes: Arc<Routes>,
    pub step: Arc<Step>,
    /// The master's incarnation.
    pub master: u64,
    pub number: u64,
}

impl Rendezvous for TaskRendezvous {
    fn send(&self, key: Key, message: Message) -> Result<(), RendezvousError> {
        let Some(task) = self.routes.get(key.edge.to()) else {
            return self.step.rendezvous.send(key, message);
        };
        let mut body = Vec::new();
        let value = match &message.value {
            Some(value) => Some(wire::put(value, &mut body).map_err(|stays| remote(&key, &stays))?),
            None => None,
        };
        let push = Push {
            master: self.master,
            step: self.number,
            edge: key.edge.text().to_owned(),
            frame: key.frame.frame,
            iteration: key.frame.iteration,
            value,
            transfer: message.transfer,
        };
        let sent = self.shared.send(task, push.frame(body));
        sent.map_err(|error| {
            // A value that is too large is the graph's fault, not the task's.
            if !matches!(error, NetError::TooLarge { .. }) {
                self.shared.masters.lose(&task.name, task.incarnation, &lost(&task.name, &error));
            }
            remote(&key, &error)
        })
    }

    fn recv(&self, key: Key, receiver: Receiver) {
        self.step.rendezvous.recv(key, receiver);
    }

    fn waiting(&self) -> Vec<String> {
        self.step.rendezvous.waiting()
    }

    fn abort(&self, error: RendezvousError) {
        self.step.rendezvous.abort(error);
    }
}

fn remote(key: &Key, error: &dyn std::fmt::Display) -> RendezvousError {
    RendezvousError::Remote(format!("{} to {}: {error}", key.edge.edge(), key.edge.to()).into())
}
