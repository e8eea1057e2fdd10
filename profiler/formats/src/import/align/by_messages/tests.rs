//! Ranks with planted clocks that only exchange messages, as files and back.

use crate::import::tests::{import, warnings};
use std::fmt::Write as _;
use std::path::PathBuf;
use trace_model::SliceRef;
use trace_store::Store;

/// A clock: its time at the true time `t`, ns.
type Clock = fn(i64) -> i64;

/// A message: from, to, when it is sent and when it came, true ns.
type TimedMessage = (usize, usize, i64, i64);

/// One file per rank with what each sends and receives, by its own clock; all begin with a slice at the true time 0.
fn files(clocks: &[Clock], messages: &[TimedMessage]) -> (tempfile::TempDir, Vec<PathBuf>) {
    let dir = tempfile::tempdir().unwrap();
    let mut texts: Vec<String> = clocks.iter().map(|_| "[".to_owned()).collect();
    let mut event = |rank: usize, text: &str, from: i64, to: i64| {
        let us = |ns: i64| format!("{}.{:03}", ns / 1_000, ns % 1_000);
        let (from, to) = (clocks[rank](from), clocks[rank](to));
        writeln!(texts[rank], "{{{text},\"pid\":1,\"tid\":1,\"ts\":{},\"dur\":{}}},", us(from), us(to - from)).unwrap();
    };
    for rank in 0..clocks.len() {
        event(rank, "\"ph\":\"X\",\"name\":\"begin\"", 0, 1_000);
    }
    for (id, (from, to, sent, came)) in messages.iter().enumerate() {
        event(*from, "\"ph\":\"X\",\"name\":\"Send\"", *sent, sent + 2_000);
        event(*from, &format!("\"ph\":\"s\",\"cat\":\"msg\",\"name\":\"m\",\"id\":{id}"), sent + 1_000, sent + 1_000);
        // The receiver waits from before.
        event(*to, "\"ph\":\"X\",\"name\":\"Recv\"", came - 1_500, *came);
        event(
            *to,
            &format!("\"ph\":\"f\",\"cat\":\"msg\",\"name\":\"m\",\"id\":{id},\"bp\":\"e\""),
            came - 1_000,
            came - 1_000,
        );
    }
    let paths = texts.iter().enumerate().map(|(rank, text)| {
        let path = dir.path().join(format!("rank{rank}.json"));
        std::fs::write(&path, format!("{}]", text.trim_end().trim_end_matches(','))).unwrap();
        path
    });
    let paths = paths.collect();
    (dir, paths)
}

/// Times of the slices of this name of a rank, in order.
fn times(store: &Store, rank: usize, name: &str) -> Vec<SliceRef> {
    let host = format!("rank {rank}");
    let tracks = store.tracks().iter().filter(|t| store.processes()[t.process as usize].host == host);
    let all = tracks.flat_map(|t| t.lanes.iter().flat_map(|lane| lane.slices(&(i64::MIN..i64::MAX))));
    let mut found: Vec<SliceRef> = all.filter(|s| store.slice_name(s) == name).collect();
    found.sort_by_key(|s| s.start);
    found
}

/// The bound that a warning of this rank says.
fn bound(store: &Store, rank: usize) -> i64 {
    let source = format!("rank{rank}.json (rank {rank})");
    let text = &store.warnings().iter().find(|w| w.source == source).expect("it is reported").text;
    text.split("to within ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap()
}

/// Both ways, every 10 ms, `n` rounds between two ranks; what a message takes differs each time.
fn rounds(a: usize, b: usize, n: i64) -> Vec<TimedMessage> {
    let takes = |i: i64| 20_000 + i * 7_919 % 90_000;
    let at = |i: i64| 1_000_000 + i * 10_000_000;
    (0..n)
        .flat_map(|i| [(a, b, at(i), at(i) + takes(i)), (b, a, at(i) + 500_000, at(i) + 500_000 + takes(i + 3))])
        .collect()
}

/// By how much the first slice of a rank is off compared with rank 0's: both began at the same true time.
fn begin(store: &Store, rank: usize) -> i64 {
    times(store, rank, "begin")[0].start - times(store, 0, "begin")[0].start
}

fn n_backward(store: &Store) -> usize {
    let joined: Vec<_> = store.flows().filter_map(|f| Some((f.from?.time, f.to?.time))).collect();
    assert!(!joined.is_empty(), "arrows go from file to file");
    joined.iter().filter(|(from, to)| from > to).count()
}

#[test]
fn a_planted_offset_is_found_within_its_bound() {
    // Of 51 ms, with 20 to 110 µs for a message; times since 1970 and since a machine's start.
    let clocks: [[Clock; 2]; 2] = [
        [|t| t, |t| t - 51_000_000 + 60_000_000],
        [|t| 1_790_000_000_000_000_000 + t, |t| 1_790_000_000_051_000_000 + t],
    ];
    for clocks in clocks {
        let (_dir, files) = files(&clocks, &rounds(0, 1, 30));
        let store = import(&files);
        let (bound, off) = (bound(&store, 1), begin(&store, 1).abs());
        assert!(bound < 200_000 && off <= bound, "{off} {bound}");
        assert_eq!(n_backward(&store), 0);
        assert_eq!(warnings(&store).len(), 1, "{:?}", warnings(&store));
    }
}

#[test]
fn a_clock_that_drifts_follows_a_line() {
    // 200 ns in a ms over a second: 200 µs, more than messages take.
    let (_dir, files) = files(&[|t| t, |t| t + 7_000_000 + t / 5_000], &rounds(0, 1, 100));
    let store = import(&files);
    assert!(warnings(&store)[0].contains("drifts by"), "{:?}", warnings(&store));
    assert_eq!(n_backward(&store), 0);
    let off = begin(&store, 1).abs();
    assert!(off <= bound(&store, 1) + 1_000, "{off} {:?}", warnings(&store));
}

#[test]
fn ranks_are_aligned_one_after_the_other() {
    // 0 and 1 talk, 1 and 2 talk, 0 and 2 do not.
    let clocks: [Clock; 3] = [|t| t, |t| t + 3_000_000, |t| t + 90_000_000];
    let messages: Vec<TimedMessage> = rounds(0, 1, 20).into_iter().chain(rounds(1, 2, 20)).collect();
    let (_dir, files) = files(&clocks, &messages);
    let store = import(&files);
    for rank in [1, 2] {
        let (bound, off) = (bound(&store, rank), begin(&store, rank).abs());
        assert!(off <= bound && bound < 500_000, "{rank}: {off} {bound}");
    }
    assert!(bound(&store, 2) > bound(&store, 1), "bounds add up");
    assert_eq!(n_backward(&store), 0);
}

#[test]
fn what_cannot_be_aligned_is_reported() {
    let one_way: Vec<TimedMessage> = rounds(0, 1, 10).into_iter().filter(|m| m.0 == 0).collect();
    let (_dir, paths) = files(&[|t| 1_790_000_000_000_000_000 + t, |t| 1_789_999_999_949_000_000 + t], &one_way);
    let store = import(&paths);
    let text = warnings(&store).join("; ");
    assert!(text.contains("10 messages went one way only; 10 of its messages"), "{text}");
    // A clock that was set meanwhile.
    let (_dir, paths) = files(&[|t| t, |t| if t < 150_000_000 { t } else { t + 80_000_000 }], &rounds(0, 1, 30));
    let store = import(&paths);
    let text = warnings(&store).join("; ");
    assert!(text.contains("60 messages contradict each other"), "{text}");
}

/// A launch's number is its process's own, also where two files have lost the other end.
#[test]
fn numbers_of_a_process_join_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, part: &str| {
        let path = dir.path().join(name);
        let text = format!(
            r#"[{{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":9}},{{"ph":"{part}","cat":"ac2g","name":"ac2g","id":7,"pid":1,"tid":1,"ts":1,"bp":"e"}}]"#
        );
        std::fs::write(&path, text).unwrap();
        path
    };
    let store = import(&[write("0.json", "s"), write("1.json", "f")]);
    assert_eq!(store.flows().count(), 0);
    assert_eq!(
        warnings(&store).iter().filter(|w| w.contains("other end is missing")).count(),
        2,
        "{:?}",
        warnings(&store)
    );
}
