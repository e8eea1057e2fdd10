//! Training on two hosts whose network is disturbed: two network namespaces with a cable between them, TLS on it, and packets that are
//! lost, refused or held up. The run ends as the undisturbed one, bit by bit, or says in time who cannot be reached.
//!
//! This takes root, `ip`, `nft` and `tc`, and a kernel that knows namespaces; without any of these the test says so.

#![allow(clippy::print_stderr, reason = "a test that tells what it skips, and what it measured")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use stepscope_tests::training::{Running, checkpoint, since};
use stepscope_tests::{stepscope_binary, times};

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
        let id = std::process::id();
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
    network: Network,
    binary: PathBuf,
    folder: tempfile::TempDir,
    _workers: Vec<Running>,
}

impl Cluster {
    fn new(network: Network, binary: &Path) -> Cluster {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let certificates = folder.path().join("certificates");
        let mut certify = Command::new(binary);
        let made = certify.args(["certify", "--quiet", "-o"]).arg(&certificates).args(HOSTS).stdout(Stdio::null());
        assert!(made.status().expect("the binary starts").success());
        let text = format!(
            "id = \"faults\"\nmaster = \"{}:4000\"\n[jobs]\nworker = [\"{}:4001\", \"{}:4001\"]\n[tls]\n\
             authority = \"certificates/ca.pem\"\ncertificate = \"certificates/{{host}}.pem\"\nkey = \"certificates/{{host}}.key\"\n",
            HOSTS[0], HOSTS[0], HOSTS[1]
        );
        std::fs::write(folder.path().join("cluster.toml"), text).expect("our folder");
        let worker = |task: usize| {
            let mut command = network.command(task, binary);
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
        let mut command = self.network.command(0, &self.binary);
        let at = |name: String| self.folder.path().join(name);
        command.args("train mlp --seed 3 --trace off --quiet --checkpoint-every 10".split(' '));
        command.args(more.split(' ')).arg("--cluster").arg(at("cluster.toml".into()));
        command.arg("--checkpoint-dir").arg(at(format!("checkpoints-{name}"))).arg("--logdir").arg(at(name.into()));
        Running::start(command.stdout(Stdio::null()))
    }

    fn has_checkpoint(&self, name: &str) -> bool {
        self.folder.path().join(format!("checkpoints-{name}/checkpoint")).exists()
    }
}

/// What is wrong, the rules of each host that do it, and for how many seconds.
type Fault<'a> = (&'a str, &'a [(usize, &'a str)], u64);

#[test]
fn a_disturbed_network_ends_the_run_as_it_should_be_or_in_time() {
    let Some(binary) = stepscope_binary("training over a disturbed network") else { return };
    let network = match Network::new() {
        Ok(network) => network,
        Err(why) => return eprintln!("SKIPPED training over a disturbed network: {why}"),
    };
    let cluster = Cluster::new(network, &binary);
    let steps = times(60, 200) as u64;
    let all = format!("--steps {steps} --max-restarts 20 --patience 30");
    let mut run = cluster.train("undisturbed", &all);
    assert!(run.end(PATIENCE).success(), "{}", run.text());
    let expected = checkpoint(&cluster.folder.path().join("checkpoints-undisturbed"), steps);
    assert!(!expected.is_empty());
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
    for (i, (what, rules, lasts)) in faults.iter().enumerate() {
        let name = format!("disturbed-{i}");
        let mut run = cluster.train(&name, &all);
        let begin = events::clock::mono_now();
        while !cluster.has_checkpoint(&name) && since(begin) < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
        let at = events::clock::mono_now();
        rules.iter().for_each(|(host, rule)| cluster.network.disturb(*host, rule));
        if *lasts > 0 {
            let told = run.wait_for("; restart ", 1, Duration::from_secs(10));
            eprintln!("{what}: told after {:?}", Duration::from_nanos((told - at).max(0) as u64));
            std::thread::sleep(Duration::from_secs(*lasts).saturating_sub(since(at)));
            cluster.network.heal();
        }
        assert!(run.end(PATIENCE).success(), "{what}: {}", run.text());
        cluster.network.heal();
        let n = run.lines_with("; restart ").len();
        eprintln!("{what}: {n} restarts, done after {:?}", since(begin));
        assert!(expected == checkpoint(&cluster.folder.path().join(format!("checkpoints-{name}")), steps), "{what}");
    }
    slow(&cluster, &all, &expected, steps);
    cut_off(&cluster);
}

/// A narrow cable only makes it slow.
fn slow(cluster: &Cluster, all: &str, expected: &std::collections::BTreeMap<String, Vec<u8>>, steps: u64) {
    for name in &cluster.network.names {
        let shaped = cluster.network.on(name, "tc qdisc add dev cable root tbf rate 200mbit burst 64kb latency 50ms");
        if let Err(why) = shaped {
            return eprintln!("SKIPPED a narrow cable: {why}");
        }
    }
    let begin = events::clock::mono_now();
    let mut run = cluster.train("slow", all);
    assert!(run.end(PATIENCE).success(), "{}", run.text());
    eprintln!("200 Mbit/s: done after {:?}", since(begin));
    cluster.network.heal();
    assert!(*expected == checkpoint(&cluster.folder.path().join("checkpoints-slow"), steps));
    assert_eq!(run.lines_with("; restart ").len(), 0, "{}", run.text());
}

/// A host that does not come back is named, within the silence that counts as a loss and the patience of each attempt.
fn cut_off(cluster: &Cluster) {
    let mut run = cluster.train("cut-off", "--steps 1000000 --max-restarts 1 --patience 3");
    let begin = events::clock::mono_now();
    while !cluster.has_checkpoint("cut-off") && since(begin) < PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
    }
    [0, 1].iter().for_each(|host| cluster.network.disturb(*host, "drop"));
    let at = events::clock::mono_now();
    assert_eq!(run.end(Duration::from_secs(30)).code(), Some(1), "{}", run.text());
    eprintln!("cut off for good: over after {:?}", since(at));
    let text = run.text();
    assert!(text.contains("/job:worker/task:1 at 10.99.7.2:4001 cannot be reached"), "{text}");
    assert!(text.contains("--max-restarts 1 allows"), "{text}");
    cluster.network.heal();
}
