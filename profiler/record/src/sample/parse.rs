//! Records of the perf rings, taken apart. The layout is that of perf_event_open(2) for the fields that [`super::perf`] asks for.

/// Where a record says that it is from: the fields that each has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    /// `CLOCK_MONOTONIC_RAW`, ns.
    pub(crate) time: u64,
    pub(crate) cpu: u32,
}

/// A sample as the kernel took it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Addresses, innermost first, with the kernel's marks between its part and the user's.
    pub(crate) chain: Vec<u64>,
    /// The user's BP, SP and IP.
    pub(crate) registers: Option<[u64; 3]>,
    /// The user's stack from SP on.
    pub(crate) stack: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Sample(Origin, Sample),
    /// A mapping of code.
    Map {
        from: Origin,
        address: u64,
        len: u64,
        offset: u64,
        path: String,
    },
    /// `tid` runs under this name; `exec`: another program from now on.
    Comm {
        from: Origin,
        name: Vec<u8>,
        exec: bool,
    },
    /// Thread `tid` of process `pid` was made by thread `parent` of process `parent_pid`.
    Fork {
        from: Origin,
        pid: u32,
        tid: u32,
        parent: u32,
        parent_pid: u32,
    },
    Exit {
        from: Origin,
        tid: u32,
    },
    SwitchIn(Origin),
    SwitchOut {
        from: Origin,
        preempted: bool,
    },
    Lost(u64),
    Other,
}

impl Record {
    fn from(&self) -> Origin {
        match self {
            Record::Sample(from, _)
            | Record::Map { from, .. }
            | Record::Comm { from, .. }
            | Record::Fork { from, .. }
            | Record::Exit { from, .. }
            | Record::SwitchIn(from)
            | Record::SwitchOut { from, .. } => *from,
            Record::Lost(_) | Record::Other => Origin::default(),
        }
    }

    /// When, ns of `CLOCK_MONOTONIC_RAW`.
    pub(crate) fn time(&self) -> u64 {
        self.from().time
    }

    pub(crate) fn cpu(&self) -> u32 {
        self.from().cpu
    }
}

const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
pub(crate) const READ: u32 = 8;
pub(crate) const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const LOST_SAMPLES: u32 = 13;
const SWITCH: u32 = 14;
const MISC_EXEC: u16 = 1 << 13;
const MISC_SWITCH_OUT: u16 = 1 << 13;
const MISC_PREEMPT: u16 = 1 << 14;
const PROT_EXEC: u32 = 4;

/// Marks in a chain: the addresses after it are the kernel's, the user's.
pub(crate) const CONTEXT_KERNEL: u64 = -128i64 as u64;
pub(crate) const CONTEXT_USER: u64 = -512i64 as u64;
/// Every mark is at least this.
pub(crate) const CONTEXT_MAX: u64 = -4095i64 as u64;

/// Takes numbers from the front.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(front)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }
}

/// What a record's body says; `None` for one that is too short.
pub(crate) fn parse(kind: u32, misc: u16, body: &[u8], has_stack: bool) -> Option<Record> {
    if kind == SAMPLE {
        return sample(&mut Bytes(body), has_stack);
    }
    let (body, from) = from_trailer(body)?;
    let mut body = Bytes(body);
    Some(match kind {
        SWITCH if misc & MISC_SWITCH_OUT != 0 => Record::SwitchOut { from, preempted: misc & MISC_PREEMPT != 0 },
        SWITCH => Record::SwitchIn(from),
        LOST => {
            body.u64()?;
            Record::Lost(body.u64()?)
        }
        LOST_SAMPLES => Record::Lost(body.u64()?),
        COMM => {
            let (pid, tid) = (body.u32()?, body.u32()?);
            let name = body.0.split(|b| *b == 0).next().unwrap_or_default().to_vec();
            Record::Comm { from: Origin { pid, tid, ..from }, name, exec: misc & MISC_EXEC != 0 }
        }
        FORK | EXIT => {
            let (pid, parent_pid, tid, parent) = (body.u32()?, body.u32()?, body.u32()?, body.u32()?);
            if kind == FORK { Record::Fork { from, pid, tid, parent, parent_pid } } else { Record::Exit { from, tid } }
        }
        MMAP2 => return map(from, &mut body),
        _ => Record::Other,
    })
}

/// Each record that is no sample ends with pid, tid, time, cpu and a reserved word.
pub(crate) fn from_trailer(body: &[u8]) -> Option<(&[u8], Origin)> {
    let (body, trailer) = body.split_at_checked(body.len().checked_sub(24)?)?;
    let mut trailer = Bytes(trailer);
    let (pid, tid, time, cpu) = (trailer.u32()?, trailer.u32()?, trailer.u64()?, trailer.u32()?);
    Some((body, Origin { pid, tid, time, cpu }))
}

fn map(from: Origin, body: &mut Bytes<'_>) -> Option<Record> {
    let (pid, tid) = (body.u32()?, body.u32()?);
    let (address, len, offset) = (body.u64()?, body.u64()?, body.u64()?);
    body.take(24)?; // device, inode, generation or build id
    let (protection, _flags) = (body.u32()?, body.u32()?);
    if protection & PROT_EXEC == 0 {
        return Some(Record::Other);
    }
    let path = body.0.split(|b| *b == 0).next().unwrap_or_default();
    let path = String::from_utf8_lossy(path).into_owned();
    Some(Record::Map { from: Origin { pid, tid, ..from }, address, len, offset, path })
}

fn sample(body: &mut Bytes<'_>, has_stack: bool) -> Option<Record> {
    body.u64()?; // the address: the chain has it too
    let (pid, tid, time, cpu) = (body.u32()?, body.u32()?, body.u64()?, body.u32()?);
    body.u32()?;
    let from = Origin { pid, tid, time, cpu };
    let n = body.u64()?;
    let chain = body.take(usize::try_from(n.checked_mul(8)?).ok()?)?;
    let word = |b: &[u8]| b.try_into().map_or(0, u64::from_le_bytes);
    let mut sample = Sample { chain: chain.chunks_exact(8).map(word).collect(), ..Sample::default() };
    if has_stack {
        // No registers where the thread was in the kernel for good: a kernel thread.
        if body.u64()? != 0 {
            sample.registers = Some([body.u64()?, body.u64()?, body.u64()?]);
        }
        let size = body.u64()?;
        let stack = body.take(usize::try_from(size).ok()?)?;
        let used = if size > 0 { usize::try_from(body.u64()?).ok()? } else { 0 };
        sample.stack = stack.get(..used)?.to_vec();
    }
    Some(Record::Sample(from, sample))
}

/// A major page fault: `ip` is not asked for, the address is.
pub(crate) fn fault(kind: u32, body: &[u8]) -> Option<(Origin, u64)> {
    if kind != SAMPLE {
        return None;
    }
    let mut body = Bytes(body);
    let (pid, tid, time) = (body.u32()?, body.u32()?, body.u64()?);
    let address = body.u64()?;
    Some((Origin { pid, tid, time, cpu: body.u32()? }, address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    const TRAILER: [u32; 6] = [7, 8, 99, 0, 3, 0];
    const FROM: Origin = Origin { pid: 7, tid: 8, time: 99, cpu: 3 };

    #[test]
    fn records_as_the_manual_draws_them() {
        assert_eq!(parse(SWITCH, 0, &words(&TRAILER), false), Some(Record::SwitchIn(FROM)));
        let out = Record::SwitchOut { from: FROM, preempted: true };
        assert_eq!(parse(SWITCH, MISC_SWITCH_OUT | MISC_PREEMPT, &words(&TRAILER), false), Some(out));
        let fork = [&[20, 7, 21, 8, 50, 0][..], &TRAILER].concat();
        let made = Record::Fork { from: FROM, pid: 20, tid: 21, parent: 8, parent_pid: 7 };
        assert_eq!(parse(FORK, 0, &words(&fork), false), Some(made));
        let lost = [&[0, 0, 12, 0][..], &TRAILER].concat();
        assert_eq!(parse(LOST, 0, &words(&lost), false), Some(Record::Lost(12)));
        let sample = [1, 0, 7, 8, 99, 0, 3, 0, 1, 0, 5, 0, 2, 0, 10, 0, 11, 0, 12, 0, 8, 0, 0xabcd, 0, 4, 0];
        let want = Sample { chain: vec![5], registers: Some([10, 11, 12]), stack: vec![0xcd, 0xab, 0, 0] };
        assert_eq!(parse(SAMPLE, 0, &words(&sample), true), Some(Record::Sample(FROM, want)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_record_or_none(kind in 0u32..20, misc: u16, body in prop::collection::vec(any::<u8>(), 0..200), stack: bool) {
            if let Some(Record::Sample(_, sample)) = parse(kind, misc, &body, stack) {
                prop_assert!(sample.chain.len() * 8 + sample.stack.len() <= body.len());
            }
        }
    }
}
