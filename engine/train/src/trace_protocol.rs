//! The messages between a run and a worker whose trace it gathers, a line of JSON each, over a stream of the cluster.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The purpose of a stream of these messages. Its number grows when the messages change, so that a worker of another
/// version closes the stream.
pub(crate) const CONTROL_STREAM: &str = "trace-2";
/// The purpose of a stream of trace data. A worker requests each one that it needs.
pub(crate) const DATA_STREAM: &str = "trace-data";
/// The longest line, bytes.
const MAX_LINE_BYTES: usize = 64 << 10;

/// A message from the run to the worker.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub(crate) enum RecordCommand {
    /// Record, and send the trace to the run.
    Begin,
    /// Record the next `n` steps and then stop recording.
    Steps { n: u32 },
    /// Switch recording on or off.
    Switch { on: bool },
    /// End the recording and send the rest of the trace.
    End,
}

/// A message from the worker to the run.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum RecordEvent {
    /// The worker records.
    Recording,
    /// The worker does not record.
    Refused { reason: String, may_retry: bool },
    /// The worker needs one more stream for the trace.
    Connect,
    /// The recording has ended. `problem` describes the part of the trace that is missing, if any.
    Ended { problem: Option<String> },
}

/// Sends a message.
pub(crate) fn send(mut stream: &UnixStream, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// The receiving end of a stream of messages.
pub(crate) struct Messages {
    stream: UnixStream,
    line: Vec<u8>,
}

impl Messages {
    /// Reads messages from a stream; each wait for a message takes at most `timeout`.
    pub fn new(stream: UnixStream, timeout: Duration) -> io::Result<Messages> {
        stream.set_read_timeout(Some(timeout))?;
        Ok(Messages { stream, line: Vec::new() })
    }

    /// The stream, for answers.
    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// The next message; `None` where none arrived within the timeout.
    ///
    /// # Errors
    /// The other end is gone, or its message is invalid.
    pub fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        if !self.line.contains(&b'\n') {
            let mut chunk = [0; 4096];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => self.line.extend(&chunk[..n]),
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => return Ok(None),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(None),
                Err(e) => return Err(e),
            }
        }
        let Some(end) = self.line.iter().position(|byte| *byte == b'\n') else {
            let is_too_long = self.line.len() > MAX_LINE_BYTES;
            return if is_too_long { Err(io::ErrorKind::InvalidData.into()) } else { Ok(None) };
        };
        let line: Vec<u8> = self.line.drain(..=end).collect();
        Ok(Some(serde_json::from_slice(&line)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (UnixStream, Messages) {
        let (a, b) = UnixStream::pair().unwrap();
        (a, Messages::new(b, Duration::from_millis(10)).unwrap())
    }

    #[test]
    fn commands_arrive_as_they_were_sent() {
        let (a, mut messages) = pair();
        assert!(messages.next::<RecordCommand>().unwrap().is_none(), "nothing was sent");
        let (steps, off, on) =
            (RecordCommand::Steps { n: 7 }, RecordCommand::Switch { on: false }, RecordCommand::Switch { on: true });
        for command in [RecordCommand::Begin, steps, off, on, RecordCommand::End] {
            send(&a, &command).unwrap();
            assert_eq!(messages.next().unwrap(), Some(command));
        }
    }

    #[test]
    fn events_arrive_as_they_were_sent() {
        let (a, mut messages) = pair();
        let refused = RecordEvent::Refused { reason: "w".into(), may_retry: true };
        let problem = RecordEvent::Ended { problem: Some("p".into()) };
        for event in
            [RecordEvent::Recording, refused, RecordEvent::Connect, RecordEvent::Ended { problem: None }, problem]
        {
            send(&a, &event).unwrap();
            assert_eq!(messages.next().unwrap(), Some(event));
        }
    }

    #[test]
    fn a_message_may_arrive_in_pieces_and_several_at_once() {
        let (mut a, mut messages) = pair();
        a.write_all(b"{\"comm").unwrap();
        assert!(messages.next::<RecordCommand>().unwrap().is_none());
        a.write_all(b"and\":\"begin\"}\n{\"command\":\"end\"}\n").unwrap();
        assert_eq!(messages.next().unwrap(), Some(RecordCommand::Begin));
        assert_eq!(messages.next().unwrap(), Some(RecordCommand::End));
    }

    #[test]
    fn invalid_messages_are_refused() {
        for line in
            ["garbage", "{}", "{\"command\":\"dance\"}", "{\"command\":\"steps\",\"n\":-1}", "{\"command\":\"steps\"}"]
        {
            let (mut a, mut messages) = pair();
            a.write_all(format!("{line}\n").as_bytes()).unwrap();
            assert!(messages.next::<RecordCommand>().is_err(), "{line}");
        }
    }

    #[test]
    fn an_endless_line_is_refused() {
        let (mut a, mut messages) = pair();
        let writer = std::thread::spawn(move || {
            // Fails when the other end has gone.
            let _ = a.write_all(&vec![b'x'; 4 * MAX_LINE_BYTES]);
        });
        let refused = loop {
            match messages.next::<RecordCommand>() {
                Ok(None) => {}
                Ok(Some(command)) => panic!("{command:?}"),
                Err(error) => break error.kind(),
            }
        };
        assert_eq!(refused, io::ErrorKind::InvalidData);
        drop(messages);
        writer.join().unwrap();
    }

    #[test]
    fn the_end_of_the_other_side_is_an_error() {
        let (a, mut messages) = pair();
        drop(a);
        assert_eq!(messages.next::<RecordEvent>().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
