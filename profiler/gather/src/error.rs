//! The errors of starting a sender and of starting a collector.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why sending did not start.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The collector's address is invalid.
    #[error("{0} is no address of a collector (HOST:PORT)")]
    Address(String),
    /// Another process sends the folder.
    #[error("{0} is being sent already")]
    InUse(PathBuf),
    /// The folder cannot be written.
    #[error("cannot send {0}: {1}")]
    Folder(PathBuf, #[source] io::Error),
    /// The sending thread cannot be started.
    #[error("cannot start the sending thread: {0}")]
    Thread(#[source] io::Error),
}

/// Why a collector did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The folder contains other files.
    #[error("{0} holds something else than a gathered trace: choose an empty or new folder")]
    NotEmpty(PathBuf),
    /// Another collector writes into the folder.
    #[error("another collector gathers into {0}")]
    InUse(PathBuf),
    /// The times in the folder are of another clock, such as the clock of this machine before its last boot.
    #[error("{0} was gathered before this machine was started again, on another clock: choose a new folder")]
    OtherClock(PathBuf),
    /// The folder cannot be written.
    #[error("cannot gather into {0}: {1}")]
    Folder(PathBuf, #[source] io::Error),
    /// The server cannot listen at the address.
    #[error("cannot listen at {0}: {1}")]
    Listen(SocketAddr, #[source] io::Error),
    /// The collector's threads cannot be started.
    #[error("cannot start the collector's threads: {0}")]
    Threads(#[source] io::Error),
}
