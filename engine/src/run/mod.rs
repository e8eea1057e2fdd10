//! Running plans: the [`executor`], the threads of its [`pool`], and where the devices of a process meet.

pub mod executor;
pub mod pool;
pub mod rendezvous;
