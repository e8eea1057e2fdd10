//! Object stores on this machine: moto (PyPI) and Azurite (npm), each with an empty bucket `logs`.

use std::{
    ffi::OsString,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, LazyLock},
    time::Duration,
};

use object_store::{
    ObjectStore, ObjectStoreExt, PutPayload, aws::AmazonS3Builder, azure::MicrosoftAzureBuilder, path::Path as Key,
};

/// Ports that are free now: the servers have no way to choose one and print it.
struct Ports {
    s3: u16,
    google: u16,
    azure: u16,
}

/// Credentials and endpoints of the stores, set the way that a user sets them.
static PORTS: LazyLock<Ports> = LazyLock::new(|| {
    let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let ports = Ports { s3: free(), google: free(), azure: free() };
    let at = |port: u16| format!("http://127.0.0.1:{port}");
    for (name, value) in [
        ("AWS_ACCESS_KEY_ID", "test".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ENDPOINT_URL", at(ports.s3)),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("GOOGLE_BASE_URL", at(ports.google)),
        ("GOOGLE_SKIP_SIGNATURE", "true".to_owned()),
        ("GOOGLE_ALLOW_HTTP", "true".to_owned()),
        ("AZURE_STORAGE_USE_EMULATOR", "true".to_owned()),
        ("AZURITE_BLOB_STORAGE_URL", at(ports.azure)),
    ] {
        // SAFETY: only these tests read the variables, through std, and each takes the ports before it does.
        unsafe { std::env::set_var(name, value) };
    }
    ports
});

fn put_text(port: u16, path: &str, text: &str) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let len = text.len();
    let head = format!("PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n");
    stream.write_all(format!("{head}{text}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
}

/// A server with an empty bucket, which the environment of this process names.
pub struct Emulator {
    server: Child,
    store: Arc<dyn ObjectStore>,
    runtime: tokio::runtime::Runtime,
    /// The bucket's URL.
    pub url: &'static str,
    _files: tempfile::TempDir,
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Emulator {
    /// Amazon's protocol.
    pub fn s3() -> Option<Self> {
        Self::moto(PORTS.s3, "s3://logs")
    }

    /// Google's XML protocol, which is Amazon's as far as listing and reading go: the same server answers Google's client, and
    /// Amazon's fills it. Emulators of Google's own (gcp-storage-emulator on PyPI) have its JSON protocol only.
    pub fn google() -> Option<Self> {
        Self::moto(PORTS.google, "gs://logs")
    }

    fn moto(port: u16, url: &'static str) -> Option<Self> {
        let python = test_support::variable("STEPSCOPE_MOTO", url)?;
        let mut command = Command::new(python);
        command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()]);
        let store = || {
            let builder = AmazonS3Builder::from_env().with_bucket_name("logs");
            Arc::new(builder.with_endpoint(format!("http://127.0.0.1:{port}")).build().unwrap()) as _
        };
        let emulator = Self::start(command, port, url, store);
        put_text(port, "/logs", "");
        // Google's requests come without a signature.
        let policy = r#"{"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": "arn:aws:s3:::logs/*"}]}"#;
        put_text(port, "/logs?policy", policy);
        Some(emulator)
    }

    /// Microsoft's protocol.
    pub fn azure() -> Option<Self> {
        let folder = test_support::variable("STEPSCOPE_AZURITE", "az://")?;
        let node = std::env::var_os("STEPSCOPE_NODE").unwrap_or_else(|| OsString::from("node"));
        let port = PORTS.azure;
        let mut command = Command::new(&node);
        command.arg(Path::new(&folder).join("node_modules/azurite/dist/src/blob/main.js"));
        // It knows older versions of the protocol than clients ask for.
        command.args(["--silent", "--skipApiVersionCheck", "--disableTelemetry", "--blobPort", &port.to_string()]);
        let store = || Arc::new(MicrosoftAzureBuilder::from_env().with_container_name("logs").build().unwrap()) as _;
        let emulator = Self::start(command, port, "az://logs", store);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/buckets/azure_container.mjs");
        let made = Command::new(node).arg(script).arg(port.to_string()).arg("logs").output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Some(emulator)
    }

    /// The server once it answers.
    fn start(mut command: Command, port: u16, url: &'static str, store: impl Fn() -> Arc<dyn ObjectStore>) -> Self {
        let files = tempfile::tempdir().unwrap();
        command.current_dir(files.path());
        let server = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let mut emulator = Self { server, store: store(), runtime, url, _files: files };
        // 60 s: interpreters take long to start on a busy machine.
        for _ in 0..300 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return emulator;
            }
            if let Some(status) = emulator.server.try_wait().unwrap() {
                panic!("the server of {url} ended: {status}");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        panic!("the server of {url} does not answer on port {port}");
    }

    pub fn put(&self, key: &str, bytes: Vec<u8>) {
        self.runtime.block_on(self.store.put(&Key::parse(key).unwrap(), PutPayload::from(bytes))).unwrap();
    }

    pub fn delete(&self, key: &str) {
        self.runtime.block_on(self.store.delete(&Key::parse(key).unwrap())).unwrap();
    }
}
