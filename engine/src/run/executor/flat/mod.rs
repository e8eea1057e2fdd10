//! Plans without control flow: each node runs once, when its pending count has fallen to zero.

mod mode;
mod state;

pub(crate) use state::FlatState;
