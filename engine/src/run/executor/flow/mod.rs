//! Plans with loops and branches: the executor's loop with frames, iterations and dead values (white paper section 4.4).
//!
//! Each execution belongs to an iteration of a frame's instance and may be *dead*: on a branch that was not taken. Dead
//! nodes do not compute (but send and receive), they make their consumers dead. What a node of an iteration waits for is
//! one atomic word ([`counts`]); nothing else is shared but the beginning and end of iterations ([`state`]). The
//! rules of the primitives are in [`transitions`].

mod counts;
mod mode;
mod state;
mod sync;
mod transitions;

use crate::compile::plan::merge;
pub(super) use mode::Frames;
pub(crate) use state::FlowState;
