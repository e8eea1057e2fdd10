//! Traces of shapes that nobody meant, opened and analysed: everything is there and counted. With work that grows with the square of the
//! events each of them would take minutes; how the time grows is measured by `cargo xtask bench hostile`.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use trace_analysis::report::analyse;
use trace_formats::import;
use trace_model::WarningKind;
use trace_store::{Store, StoreOptions};

const N: i64 = 60_000;

fn slice(name: &str, tid: i64, ts: i64, dur: i64) -> String {
    format!(r#"{{"ph":"X","name":"{name}","cat":"x","pid":1,"tid":{tid},"ts":{ts},"dur":{dur}}}"#)
}

/// The store of a file with these events, analysed once.
fn opened(events: impl Iterator<Item = String>) -> Store {
    let mut text = "[".to_owned();
    events.for_each(|event| writeln!(text, "{event},").unwrap());
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{}]", text.trim_end().trim_end_matches(','))).unwrap();
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    import::open(&[file.path().to_owned()]).unwrap().read_all(&mut store).unwrap();
    let analysis = analyse(&store, store.range());
    assert_eq!(analysis.range, store.range());
    store
}

fn clipped(store: &Store) -> u64 {
    store.warnings().iter().filter(|w| w.kind == WarningKind::Clipped).map(|w| w.count).sum()
}

#[test]
fn equal_and_overlapping_slices_are_all_there() {
    let shapes: [fn(i64) -> String; 3] =
        [|_| slice("a", 1, 0, 10), |i| slice("a", 1, i, N / 2), |i| slice("a", 1, i, 2 * (N - i))];
    for shape in shapes {
        let store = opened((0..N).map(shape));
        assert_eq!(store.stats().slices, N as u64);
        assert_eq!(store.tracks().len(), 16, "no more tracks than help");
        assert!(
            clipped(&store) > 0 && clipped(&store) <= N as u64,
            "what is shown shortened is counted: {}",
            clipped(&store)
        );
    }
    let store = opened((0..N).map(|i| slice("a", 1, i, 3_000)));
    assert_eq!((store.stats().slices, clipped(&store)), (N as u64, 0), "3,000 at once have lanes");
}

#[test]
fn tracks_and_names_without_number() {
    let store = opened((0..N).map(|i| slice("a", i, i, 5)));
    assert_eq!((store.stats().slices, store.tracks().len()), (N as u64, N as usize));
    let store = opened((0..N).map(|i| slice(&format!("name {i}"), 1, 10 * i, 5)));
    assert_eq!((store.stats().slices, store.sites().len()), (N as u64, N as usize));
}

#[test]
fn ends_without_a_begin_among_many_begins() {
    let mark = |ph: char, name: &str, ts: i64| format!(r#"{{"ph":"{ph}","name":"{name}","pid":1,"tid":1,"ts":{ts}}}"#);
    let store = opened((0..N).map(|i| mark('B', "a", i)).chain((0..N).map(|i| mark('E', "b", N + i))));
    let unpaired = store.warnings().iter().find(|w| w.kind == WarningKind::Unpaired).unwrap();
    assert_eq!((store.stats().slices, unpaired.count), (N as u64, 2 * N as u64), "{}", unpaired.text);
}

#[test]
fn arrows_that_cross_and_steps_of_two_threads() {
    let arrow = |ph: char, id: i64, tid: i64, ts: i64| {
        format!(r#"{{"ph":"{ph}","name":"x","cat":"x","id":{id},"pid":1,"tid":{tid},"ts":{ts},"bp":"e"}}"#)
    };
    let store = opened((0..N).map(|i| arrow('s', i, 1, i)).chain((0..N).map(|i| arrow('f', N - 1 - i, 2, N + i))));
    assert_eq!(store.flows().filter(|f| f.from.is_some() && f.to.is_some()).count(), N as usize);
    let step = |i: i64| {
        let (tid, ts) = (1 + i % 2, 10 * i);
        format!(
            r#"{{"ph":"X","name":"ProfilerStep#{i}","cat":"user_annotation","pid":1,"tid":{tid},"ts":{ts},"dur":9}}"#
        )
    };
    let store = opened((0..N).map(step));
    assert_eq!(store.steps().len(), N as usize);
    assert!(store.steps().is_sorted_by_key(|step| step.start));
}
