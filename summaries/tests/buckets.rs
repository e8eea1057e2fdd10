//! Logdirs in a real S3 server on the loopback interface (moto's, from PyPI), and over plain HTTP.
//!
//! `STEPSCOPE_MOTO` names a python that has `moto[server]`; unset skips.
#![cfg(feature = "buckets")]
// Clippy's exceptions for tests do not reach the helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use object_store::{ObjectStore, ObjectStoreExt, PutPayload, aws::AmazonS3Builder, path::Path as Key};
use stepscope_summaries::{FileState, Logdir, Remote, Series, SummaryWriter, WriterOptions};

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
    /// A server with an empty bucket `logs`, which the environment of this process names from now on.
    fn start() -> Option<Self> {
        let Some(python) = std::env::var_os("STEPSCOPE_MOTO") else {
            eprintln!("SKIPPED buckets: set STEPSCOPE_MOTO to a python with `pip install moto[server]`");
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
        let store = Arc::new(AmazonS3Builder::from_env().with_bucket_name("logs").build().unwrap());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let moto = Self { server, store, runtime };
        // 60 s: python takes long to start on a busy machine.
        for _ in 0..300 {
            if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
                let request = "PUT /logs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
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

    fn delete(&self, key: &str) {
        self.runtime.block_on(self.store.delete(&Key::parse(key).unwrap())).unwrap();
    }
}

/// The bytes of an event file with so many points of `loss`.
fn event_file(n: i64) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let writer = SummaryWriter::create(dir.path(), WriterOptions::default()).unwrap();
    (0..n).for_each(|step| writer.add_scalar("loss", step as f32, step));
    let path = writer.path().to_owned();
    writer.close().unwrap();
    fs::read(path).unwrap()
}

#[track_caller]
fn n_points(logdir: &mut Logdir, run: &str) -> usize {
    logdir.read_all();
    logdir.runs().by_name.get(run).map_or(0, |run| run.series.values().map(Series::n_points).sum())
}

/// As much of an event file as its first points took.
fn cut(bytes: &[u8], share: f64) -> usize {
    (bytes.len() as f64 * share) as usize
}

#[test]
fn a_logdir_on_s3_is_followed() {
    let Some(moto) = Moto::start() else { return };
    let name = "events.out.tfevents.1.x";
    let whole = event_file(1000);
    let early = cut(&whole, 0.4);
    moto.put(&format!("team/logs/a/{name}"), whole[..early].to_vec());
    moto.put(&format!("team/logs/b c/ü/{name}"), whole.clone());
    moto.put("team/logs/a/checkpoint.bin", vec![0; 1 << 20]);
    moto.put(&format!("team/logs2/{name}"), whole.clone());

    let mut bucket = Remote::open("s3://logs/team/logs/").unwrap();
    assert_eq!(bucket.find().unwrap(), 2);
    let mut logdir = Logdir::open(&[bucket.folder().to_owned()]).unwrap();
    let fetched = bucket.fetch().unwrap();
    assert!(fetched.failed.is_empty(), "{:?}", fetched.failed);
    assert_eq!((fetched.n_files, fetched.n_bytes), (2, (early + whole.len()) as u64));
    assert_eq!((bucket.cost().n_list_requests, bucket.cost().n_get_requests), (2, 2));
    assert_eq!(n_points(&mut logdir, "b c/ü"), 1000);
    let n_early = n_points(&mut logdir, "a");
    assert!((300..500).contains(&n_early), "{n_early}");

    // Nothing new costs a listing. What is new is read, and a few bytes before it.
    assert_eq!(bucket.fetch().unwrap().n_bytes, 0);
    moto.put(&format!("team/logs/a/{name}"), whole.clone());
    assert_eq!(bucket.fetch().unwrap().n_bytes, (whole.len() - early) as u64 + 64);
    assert_eq!((bucket.cost().n_list_requests, bucket.cost().n_get_requests), (4, 3));
    assert_eq!(n_points(&mut logdir, "a"), 1000);

    // Another file of the same name is read from its beginning, longer or not; a deleted one is told.
    let longer = event_file(1500);
    moto.put(&format!("team/logs/a/{name}"), longer.clone());
    moto.delete(&format!("team/logs/b c/ü/{name}"));
    assert!(bucket.fetch().unwrap().failed.is_empty());
    assert_eq!(n_points(&mut logdir, "a"), 1000 + 1500);
    let runs = logdir.runs();
    assert_eq!(runs.by_name["b c/ü"].files[0].state, FileState::Deleted);
    assert_eq!(runs.by_name["a"].damage.len(), 1, "it says that the file was replaced");
    drop(runs);

    let mut one = Remote::open(&format!("s3://logs/team/logs/a/{name}")).unwrap();
    assert_eq!(one.fetch().unwrap().n_bytes, longer.len() as u64);
    assert_eq!(n_points(&mut Logdir::open(&[one.folder().to_owned()]).unwrap(), "."), 1500);
    let copy = one.folder().to_owned();
    drop(one);
    assert!(!copy.exists(), "the copy goes with its bucket");

    let error = Remote::open("s3://nowhere/logs").unwrap().fetch().unwrap_err().to_string();
    assert!(error.contains("s3://nowhere/logs") && error.contains("NoSuchBucket"), "{error}");
    big(&moto);
}

/// An object of many ranges, and more objects than a listing's page has.
fn big(moto: &Moto) {
    let whole = event_file(250_000);
    assert!(whole.len() > 8 << 20, "{}", whole.len());
    moto.put("big/events.out.tfevents.1", whole.clone());
    for i in 0..1001 {
        moto.put(&format!("big/other/{i}"), vec![1]);
    }
    let mut bucket = Remote::open("s3://logs/big").unwrap();
    assert_eq!(bucket.fetch().unwrap().n_bytes, whole.len() as u64);
    assert_eq!(
        (bucket.cost().n_list_requests, bucket.cost().n_get_requests),
        (2, whole.len().div_ceil(4 << 20) as u64)
    );
    assert_eq!(n_points(&mut Logdir::open(&[bucket.folder().to_owned()]).unwrap(), "."), 250_000);
}

/// A plain web server that knows ranges, for one file.
fn serve(file: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            let range =
                head.iter().find_map(|line| line.to_lowercase().strip_prefix("range: bytes=").map(str::to_owned));
            let (first, last) =
                range.as_deref().and_then(|r| r.split_once('-')).map_or((0, file.len() - 1), |(a, b)| {
                    (a.parse::<usize>().unwrap(), b.parse::<usize>().unwrap_or(usize::MAX).min(file.len() - 1))
                });
            let body = if head[0].starts_with("HEAD") { &[][..] } else { &file[first..=last] };
            let status = if range.is_some() { "206 Partial Content" } else { "200 OK" };
            let length = last + 1 - first;
            let answer = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nContent-Range: bytes {first}-{last}/{}\r\n\
                 Last-Modified: Sat, 21 Nov 2026 12:00:00 GMT\r\nETag: \"a\"\r\nConnection: close\r\n\r\n",
                file.len()
            );
            stream.write_all(answer.as_bytes()).unwrap();
            stream.write_all(body).unwrap();
        }
    });
    format!("http://{address}/some/events.out.tfevents.1")
}

#[test]
fn an_event_file_over_http() {
    let whole = event_file(500);
    let mut bucket = Remote::open(&serve(whole.clone())).unwrap();
    let fetched = bucket.fetch().unwrap();
    assert!(fetched.failed.is_empty(), "{:?}", fetched.failed);
    assert_eq!(fetched.n_bytes, whole.len() as u64);
    assert_eq!(n_points(&mut Logdir::open(&[bucket.folder().to_owned()]).unwrap(), "."), 500);
    assert_eq!(bucket.fetch().unwrap().n_bytes, 0);
}

#[test]
fn what_is_no_bucket_is_refused() {
    for url in ["s3://", "ftp://host/x", "not a url"] {
        let error = Remote::open(url).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{url}: ")) && error.len() > url.len() + 5, "{error}");
    }
}
