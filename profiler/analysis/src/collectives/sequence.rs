//! How two ranks' sequences of the same collectives lie to each other.
//!
//! The members of a group call its collectives in the same order, and a recording has a run of them without holes. So
//! the sequences of two ranks differ by a shift at most: one rank's recording began some collectives earlier, or ended
//! later. The shift is the one in which fewest pairs contradict each other, and the pairs overlap most in time.

/// Executions that are tried as the counterpart of one: those at the same time, at most this many, and those next to them.
const MAX_CONCURRENT: usize = 64;
const NEARBY: usize = 8;
/// Pairs that are compared for each shift.
const MAX_PAIRS: usize = 512;

/// An execution: start, end, and the message's size, which is the same on all ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) bytes: u64,
}

impl Span {
    /// The time in which both ran; negative: the time between them.
    fn overlap_ns(&self, other: &Span) -> i64 {
        self.end.min(other.end).saturating_sub(self.start.max(other.start))
    }
}

/// The index in `first` of what is the first of `second`; negative where `second` began earlier. Both are sorted by
/// start.
pub(super) fn shift(first: &[Span], second: &[Span]) -> i64 {
    let (n_first, n_second) = (first.len() as i64, second.len() as i64);
    let is_pair = |(a, b): (&Span, &Span)| a.bytes == b.bytes && a.overlap_ns(b) >= 0;
    if n_first == n_second && first.iter().zip(second).all(is_pair) {
        return 0;
    }
    let mut candidates = vec![0, n_first - n_second];
    // What ran at the same time as the first, the middle and the last one, and what is next to that.
    for at in [0, second.len() / 2, second.len().saturating_sub(1)] {
        let Some(span) = second.get(at) else { continue };
        let begin = first.partition_point(|other| other.end < span.start).saturating_sub(NEARBY);
        let end = first.partition_point(|other| other.start <= span.end).min(begin + MAX_CONCURRENT) + NEARBY;
        candidates.extend((begin..end.min(first.len())).map(|other| other as i64 - at as i64));
    }
    candidates.sort_by_key(|shift| (shift.abs(), *shift));
    candidates.dedup();
    let mut best = (0, (u64::MAX, i128::MIN));
    for shift in candidates {
        let (contradictions, overlap) = fit(first, second, shift);
        if contradictions < best.1.0 || contradictions == best.1.0 && overlap > best.1.1 {
            best = (shift, (contradictions, overlap));
        }
    }
    best.0
}

/// The pairs that contradict each other, per mille, and the time in which pairs overlap less the time between those that
/// do not.
fn fit(first: &[Span], second: &[Span], shift: i64) -> (u64, i128) {
    let from = (-shift).max(0);
    let n = (first.len() as i64 - shift).min(second.len() as i64) - from;
    let stride = (n.max(0) as usize).div_ceil(MAX_PAIRS).max(1);
    let (mut pairs, mut contradictions, mut overlap) = (0_u64, 0_u64, 0);
    for at in (from..from + n.max(0)).step_by(stride) {
        let (a, b) = (&first[(at + shift) as usize], &second[at as usize]);
        pairs += 1;
        contradictions += u64::from(a.bytes != b.bytes);
        overlap += i128::from(a.overlap_ns(b)) * stride as i128;
    }
    ((contradictions * 1_000).checked_div(pairs).unwrap_or(u64::MAX), overlap)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Ranks come when they like and leave together; one rank's recording lacks some at its begin, the other's some
        /// at its end.
        #[test]
        fn a_cut_sequence_is_found(
            late in prop::collection::vec((0i64..3_000, 0i64..3_000), 12..40),
            (cut_first, cut_second) in (0usize..4, 0usize..4),
        ) {
            let (mut first, mut second, mut time) = (Vec::new(), Vec::new(), 0);
            for (a, b) in &late {
                let end = time + a.max(b) + 1_000;
                first.push(Span { start: time + a, end, bytes: 0 });
                second.push(Span { start: time + b, end: end + 20, bytes: 0 });
                time = end + 40;
            }
            let (first, second) = (&first[cut_first..], &second[cut_second..]);
            let expected = cut_second as i64 - cut_first as i64;
            prop_assert_eq!(shift(first, second), expected);
            let n = first.len().min(second.len()) - 1;
            prop_assert_eq!(shift(&first[..n], second), expected);
        }
    }

    #[test]
    fn what_differs_decides_where_times_do_not() {
        let of = |times: &[(i64, i64, u64)]| -> Vec<Span> {
            times.iter().map(|(start, end, bytes)| Span { start: *start, end: *end, bytes: *bytes }).collect()
        };
        let first = of(&[(0, 100, 1), (100, 200, 2), (200, 300, 3)]);
        let second = of(&[(50, 151, 2), (151, 251, 3)]);
        assert_eq!(shift(&first, &second), 1);
        assert_eq!(shift(&second, &first), -1);
        assert_eq!(shift(&first, &[]), 0);
    }
}
