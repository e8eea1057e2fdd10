//! The contract of the level of detail, held against brute force.

use crate::{Lane, Store, StoreOptions};
use proptest::prelude::*;
use std::ops::Range;
use trace_model::layout::SEGMENT;
use trace_model::lod::Span;
use trace_model::{Batch, Event, Name, SiteInfo, TrackKey, WarningKind};

/// A store with one lane of slices with these gaps before them and durations; those of an even duration wait.
fn store(parts: &[(i64, i64)], options: StoreOptions) -> Store {
    let mut store = Store::with_options(options);
    let mut at = 0;
    for parts in parts.chunks(50_000) {
        let mut batch = Batch::new();
        batch.set_origin(0);
        for (id, category) in [(0, "test"), (1, "wait")] {
            batch.name(Name::Site { pid: 1, id, category: category.into(), name: "work".into() });
        }
        let events = &mut batch.track(TrackKey { pid: 1, ring: 0 }).events;
        for (gap, dur) in parts {
            let (start, end) = (at + gap, at + gap + dur);
            at = end;
            events.push(Event::slice(u32::from(dur % 2 == 0), start, end));
        }
        store.apply(batch);
    }
    store
}

/// Holds the spans of a view against the contract at the top of the file, by brute force.
pub fn check(store: &Store, lane: &Lane, view: Range<i64>, px: usize) {
    let mut spans = Vec::new();
    lane.spans(view.clone(), px, &mut spans);
    let touches = |i: &u32| {
        let s = lane.slice(*i).unwrap();
        view.start < view.end && s.start < view.end && (s.end > view.start || s.start >= view.start)
    };
    let mut inside = (0..lane.len() as u32).filter(touches).peekable();
    let px = px.max(1);
    let pixel = ((view.end - view.start + px as i64 - 1) / px as i64).max(1);
    assert!(spans.len() <= 2 * px + 2, "{} spans on {px} pixels", spans.len());
    let mut until = i64::MIN;
    for span in &spans {
        for i in span.first..span.first + span.count {
            assert_eq!(inside.next(), Some(i), "each slice of the view once, in order");
        }
        check_span(store, lane, span);
        let (first, last) = (lane.slice(span.first).unwrap(), lane.slice(span.first + span.count - 1).unwrap());
        assert_eq!((span.start, span.end), (first.start, last.end));
        assert!(span.count == 1 || span.end - span.start <= pixel);
        assert!(span.start >= until);
        until = span.end;
    }
    assert_eq!(inside.next(), None, "every slice of the view");
}

/// Counts the slices of a span one by one.
pub(crate) fn check_span(store: &Store, lane: &Lane, span: &Span) {
    type Longest = Option<(i64, u32, u32, u32)>;
    let (mut busy, mut wait): (i64, i64) = (0, 0);
    let (mut works, mut waits): (Longest, Longest) = (None, None);
    for i in span.first..span.first + span.count {
        let s = lane.slice(i).unwrap();
        let is_wait = store.sites().get(s.site as usize).is_some_and(SiteInfo::waits);
        let (sum, longest) = if is_wait { (&mut wait, &mut waits) } else { (&mut busy, &mut works) };
        *sum += s.dur();
        if longest.is_none_or(|(dur, ..)| s.dur() > dur) {
            *longest = Some((s.dur(), i, s.site, s.node));
        }
    }
    assert_eq!((span.busy_ns, span.wait_ns, span.waits), (busy, wait, works.is_none()));
    assert_eq!(Some((span.top_ns, span.top, span.site, span.node)), works.or(waits));
}

proptest! {
    #[test]
    fn spans_are_as_promised(
        // Bursts of short slices, silence, long slices.
        runs in prop::collection::vec((1usize..200, 0i64..30, 0i64..50, 0i64..5_000), 1..12),
        views in prop::collection::vec((0i64..60_000, 0i64..60_000, 0usize..300), 1..6),
    ) {
        let parts: Vec<(i64, i64)> = runs
            .iter()
            .flat_map(|(n, gap, dur, pause)| (0..*n).map(move |i| (if i == 0 { *pause } else { *gap }, dur * (1 + i as i64 % 3))))
            .collect();
        let store = store(&parts, StoreOptions::UNBOUNDED);
        let lane = &store.tracks()[0].lanes[0];
        for (a, b, px) in views {
            check(&store, lane, a..b, px);
            check(&store, lane, a..a + 1 + b % 50, px);
        }
        check(&store, lane, i64::MIN / 4..i64::MAX / 4, 100);
    }
}

#[test]
fn many_segments_and_giving_up_the_oldest() {
    let parts: Vec<(i64, i64)> = (0..70_000).map(|i| (i % 7, 1 + i * i % 13)).collect();
    let whole = store(&parts, StoreOptions::UNBOUNDED);
    let bounded = store(&parts, StoreOptions { slices_per_lane: 20_000, ..StoreOptions::UNBOUNDED });
    let end = whole.range().end;
    for store in [&whole, &bounded] {
        let lane = &store.tracks()[0].lanes[0];
        for (view, px) in
            [(0..end, 1), (0..end, 50), (end / 3..end / 2, 1_920), (end - 900..end, 300), (0..end, 100_000)]
        {
            check(store, lane, view, px);
        }
    }
    let lane = &bounded.tracks()[0].lanes[0];
    assert_eq!(lane.len() as u64 + lane.evicted(), 70_000);
    assert!(lane.len() >= 20_000 && lane.len() < 20_000 + 2 * SEGMENT);
    // An identity stays good; that of a slice that is gone finds nothing.
    let last = lane.slice(lane.len() as u32 - 1).unwrap();
    assert_eq!(last.id.ordinal, 69_999);
    assert_eq!(bounded.slice(last.id), Some(last));
    assert_eq!(whole.slice(last.id), Some(last));
    assert_eq!(bounded.slice(whole.tracks()[0].lanes[0].slice(0).unwrap().id), None);
    let warning = &bounded.warnings()[0];
    assert_eq!((warning.kind, warning.count), (WarningKind::Evicted, lane.evicted()));
}

#[test]
fn a_short_op_is_seen_next_to_a_long_wait() {
    // In each 1,000 ns a wait of 900 and work of 51; pixels of a few slices, of nodes of a segment, of several.
    let parts: Vec<(i64, i64)> = (0..40_000).flat_map(|_| [(9, 900), (40, 51)]).collect();
    let store = store(&parts, StoreOptions::UNBOUNDED);
    let mut spans = Vec::new();
    for (view, px) in [(0..16_000, 8), (0..16_384_000, 64), (0..40_000_000, 64)] {
        spans.clear();
        store.tracks()[0].lanes[0].spans(view.clone(), px, &mut spans);
        let sums = spans.iter().fold((0, 0), |(busy, wait), s| (busy + s.busy_ns, wait + s.wait_ns));
        assert_eq!(sums, (view.end / 1_000 * 51, view.end / 1_000 * 900));
        assert!(spans.iter().all(|s| !s.waits && s.top_ns == 51 && s.top % 2 == 1), "{view:?}");
    }
}

#[test]
fn memory_of_the_pyramid() {
    let store = store(&vec![(1, 10); 1 << 20], StoreOptions::UNBOUNDED);
    let stats = store.stats();
    assert_eq!(stats.slices, 1 << 20);
    assert!(stats.lod_bytes <= 5 << 20, "{} bytes", stats.lod_bytes);
    assert!(stats.memory_bytes <= 45 << 20, "{} bytes", stats.memory_bytes);
}
