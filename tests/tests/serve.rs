//! `stepscope serve`: another machine's window sees what is here, through standard input and output, an address, or ssh on loopback.
#![allow(clippy::print_stderr)] // Tests say what they skip.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use events::clock::mono_now;
use gather::{Connection, LogdirCopy};
use stepscope_tests::{INTERRUPTED, free_port, left_out, stepscope_binary};
use trace_store::remote::Viewer;
use trace_store::{Residency, Store, StoreOptions, TraceReader};

/// A finished run of the demo.
fn demo(binary: &Path, dir: &Path) -> PathBuf {
    let run = dir.join("it's a run");
    let mut demo = Command::new(binary);
    demo.args(["demo", "--headless", "-q", "--steps", "60", "--logdir"]).arg(&run);
    assert!(demo.status().expect("the binary starts").success());
    run
}

fn near(trace: &Path) -> Store {
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    TraceReader::open(trace).expect("the trace opens").read_all(&mut store).expect("the trace reads");
    store
}

/// Everything of a remote trace, once it is read there.
fn remote(connection: &Arc<Connection>, trace: &str, n: u64) -> Store {
    let mut viewer = Viewer::new(connection.trace(trace));
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    let begin = mono_now();
    while store.stats().slices < n || store.residency(&store.range()) == Residency::Loading {
        assert!(mono_now() - begin < 60_000_000_000, "only {} of {n} slices came", store.stats().slices);
        store.apply(viewer.poll().expect("an answer"));
        if let Some(pages) = store.pager() {
            pages.load_requested();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    store
}

type Slice = (u32, u32, i64, i64, String, Option<String>);

fn slices(store: &Store) -> Vec<Slice> {
    let lanes = store.tracks().iter().flat_map(|t| (0..).zip(&t.lanes).map(|(i, lane)| (t.id.0, i, lane)));
    let all = lanes.flat_map(|(track, lane, slices)| {
        slices.slices(&(i64::MIN..i64::MAX)).map(move |s| {
            let args = store.args().get(s.args).map(std::borrow::Cow::into_owned);
            (track, lane, s.start, s.end, store.slice_name(&s).to_owned(), args)
        })
    });
    all.collect()
}

/// What is served at the other end of `connection` is the run.
fn assert_serves(connection: &Arc<Connection>, run: &Path) {
    let listing = connection.list().expect("it lists");
    let traces: Vec<&str> = listing.traces.iter().map(|t| t.path.as_str()).collect();
    assert_eq!(traces, ["trace"]);
    let (near, remote) =
        (near(&run.join("trace")), remote(connection, "trace", near(&run.join("trace")).stats().slices));
    assert_eq!(slices(&remote), slices(&near));
    assert_eq!((remote.steps(), remote.processes(), remote.nodes()), (near.steps(), near.processes(), near.nodes()));
    let mut copy = LogdirCopy::new(Arc::clone(connection)).expect("a scratch folder");
    let copied = copy.fetch().expect("files come");
    assert!(copied.n_files >= 3, "{copied:?}: event files, the graph and run.json");
    for file in std::fs::read_dir(run).expect("the run's folder").flatten().filter(|f| f.path().is_file()) {
        let name = file.file_name();
        let same =
            std::fs::read(file.path()).expect("a file") == std::fs::read(copy.folder().join(&name)).expect("a copy");
        assert!(same, "{name:?}");
    }
}

#[test]
fn a_run_is_served_through_pipes() {
    let Some(binary) = stepscope_binary("serve --stdio") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    let run = demo(&binary, dir.path());
    let program = [binary.display().to_string(), "serve".into(), "--stdio".into(), run.display().to_string()];
    assert_serves(&Connection::to_program("there", &program).expect("threads"), &run);
}

#[test]
fn a_run_is_served_at_an_address() {
    let Some(binary) = stepscope_binary("serve --listen") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    let run = demo(&binary, dir.path());
    let mut serve = Command::new(&binary);
    serve.args(["serve", "-q", "--json", "--listen", "127.0.0.1:0"]).arg(&run).stdout(Stdio::piped());
    let mut serve = serve.spawn().expect("the binary starts");
    let mut line = String::new();
    BufReader::new(serve.stdout.as_mut().expect("stdout is piped")).read_line(&mut line).expect("it says where");
    let printed: serde_json::Value = serde_json::from_str(&line).expect("one JSON object");
    assert_serves(&Connection::to_address(printed["address"].as_str().expect("an address")).expect("threads"), &run);
    let kill = Command::new("kill").args(["-INT", &serve.id().to_string()]).status();
    assert!(kill.expect("kill runs").success());
    assert_eq!(serve.wait().expect("it ends").code(), Some(INTERRUPTED));
}

/// An ssh server of its own keys, ended with this.
struct Sshd {
    dir: PathBuf,
    port: u16,
    child: Child,
}

impl Drop for Sshd {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Sshd {
    /// On loopback, for this user only; `None`, with a line that says so, where there is no sshd.
    fn start(dir: &Path) -> Option<Sshd> {
        let sshd = ["/usr/sbin/sshd", "/usr/local/sbin/sshd"].map(Path::new).into_iter().find(|path| path.exists());
        let Some(sshd) = sshd else {
            left_out("view ssh://: there is no sshd (apt-get install openssh-server)");
            return None;
        };
        for key in ["host", "user"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(dir.join(key));
            assert!(keygen.status().expect("ssh-keygen comes with sshd").success());
        }
        std::fs::rename(dir.join("user.pub"), dir.join("authorized")).expect("the key is there");
        // Where it starts as root it wants this folder.
        let _ = std::fs::create_dir_all("/run/sshd");
        let port = free_port();
        let config = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {dir}/host\nAuthorizedKeysFile {dir}/authorized\nStrictModes no\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nPermitRootLogin prohibit-password\n\
             PidFile none\n",
            dir = dir.display()
        );
        std::fs::write(dir.join("sshd_config"), config).expect("a scratch folder");
        let mut command = Command::new(sshd);
        command.args(["-D", "-e", "-f"]).arg(dir.join("sshd_config"));
        let child = command.stderr(Stdio::null()).spawn().expect("sshd starts");
        let begin = mono_now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(mono_now() - begin < 20_000_000_000, "sshd does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Sshd { dir: dir.to_owned(), port, child })
    }

    /// What `STEPSCOPE_SSH` is set to.
    fn ssh(&self) -> String {
        let dir = self.dir.display();
        format!(
            "ssh -F none -i {dir}/user -o IdentitiesOnly=yes -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile={dir}/known"
        )
    }
}

#[test]
fn a_run_is_served_through_ssh() {
    let Some(binary) = stepscope_binary("serve through ssh") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    let Some(sshd) = Sshd::start(dir.path()) else { return };
    let run = demo(&binary, dir.path());
    let mut program: Vec<String> = sshd.ssh().split(' ').map(ToOwned::to_owned).collect();
    program.extend(["-p".to_owned(), sshd.port.to_string(), "127.0.0.1".to_owned()]);
    let quoted = run.display().to_string().replace('\'', r"'\''");
    program.push(format!("{} serve --stdio -- '{quoted}'", binary.display()));
    assert_serves(&Connection::to_program("there", &program).expect("threads"), &run);
    // The command itself: without a display it looks there first and says what it found.
    let url = format!("ssh://127.0.0.1:{}{}", sshd.port, run.display());
    let view = |url: &str, bin: &Path| {
        let mut view = Command::new(&binary);
        view.args(["view", url, "--remote-bin"]).arg(bin).env("STEPSCOPE_SSH", sshd.ssh());
        let output = view.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").output().expect("the binary starts");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (_, said) = view(&url, &binary);
    assert!(said.contains("display") && !said.contains("No such file"), "{said}");
    let (ok, said) = view(&url, Path::new("/no/such/stepscope"));
    assert!(!ok && said.contains("--remote-bin"), "{said}");
    let (ok, said) = view(&format!("{url}-not"), &binary);
    assert!(!ok && said.contains("No such file"), "{said}");
}

/// The exit code of ssh says what is wrong, once ssh itself has said more: 255 is its own, 127 the shell's there.
#[test]
fn a_host_that_cannot_be_reached_is_no_broken_pipe() {
    let Some(binary) = stepscope_binary("view of hosts that are not there") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    let view = |code: i32| {
        let ssh = dir.path().join("ssh");
        std::fs::write(&ssh, format!("echo 'ssh: Could not resolve hostname nowhere' >&2\nexit {code}\n"))
            .expect("the scratch folder is writable");
        let mut view = Command::new(&binary);
        view.args(["view", "ssh://nowhere/runs"]).env("STEPSCOPE_SSH", format!("sh {}", ssh.display()));
        let output = view.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").output().expect("the binary starts");
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (code, says) in [(255, "no connection"), (127, "no stepscope there"), (1, "see its message above")] {
        let said = view(code);
        let own: Vec<&str> = said.lines().filter(|line| line.starts_with("stepscope: ")).collect();
        assert!(own.len() == 1 && own[0].contains(says), "{code}: {said}");
        assert!(!said.to_lowercase().contains("broken pipe"), "{code}: {said}");
    }
}
