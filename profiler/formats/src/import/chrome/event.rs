//! The fields of one event, as ranges of the bytes it lies in.

use super::json::{Member, Quotes, Stop, member};

/// A part of the bytes; empty where the event has no such field.
pub(super) type Part = (usize, usize);

/// The fields that are imported. Values are as written, strings with their quotes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fields {
    pub(super) phase: u8,
    pub(super) name: Part,
    pub(super) category: Part,
    pub(super) pid: Part,
    pub(super) tid: Part,
    pub(super) ts: Part,
    pub(super) dur: Part,
    pub(super) id: Part,
    pub(super) id2: Part,
    pub(super) scope: Part,
    pub(super) args: Part,
    pub(super) bind_id: Part,
    pub(super) flow_in: bool,
    pub(super) flow_out: bool,
    /// `sf`: a row of `stackFrames`.
    pub(super) frame: Part,
    /// `stack`: the frames themselves.
    pub(super) stack: Part,
}

impl Fields {
    /// Reads the members of an object, from after its opening bracket on; also returns the index after the closing one.
    pub(super) fn read(bytes: &[u8], mut i: usize, quotes: Quotes) -> Result<(Fields, usize), Stop> {
        let mut fields = Fields::default();
        loop {
            match member(bytes, i, quotes)? {
                Member::End(end) => return Ok((fields, end)),
                Member::Is { key, value, next } => {
                    fields.set(&bytes[key.0..key.1], value, bytes);
                    i = next;
                }
            }
        }
    }

    fn set(&mut self, key: &[u8], value: Part, bytes: &[u8]) {
        let slot = match key {
            b"ph" => {
                self.phase = bytes.get(value.0 + 1).copied().unwrap_or(0);
                return;
            }
            b"name" => &mut self.name,
            b"cat" => &mut self.category,
            b"pid" => &mut self.pid,
            b"tid" => &mut self.tid,
            b"ts" => &mut self.ts,
            b"dur" => &mut self.dur,
            b"args" => &mut self.args,
            b"id" => &mut self.id,
            b"id2" => &mut self.id2,
            b"scope" => &mut self.scope,
            b"bind_id" => &mut self.bind_id,
            b"flow_in" => {
                self.flow_in = is_true(&bytes[value.0..value.1]);
                return;
            }
            b"flow_out" => {
                self.flow_out = is_true(&bytes[value.0..value.1]);
                return;
            }
            b"sf" => &mut self.frame,
            b"stack" => &mut self.stack,
            _ => return,
        };
        *slot = value;
    }
}

fn is_true(value: &[u8]) -> bool {
    matches!(value, b"true" | b"1" | b"\"true\"")
}
