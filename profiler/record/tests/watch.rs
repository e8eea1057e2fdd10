//! Commands watched from outside: what is planted (sleeps, a lock that goes to and fro, a CPU that two threads want) is
//! found, with the right cause and time; checked against the kernel's own accounting.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test file

mod common;

use common::again;
use events::clock::mono_now;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use trace_analysis::flame;
use trace_model::{Category, SliceRef, TrackKind, WarningKind};
use trace_record::count::CounterSet;
use trace_record::watch::{Watch, WatchError, WatchOptions, WatchReport};
use trace_record::{Collector, CollectorOptions};
use trace_store::testkit::{read, slices};
use trace_store::{Store, Track};

const ROLE: &str = "STEPSCOPE_WATCH_TEST_ROLE";
const OUT: &str = "STEPSCOPE_WATCH_TEST_OUT";
const MS: i64 = 1_000_000;

/// The instance of tracefs is called after the process: one test at a time has it.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Watched {
    store: Store,
    report: WatchReport,
    pid: u32,
}

/// Runs a command to its end and reads what was recorded of it.
fn watched(command: &mut Command, dir: &Path, options: WatchOptions) -> Watched {
    let (store, report, pid) = common::watched(command, dir, options);
    let bad = [WarningKind::Damage, WarningKind::TornTail, WarningKind::UnknownName, WarningKind::Dropped];
    assert!(store.warnings().iter().all(|w| !bad.contains(&w.kind)), "{:?}", store.warnings());
    Watched { store, report, pid }
}

/// Watches this test program in a role; returns the numbers that it reports, too.
fn watched_role(name: &str) -> (Watched, Vec<u64>) {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("reported");
    let watched = watched(again("the_command").env(ROLE, name).env(OUT, &out), dir.path(), SCHED);
    let reported = std::fs::read_to_string(&out).unwrap();
    (watched, reported.split_whitespace().map(|n| n.parse().unwrap()).collect())
}

const SCHED: WatchOptions = WatchOptions { sched: true, sample_hz: None, counters: CounterSet::NONE };

impl Watched {
    fn tracks(&self) -> impl Iterator<Item = &Track> {
        self.store.tracks().iter().filter(|t| self.store.processes()[t.process as usize].pid == self.pid)
    }

    /// The slices of a thread's track in category `off cpu`, with what they are called.
    fn off_cpu(&self, tid: u32) -> Vec<(&str, SliceRef)> {
        let tracks: Vec<u32> = self.tracks().filter(|t| t.tid == tid).map(|t| t.id.0).collect();
        let own = slices(&self.store).filter(|s| tracks.contains(&s.id.track));
        let off = own.filter(|s| self.store.category(s) == Category::OffCpu);
        off.map(|s| (self.store.slice_name(&s), s)).collect()
    }

    /// Whether the kernel's wake-ups were to be had; says what is left out.
    fn has_wakeups(&self, what: &str) -> bool {
        if self.report.sched_source == Some("tracefs") {
            return true;
        }
        assert!(!self.report.unavailable.is_empty(), "what is missing is reported");
        test_support::left_out(format_args!("{what}: {:?}", self.report.unavailable));
        false
    }
}

/// The command; nothing when the test harness runs this as a test.
#[test]
fn the_command() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let out = std::env::var_os(OUT).unwrap();
    let write = |text: String| std::fs::write(&out, text).unwrap();
    match role.as_str() {
        "sleep" => {
            for _ in 0..5 {
                std::thread::sleep(Duration::from_millis(30));
            }
            write(tid().to_string());
        }
        "ping-pong" => write(ping_pong()),
        "hogs" => write(hogs()),
        other => panic!("{other}"),
    }
}

fn tid() -> u32 {
    // SAFETY: gettid takes nothing and cannot fail.
    unsafe { libc::gettid() }.cast_unsigned()
}

/// Lets this thread run on one CPU only.
fn pin(cpu: usize) {
    // SAFETY: zeros are an empty set; the call reads it.
    unsafe {
        let mut cpus: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut cpus);
        assert_eq!(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const cpus), 0);
    }
}

/// Two threads hand a turn to and fro; returns their ids. Each has a CPU of its own: on one CPU whoever is woken takes
/// it from the other, which then waits for the CPU and not for its turn.
fn ping_pong() -> String {
    let (turn, changed) = (Mutex::new(0u32), Condvar::new());
    let player = |me: u32| {
        pin(me as usize);
        for _ in 0..400 {
            let mut turn = changed.wait_while(turn.lock().unwrap(), |turn| *turn % 2 != me).unwrap();
            let until = mono_now() + MS;
            while mono_now() < until {}
            *turn += 1;
            changed.notify_one();
        }
        tid()
    };
    std::thread::scope(|scope| {
        let (a, b) = (scope.spawn(|| player(0)), scope.spawn(|| player(1)));
        format!("{} {}", a.join().unwrap(), b.join().unwrap())
    })
}

/// Two threads that want one CPU for 300 ms; returns of each its id, from when to when it was measured (raw monotonic
/// ns), and how long, by the kernel's accounting, it waited for the CPU in that time.
fn hogs() -> String {
    pin(0);
    let start = std::sync::Barrier::new(2);
    let hog = || {
        start.wait();
        let (begin, before) = waited();
        while mono_now() < begin + 300 * MS {}
        let (end, after) = waited();
        format!("{} {begin} {end} {}", tid(), after - before)
    };
    std::thread::scope(|scope| {
        let (a, b) = (scope.spawn(hog), scope.spawn(hog));
        format!("{} {}", a.join().unwrap(), b.join().unwrap())
    })
}

/// Now, and how long this thread has waited for a CPU; read again where it was interrupted meanwhile.
fn waited() -> (i64, i64) {
    loop {
        let before = mono_now();
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        let now = mono_now();
        if now - before < MS / 4 {
            return (now, stat.split_whitespace().nth(1).unwrap().parse().unwrap());
        }
    }
}

#[test]
fn planted_sleeps_are_found() {
    let _one = one_at_a_time();
    let (watched, reported) = watched_role("sleep");
    if watched.report.sched_source == Some("/proc") {
        return assert!(!watched.report.unavailable.is_empty(), "what is missing is reported");
    }
    let off = watched.off_cpu(reported[0] as u32);
    let why = if watched.report.sched_source == Some("tracefs") { "sleeping" } else { "waiting" };
    let sleeps: Vec<i64> = off
        .iter()
        .filter(|(name, s)| *name == why && s.end - s.start > 25 * MS)
        .map(|(_, s)| s.end - s.start)
        .collect();
    assert_eq!(sleeps.len(), 5, "{off:?}");
    // With wake-ups, the time until the thread got a CPU is not in it: what is left is the timer's.
    let most = if why == "sleeping" { 40 } else { 200 };
    assert!(sleeps.iter().all(|ns| (30 * MS..most * MS).contains(ns)), "{sleeps:?}");
    assert!(watched.report.switches >= 10 && watched.report.lost == 0, "{:?}", watched.report);
}

#[test]
fn a_lock_that_goes_to_and_fro_names_its_waker() {
    let _one = one_at_a_time();
    let (watched, reported) = watched_role("ping-pong");
    if !watched.has_wakeups("who woke whom") || std::thread::available_parallelism().is_ok_and(|n| n.get() < 2) {
        return;
    }
    for (me, other) in [(reported[0], reported[1]), (reported[1], reported[0])] {
        let off = watched.off_cpu(me as u32);
        let waits: Vec<&SliceRef> = off.iter().filter(|(name, _)| *name == "sleeping").map(|(_, s)| s).collect();
        let by_other = waits.iter().filter(|s| u64::from(s.correlation) == other).count();
        assert!(waits.len() >= 150 && by_other * 10 >= waits.len() * 9, "{by_other} of {}", waits.len());
        // The other held the lock for a millisecond each time.
        let mut times: Vec<i64> = waits.iter().map(|s| s.end - s.start).collect();
        times.sort_unstable();
        assert!(times[times.len() / 2] >= 9 * MS / 10, "{times:?}");
    }
}

/// How long in `range` nothing is reported of a CPU, ns.
fn holes(runs: &[SliceRef], range: &std::ops::Range<i64>) -> i64 {
    let ran = runs.iter().map(|s| s.end.min(range.end) - s.start.max(range.start));
    range.end - range.start - ran.filter(|ns| *ns > 0).sum::<i64>()
}

#[test]
fn threads_that_want_one_cpu_wait_as_long_as_the_kernel_says() {
    let _one = one_at_a_time();
    let (watched, reported) = watched_role("hogs");
    if !watched.has_wakeups("time waited for a CPU") {
        return;
    }
    let (first, second) = reported.split_at(4);
    let cpu = watched.store.tracks().iter().find(|t| t.kind == TrackKind::Cpu && t.name == "CPU 0").unwrap();
    assert_eq!(cpu.lanes.len(), 1, "a CPU runs one thread at a time");
    let runs: Vec<SliceRef> = (0..cpu.lanes[0].len() as u32).filter_map(|i| cpu.lanes[0].slice(i)).collect();
    for hog in [first, second] {
        let [me, begin, end, waited] = hog.try_into().unwrap();
        let origin = watched.store.origin_ns();
        let measured = begin as i64 - origin..end as i64 - origin;
        let mut off = watched.off_cpu(me as u32);
        off.retain(|(_, s)| measured.contains(&s.start) && measured.contains(&s.end));
        let of =
            |wanted: &str| -> Vec<&SliceRef> { off.iter().filter(|(n, _)| *n == wanted).map(|(_, s)| s).collect() };
        let sum = |slices: &[&SliceRef]| slices.iter().map(|s| s.end - s.start).sum::<i64>();
        let (preempted, waking) = (of("preempted"), of("runnable"));
        let (found, waited) = (sum(&preempted) + sum(&waking), waited as i64);
        // Some kernels do not say when certain threads leave a CPU: what is not found lies where the CPU's track says
        // nothing.
        let untold = holes(&runs, &measured);
        let of_kernel = format!("{found} ns, by the kernel {waited} ns, untold {untold} ns: {:?}", watched.report);
        assert!(untold * 2 < measured.end - measured.start, "{of_kernel}");
        assert!(found - waited < waited / 50 && waited - found < waited / 50 + untold, "{of_kernel}");
        assert!(sum(&preempted) > 80 * MS, "{}", sum(&preempted));
        // Who took the CPU is who ran on it from then on, whoever that was.
        for taken in preempted {
            let then = runs.iter().find(|r| (r.start..r.end).contains(&taken.start));
            let is_taker = then.is_none_or(|r| r.start == taken.start && r.correlation == taken.correlation);
            assert!(is_taker, "{taken:?}: {then:?}");
        }
    }
    let ran: i64 = runs
        .iter()
        .filter(|s| [first[0], second[0]].contains(&u64::from(s.correlation)))
        .map(|s| s.end - s.start)
        .sum();
    assert!(ran > 30 * MS, "{ran}");
}

#[test]
fn python_links_nothing_and_is_seen() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let mut python = Command::new("python3");
    let script = "import time\nfor _ in range(20): time.sleep(0.005)\n\
        def burn():\n  x = 0\n  for i in range(3_000_000): x += i * i\n  return x\nburn()\n";
    python.args(["-c", script]).env("PYTHONPERFSUPPORT", "1");
    if Command::new("python3").arg("--version").stdout(Stdio::null()).status().is_err() {
        return test_support::left_out("python3 watched from outside: it is not installed");
    }
    let watched = watched(
        &mut python,
        dir.path(),
        WatchOptions { sched: true, sample_hz: Some(1000), counters: CounterSet::NONE },
    );
    let has = |what: &str| watched.report.unavailable.iter().any(|(name, _)| name.contains(what));
    assert!(watched.report.switches >= 20 || has("switches"), "{:?}", watched.report);
    assert!(watched.report.samples >= 50 || has("samples"), "{:?}", watched.report);
    if watched.report.samples > 0 {
        let nodes = flame(&watched.store, &[], i64::MIN..i64::MAX);
        let total: u64 = nodes.iter().filter(|n| n.parent.is_none()).map(|n| n.total).sum();
        assert_eq!(total, watched.report.samples, "each sample is in the flame graph once");
        let in_main = nodes.iter().filter(|n| n.name.contains("main")).map(|n| n.total).max().unwrap_or(0);
        assert!(in_main * 2 > total, "most stacks reach main: {in_main} of {total}");
        eprintln!(
            "{} of {total} samples name a Python function",
            nodes.iter().filter(|n| n.name.contains("py::burn")).map(|n| n.total).max().unwrap_or(0)
        );
    }
    assert!(watched.store.processes().iter().any(|p| p.pid == watched.pid && p.name.contains("python")));
    let counters: Vec<&str> =
        watched.store.counters().iter().map(|c| watched.store.sites()[c.site as usize].name.as_str()).collect();
    assert!(counters.contains(&"minor page faults") && counters.len() >= 4, "{counters:?}");
}

/// A process that was not started by the recorder: it is found with its threads' names, waits and call stacks, and its
/// end ends nothing else.
#[test]
fn a_process_that_runs_already_is_watched() {
    let _one = one_at_a_time();
    let mut shell = Command::new("sh");
    shell.args(["-c", "while :; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.01; done"]);
    let mut busy = shell.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let dir = tempfile::tempdir().unwrap();
    let options = WatchOptions { sched: true, sample_hz: Some(500), counters: CounterSet::NONE };
    let watch = Watch::attach(dir.path(), options, busy.id()).unwrap();
    let collector = Collector::start_with(dir.path(), CollectorOptions::default(), Some(watch.tracks())).unwrap();
    // As much as is asked for below, however late the recorder gets to it; where something cannot be had, ten seconds.
    let begun = mono_now();
    let has_enough = || {
        let store = read(dir.path());
        let of_busy = store.tracks().iter().filter(|t| t.tid == busy.id());
        let (slices, instants) = of_busy.fold((0, 0), |(s, i), t| (s + t.n_slices(), i + t.instants.len()));
        slices > 5 && instants > 20
    };
    while !has_enough() && mono_now() - begun < 10_000 * MS {
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(500));
    busy.kill().unwrap();
    busy.wait().unwrap();
    let report = watch.stop();
    collector.stop();
    let store = read(dir.path());
    let lacks = |what: &str| report.unavailable.iter().any(|(name, _)| name.contains(what));
    let of_busy = || store.tracks().iter().filter(|t| t.tid == busy.id());
    if lacks("samples") {
        test_support::left_out(format_args!("samples of a running process: {:?}", report.unavailable));
    } else {
        let samples: usize = of_busy().map(|t| t.instants.len()).sum();
        assert!(samples > 20, "{samples} {report:?}");
        assert!(!store.stacks().is_empty());
    }
    if report.sched_source == Some("/proc") {
        test_support::left_out(format_args!("scheduling of a running process: {:?}", report.unavailable));
    } else {
        let waits: usize = of_busy().map(Track::n_slices).sum();
        assert!(waits > 5, "{waits} {report:?}");
    }
    assert!(of_busy().any(|t| t.name.contains("sh")), "{:?}", of_busy().map(|t| &t.name).collect::<Vec<_>>());
    let gone = Watch::attach(dir.path(), options, busy.id());
    assert!(matches!(gone, Err(WatchError::NoProcess(_))));
}
