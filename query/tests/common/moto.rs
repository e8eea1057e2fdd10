//! An S3 server on the loopback interface: moto's, from PyPI.
//!
//! `STEPSCOPE_MOTO` names a python that has `moto[server]`; unset skips.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use object_store::aws::AmazonS3Builder;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// A server with a bucket `runs`; ends with this.
pub struct Moto {
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
    pub fn start() -> Option<Self> {
        let python = test_support::variable("STEPSCOPE_MOTO", "SQL on buckets")?;
        // The port is free now; moto has no way to choose one and print it.
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

    pub fn put(&self, key: &str, bytes: Vec<u8>) {
        self.runtime.block_on(self.store.put(&Key::parse(key).unwrap(), PutPayload::from(bytes))).unwrap();
    }

    /// Puts all files of a folder.
    pub fn put_folder(&self, folder: &Path, prefix: &str) {
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
