//! The handshake of two processes: each sends its job, its name and its incarnation.
//!
//! The connecting end sends a hello, the listening end answers with a hello or a refusal. Both messages:
//!
//! ```text
//! 0   "STEPSNET"
//! 8   u32  version of the protocol
//! 12  u8   message kind. 0: hello, 1: refusal
//! 13  u16  length of the payload, bytes
//! 15  payload of a hello: u64 incarnation, then three texts, each a u8 length and UTF-8: the sender's job, the
//!     sender's name, the name of the process that the sender expects at the other end (empty: any)
//!     payload of a refusal: the reason, UTF-8
//! ```

use std::io::{Read, Write};

use crate::stream::Stream;
use crate::{Limits, NetError};

/// The protocol's version: it changes with every change that older processes do not understand.
pub const VERSION: u32 = 4;
const MAGIC: &[u8; 8] = b"STEPSNET";
const HELLO: u8 = 0;
const REFUSAL: u8 = 1;
/// Bytes before the payload.
const PREFIX: usize = 15;
/// The longest payload, bytes.
const MAX_PAYLOAD: usize = 1000;
/// The longest text in a hello, bytes: its length is a `u8`.
const MAX_TEXT: usize = 255;
/// Reads that one message may take. Each read may last [`Limits::hello`], so this bounds the time of a slow sender.
const MAX_READS: usize = 8;

/// A process's identity in its job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The job's id: only processes of one job talk to each other. At most 255 bytes.
    pub job_id: String,
    /// The process's name in the job: `/job:worker/task:1`, `master`. At most 255 bytes.
    pub name: String,
    /// A number that each start of the process chooses anew.
    pub incarnation: u64,
}

/// The process at the other end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The process's name in the job.
    pub name: String,
    /// The number of the process's start, as in [`Identity::incarnation`].
    pub incarnation: u64,
}

struct Hello {
    sender: Identity,
    /// The name of the process that the sender expects at the other end; empty: any.
    expected_name: String,
}

/// Performs the connecting end's handshake. `expected_name` is the name of the process that should answer; empty: any.
pub(crate) fn initiate(
    stream: &mut Stream,
    identity: &Identity,
    expected_name: &str,
    limits: &Limits,
) -> Result<Peer, NetError> {
    stream.set_timeouts(limits.hello, limits.hello)?;
    write(stream, HELLO, &encode(identity, expected_name))?;
    let peer = read(stream)?.sender;
    if peer.job_id != identity.job_id {
        return Err(NetError::Refused("it is of another job".into()));
    }
    if !expected_name.is_empty() && peer.name != expected_name {
        return Err(NetError::Refused(format!("{} answers in place of {expected_name}", peer.name)));
    }
    Ok(Peer { name: peer.name, incarnation: peer.incarnation })
}

/// Performs the listening end's handshake; sends a refusal where the jobs differ or another process is expected here.
pub(crate) fn respond(stream: &mut Stream, identity: &Identity, limits: &Limits) -> Result<Peer, NetError> {
    stream.set_timeouts(limits.hello, limits.hello)?;
    let Hello { sender, expected_name } = read(stream)?;
    let refusal = if sender.job_id != identity.job_id {
        // The refusal names nothing of this job to a process of another one.
        Some("another job".to_owned())
    } else if !expected_name.is_empty() && expected_name != identity.name {
        Some(format!("this is {}, not {expected_name}", identity.name))
    } else {
        None
    };
    if let Some(reason) = refusal {
        write(stream, REFUSAL, reason.as_bytes())?;
        return Err(NetError::Refused(reason));
    }
    write(stream, HELLO, &encode(identity, &sender.name))?;
    Ok(Peer { name: sender.name, incarnation: sender.incarnation })
}

fn encode(sender: &Identity, expected_name: &str) -> Vec<u8> {
    let mut out = sender.incarnation.to_le_bytes().to_vec();
    for text in [&sender.job_id, &sender.name, expected_name] {
        let text = &text[..text.floor_char_boundary(MAX_TEXT)];
        out.push(text.len() as u8);
        out.extend(text.as_bytes());
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
    let (job_id, name, expected_name) = (text()?, text()?, text()?);
    let incarnation = u64::from_le_bytes(*incarnation);
    rest.is_empty().then_some(Hello { sender: Identity { job_id, name, incarnation }, expected_name })
}

fn write(to: &mut impl Write, kind: u8, payload: &[u8]) -> Result<(), NetError> {
    let payload = &payload[..payload.len().min(MAX_PAYLOAD)];
    let mut message = MAGIC.to_vec();
    message.extend(VERSION.to_le_bytes());
    message.push(kind);
    message.extend((payload.len() as u16).to_le_bytes());
    message.extend(payload);
    Ok(to.write_all(&message)?)
}

fn read(from: &mut impl Read) -> Result<Hello, NetError> {
    let mut reads_left = MAX_READS;
    let mut prefix = [0; PREFIX];
    fill(from, &mut prefix, &mut reads_left)?;
    let error = |text: &str| NetError::Protocol(text.to_owned());
    let damaged = || error("the hello is damaged");
    let after_magic = prefix.strip_prefix(MAGIC).ok_or_else(|| error("the other end speaks another protocol"))?;
    let (version, after_version) = after_magic.split_first_chunk().ok_or_else(damaged)?;
    let &[kind, len_low, len_high] = after_version else { return Err(damaged()) };
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        let text =
            format!("the other end speaks version {version} of the protocol, this one {VERSION}: update the older");
        return Err(NetError::Protocol(text));
    }
    let len = usize::from(u16::from_le_bytes([len_low, len_high]));
    if len > MAX_PAYLOAD {
        return Err(error("the hello is too long"));
    }
    let mut payload = vec![0; len];
    fill(from, &mut payload, &mut reads_left)?;
    match kind {
        HELLO => decode(&payload).ok_or_else(damaged),
        REFUSAL => Err(NetError::Refused(String::from_utf8_lossy(&payload).into_owned())),
        _ => Err(damaged()),
    }
}

/// Fills `to`, and counts its reads down in `reads_left`.
fn fill(from: &mut impl Read, to: &mut [u8], reads_left: &mut usize) -> Result<(), NetError> {
    let mut filled = 0;
    while filled < to.len() {
        *reads_left =
            reads_left.checked_sub(1).ok_or_else(|| NetError::Protocol("the hello comes too slowly".into()))?;
        match from.read(&mut to[filled..]) {
            Ok(0) => return Err(NetError::Closed),
            Ok(n) => filled += n,
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
        write(&mut bytes, HELLO, &encode(&identity(), "master")).unwrap();
        bytes
    }

    #[test]
    fn a_hello_is_read_as_it_was_written() {
        let hello = read(&mut &message()[..]).unwrap();
        assert_eq!((hello.sender, hello.expected_name.as_str()), (identity(), "master"));
    }

    #[test]
    fn other_versions_and_refusals_are_reported() {
        let mut other = message();
        other[8] = 9;
        assert!(read(&mut &other[..]).err().unwrap().to_string().contains("version 9"));
        let mut refusal = Vec::new();
        write(&mut refusal, REFUSAL, b"another job").unwrap();
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
