//! What master and workers say to each other: the messages of `proto/control.proto`, each with its kind of frame.

use net::{Body, Frame, Incoming, NetError};
use prost::Message;

/// The generated messages.
#[allow(missing_docs, unused_qualifications, clippy::all)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/stepscope.distributed.rs"));
}

pub use generated::failure::Kind as FailureKind;
pub use generated::*;

/// A message that is the head of frames of a kind.
pub trait Head: Message + Default {
    /// The kind.
    const KIND: FrameKind;

    /// A frame with this head.
    fn frame(&self, body: Vec<Body>) -> Frame {
        Frame { kind: Self::KIND as u8, head: self.encode_to_vec(), body }
    }

    /// The head of a frame of the kind.
    ///
    /// # Errors
    /// It is damaged.
    fn of(frame: &Incoming<'_>) -> Result<Self, NetError> {
        Self::decode(frame.head()).map_err(|e| NetError::Protocol(format!("a message of kind {:?}: {e}", Self::KIND)))
    }
}

macro_rules! kinds {
    ($($message:ident = $number:literal),*; $other:ident = $other_number:literal) => {
        /// The kinds of frames. The head of each but the last is the message of the same name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum FrameKind {
            $($message = $number,)*
            /// The head is the next bytes of a stream ([`crate::side`]).
            $other = $other_number,
        }

        impl TryFrom<u8> for FrameKind {
            type Error = NetError;

            fn try_from(number: u8) -> Result<FrameKind, NetError> {
                match number {
                    $($number => Ok(FrameKind::$message),)*
                    $other_number => Ok(FrameKind::$other),
                    _ => Err(NetError::Protocol(format!("no frame has kind {number}"))),
                }
            }
        }

        $(impl Head for $message {
            const KIND: FrameKind = FrameKind::$message;
        })*
    };
}
kinds!(
    Describe = 1,
    Described = 2,
    Register = 3,
    Done = 4,
    Run = 5,
    Ran = 6,
    Cancel = 7,
    Forget = 8,
    Reset = 9,
    Push = 10,
    Broken = 11,
    Stalled = 13;
    Bytes = 12
);

impl Failure {
    /// A failure of a kind.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Failure {
        Failure { kind: kind.into(), message: message.into(), task: String::new() }
    }
}
