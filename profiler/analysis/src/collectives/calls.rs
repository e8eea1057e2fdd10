//! The executions of collectives on all ranks, with what the trace says of each.

use super::args::{self, CommsArgs};
use super::group::ProcessGroup;
use super::kind::CollectiveKind;
use crate::activity::Activity;
use crate::lines::{Line, Lines, PieceId};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::hash::Hash;
use trace_model::{ArgsReader, NO_ARGS};
use trace_store::Store;

/// The host's call of PyTorch that has the arguments of a collective.
const HOST_CALL: &str = "record_param_comms";

/// An execution of a collective: a slice of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// The first piece of the slice.
    pub piece_id: PieceId,
    /// Row of the processes.
    pub process: u32,
    pub start: i64,
    pub end: i64,
    /// Row of [`Calls::signatures`].
    pub signature: u32,
    /// The number of the collective in its group.
    pub seq: Option<u64>,
}

/// What is the same of all executions of a collective.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Signature {
    pub kind: CollectiveKind,
    /// The kernel's name, where the group is not known.
    pub site: Option<u32>,
    /// Row of [`Calls::groups`].
    pub group: Option<u32>,
    /// The message, by the definitions of nccl-tests.
    pub bytes: Option<u64>,
    pub dtype: String,
    /// Of a transfer between two: whether this rank sends, and the other's number in the group.
    pub peer: Option<(bool, u32)>,
}

/// The executions of collectives, by line and start.
#[derive(Default)]
pub(crate) struct Calls {
    pub rows: Vec<Call>,
    pub signatures: Vec<Signature>,
    pub groups: Vec<ProcessGroup>,
}

impl Calls {
    pub(crate) fn new(store: &Store, lines: &Lines) -> Calls {
        let mut host_calls = HostCalls::default();
        let described = describe_lines(store, lines, &host_calls);
        let is_incomplete = described.iter().flatten().any(|call| call.args.is_none());
        let described = if is_incomplete && host_calls.read(store, lines) {
            describe_lines(store, lines, &host_calls)
        } else {
            described
        };
        let (mut calls, mut groups, mut signatures) = (Vec::new(), Interner::default(), Interner::default());
        for call in described.into_iter().flatten() {
            let (line, piece) = (lines.line(call.piece_id.line), lines.piece(call.piece_id));
            let slice = line.slice(piece);
            let seq = call.args.as_ref().and_then(|args| args.seq);
            let signature = match call.args {
                None => Signature {
                    kind: CollectiveKind::from_name(store.slice_name(slice)),
                    site: Some(slice.site),
                    group: None,
                    bytes: None,
                    dtype: String::new(),
                    peer: None,
                },
                Some(args) => Signature {
                    kind: args.kind,
                    site: args.group.is_none().then_some(slice.site),
                    group: args.group.map(|group| groups.row(group)),
                    bytes: args.bytes,
                    dtype: args.dtype,
                    peer: args.peer,
                },
            };
            let (start, end, process) = (piece.start, slice.end, line.process);
            let signature = signatures.row(signature);
            calls.push(Call { piece_id: call.piece_id, process, start, end, signature, seq });
        }
        Calls { rows: calls, signatures: signatures.rows, groups: groups.rows }
    }

    pub(crate) fn signature(&self, call: &Call) -> &Signature {
        &self.signatures[call.signature as usize]
    }

    pub(crate) fn group(&self, signature: &Signature) -> Option<&ProcessGroup> {
        self.groups.get(signature.group? as usize)
    }
}

/// Rows without repetitions.
struct Interner<T> {
    rows: Vec<T>,
    by_row: FxHashMap<T, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Interner { rows: Vec::new(), by_row: FxHashMap::default() }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    fn row(&mut self, value: T) -> u32 {
        if let Some(row) = self.by_row.get(&value) {
            return *row;
        }
        let row = self.rows.len() as u32;
        self.rows.push(value.clone());
        self.by_row.insert(value, row);
        row
    }
}

/// An execution, and what its arguments say.
struct DescribedCall {
    piece_id: PieceId,
    args: Option<Description>,
}

struct Description {
    kind: CollectiveKind,
    group: Option<ProcessGroup>,
    bytes: Option<u64>,
    dtype: String,
    peer: Option<(bool, u32)>,
    seq: Option<u64>,
}

impl Description {
    fn parse(text: &str) -> Option<Description> {
        let args = CommsArgs::parse(text)?;
        let (kind, dtype) = (CollectiveKind::from_name(&args.name()), args.dtype());
        let elements = args.elements().and_then(|(input, output)| kind.message_elements(input, output));
        let bytes = elements.zip(args::element_bytes(&dtype)).and_then(|(n, bytes)| n.checked_mul(bytes));
        Some(Description { kind, group: args.group(), bytes, dtype, peer: args.peer(), seq: args.seq() })
    }
}

fn describe_lines(store: &Store, lines: &Lines, host_calls: &HostCalls) -> Vec<Vec<DescribedCall>> {
    let describe_line = |(row, line): (usize, &Line)| {
        let mut reader = store.args().reader();
        let is_call =
            |(_, p): &(u32, &crate::lines::Piece)| p.activity == Activity::Collective && p.start == line.slice(p).start;
        let calls = (0..).zip(&line.pieces).filter(is_call).map(|(piece, p)| {
            let args = host_calls.describe(&mut reader, line.process, line.slice(p).args);
            DescribedCall { piece_id: PieceId { line: row as u32, piece }, args }
        });
        calls.collect()
    };
    lines.lines.par_iter().enumerate().map(describe_line).collect()
}

/// The arguments of the hosts' calls, for traces whose kernels do not have them: rows of the store's arguments by process
/// and the id that the kernel names.
#[derive(Default)]
struct HostCalls {
    rows: FxHashMap<(u32, u64), u32>,
}

impl HostCalls {
    /// Returns whether there are any.
    fn read(&mut self, store: &Store, lines: &Lines) -> bool {
        let is_host_call: Vec<bool> = store.sites().iter().map(|site| site.name == HOST_CALL).collect();
        let mut reader = store.args().reader();
        for line in lines.lines.iter().filter(|_| is_host_call.contains(&true)) {
            let calls = line.slices.iter().filter(|s| is_host_call.get(s.site as usize) == Some(&true));
            for slice in calls.filter(|slice| slice.args != NO_ARGS) {
                let text = reader.get(slice.args).filter(|text| CommsArgs::parse(text).is_some());
                if let Some(id) = text.and_then(args::external_id) {
                    self.rows.insert((line.process, id), slice.args);
                }
            }
        }
        !self.rows.is_empty()
    }

    /// What a kernel's arguments say, or those of the call that they name.
    fn describe(&self, reader: &mut ArgsReader<'_>, process: u32, args: u32) -> Option<Description> {
        let text = reader.get(args).filter(|_| args != NO_ARGS)?;
        if let Some(found) = Description::parse(text) {
            return Some(found);
        }
        let id = args::external_id(text).filter(|_| !self.rows.is_empty())?;
        Description::parse(reader.get(*self.rows.get(&(process, id))?)?)
    }
}
