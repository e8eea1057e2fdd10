//! Counters of threads, laid on what ran: page faults that a program plants in one of its ops are found there.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test file

mod common;

use common::{again, watched};
use std::path::Path;
use trace_analysis::ops::{OpRow, op_table};
use trace_record::count::CounterSet;
use trace_record::watch::{WatchOptions, WatchReport};
use trace_store::Store;
use trace_store::testkit::read;

const ROLE: &str = "STEPSCOPE_COUNTERS_TEST_TRACE";
const ROUNDS: u64 = 8;
/// Pages that are touched in each round.
const PAGES: u64 = 20_000;

/// The program that is counted; nothing when the test harness runs this as a test.
#[test]
fn the_program() {
    let Some(trace) = std::env::var_os(ROLE) else { return };
    let session = events::start(Path::new(&trace), events::Options::default()).unwrap();
    let op = |name: &str| events::site("op", name);
    let (touch, spin, quiet) = (op("Touch"), op("Spin"), op("Quiet"));
    let ended = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _quiet = events::slice(quiet);
            while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        for _ in 0..ROUNDS {
            {
                let _touch = events::slice(touch);
                touch_pages();
            }
            let _spin = events::slice(spin);
            let begun = events::clock::mono_now();
            while events::clock::mono_now() - begun < 15_000_000 {}
        }
        ended.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    drop(session);
}

/// Faults each of [`PAGES`] pages in, one by one.
fn touch_pages() {
    const PAGE: usize = 4096;
    let len = PAGES as usize * PAGE;
    // SAFETY: new memory of this function's own, written within its bounds and freed.
    unsafe {
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let memory = libc::mmap(std::ptr::null_mut(), len, rights, flags, -1, 0);
        assert_ne!(memory, libc::MAP_FAILED);
        // Pages of 4 KiB, whatever the system prefers.
        libc::madvise(memory, len, libc::MADV_NOHUGEPAGE);
        for page in 0..PAGES as usize {
            memory.cast::<u8>().add(page * PAGE).write_volatile(1);
        }
        libc::munmap(memory, len);
    }
}

fn counted(dir: &Path, counters: &str) -> (Store, WatchReport) {
    let counters: CounterSet = counters.parse().unwrap();
    let options = WatchOptions { counters, ..WatchOptions::default() };
    let (store, report, _) = watched(again("the_program").env(ROLE, dir), dir, options);
    (store, report)
}

/// The row of an op, of which there is one.
fn op<'a>(ops: &'a [OpRow], name: &str) -> &'a OpRow {
    ops.iter().find(|op| op.name == name).unwrap()
}

#[test]
fn page_faults_are_found_in_the_op_that_makes_them() {
    let dir = tempfile::tempdir().unwrap();
    let (store, report) = counted(dir.path(), "task-clock,page-faults,cycles,instructions,cache-misses");
    if report.readings == 0 {
        assert!(report.unavailable.iter().any(|(what, _)| what.contains("page-faults")), "{report:?}");
        return test_support::left_out(format_args!("counters of threads: {:?}", report.unavailable));
    }
    assert_eq!(report.lost, 0);
    let (all, ops) = op_table(&store, store.range(), &[]);
    let value = |values: &[u64], name: &str| all.value(values, name).unwrap();
    for (i, name) in all.names.iter().enumerate() {
        let inside: u64 = ops.iter().map(|op| op.counts[i]).sum();
        assert_eq!(inside + all.outside[i], all.total[i], "{name}: parts add up");
    }
    let planted = ROUNDS * PAGES;
    let faults = |name: &str| value(&op(&ops, name).counts, "page-faults");
    let seen = format!("{:?} {:?} of {:?}", ops.iter().map(|o| (&o.name, &o.counts)).collect::<Vec<_>>(), all, planted);
    // What else the program does (to start, its rings) is a few thousand.
    let total = value(&all.total, "page-faults");
    assert!((planted..planted + planted / 10).contains(&total), "{seen}");
    // Between two readings of a millisecond the op may have changed.
    assert!(faults("Touch") > planted * 85 / 100, "{seen}");
    assert!(faults("Spin") < planted * 15 / 100 && faults("Quiet") < 2_000, "{seen}");
    for name in ["Touch", "Spin", "Quiet"] {
        let (ran, clock) = (op(&ops, name).figures.self_ns, value(&op(&ops, name).counts, "task-clock") as i64);
        assert!(clock > 0 && clock <= ran + ran / 20 + 20_000_000, "{name} had a CPU for {clock} of {ran} ns: {seen}");
    }
    if all.names.iter().any(|name| name == "instructions") {
        assert!(all.per_cycle(&op(&ops, "Spin").counts).is_some_and(|each| each > 0.05), "{seen}");
    } else {
        let missing = report.unavailable.iter().find(|(what, _)| what.contains("instructions"));
        let (what, how) = missing.expect("what is missing is named");
        assert!(what.contains("cycles") && how.len() > 10, "{what}: {how}");
        assert!(store.warnings().iter().any(|w| w.text.contains("instructions")), "{:?}", store.warnings());
    }
}

#[test]
fn a_sealed_trace_keeps_whose_counters_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let (store, report) = counted(dir.path(), "page-faults");
    if report.readings == 0 {
        return test_support::left_out(format_args!("counters of threads, sealed: {:?}", report.unavailable));
    }
    trace_store::sealing::seal(dir.path()).unwrap();
    let sealed = read(dir.path());
    let table = |store: &Store| {
        let (all, ops) = op_table(store, store.range(), &[]);
        let mut rows: Vec<(String, Vec<u64>)> = ops.into_iter().map(|op| (op.name, op.counts)).collect();
        rows.sort();
        (all, rows)
    };
    assert_eq!(table(&store), table(&sealed));
    let titles = |store: &Store| {
        let mut titles: Vec<String> = store.counters().iter().map(|c| store.counter_title(c)).collect();
        titles.sort();
        titles
    };
    assert_eq!(titles(&store), titles(&sealed));
    assert!(
        titles(&store).iter().filter(|title| title.starts_with("page-faults, ")).count() >= 2,
        "{:?}",
        titles(&store)
    );
}
