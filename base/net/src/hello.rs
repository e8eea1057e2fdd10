//! How two processes get to know each other: who they are, of which job, and in which life.
//!
//! The connecting end speaks first. Both messages are:
//!
//! ```text
//! 0   "STEPSNET"
//! 8   u32  version of the protocol
//! 12  u8   0: a hello, 1: a refusal
//! 13  u16  bytes that follow
//! 15  hello: u64 incarnation; job, own name, name of whom it means (each u8 length, text; empty: anyone)
//!     refusal: text
//! ```

use std::io::{Read, Write};

use crate::stream::Stream;
use crate::{Limits, NetError};

/// Changes whenever older processes could not follow.
pub const VERSION: u32 = 4;
const MAGIC: &[u8; 8] = b"STEPSNET";
const PREFIX: usize = 15;
/// Bytes after the prefix, at most.
const MAX_REST: usize = 1000;
/// A message that comes in more pieces than this is refused: each may take [`Limits::hello`].
const MAX_PIECES: usize = 8;

/// Who a process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The job's id: only processes of one job talk to each other. At most 255 bytes.
    pub job_id: String,
    /// Its name in the job: `/job:worker/task:1`, `master`. At most 255 bytes.
    pub name: String,
    /// Which life of it: another number after each start.
    pub incarnation: u64,
}

/// Who is at the other end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// Which life of it.
    pub incarnation: u64,
}

/// What one end says.
struct Hello {
    from: Identity,
    /// The name of whom it means.
    to: String,
}

/// Opens a connection: says who this is, and learns who answers. `meant` is the name of who should; empty: anyone.
pub(crate) fn open(stream: &mut Stream, own: &Identity, meant: &str, limits: &Limits) -> Result<Peer, NetError> {
    stream.set_timeouts(limits.hello, limits.hello)?;
    write(stream, 0, &encode(own, meant))?;
    let answer = read(stream)?.from;
    if answer.job_id != own.job_id {
        return Err(NetError::Refused("it is of another job".into()));
    }
    if !meant.is_empty() && answer.name != meant {
        return Err(NetError::Refused(format!("{} answers in place of {meant}", answer.name)));
    }
    Ok(Peer { name: answer.name, incarnation: answer.incarnation })
}

/// Answers to a connection, or refuses it.
pub(crate) fn answer(stream: &mut Stream, own: &Identity, limits: &Limits) -> Result<Peer, NetError> {
    stream.set_timeouts(limits.hello, limits.hello)?;
    let Hello { from, to } = read(stream)?;
    let refusal = if from.job_id != own.job_id {
        // Whoever is not of the job learns nothing of it.
        Some("another job".to_owned())
    } else if !to.is_empty() && to != own.name {
        Some(format!("this is {}, not {to}", own.name))
    } else {
        None
    };
    if let Some(reason) = refusal {
        write(stream, 1, reason.as_bytes())?;
        return Err(NetError::Refused(reason));
    }
    write(stream, 0, &encode(own, &from.name))?;
    Ok(Peer { name: from.name, incarnation: from.incarnation })
}

fn encode(from: &Identity, to: &str) -> Vec<u8> {
    let mut out = from.incarnation.to_le_bytes().to_vec();
    for text in [&from.job_id, &from.name, to] {
        let text = &text.as_bytes()[..text.len().min(255)];
        out.push(text.len() as u8);
        out.extend(text);
    }
    out
}

fn decode(mut rest: &[u8]) -> Option<Hello> {
    let (incarnation, after) = rest.split_first_chunk::<8>()?;
    rest = after;
    let mut text = || {
        let (len, after) = rest.split_first()?;
        let text = after.get(..usize::from(*len))?;
        rest = &after[text.len()..];
        String::from_utf8(text.to_vec()).ok()
    };
    let (job_id, name, to) = (text()?, text()?, text()?);
    let incarnation = u64::from_le_bytes(*incarnation);
    rest.is_empty().then_some(Hello { from: Identity { job_id, name, incarnation }, to })
}

fn write(to: &mut impl Write, kind: u8, rest: &[u8]) -> Result<(), NetError> {
    let rest = &rest[..rest.len().min(MAX_REST)];
    let mut message = MAGIC.to_vec();
    message.extend(VERSION.to_le_bytes());
    message.push(kind);
    message.extend((rest.len() as u16).to_le_bytes());
    message.extend(rest);
    Ok(to.write_all(&message)?)
}

fn read(from: &mut impl Read) -> Result<Hello, NetError> {
    let mut pieces = MAX_PIECES;
    let mut prefix = [0; PREFIX];
    fill(from, &mut prefix, &mut pieces)?;
    let stranger = |what: &str| NetError::Protocol(what.to_owned());
    if &prefix[..8] != MAGIC {
        return Err(stranger("the other end speaks another protocol"));
    }
    let version = u32::from_le_bytes([prefix[8], prefix[9], prefix[10], prefix[11]]);
    if version != VERSION {
        let text =
            format!("the other end speaks version {version} of the protocol, this one {VERSION}: update the older");
        return Err(NetError::Protocol(text));
    }
    let len = usize::from(u16::from_le_bytes([prefix[13], prefix[14]]));
    if len > MAX_REST {
        return Err(stranger("the hello is too long"));
    }
    let mut rest = vec![0; len];
    fill(from, &mut rest, &mut pieces)?;
    match prefix[12] {
        0 => decode(&rest).ok_or_else(|| stranger("the hello is damaged")),
        1 => Err(NetError::Refused(String::from_utf8_lossy(&rest).into_owned())),
        _ => Err(stranger("the hello is damaged")),
    }
}

fn fill(from: &mut impl Read, to: &mut [u8], pieces: &mut usize) -> Result<(), NetError> {
    let mut done = 0;
    while done < to.len() {
        *pieces = pieces.checked_sub(1).ok_or_else(|| NetError::Protocol("the hello comes too slowly".into()))?;
        match from.read(&mut to[done..]) {
            Ok(0) => return Err(NetError::Closed),
            Ok(n) => done += n,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn identity() -> Identity {
        Identity { job_id: "job-1".into(), name: "/job:worker/task:1".into(), incarnation: 0x0102_0304_0506_0708 }
    }

    fn message() -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, 0, &encode(&identity(), "master")).unwrap();
        bytes
    }

    #[test]
    fn a_hello_is_read_as_it_was_written() {
        let hello = read(&mut &message()[..]).unwrap();
        assert_eq!((hello.from, hello.to.as_str()), (identity(), "master"));
    }

    #[test]
    fn other_versions_and_refusals_are_reported() {
        let mut other = message();
        other[8] = 9;
        assert!(read(&mut &other[..]).err().unwrap().to_string().contains("version 9"));
        let mut refusal = Vec::new();
        write(&mut refusal, 1, b"another job").unwrap();
        assert_eq!(read(&mut &refusal[..]).err().unwrap().to_string(), "refused: another job");
        assert!(
            read(&mut &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..])
                .err()
                .unwrap()
                .to_string()
                .contains("another protocol")
        );
    }

    proptest! {
        #[test]
        fn a_damaged_hello_is_a_hello_or_an_error(at in 0usize..60, to in any::<u8>(), cut in 0usize..80) {
            let mut bytes = message();
            let at = at.min(bytes.len() - 1);
            bytes[at] = to;
            bytes.truncate(cut);
            let _ = read(&mut &bytes[..]);
        }
    }
}
