//! Training on two hosts whose network is disturbed: two network namespaces with a cable between them, TLS on it, and packets that are
//! lost, refused or held up. The run ends as the undisturbed one, bit by bit, or says in time who cannot be reached.
//!
//! This takes root, `ip`, `nft` and `tc`, and a kernel that knows namespaces; without any of these the test says so.

#![allow(clippy::print_stderr, reason = "a test that prints what it skips, and what it measured")]

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use stepscope_tests::training::{Running, checkpoint, newest, signal, since, until};
use stepscope_tests::{TERMINATED, left_out, stepscope_binary, times};
use trace_model::FlowEnd;
use trace_store::{Lane, Track};
use trace_store::{Store, StoreOptions, TraceReader};

/// The longest that a run may take.
const PATIENCE: Duration = Duration::from_secs(180);
/// The hosts' addresses.
const HOSTS: [&str; 2] = ["10.99.7.1", "10.99.7.2"];

fn run(line: &str) -> Result<(), String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let out = Command::new(words[0]).args(&words[1..]).output().map_err(|e| format!("{line}: {e}"))?;
    let said = String::from_utf8_lossy(&out.stderr).trim().to_owned();
    if out.status.success() { Ok(()) } else { Err(format!("{line}: {said}")) }
}

/// Two hosts and the cable between them.
struct Network {
    names: [String; 2],
}

impl Network {
    fn new() -> Result<Network, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let id = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let network = Network { names: [format!("stepscope-{id}-a"), format!("stepscope-{id}-b")] };
        for name in &network.names {
            run(&format!("ip netns add {name}"))?;
            run(&format!("ip -n {name} link set lo up"))?;
        }
        let [a, b] = &network.names;
        run(&format!("ip link add cable netns {a} type veth peer name cable netns {b}"))?;
        for (name, host) in network.names.iter().zip(HOSTS) {
            run(&format!("ip -n {name} addr add {host}/24 dev cable"))?;
            run(&format!("ip -n {name} link set cable up"))?;
            // What disturbs needs these.
            network.on(name, "nft add table inet faults")?;
            network.on(name, "nft add chain inet faults out { type filter hook output priority 0 ; }")?;
        }
        Ok(network)
    }

    fn on(&self, name: &str, line: &str) -> Result<(), String> {
        run(&format!("ip netns exec {name} {line}"))
    }

    /// A command on one of the hosts.
    fn command(&self, host: usize, binary: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[host]]).arg(binary);
        command
    }

    /// Has packets of a host go through a rule.
    fn disturb(&self, host: usize, rule: &str) {
        let line = format!("nft add rule inet faults out oifname cable {rule}");
        self.on(&self.names[host], &line).expect("a rule");
    }

    fn heal(&self) {
        for name in &self.names {
            self.on(name, "nft flush chain inet faults out").expect("no rules");
            // There may be none.
            let _ = self.on(name, "tc qdisc del dev cable root");
        }
    }
}

/// A command on one of the hosts; without a network on this one.
fn command(network: Option<&Network>, host: usize, binary: &Path) -> Command {
    network.map_or_else(|| Command::new(binary), |network| network.command(host, binary))
}

/// Ports that nobody listens at.
fn free_ports() -> [u16; 3] {
    let listeners = [0; 3].map(|_| TcpListener::bind("127.0.0.1:0").expect("a port"));
    listeners.map(|listener| listener.local_addr().expect("an address").port())
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.names {
            // The cable goes with its ends.
            let _ = run(&format!("ip netns del {name}"));
        }
    }
}

/// A worker on each host, and training clients on the first.
struct Cluster {
    /// Without one both hosts are this one.
    network: Option<Network>,
    binary: PathBuf,
    folder: tempfile::TempDir,
    _workers: Vec<Running>,
}

impl Cluster {
    fn new(network: Option<Network>, binary: &Path) -> Cluster {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let hosts = if network.is_some() { HOSTS } else { ["127.0.0.1", "localhost"] };
        let ports = if network.is_some() { [4000, 4001, 4001] } else { free_ports() };
        let certificates = folder.path().join("certificates");
        let mut certify = Command::new(binary);
        let made = certify.args(["certify", "--quiet", "-o"]).arg(&certificates).args(hosts).stdout(Stdio::null());
        assert!(made.status().expect("the binary starts").success());
        let text = format!(
            "id = \"faults\"\nmaster = \"{}:{}\"\n[jobs]\nworker = [\"{}:{}\", \"{}:{}\"]\n[tls]\n\
             authority = \"certificates/ca.pem\"\ncertificate = \"certificates/{{host}}.pem\"\nkey = \"certificates/{{host}}.key\"\n",
            hosts[0], ports[0], hosts[0], ports[1], hosts[1], ports[2]
        );
        std::fs::write(folder.path().join("cluster.toml"), text).expect("our folder");
        let worker = |task: usize| {
            let mut command = command(network.as_ref(), task, binary);
            command.args(["worker", "--job", "worker", "--task", &task.to_string(), "--input", "mlp", "--seed", "3"]);
            command.arg("--cluster").arg(folder.path().join("cluster.toml")).stdout(Stdio::null());
            let worker = Running::start(&mut command);
            worker.wait_for("listens", 1, Duration::from_secs(20));
            worker
        };
        let workers = vec![worker(0), worker(1)];
        Cluster { network, binary: binary.to_path_buf(), folder, _workers: workers }
    }

    fn train(&self, name: &str, more: &str) -> Running {
        let mut command = command(self.network.as_ref(), 0, &self.binary);
        let at = |name: String| self.folder.path().join(name);
        command.args("train mlp --seed 3 --trace off --quiet --checkpoint-every 10".split(' '));
        command.args(more.split(' ')).arg("--cluster").arg(at("cluster.toml".into()));
        command.arg("--checkpoint-dir").arg(at(format!("checkpoints-{name}"))).arg("--logdir").arg(at(name.into()));
        Running::start(command.stdout(Stdio::null()))
    }

    fn checkpoints(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("checkpoints-{name}"))
    }

    /// What a run ends with that nothing disturbs.
    fn undisturbed(&self, name: &str, steps: u64) -> BTreeMap<String, Vec<u8>> {
        let mut run = self.train(name, &options(steps));
        assert!(run.end(PATIENCE).success(), "{}", run.text());
        let files = checkpoint(&self.checkpoints(name), steps);
        assert!(!files.is_empty(), "{}", run.text());
        files
    }
}

/// Of a run that goes on.
fn options(steps: u64) -> String {
    format!("--steps {steps} --max-restarts 20 --patience 30")
}

/// What is wrong, the rules of each host that do it, and for how many seconds.
type Fault<'a> = (&'a str, &'a [(usize, &'a str)], u64);

#[test]
fn a_disturbed_network_ends_the_run_as_it_should_be_or_in_time() {
    let Some(binary) = stepscope_binary("training over a disturbed network") else { return };
    let network = match Network::new() {
        Ok(network) => network,
        Err(why) => return left_out(format_args!("training over a disturbed network: {why}")),
    };
    let cluster = Cluster::new(Some(network), &binary);
    let network = cluster.network.as_ref().expect("it was just made");
    let steps = times(60, 200) as u64;
    let expected = cluster.undisturbed("undisturbed", steps);
    // What passes, and what ends the run's connections for a while, with how long it lasts.
    let faults: &[Fault<'_>] = &[
        (
            "two of a hundred packets are lost",
            &[(0, "numgen random mod 50 == 0 drop"), (1, "numgen random mod 50 == 0 drop")],
            0,
        ),
        ("connections are reset", &[(1, "meta l4proto tcp reject with tcp reset")], 1),
        ("nothing comes from the second host", &[(1, "drop")], 5),
        ("nothing comes from the first host", &[(0, "drop")], 5),
        ("nothing comes through", &[(0, "drop"), (1, "drop")], 5),
    ];
    for (i, fault) in faults.iter().enumerate() {
        let name = format!("disturbed-{i}");
        let done = disturbed(&cluster, network, &name, fault, steps);
        let found = checkpoint(&cluster.checkpoints(&name), done);
        let is_same = match done == steps {
            true => found == expected,
            false => found == cluster.undisturbed(&format!("undisturbed-{i}"), done),
        };
        assert!(is_same, "{}", fault.0);
    }
    slow(&cluster, network, &expected, steps);
    cut_off(&cluster, network);
}

/// A run of at least so many steps that a fault comes to; gives how many it did.
fn disturbed(cluster: &Cluster, network: &Network, name: &str, fault: &Fault<'_>, steps: u64) -> u64 {
    let (what, rules, lasts) = *fault;
    // One that is to lose its connections has no end of its own: the rules find it at work, however late they come.
    let mut run = cluster.train(name, &options(if lasts > 0 { 1_000_000 } else { steps }));
    let folder = cluster.checkpoints(name);
    let begin = events::clock::mono_now();
    run.wait_for_checkpoint(&folder, 0, PATIENCE);
    let at = events::clock::mono_now();
    rules.iter().for_each(|(host, rule)| network.disturb(*host, rule));
    let mut ends_with = 0;
    if lasts > 0 {
        let printed = run.wait_for("; restart ", 1, Duration::from_secs(10));
        eprintln!("{what}: reported after {:?}", Duration::from_nanos((printed - at).max(0) as u64));
        std::thread::sleep(Duration::from_secs(lasts).saturating_sub(since(at)));
        network.heal();
        run.wait_for("continuing after step", 1, PATIENCE);
        run.wait_for_checkpoint(&folder, newest(&folder).max(steps - 1), PATIENCE);
        assert!(signal("-TERM", run.child.id()));
        ends_with = TERMINATED;
    }
    assert_eq!(run.end(PATIENCE).code(), Some(ends_with), "{what}: {}", run.text());
    network.heal();
    let n = run.lines_with("; restart ").len();
    eprintln!("{what}: {n} restarts, done after {:?}", since(begin));
    if lasts > 0 { newest(&folder) } else { steps }
}

/// A narrow cable only makes it slow.
fn slow(cluster: &Cluster, network: &Network, expected: &BTreeMap<String, Vec<u8>>, steps: u64) {
    for name in &network.names {
        let shaped = network.on(name, "tc qdisc add dev cable root tbf rate 200mbit burst 64kb latency 50ms");
        if let Err(why) = shaped {
            return left_out(format_args!("a narrow cable: {why}"));
        }
    }
    let begin = events::clock::mono_now();
    let mut run = cluster.train("slow", &options(steps));
    assert!(run.end(PATIENCE).success(), "{}", run.text());
    eprintln!("200 Mbit/s: done after {:?}", since(begin));
    network.heal();
    assert!(*expected == checkpoint(&cluster.checkpoints("slow"), steps));
    assert_eq!(run.lines_with("; restart ").len(), 0, "{}", run.text());
}

/// A host that does not come back is named, within the silence that counts as a loss and the patience of each attempt.
fn cut_off(cluster: &Cluster, network: &Network) {
    let mut run = cluster.train("cut-off", "--steps 1000000 --max-restarts 1 --patience 3");
    run.wait_for_checkpoint(&cluster.checkpoints("cut-off"), 0, PATIENCE);
    [0, 1].iter().for_each(|host| network.disturb(*host, "drop"));
    let at = events::clock::mono_now();
    assert_eq!(run.end(Duration::from_secs(30)).code(), Some(1), "{}", run.text());
    eprintln!("cut off for good: over after {:?}", since(at));
    let text = run.text();
    assert!(text.contains("/job:worker/task:1 at 10.99.7.2:4001 cannot be reached"), "{text}");
    assert!(text.contains("--max-restarts 1 allows"), "{text}");
    network.heal();
}

/// What a trace folder has by now.
fn read(trace: &Path) -> Option<Store> {
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    TraceReader::open(trace).ok()?.read_all(&mut store).ok()?;
    Some(store)
}

/// How many processes have slices of kernels.
fn n_at_work(store: &Store) -> usize {
    let of = |track: &&Track| track.lanes.iter().any(|lane| lane.len() > 20);
    store.tracks().iter().filter(of).map(|track| track.process).collect::<BTreeSet<_>>().len()
}

/// The ends of values that went between processes.
fn n_between(store: &Store) -> usize {
    let process = |end: &Option<FlowEnd>| Some(store.tracks()[end.as_ref()?.track.0 as usize].process);
    let ends = store.flows().filter_map(|flow| Some((process(&flow.from)?, process(&flow.to)?)));
    ends.filter(|(from, to)| from != to).collect::<BTreeSet<_>>().len()
}

/// Nobody records on the workers but for the run, whose folder has the traces of all while it goes on, and sealed at its end.
#[test]
fn the_traces_of_all_hosts_come_into_the_run() {
    let Some(binary) = stepscope_binary("the traces of several hosts") else { return };
    let network = Network::new();
    if let Err(why) = &network {
        eprintln!("without network namespaces, all on one host: {why}");
    }
    let cluster = Cluster::new(network.ok(), &binary);
    for more in ["--max-restarts 1", ""] {
        let logdir = cluster.folder.path().join(format!("traced{}", more.len()));
        let mut command = command(cluster.network.as_ref(), 0, &binary);
        command.args("train mlp --seed 3 --quiet --steps 1000000 --cluster".split(' '));
        command.arg(cluster.folder.path().join("cluster.toml")).arg("--logdir").arg(&logdir);
        if !more.is_empty() {
            // With a launcher, whose child trains.
            command.args(more.split(' ')).arg("--checkpoint-dir").arg(cluster.folder.path().join("checkpoints-traced"));
        }
        let mut run = Running::start(command.stdout(Stdio::null()));
        let trace = logdir.join("trace");
        until("slices of both workers, and arrows between them and the client, live", || {
            assert!(run.child.try_wait().expect("our child").is_none(), "{}", run.text());
            read(&trace).is_some_and(|store| n_at_work(&store) >= 2 && n_between(&store) >= 4)
        });
        attached(&binary, &trace);
        assert!(signal("-TERM", run.child.id()));
        assert_eq!(run.end(PATIENCE).code(), Some(TERMINATED), "{}", run.text());
        assert!(trace.join("sealed").is_dir(), "{}", run.text());
        assert!(!trace.join("gathered.json").exists(), "what was sealed is there once");
        let store = read(&trace).expect("the trace");
        assert!(n_at_work(&store) >= 2 && n_between(&store) >= 4, "{} {}", n_at_work(&store), n_between(&store));
        let workers = store.processes().iter().filter(|process| process.name.contains("worker")).count();
        assert_eq!(workers, 2, "{:?}", store.processes());
        assert_eq!(run.text(), "", "nothing is missing");
    }
}

/// On demand: nothing is recorded, then a few steps on all workers.
fn attached(binary: &Path, trace: &Path) {
    let attach = |more: [&str; 2]| {
        let mut command = Command::new(binary);
        command.args(["record", "--quiet", "--attach"]).arg(trace).args(more);
        assert!(command.status().expect("the binary starts").success(), "{more:?}");
    };
    let n_slices = || {
        let store = read(trace).expect("the trace");
        let of = |process: u32| {
            let own = store.tracks().iter().filter(|track| track.process == process);
            own.flat_map(|track| &track.lanes).map(Lane::len).sum::<usize>()
        };
        (0..store.processes().len() as u32).map(of).collect::<Vec<_>>()
    };
    attach(["--switch", "off"]);
    let mut quiet = n_slices();
    until("nobody records", || {
        std::thread::sleep(Duration::from_millis(500));
        let before = std::mem::replace(&mut quiet, n_slices());
        before == quiet
    });
    attach(["--steps", "20"]);
    until("steps of both workers", || {
        let now = n_slices();
        now.iter().zip(&quiet).filter(|(now, before)| now > before).count() >= 2
    });
    let mut again = n_slices();
    until("it was only a few", || {
        std::thread::sleep(Duration::from_millis(500));
        let before = std::mem::replace(&mut again, n_slices());
        before == again
    });
}
