//! Checkpoints in an object store: moto's server of S3's protocol on this machine. `STEPSCOPE_MOTO` names a python that has
//! `moto[server]`; without it nothing is tested, which is said.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that says what it skips")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engine::checkpoint::{CheckpointError, FileStore, ObjectStoreFiles, Saver, SaverOptions};
use engine::{Graph, Session, SessionOptions, Tensor};

struct Server {
    process: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Server {
    fn start(python: &std::ffi::OsStr) -> Server {
        // Free now; nobody else asks for it within the moment.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(python);
        command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()]);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let server = Server { process, address: format!("127.0.0.1:{port}") };
        for _ in 0..300 {
            if TcpStream::connect(&server.address).is_ok() {
                return server;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("moto does not answer");
    }

    fn make_bucket(&self, name: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!("PUT /{name} HTTP/1.1\r\nHost: {}", self.address);
        write!(stream, "{head}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

/// A place that fails after so many files.
struct Killed {
    of: Arc<dyn FileStore>,
    left: AtomicUsize,
}

impl FileStore for Killed {
    fn list(&self) -> Result<Vec<String>, CheckpointError> {
        self.of.list()
    }

    fn put(&self, name: &str, file: &Path) -> Result<(), CheckpointError> {
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)) {
            Ok(_) => self.of.put(name, file),
            Err(_) => Err(CheckpointError::state("run", "it was killed")),
        }
    }

    fn get(&self, name: &str, file: &Path) -> Result<(), CheckpointError> {
        self.of.get(name, file)
    }

    fn delete(&self, name: &str) -> Result<(), CheckpointError> {
        self.of.delete(name)
    }
}

/// Two variables on two devices, one of them larger than a part of an upload.
fn graph() -> Graph {
    let g = Graph::new();
    let large = Tensor::from_vec([3_000_000], vec![0.5f32; 3_000_000]).unwrap();
    let (first, second) = (g.with_device("/cpu:0"), g.with_device("/cpu:1"));
    let a = first.variable("a", large);
    let b = second.variable("b", Tensor::scalar(0f32));
    g.group("init", &[a.init, b.init]);
    let one = second.constant(1f32);
    second.add_node("AssignAddVariableOp").name("step").input(b.handle).input(one).value();
    second.add_node("Identity").name("count").input(b.value).value();
    first.add_node("Identity").name("large").input(a.value).value();
    g
}

struct Run {
    session: Session,
    saver: Saver,
    _folder: tempfile::TempDir,
}

fn run(g: &Graph, store: Arc<dyn FileStore>) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let options = SaverOptions { max_to_keep: 2, ..SaverOptions::default() };
    let session = Session::new(g, SessionOptions::devices(2)).unwrap();
    Run { session, saver: Saver::in_store(store, folder.path(), options).unwrap(), _folder: folder }
}

impl Run {
    fn step(&self) -> f32 {
        self.session.run(&[], &[], &["step"]).unwrap();
        self.count()
    }

    fn count(&self) -> f32 {
        self.session.run(&[], &["count"], &[]).unwrap()[0].item::<f32>().unwrap()
    }
}

/// The steps whose checkpoints have files in the store.
fn steps(store: &dyn FileStore) -> Vec<String> {
    let names = store.list().unwrap();
    let mut steps: Vec<String> =
        names.iter().filter_map(|n| Some(n.strip_prefix("model-")?.split(['-', '.']).next()?.to_owned())).collect();
    steps.sort();
    steps.dedup();
    steps
}

fn set(name: &str, value: &str) {
    // SAFETY: the only test of this program, before it starts threads.
    unsafe { std::env::set_var(name, value) };
}

#[test]
fn checkpoints_live_in_an_object_store() {
    let Some(python) = test_support::variable("STEPSCOPE_MOTO", "checkpoints in an object store") else { return };
    let error = ObjectStoreFiles::open("s3://bucket/run").err().unwrap().to_string();
    assert!(error.contains("no credentials") && error.contains("AWS_ACCESS_KEY_ID"), "{error}");
    let server = Server::start(&python);
    let endpoint = format!("http://{}", server.address);
    let settings = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b"), ("AWS_REGION", "us-east-1")];
    settings.iter().for_each(|(name, value)| set(name, value));
    set("AWS_ENDPOINT_URL", &endpoint);
    set("AWS_ALLOW_HTTP", "true");
    assert!(server.make_bucket("bucket").starts_with("HTTP/1.1 200"));
    assert!(ObjectStoreFiles::open("https://bucket/run").is_err());
    let missing = ObjectStoreFiles::open("s3://no-such-bucket/run").unwrap().list().unwrap_err().to_string();
    assert!(missing.contains("no-such-bucket") && missing.contains("NoSuchBucket"), "{missing}");

    let store: Arc<dyn FileStore> = Arc::new(ObjectStoreFiles::open("s3://bucket/some/run").unwrap());
    let g = graph();
    keeps_the_last(&g, &store);
    restarts_from_the_newest_whole_one(&g, &store);
    // Another run of the same bucket is not seen.
    assert_eq!(ObjectStoreFiles::open("s3://bucket/some").unwrap().list().unwrap(), [""; 0]);
    // The newest is damaged: the one before it counts, and a warning says so.
    let index = store.list().unwrap().into_iter().find(|n| n.starts_with("model-4") && n.ends_with(".json")).unwrap();
    let damaged = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(damaged.path(), "{").unwrap();
    store.put(&index, damaged.path()).unwrap();
    let mut again = run(&g, Arc::clone(&store));
    let restored = again.saver.restore(&again.session).unwrap().unwrap();
    assert_eq!((restored.step, again.count(), restored.warnings.len()), (3, 3.0, 1), "{:?}", restored.warnings);
}

fn keeps_the_last(g: &Graph, store: &Arc<dyn FileStore>) {
    let mut first = run(g, Arc::clone(store));
    assert!(first.saver.restore(&first.session).unwrap().is_none());
    first.session.run(&[], &[], &["init"]).unwrap();
    for step in 1..=3 {
        assert_eq!(first.step(), step as f32);
        first.saver.save(&first.session, step).unwrap();
    }
    assert_eq!(steps(&**store), ["2", "3"]);
}

fn restarts_from_the_newest_whole_one(g: &Graph, store: &Arc<dyn FileStore>) {
    // Killed after none, one, two files of the next checkpoint: two shards, then the index with which it is whole.
    for left in 0..4 {
        let killed: Arc<dyn FileStore> = Arc::new(Killed { of: Arc::clone(store), left: AtomicUsize::new(left) });
        let mut next = run(g, killed);
        let restored = next.saver.restore(&next.session).unwrap().unwrap();
        assert_eq!((restored.step, next.count(), restored.missing.len()), (3, 3.0, 0), "after {left} files");
        let large = next.session.run(&[], &["large"], &[]).unwrap();
        assert!(large[0].slice::<f32>().unwrap().iter().all(|v| *v == 0.5));
        next.step();
        next.saver.save(&next.session, 4).unwrap_err();
    }
    let mut last = run(g, Arc::clone(store));
    let restored = last.saver.restore(&last.session).unwrap().unwrap();
    assert_eq!((restored.step, last.count()), (4, 4.0), "three files make it whole");
}
