//! `kill -9` of producers and of the collector at any moment: what was acknowledged is there, all that was recorded
//! comes in the end, and nothing comes twice. A sample here; `cargo xtask soak` does 1,000 kills of producers and 200
//! of the collector.
#![allow(clippy::unwrap_used)] // a test file

mod common;

use common::{args, read, wait_until};
use events::{NodeId, Options, emit_slice, now};
use gather::{Sender, SenderOptions, Server, ServerOptions};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use trace_record::{Collector, CollectorOptions};

const ROLE: &str = "STEPSCOPE_GATHER_TEST_ROLE";
const DIR: &str = "STEPSCOPE_GATHER_TEST_DIR";
const PORT: &str = "STEPSCOPE_GATHER_TEST_PORT";
const PRODUCERS: usize = 3;

/// This test binary again, as another process that plays `role`.
fn spawn(role: &str, dir: &Path, port: u16) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "other_process", "--nocapture"])
        .env(ROLE, role)
        .env(DIR, dir)
        .env(PORT, port.to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// The other process; nothing when the test harness runs this as a test.
#[test]
fn other_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let dir = PathBuf::from(std::env::var_os(DIR).unwrap());
    let port: u16 = std::env::var(PORT).unwrap().parse().unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    if role == "collect" {
        let _server = Server::start(&dir, address, &ServerOptions::default()).unwrap();
        std::thread::sleep(Duration::from_secs(3_600));
    } else {
        produce(&dir, &address.to_string());
    }
}

/// Records slices 0, 1, ... under this process's name, collects and sends them, until it is stopped; says then what
/// became of them.
fn produce(dir: &Path, address: &str) {
    let sender = Sender::start(dir, address, SenderOptions::default()).unwrap();
    let collector = Collector::start(dir, CollectorOptions::default()).unwrap();
    let session = events::start(dir, Options { ring_records: 1 << 14, ..Options::default() }).unwrap();
    let site = events::site("test", &format!("slices of {}", std::process::id()));
    let stop = dir.join("stop");
    for n in 0u64.. {
        let begin = now();
        emit_slice(begin, now(), site, NodeId::NONE, 0, n);
        if n % 16 == 15 {
            if stop.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    drop(session);
    let collected = collector.stop();
    let report = sender.finish(Duration::from_secs(60));
    let good = report.finished && report.n_rewound_files == 0 && collected.dropped == 0;
    std::fs::write(dir.join("said"), format!("{good} {report:?} {collected:?}")).unwrap();
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The length of each file of the gathered folders: what was acknowledged is at most this.
fn lengths(gathered: &Path) -> Vec<(PathBuf, u64)> {
    let folders = std::fs::read_dir(gathered).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir());
    let files = folders.flat_map(|f| std::fs::read_dir(f).unwrap().map(|e| e.unwrap()));
    files
        .map(|e| (e.path(), e.metadata().unwrap().len()))
        .filter(|(p, _)| p.extension().is_some_and(|x| x == "bin"))
        .collect()
}

/// A port that nobody listens at, and that the system gives to nobody by itself
/// (`/proc/sys/net/ipv4/ip_local_port_range`): it has to be free each time a collector was killed.
fn a_free_port() -> u16 {
    let from = 20_000 + (std::process::id() % 10_000) as u16;
    (from..32_000).find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

/// So many kills in the soak, else a sample.
fn times(sample: u32, soak: u32) -> u32 {
    let wanted = std::env::var("STEPSCOPE_GATHER_KILLS").ok().and_then(|n| n.parse::<u32>().ok());
    match (wanted, std::env::var_os("STEPSCOPE_SOAK")) {
        (Some(percent), _) => (soak * percent / 100).max(1),
        (None, Some(_)) => soak,
        (None, None) => sample,
    }
}

#[test]
fn kills_of_both_sides_lose_nothing_and_repeat_nothing() {
    let (producer_kills, collector_kills) = (times(9, 1_000), times(4, 200));
    let dir = tempfile::tempdir().unwrap();
    let gathered = dir.path().join("gathered");
    let folders: Vec<PathBuf> = (0..PRODUCERS).map(|n| dir.path().join(format!("producer-{n}"))).collect();
    folders.iter().for_each(|f| std::fs::create_dir_all(f).unwrap());
    let port = a_free_port();
    let mut collector = spawn("collect", &gathered, port);
    let mut producers: Vec<Child> = folders.iter().map(|f| spawn("produce", f, port)).collect();
    wait_until("all three arrive", || gathered.is_dir() && lengths(&gathered).len() >= 2 * PRODUCERS);
    let (mut done_producers, mut done_collectors) = (0, 0);
    for n in 0u32.. {
        if done_producers == producer_kills && done_collectors == collector_kills {
            break;
        }
        std::thread::sleep(Duration::from_millis(20 + u64::from(n * 7919 % 181)));
        let all = producer_kills + collector_kills;
        // Spread evenly among the others.
        if done_collectors < (n + 1) * collector_kills / all || done_producers == producer_kills {
            kill(collector);
            let before = lengths(&gathered);
            collector = spawn("collect", &gathered, port);
            wait_until("nothing is taken back", || {
                before.iter().all(|(path, len)| std::fs::metadata(path).unwrap().len() >= *len)
            });
            done_collectors += 1;
        } else {
            let which = n as usize % PRODUCERS;
            producers[which].kill().unwrap();
            producers[which].wait().unwrap();
            producers[which] = spawn("produce", &folders[which], port);
            done_producers += 1;
        }
    }
    wait_until("enough is there", || lengths(&gathered).iter().map(|(_, n)| n).sum::<u64>() > 100_000);
    std::thread::sleep(Duration::from_millis(300));
    folders.iter().for_each(|f| std::fs::write(f.join("stop"), "").unwrap());
    for (mut producer, folder) in producers.into_iter().zip(&folders) {
        assert!(producer.wait().unwrap().success());
        let said = std::fs::read_to_string(folder.join("said")).unwrap();
        assert!(said.starts_with("true "), "{said}");
    }
    kill(collector);
    let store = read(&gathered);
    let found = args(&store);
    let mut total = 0;
    for folder in &folders {
        // What a producer has on its own disk is what the collector has of it.
        for (name, here) in args(&read(folder)) {
            assert!(here.windows(2).all(|p| p[0] + 1 == p[1]) && here[0] == 0, "{name}: a hole at home");
            let there = found.get(&name).unwrap_or_else(|| panic!("{name} is missing: {:?}", store.warnings()));
            assert_eq!(there.len(), here.len(), "{name}");
            assert!(*there == here, "{name}: other slices");
            total += here.len();
        }
    }
    assert_eq!(total, found.values().map(Vec::len).sum::<usize>());
    eprintln!(
        "{done_producers} producers and {done_collectors} collectors killed; {total} slices, none lost, none twice"
    );
    assert!(total > 1_000);
}
