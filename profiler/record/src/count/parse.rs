//! Records of the counters' rings. The layout is that of perf_event_open(2) for the fields that [`super::groups`] asks for.

use crate::sample::parse::{Bytes, Origin, READ, Record, SAMPLE, from_trailer};

/// The values of a group of counters of one thread, as they were at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// How long the thread ran while they were on, ns.
    pub(crate) enabled: u64,
    /// Of that, how long they counted: on this CPU, and while the processor had room for them.
    pub(crate) running: u64,
    /// Each counter's id and value; the first is the group's leader.
    pub(crate) values: Vec<(u64, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CountRecord {
    Reading(Origin, Reading),
    Other(Record),
}

impl CountRecord {
    /// When, ns of `CLOCK_MONOTONIC_RAW`.
    pub(crate) fn time(&self) -> u64 {
        match self {
            CountRecord::Reading(from, _) => from.time,
            CountRecord::Other(record) => record.time(),
        }
    }
}

/// What a record's body says; `None` for one that is too short.
pub(crate) fn parse(kind: u32, misc: u16, body: &[u8]) -> Option<CountRecord> {
    match kind {
        SAMPLE => {
            let mut body = Bytes(body);
            let (pid, tid, time, cpu) = (body.u32()?, body.u32()?, body.u64()?, body.u32()?);
            body.u32()?;
            Some(CountRecord::Reading(Origin { pid, tid, time, cpu }, reading(&mut body)?))
        }
        // A thread's last values.
        READ => {
            let (body, from) = from_trailer(body)?;
            let mut body = Bytes(body);
            let (pid, tid) = (body.u32()?, body.u32()?);
            Some(CountRecord::Reading(Origin { pid, tid, ..from }, reading(&mut body)?))
        }
        _ => crate::sample::parse::parse(kind, misc, body, false).map(CountRecord::Other),
    }
}

fn reading(body: &mut Bytes<'_>) -> Option<Reading> {
    let (n, enabled, running) = (body.u64()?, body.u64()?, body.u64()?);
    let mut rest = Bytes(body.take(usize::try_from(n.checked_mul(16)?).ok()?)?);
    let mut values = Vec::new();
    while let (Some(value), Some(id)) = (rest.u64(), rest.u64()) {
        values.push((id, value));
    }
    Some(Reading { enabled, running, values })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    #[test]
    fn readings_as_the_manual_draws_them() {
        let who = 7 | 8 << 32;
        let group = [2, 50, 40, 11, 100, 12, 101];
        let want = Reading { enabled: 50, running: 40, values: vec![(100, 11), (101, 12)] };
        let from = Origin { pid: 7, tid: 8, time: 99, cpu: 3 };
        let sample = [&[who, 99, 3][..], &group].concat();
        assert_eq!(parse(SAMPLE, 0, &words(&sample)), Some(CountRecord::Reading(from, want.clone())));
        let read = [&[who][..], &group, &[who, 99, 3]].concat();
        assert_eq!(parse(READ, 0, &words(&read)), Some(CountRecord::Reading(from, want)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_record_or_none(kind in 0u32..20, misc: u16, body in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(CountRecord::Reading(_, reading)) = parse(kind, misc, &body) {
                prop_assert!(reading.values.len() * 16 <= body.len());
            }
        }
    }
}
