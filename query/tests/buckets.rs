//! Traces and logdirs in a real S3 server on the loopback interface (moto's, from PyPI).
//!
//! `STEPSCOPE_MOTO` names a python that has `moto[server]`; unset skips.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod common;

use common::{chrome, open, rows, sealed, try_rows, value};
use object_store::aws::AmazonS3Builder;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use serde_json::json;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use stepscope_query::{Database, Options, QueryError};
use summaries::{SummaryWriter, WriterOptions};

struct Moto {
    server: Child,
    store: Arc<dyn ObjectStore>,
    runtime: tokio::runtime::Runtime,
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Moto {
    /// A server with an empty bucket `runs`, which the environment of this process names from now on.
    fn start() -> Option<Self> {
        let Some(python) = std::env::var_os("STEPSCOPE_MOTO") else {
            eprintln!("SKIPPED SQL on buckets: set STEPSCOPE_MOTO to a python with `pip install moto[server]`");
            return None;
        };
        // The port is free now; moto has no way to choose one and tell it.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(python);
        command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()]);
        let server = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let endpoint = format!("http://127.0.0.1:{port}");
        // SAFETY: only this test reads these variables, and no other thread of it runs yet.
        unsafe {
            for (name, value) in [
                ("AWS_ACCESS_KEY_ID", "test"),
                ("AWS_SECRET_ACCESS_KEY", "test"),
                ("AWS_REGION", "us-east-1"),
                ("AWS_ENDPOINT_URL", &endpoint),
                ("AWS_ALLOW_HTTP", "true"),
            ] {
                std::env::set_var(name, value);
            }
        }
        let store = Arc::new(AmazonS3Builder::from_env().with_bucket_name("runs").build().unwrap());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let moto = Self { server, store, runtime };
        // 60 s: python takes long to start on a busy machine.
        for _ in 0..300 {
            if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
                let request = "PUT /runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                stream.write_all(request.as_bytes()).unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).unwrap();
                assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
                return Some(moto);
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        panic!("moto does not answer on port {port}");
    }

    fn put(&self, key: &str, bytes: Vec<u8>) {
        self.runtime.block_on(self.store.put(&Key::parse(key).unwrap(), PutPayload::from(bytes))).unwrap();
    }

    /// Puts all files of a folder.
    fn put_folder(&self, folder: &Path, prefix: &str) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let key = format!("{prefix}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                self.put_folder(&entry.path(), &key);
            } else {
                self.put(&key, std::fs::read(entry.path()).unwrap());
            }
        }
    }
}

#[test]
fn buckets_are_asked_as_folders_are() {
    let Some(moto) = Moto::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    for (run, n) in [("a", 3_000), ("b c", 200)] {
        let (file, folder) = (dir.path().join("x.json"), dir.path().join(run));
        std::fs::create_dir_all(folder.join("trace")).unwrap();
        std::fs::write(&file, chrome(n)).unwrap();
        sealed(&file, &folder.join("trace/sealed"));
        std::fs::remove_file(&file).unwrap();
        let writer = SummaryWriter::create(&folder, WriterOptions::default()).unwrap();
        (0..50).for_each(|step| writer.add_scalar("loss", step as f32, step));
        writer.close().unwrap();
    }
    moto.put_folder(dir.path(), "team/runs");
    moto.put("single/t.json", chrome(100).into_bytes());
    moto.put("other/note.txt", b"nothing".to_vec());

    let (local, remote) = (open(dir.path()), open("s3://runs/team/runs"));
    for sql in [
        "select trace, name, count(*) n, sum(dur_ns) ns from slices group by 1, 2 order by 1, 2",
        "select trace, count(*) n from slices where ts_ns between 1000000 and 2000000 group by 1 order by 1",
        "select s.trace, t.process, count(*) n from slices s join tracks t using (trace, track_id) group by 1, 2 order by 1, 2",
        "select trace, cause, sum(dur_ns) ns from stalls group by 1, 2 order by 1, 2",
        "select trace, name, count, self_ns from ops order by 1, 2",
        "select run, tag, count(*) n, sum(value) total from scalars group by 1, 2 order by 1, 2",
        "select trace, key, value from meta order by 1, 2",
    ] {
        let (here, there) = (rows(&local, sql), rows(&remote, sql));
        assert!(!here.is_empty() && here == there, "{sql}\n{here:?}\n{there:?}");
    }
    assert_eq!(value(&open("s3://runs/single/t.json"), "select count(*) from slices"), json!(200));
    assert_eq!(value(&open("s3://runs/team/runs/a/trace/sealed"), "select count(*) from slices"), json!(6_000));
    assert_eq!(value(&open("s3://runs/team/runs/a/"), "select max(trace) from slices"), json!("."));

    for (url, says) in [("s3://runs/missing", "nothing"), ("s3://nobucket/x", "")] {
        let error = Database::open(url, Options::default()).err().unwrap();
        assert!(
            matches!(&error, QueryError::Open { at, .. } if at == url) && error.to_string().contains(says),
            "{error}"
        );
    }
    drop(moto);
    let error = try_rows(&remote, "select count(*), max(dur_ns) from slices").unwrap_err();
    assert!(matches!(error, QueryError::Failed(_)), "{error}");
}
