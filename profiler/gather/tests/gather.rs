//! Folders of several processes and hosts into one collector: everything once, on one clock, and seen from afar.
#![allow(clippy::unwrap_used)] // a test file

mod common;

use common::{Folder, args, gathering, loopback, read, sender, server, wait_until};
use gather::{Clock, Sender, SenderOptions, ServeError, Server, ServerOptions};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use trace_store::Store;

const PATIENCE: Duration = Duration::from_secs(30);
/// More than the system's processes have.
const NOBODY: u32 = 5_000_000;

#[test]
fn three_folders_become_one_trace() {
    let (dir, gathered, server) = gathering();
    let begin = events::clock::mono_now();
    let mut folders: Vec<Folder> =
        [11, 12, 13].map(|pid| Folder::create(&dir.path().join(pid.to_string()), pid, begin)).into();
    let senders: Vec<Sender> = folders.iter().map(|f| sender(&f.dir, &server)).collect();
    for n in 0..200u64 {
        for folder in &mut folders {
            for k in 0..50 {
                let n = n * 50 + k;
                folder.slice(begin + n as i64 * 1_000, 900, n);
            }
            folder.flush(0);
        }
    }
    folders.iter_mut().for_each(Folder::end);
    for sender in senders {
        let report = sender.finish(PATIENCE);
        assert!(report.finished && report.n_rewound_files == 0 && report.in_flight == 0, "{report:?}");
    }
    let report = server.stop();
    assert_eq!((report.folders, report.refused, report.open), (3, 0, 0), "{report:?}");
    let store = read(&gathered);
    assert!(store.warnings().is_empty(), "{:?}", store.warnings());
    let found = args(&store);
    assert_eq!(found.len(), 3);
    for pid in [11, 12, 13] {
        assert_eq!(found[&format!("slice of {pid}")], (0..10_000).collect::<Vec<u64>>());
        let process = store.processes().iter().find(|p| p.pid == pid).unwrap();
        let clock = process.clock.unwrap();
        assert_eq!((clock.offset_ns, clock.bound_ns), (0, 0), "the same machine has the same clock");
    }
}

#[test]
fn a_large_folder_among_small_ones_is_read_whole() {
    let (dir, gathered, server) = gathering();
    let begin = events::clock::mono_now();
    for (name, pid, n) in [("a", 15, 3), ("b", 16, 200_000), ("c", 17, 3)] {
        let mut folder = Folder::create(&dir.path().join(name), pid, begin);
        for i in 0..n {
            folder.slice(begin + i as i64 * 100, 50, i);
            if i % 50_000 == 49_999 {
                folder.flush(0);
            }
        }
        folder.end();
        assert!(sender(&folder.dir, &server).finish(PATIENCE).finished);
    }
    server.stop();
    let counts: Vec<usize> = args(&read(&gathered)).values().map(Vec::len).collect();
    assert_eq!(counts, [3, 200_000, 3]);
}

#[test]
fn processes_of_one_id_on_two_hosts_stay_two() {
    let (dir, gathered, server) = gathering();
    let begin = events::clock::mono_now();
    for host in ["a", "b"] {
        let mut folder = Folder::create(&dir.path().join(host), 77, begin);
        folder.slice(begin + 10, 5, if host == "a" { 1 } else { 2 });
        folder.end();
        assert!(sender(&folder.dir, &server).finish(PATIENCE).finished);
    }
    server.stop();
    let store = read(&gathered);
    let pids: Vec<u32> = store.processes().iter().map(|p| p.pid).collect();
    assert_eq!(pids, [77, 77]);
    assert_eq!(store.tracks().len(), 2);
    let mut all = args(&store).remove("slice of 77").unwrap();
    all.sort_unstable();
    assert_eq!(all, [1, 2]);
}

fn ahead() -> i64 {
    planted(events::clock::mono_now(), 123_456_789_012, 20_000)
}

fn behind() -> i64 {
    planted(events::clock::mono_now(), -4_000_000_000, -15_000)
}

/// A clock that is `offset` ahead and gains or loses a part in `part`.
fn planted(mono: i64, offset: i64, part: i64) -> i64 {
    mono + offset + mono / part
}

/// Process, clock's name, how to read it, its offset, a part that it gains or loses.
type Host = (u32, &'static str, fn() -> i64, i64, i64);

#[test]
fn planted_skew_and_drift_are_taken_out_within_the_bound() {
    let (dir, gathered, server) = gathering();
    let hosts: [Host; 2] =
        [(21, "host-ahead", ahead, 123_456_789_012, 20_000), (22, "host-behind", behind, -4_000_000_000, -15_000)];
    let mut running = Vec::new();
    for (pid, id, now, ..) in hosts {
        let folder = Folder::create(&dir.path().join(id), pid, now());
        let clock = Clock { id: id.to_owned(), now };
        let options = SenderOptions { clock, ..SenderOptions::default() };
        running.push((Sender::start(&folder.dir, &server.address().to_string(), options).unwrap(), folder));
    }
    // The truth goes with each slice as its argument. Messages go back and forth.
    for n in 0..150u32 {
        let truth = events::clock::mono_now();
        for ((_, folder), (.., offset, part)) in running.iter_mut().zip(hosts) {
            folder.slice(planted(truth, offset, part), 100_000, truth as u64);
        }
        let (from, to) = if n % 2 == 0 { (0, 1) } else { (1, 0) };
        let at = |host: usize, truth| planted(truth, hosts[host].3, hosts[host].4);
        running[from].1.arrow(true, at(from, truth), n);
        running[to].1.arrow(false, at(to, truth + 3_000), n);
        running.iter_mut().for_each(|(_, folder)| folder.flush(0));
        std::thread::sleep(Duration::from_millis(20));
    }
    wait_until("clocks are exchanged", || server.progress().exchanges > 20);
    for ((sender, mut folder), (_, _, now, ..)) in running.into_iter().zip(hosts) {
        folder.anchor(now());
        folder.end();
        assert!(sender.finish(PATIENCE).finished);
    }
    let report = server.stop();
    assert!(report.exchanges > 20, "{report:?}");
    let store = read(&gathered);
    assert!(store.warnings().is_empty(), "{:?}", store.warnings());
    let mut n = 0;
    for track in store.tracks() {
        let clock = store.processes()[track.process as usize].clock.unwrap();
        let (.., offset, part) = hosts.iter().find(|h| h.0 == track.key.pid).unwrap();
        let drift = 1e9 / *part as f64;
        assert!((clock.drift_ppb - drift).abs() < drift.abs() / 2.0 + 500_000.0, "{clock:?}");
        assert!((clock.offset_ns + offset + events::clock::mono_now() / part).abs() < 50_000_000, "{clock:?}");
        // A loopback exchange takes well below 100 ms even here.
        assert!(clock.bound_ns > 0 && clock.bound_ns < 100_000_000, "{clock:?}");
        for slice in track.lanes.iter().flat_map(|l| l.slices(&(i64::MIN..i64::MAX))) {
            let wrong = (store.origin_ns() + slice.start - slice.arg as i64).unsigned_abs();
            assert!(wrong <= clock.bound_ns + 2, "{wrong} ns wrong, {} promised", clock.bound_ns);
            n += 1;
        }
    }
    assert_eq!(n, 300);
    let arrows = store.flows().filter(|f| f.from.is_some() && f.to.is_some()).count();
    assert_eq!(arrows, 150, "both ends of each message");
}

#[test]
fn a_file_that_was_written_anew_is_sent_anew() {
    let (dir, gathered, server) = gathering();
    let begin = events::clock::mono_now();
    let mut folder = Folder::create(&dir.path().join("a"), 41, begin);
    let sender = sender(&folder.dir, &server);
    let path = folder.dir.join("chunks-41.bin");
    let add = |folder: &mut Folder, args: std::ops::Range<u64>| {
        args.for_each(|n| folder.slice(begin + n as i64 * 100, 50, n));
        folder.chunk(0)
    };
    let first = add(&mut folder, 0..100);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend(&first);
    std::fs::write(&path, &bytes).unwrap();
    wait_until("the first part is there", || sender.progress().acknowledged > bytes.len() as u64);
    // As after a failed write: taken back, and the same records come in other chunks.
    let mut again = Folder::create(&dir.path().join("b"), 41, begin);
    let chunks = [add(&mut again, 0..60), add(&mut again, 60..250)];
    let mut other = std::fs::read(&path).unwrap()[..32].to_vec();
    other.extend(chunks.concat());
    std::fs::write(&path, &other).unwrap();
    let report = sender.finish(PATIENCE);
    assert!(report.finished, "{report:?}");
    server.stop();
    let store = read(&gathered);
    assert_eq!(args(&store)["slice of 41"], (0..250).collect::<Vec<u64>>(), "{:?}", store.warnings());
}

#[test]
fn what_was_sent_before_is_not_sent_again() {
    let dir = tempfile::tempdir().unwrap();
    let gathered = dir.path().join("gathered");
    let begin = events::clock::mono_now();
    let mut folder = Folder::create(&dir.path().join("a"), 51, begin);
    let mut bytes = 0;
    for round in 0..5u64 {
        (0..100).for_each(|n| folder.slice(begin + (round * 100 + n) as i64 * 100, 50, round * 100 + n));
        folder.flush(0);
        let server = server(&gathered);
        assert!(sender(&folder.dir, &server).finish(PATIENCE).finished);
        let report = server.stop();
        assert_eq!(report.repeated, 0);
        bytes += report.bytes;
    }
    let on_disk: u64 =
        ["chunks-51.bin", "meta-51.bin"].map(|f| std::fs::metadata(folder.dir.join(f)).unwrap().len()).iter().sum();
    assert_eq!(bytes, on_disk);
    assert_eq!(args(&read(&gathered))["slice of 51"], (0..500).collect::<Vec<u64>>());
}

#[test]
fn folders_that_hold_something_else_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("mine.txt"), "mine").unwrap();
    let refused = Server::start(dir.path(), loopback(), &ServerOptions::default());
    assert!(matches!(refused, Err(ServeError::NotEmpty(_))));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    let gathered = dir.path().join("gathered");
    let first = server(&gathered);
    let second = Server::start(&gathered, loopback(), &ServerOptions::default());
    assert!(matches!(second, Err(ServeError::InUse(_))));
    let taken = Server::start(&dir.path().join("other"), first.address(), &ServerOptions::default());
    assert!(matches!(taken, Err(ServeError::Listen(..))));
    let folder = Folder::create(&dir.path().join("a"), 61, 1);
    let one = sender(&folder.dir, &first);
    let two = Sender::start(&folder.dir, &first.address().to_string(), SenderOptions::default());
    assert!(two.is_err_and(|e| e.to_string().contains("being sent already")));
    for wrong in ["", "nonsense", "host:", ":80", "host:99999"] {
        assert!(Sender::start(&dir.path().join("a"), wrong, SenderOptions::default()).is_err(), "{wrong}");
    }
    drop(one);
}

/// A folder that this machine records into, with another host's trace within it, over connections that somebody makes;
/// sealed as one, and gathered into and sealed again. Who follows it meanwhile sees everything once.
#[test]
fn traces_of_others_come_into_a_folder_of_ones_own() {
    let dir = tempfile::tempdir().unwrap();
    let begin = events::clock::mono_now();
    let mut own = Folder::create(&dir.path().join("run"), NOBODY, begin);
    let run = own.dir.clone();
    let mut follower = None;
    let mut expected: Vec<usize> = Vec::new();
    // The other process of the second round has the number of the one of the first.
    for (round, n) in [(0, 300), (1, 200)] {
        let server = Arc::new(Server::start_within(&run, &ServerOptions::default()).unwrap());
        assert!(matches!(Server::start_within(&run, &ServerOptions::default()), Err(ServeError::InUse(_))));
        let mut other = Folder::create(&dir.path().join(format!("other{round}")), NOBODY + 1, begin);
        let (wanted, wants) = mpsc::channel();
        let (provider, transport) = gather::transport(move || {
            let _ = wanted.send(());
        });
        let taking = Arc::clone(&server);
        let giving = std::thread::spawn(move || {
            for () in wants {
                let (a, b) = UnixStream::pair().unwrap();
                taking.take(a).unwrap();
                provider.provide(b).unwrap();
            }
        });
        let sender = Sender::start_with_transport(&other.dir, transport, SenderOptions::default()).unwrap();
        for i in 0..n {
            other.slice(begin + i as i64 * 1_000, 900, i);
            other.flush(0);
        }
        other.end();
        if round == 0 {
            own.slice(begin + 500, 100, 7);
            own.end();
        }
        assert!(sender.finish(PATIENCE).finished);
        giving.join().unwrap();
        assert_eq!(Arc::into_inner(server).unwrap().stop().refused, 0);
        expected.push(n as usize);
        let counts = |store: &Store| {
            let lanes =
                store.tracks().iter().map(|track| track.lanes.iter().map(trace_store::Lane::len).sum::<usize>());
            let mut counts: Vec<usize> = lanes.filter(|n| *n > 0).collect();
            counts.sort_unstable_by(|a, b| b.cmp(a));
            counts
        };
        let all: Vec<usize> = expected.iter().copied().chain([1]).collect();
        assert_eq!(counts(&read(&run)), all, "before it is sealed");
        let (reader, store) = follower.get_or_insert_with(|| {
            let store = Store::with_options(trace_store::StoreOptions::UNBOUNDED);
            (trace_store::TraceReader::open(&run).unwrap(), store)
        });
        if round == 0 {
            reader.read_all(store).unwrap();
            assert_eq!(counts(store), all);
        }
        let report = trace_store::sealing::seal(&run).unwrap();
        assert_eq!(report.removal_obstacle, None);
        assert!(!run.join("gathered.json").exists());
        assert_eq!(counts(&read(&run)), all, "sealed");
        if round == 0 {
            reader.read_all(store).unwrap();
            assert_eq!(counts(store), all, "for who followed it");
        }
        assert!(trace_store::sealing::seal(&run).unwrap().sealed.is_none(), "there is nothing more to seal");
    }
}
