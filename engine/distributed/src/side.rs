//! Streams of bytes to the tasks' processes, in addition to what master and workers say to each other: for what a program has to do with
//! the processes of a cluster itself, as gathering their traces.
//!
//! Each is a connection of its own, opened as a master's: encrypted between hosts, by who has a certificate and knows the job. Here it is
//! one end of a pair of sockets, whose other end two threads join with the connection: what is not taken waits in the systems' buffers, and
//! who gives more waits, too.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use net::{Connection, Frame, Handler, Identity, Incoming, Limits, NetError, Security};

use crate::cluster::{Cluster, TaskName};
use crate::protocol::FrameKind;

/// How who opens a stream calls itself; what the stream is for follows.
pub(crate) const PREFIX: &str = "stream:";
/// Bytes of a frame.
const PIECE: usize = 32 << 10;

/// Takes the streams that are opened to a worker: what each is for, and this process's end of it. Not to wait in.
pub type StreamTaker = Arc<dyn Fn(&str, UnixStream) + Send + Sync>;

/// Opens a stream to the process of a task; `purpose` says what for, in at most 200 bytes. It ends with either end's socket, and with the
/// connection.
///
/// # Errors
/// The task is not of the cluster or cannot be reached, or it does not let this process in.
pub fn open_stream(
    cluster: &Cluster,
    task: &TaskName,
    purpose: &str,
    security: Option<&Security>,
) -> Result<UnixStream, NetError> {
    let address = cluster.address(task).map_err(|error| NetError::Refused(error.to_string()))?;
    let own =
        Identity { job_id: cluster.id.clone(), name: format!("{PREFIX}{purpose}"), incarnation: threads::unique() };
    let limits = Limits { head: 2 * PIECE, body: 0, outbox: 1 << 20, lends: false, ..Limits::default() };
    join(Connection::open(address, &own, &task.to_string(), &limits, security)?)
}

/// The own end of a stream over this connection.
pub(crate) fn join(connection: Connection) -> Result<UnixStream, NetError> {
    let (own, joined) = UnixStream::pair()?;
    // Who does not take what came ends the stream: its connection is not to look as if it was lost.
    joined.set_write_timeout(Some(Limits::default().silence / 2))?;
    let mut from = joined.try_clone()?;
    let channel = connection.start(|_| Taking(joined))?;
    threads::spawn("side-send", move || {
        let mut piece = vec![0; PIECE];
        while let Ok(n @ 1..) = from.read(&mut piece) {
            if channel.outbox().send(Frame::message(FrameKind::Bytes as u8, piece[..n].to_vec())).is_err() {
                break;
            }
        }
        // What was sent is with the system: the connection ends after it.
        drop(channel);
        let _ = from.shutdown(Shutdown::Both);
    })?;
    Ok(own)
}

/// Gives what comes over the connection to the stream.
struct Taking(UnixStream);

impl Handler for Taking {
    fn frame(&mut self, frame: Incoming<'_>) -> Result<(), NetError> {
        match FrameKind::try_from(frame.kind)? {
            FrameKind::Bytes => Ok(self.0.write_all(frame.head())?),
            kind => Err(NetError::Protocol(format!("kind {kind:?} in a stream of bytes"))),
        }
    }

    fn on_end(&mut self, _: NetError) {
        // It may be closed already.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}
