//! What a run and a worker whose trace it gathers say to each other, a line of JSON each, over a stream of the cluster.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

/// What streams are for: these words; and the trace itself, of which a worker asks for as many as it needs.
pub(super) const WORDS: &str = "trace";
pub(super) const DATA: &str = "trace-data";
/// Bytes of a line, at most.
const MAX_LINE: usize = 64 << 10;

/// What a run says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Ask {
    /// Record, and send it here.
    Begin,
    /// Record so many more steps, and nothing else.
    Steps(u32),
    /// Record, or do not.
    Switch(bool),
    /// Send the rest.
    End,
}

/// What a worker says.
#[derive(Debug, PartialEq)]
pub(super) enum Tell {
    /// It records.
    Recording,
    /// It does not; and whether it may later.
    Refused { why: String, for_now: bool },
    /// Make one more stream for the trace.
    Connect,
    /// The rest was sent; or why not.
    Ended(Option<String>),
}

impl Ask {
    pub fn to_json(self) -> Value {
        match self {
            Ask::Begin => json!({"begin": true}),
            Ask::Steps(n) => json!({"steps": n}),
            Ask::Switch(on) => json!({"switch": on}),
            Ask::End => json!({"end": true}),
        }
    }

    pub fn of(value: &Value) -> Option<Ask> {
        let is = |key: &str| value[key] == json!(true);
        let steps = || value["steps"].as_u64().and_then(|n| u32::try_from(n).ok()).map(Ask::Steps);
        let others = || steps().or_else(|| value["switch"].as_bool().map(Ask::Switch));
        if is("begin") {
            Some(Ask::Begin)
        } else if is("end") {
            Some(Ask::End)
        } else {
            others()
        }
    }
}

impl Tell {
    pub fn to_json(&self) -> Value {
        match self {
            Tell::Recording => json!({"recording": true}),
            Tell::Refused { why, for_now } => json!({"refused": why, "for_now": for_now}),
            Tell::Connect => json!({"connect": true}),
            Tell::Ended(problem) => json!({"ended": true, "problem": problem}),
        }
    }

    pub fn of(value: &Value) -> Option<Tell> {
        let is = |key: &str| value[key] == json!(true);
        let refused = || {
            let why = value["refused"].as_str()?.to_owned();
            Some(Tell::Refused { why, for_now: is("for_now") })
        };
        if is("recording") {
            Some(Tell::Recording)
        } else if is("connect") {
            Some(Tell::Connect)
        } else if is("ended") {
            Some(Tell::Ended(value["problem"].as_str().map(str::to_owned)))
        } else {
            refused()
        }
    }
}

/// Says a word.
pub(super) fn say(mut to: &UnixStream, word: &Value) -> io::Result<()> {
    to.write_all(format!("{word}\n").as_bytes())
}

/// What the other end says, line by line.
pub(super) struct Words {
    stream: UnixStream,
    line: Vec<u8>,
}

impl Words {
    /// Of a stream; each wait for a word takes at most `patience`.
    pub fn new(stream: UnixStream, patience: Duration) -> io::Result<Words> {
        stream.set_read_timeout(Some(patience))?;
        Ok(Words { stream, line: Vec::new() })
    }

    /// How to answer.
    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// The next word; `None` where none came meanwhile.
    ///
    /// # Errors
    /// The other end is gone, or says what cannot be.
    pub fn next(&mut self) -> io::Result<Option<Value>> {
        if !self.line.contains(&b'\n') {
            let mut piece = [0; 4096];
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => self.line.extend(&piece[..n]),
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => return Ok(None),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(None),
                Err(e) => return Err(e),
            }
        }
        let Some(end) = self.line.iter().position(|byte| *byte == b'\n') else {
            let is_long = self.line.len() > MAX_LINE;
            return if is_long { Err(io::ErrorKind::InvalidData.into()) } else { Ok(None) };
        };
        let line: Vec<u8> = self.line.drain(..=end).collect();
        Ok(Some(serde_json::from_slice(&line)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_over_as_they_were() {
        let (a, b) = UnixStream::pair().unwrap();
        let mut words = Words::new(b, Duration::from_millis(10)).unwrap();
        assert!(words.next().unwrap().is_none(), "nothing was said");
        for ask in [Ask::Begin, Ask::Steps(7), Ask::Switch(false), Ask::Switch(true), Ask::End] {
            say(&a, &ask.to_json()).unwrap();
            assert_eq!(Ask::of(&words.next().unwrap().unwrap()), Some(ask));
        }
        let refused = Tell::Refused { why: "w".into(), for_now: true };
        for tell in [Tell::Recording, refused, Tell::Connect, Tell::Ended(None), Tell::Ended(Some("p".into()))] {
            say(&a, &tell.to_json()).unwrap();
            assert_eq!(Tell::of(&words.next().unwrap().unwrap()), Some(tell));
        }
        (&a).write_all(b"{\"beg").unwrap();
        assert!(words.next().unwrap().is_none());
        (&a).write_all(b"in\":true}\n").unwrap();
        assert_eq!(Ask::of(&words.next().unwrap().unwrap()), Some(Ask::Begin));
        (&a).write_all(b"garbage\n").unwrap();
        assert!(words.next().is_err());
        drop(a);
        assert!(words.next().is_err());
    }
}
