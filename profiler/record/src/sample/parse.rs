//! Decodes the records of perf rings, in the layout of perf_event_open(2) for the fields that [`super::perf`] and
//! [`groups`](crate::count::groups) request.

/// The fields that each record has: the thread, time and CPU of its event.
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
    /// The call chain that the kernel followed, innermost first; the marks [`CONTEXT_KERNEL`] and [`CONTEXT_USER`]
    /// separate the frames of the kernel from those of the program.
    pub(crate) chain: Vec<u64>,
    /// The user's BP, SP and IP.
    pub(crate) registers: Option<[u64; 3]>,
    /// The user's stack from SP on.
    pub(crate) stack: Vec<u8>,
}

/// The values of a thread's group of counters at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The time that the thread ran while the group was on, ns.
    pub(crate) enabled: u64,
    /// The part of `enabled` in which the group counted, ns: on its CPU, while the processor had room for it.
    pub(crate) running: u64,
    /// Each counter's id and value; the first is the group's leader.
    pub(crate) values: Vec<(u64, u64)>,
}

/// A record of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) origin: Origin,
    pub(crate) event: Event,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Sample(Sample),
    Reading(Reading),
    /// A major page fault at an address.
    Fault(u64),
    Map {
        address: u64,
        len: u64,
        offset: u64,
        path: String,
    },
    /// The thread has a new name; with `is_exec` it executes another program from now on.
    Comm {
        name: Vec<u8>,
        is_exec: bool,
    },
    /// Thread `parent` of process `parent_pid` started thread `tid` of process `pid`.
    Fork {
        pid: u32,
        tid: u32,
        parent: u32,
        parent_pid: u32,
    },
    Exit {
        tid: u32,
    },
    SwitchIn,
    SwitchOut {
        is_preempted: bool,
    },
    /// The number of records that the kernel dropped.
    Lost(u64),
    /// A record that is not used.
    Other,
}

/// The fields of the samples of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleFields {
    Chain,
    /// The call chain, registers and a part of the stack.
    Stack,
    /// A reading of counters.
    Counters,
    /// The address of a page fault, without the instruction pointer.
    Address,
}

// PERF_RECORD_*, PERF_RECORD_MISC_* and PROT_EXEC.
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const READ: u32 = 8;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const LOST_SAMPLES: u32 = 13;
const SWITCH: u32 = 14;
const MISC_EXEC: u16 = 1 << 13;
const MISC_SWITCH_OUT: u16 = 1 << 13;
const MISC_PREEMPT: u16 = 1 << 14;
const PROT_EXEC: u32 = 4;

/// Marks in a chain (`PERF_CONTEXT_*`): the addresses after them are the kernel's, or the user's.
pub(crate) const CONTEXT_KERNEL: u64 = -128i64 as u64;
pub(crate) const CONTEXT_USER: u64 = -512i64 as u64;
/// The smallest mark, as an unsigned number: every other value is an address.
pub(crate) const CONTEXT_MAX: u64 = -4095i64 as u64;

/// The bytes of a record that are not read yet.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(front)
    }

    /// Takes an array of `n` items.
    fn take_array(&mut self, n: u64, item_bytes: u64) -> Option<&'a [u8]> {
        self.take(usize::try_from(n.checked_mul(item_bytes)?).ok()?)
    }

    /// The remaining bytes up to a zero.
    fn text(&self) -> &'a [u8] {
        self.0.split(|b| *b == 0).next().unwrap_or_default()
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }
}

/// Decodes a record's body; `None` where it is too short.
pub(crate) fn parse(kind: u32, misc: u16, body: &[u8], fields: SampleFields) -> Option<Record> {
    if kind == SAMPLE {
        return sample(&mut Bytes(body), fields);
    }
    // All records except samples end with pid, tid, time, cpu and a reserved word.
    let (body, trailer) = body.split_at_checked(body.len().checked_sub(24)?)?;
    let mut origin = take_origin(&mut Bytes(trailer))?;
    let mut body = Bytes(body);
    if matches!(kind, COMM | READ | MMAP2) {
        (origin.pid, origin.tid) = (body.u32()?, body.u32()?);
    }
    let event = match kind {
        SWITCH if misc & MISC_SWITCH_OUT != 0 => Event::SwitchOut { is_preempted: misc & MISC_PREEMPT != 0 },
        SWITCH => Event::SwitchIn,
        LOST => {
            body.u64()?;
            Event::Lost(body.u64()?)
        }
        LOST_SAMPLES => Event::Lost(body.u64()?),
        COMM => Event::Comm { name: body.text().to_vec(), is_exec: misc & MISC_EXEC != 0 },
        FORK | EXIT => {
            let (pid, parent_pid, tid, parent) = (body.u32()?, body.u32()?, body.u32()?, body.u32()?);
            if kind == FORK { Event::Fork { pid, tid, parent, parent_pid } } else { Event::Exit { tid } }
        }
        // The last values of a thread that has exited.
        READ => Event::Reading(reading(&mut body)?),
        MMAP2 => map(&mut body)?,
        _ => Event::Other,
    };
    Some(Record { origin, event })
}

fn take_origin(body: &mut Bytes<'_>) -> Option<Origin> {
    Some(Origin { pid: body.u32()?, tid: body.u32()?, time: body.u64()?, cpu: body.u32()? })
}

fn map(body: &mut Bytes<'_>) -> Option<Event> {
    let (address, len, offset) = (body.u64()?, body.u64()?, body.u64()?);
    body.take(24)?; // device, inode, generation or build id
    let (protection, _flags) = (body.u32()?, body.u32()?);
    if protection & PROT_EXEC == 0 {
        return Some(Event::Other);
    }
    Some(Event::Map { address, len, offset, path: String::from_utf8_lossy(body.text()).into_owned() })
}

fn reading(body: &mut Bytes<'_>) -> Option<Reading> {
    let (n, enabled, running) = (body.u64()?, body.u64()?, body.u64()?);
    let mut rest = Bytes(body.take_array(n, 16)?);
    let mut values = Vec::new();
    while let (Some(value), Some(id)) = (rest.u64(), rest.u64()) {
        values.push((id, value));
    }
    Some(Reading { enabled, running, values })
}

fn sample(body: &mut Bytes<'_>, fields: SampleFields) -> Option<Record> {
    if matches!(fields, SampleFields::Chain | SampleFields::Stack) {
        body.u64()?; // the instruction pointer, which the chain has too
    }
    if fields == SampleFields::Address {
        let (pid, tid, time, address) = (body.u32()?, body.u32()?, body.u64()?, body.u64()?);
        return Some(Record { origin: Origin { pid, tid, time, cpu: body.u32()? }, event: Event::Fault(address) });
    }
    let origin = take_origin(body)?;
    body.u32()?;
    if fields == SampleFields::Counters {
        return Some(Record { origin, event: Event::Reading(reading(body)?) });
    }
    let n = body.u64()?;
    let word = |b: &[u8]| b.try_into().map_or(0, u64::from_le_bytes);
    let mut sample = Sample { chain: body.take_array(n, 8)?.chunks_exact(8).map(word).collect(), ..Sample::default() };
    if fields == SampleFields::Stack {
        // Kernel threads have no user registers: the ABI word is 0.
        if body.u64()? != 0 {
            sample.registers = Some([body.u64()?, body.u64()?, body.u64()?]);
        }
        let size = body.u64()?;
        let stack = body.take(usize::try_from(size).ok()?)?;
        let used = if size > 0 { usize::try_from(body.u64()?).ok()? } else { 0 };
        sample.stack = stack.get(..used)?.to_vec();
    }
    Some(Record { origin, event: Event::Sample(sample) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    const TRAILER: [u32; 6] = [7, 8, 99, 0, 3, 0];

    /// Checks the event that the words of a record are read as; it is from thread 8 of process 7 on CPU 3 at 99.
    fn check(kind: u32, misc: u16, record: &[u32], fields: SampleFields, event: Event) {
        let origin = Origin { pid: 7, tid: 8, time: 99, cpu: 3 };
        assert_eq!(parse(kind, misc, &words(record), fields), Some(Record { origin, event }));
    }

    #[test]
    fn records_as_the_manual_draws_them() {
        let any = SampleFields::Chain;
        check(SWITCH, 0, &TRAILER, any, Event::SwitchIn);
        check(SWITCH, MISC_SWITCH_OUT | MISC_PREEMPT, &TRAILER, any, Event::SwitchOut { is_preempted: true });
        let fork = [&[20, 7, 21, 8, 50, 0][..], &TRAILER].concat();
        check(FORK, 0, &fork, any, Event::Fork { pid: 20, tid: 21, parent: 8, parent_pid: 7 });
        let lost = [&[0, 0, 12, 0][..], &TRAILER].concat();
        check(LOST, 0, &lost, any, Event::Lost(12));
        let sample = [1, 0, 7, 8, 99, 0, 3, 0, 1, 0, 5, 0, 2, 0, 10, 0, 11, 0, 12, 0, 8, 0, 0xabcd, 0, 4, 0];
        let want = Sample { chain: vec![5], registers: Some([10, 11, 12]), stack: vec![0xcd, 0xab, 0, 0] };
        check(SAMPLE, 0, &sample, SampleFields::Stack, Event::Sample(want));
    }

    #[test]
    fn readings_as_the_manual_draws_them() {
        let group = [2, 0, 50, 0, 40, 0, 11, 0, 100, 0, 12, 0, 101, 0];
        let want = Event::Reading(Reading { enabled: 50, running: 40, values: vec![(100, 11), (101, 12)] });
        let sample = [&[7, 8, 99, 0, 3, 0][..], &group].concat();
        check(SAMPLE, 0, &sample, SampleFields::Counters, want.clone());
        let read = [&[7, 8][..], &group, &TRAILER].concat();
        check(READ, 0, &read, SampleFields::Counters, want);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_record_or_none(kind in 0u32..20, misc: u16, body in prop::collection::vec(any::<u8>(), 0..200)) {
            let all = [SampleFields::Chain, SampleFields::Stack, SampleFields::Counters, SampleFields::Address];
            for record in all.into_iter().filter_map(|fields| parse(kind, misc, &body, fields)) {
                match record.event {
                    Event::Sample(sample) => prop_assert!(sample.chain.len() * 8 + sample.stack.len() <= body.len()),
                    Event::Reading(reading) => prop_assert!(reading.values.len() * 16 <= body.len()),
                    _ => {}
                }
            }
        }
    }
}
