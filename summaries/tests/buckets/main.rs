//! Logdirs in object stores on the loopback interface, and over plain HTTP.
//!
//! `STEPSCOPE_MOTO` names a python that has `moto[server]`, `STEPSCOPE_AZURITE` a folder in which `npm install azurite` was run
//! (`STEPSCOPE_NODE`: the node for it), `STEPSCOPE_PYTHON` any python; what is unset is skipped.
#![cfg(feature = "buckets")]
// Clippy's exceptions for tests do not reach the helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod emulator;

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use emulator::Emulator;
use summaries::{FileState, Logdir, Remote, Series, SummaryWriter, WriterOptions};

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
    let Some(s3) = Emulator::s3() else { return };
    is_followed(&s3, "NoSuchBucket");
    big(&s3);
}

#[test]
fn a_logdir_on_google_is_followed() {
    let Some(google) = Emulator::google() else { return };
    is_followed(&google, "NoSuchBucket");
    big(&google);
}

#[test]
fn a_logdir_on_azure_is_followed() {
    let Some(azure) = Emulator::azure() else { return };
    is_followed(&azure, "ContainerNotFound");
    big(&azure);
}

/// What is below a prefix, what is added to it, put in its place, and deleted. `no_bucket`: what the store calls a missing one.
fn is_followed(store: &Emulator, no_bucket: &str) {
    let name = "events.out.tfevents.1.x";
    let whole = event_file(1000);
    let early = cut(&whole, 0.4);
    store.put(&format!("team/logs/a/{name}"), whole[..early].to_vec());
    store.put(&format!("team/logs/b c/ü/{name}"), whole.clone());
    store.put("team/logs/a/checkpoint.bin", vec![0; 1 << 20]);
    store.put(&format!("team/logs2/{name}"), whole.clone());

    let mut bucket = Remote::open(&format!("{}/team/logs/", store.url)).unwrap();
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
    store.put(&format!("team/logs/a/{name}"), whole.clone());
    assert_eq!(bucket.fetch().unwrap().n_bytes, (whole.len() - early) as u64 + 64);
    assert_eq!((bucket.cost().n_list_requests, bucket.cost().n_get_requests), (4, 3));
    assert_eq!(n_points(&mut logdir, "a"), 1000);

    // Another file of the same name is read from its beginning, longer or not; a deleted one is reported.
    let longer = event_file(1500);
    store.put(&format!("team/logs/a/{name}"), longer.clone());
    store.delete(&format!("team/logs/b c/ü/{name}"));
    assert!(bucket.fetch().unwrap().failed.is_empty());
    assert_eq!(n_points(&mut logdir, "a"), 1000 + 1500);
    let runs = logdir.runs();
    assert_eq!(runs.by_name["b c/ü"].files[0].state, FileState::Deleted);
    assert_eq!(runs.by_name["a"].damage.len(), 1, "it says that the file was replaced");
    drop(runs);

    let mut one = Remote::open(&format!("{}/team/logs/a/{name}", store.url)).unwrap();
    assert_eq!(one.fetch().unwrap().n_bytes, longer.len() as u64);
    assert_eq!(n_points(&mut Logdir::open(&[one.folder().to_owned()]).unwrap(), "."), 1500);
    let copy = one.folder().to_owned();
    drop(one);
    assert!(!copy.exists(), "the copy goes with its bucket");

    let nowhere = store.url.replace("logs", "nowhere") + "/logs";
    let error = Remote::open(&nowhere).unwrap().fetch().unwrap_err().to_string();
    assert!(error.contains(&nowhere) && error.contains(no_bucket), "{error}");
}

/// An object of many ranges, and more objects than a listing's page has.
fn big(store: &Emulator) {
    let whole = event_file(250_000);
    assert!(whole.len() > 8 << 20, "{}", whole.len());
    store.put("big/events.out.tfevents.1", whole.clone());
    for i in 0..1001 {
        store.put(&format!("big/other/{i}"), vec![1]);
    }
    let mut bucket = Remote::open(&format!("{}/big", store.url)).unwrap();
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

/// python's `http.server`, which knows no ranges.
struct PlainServer(Child);

impl Drop for PlainServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl PlainServer {
    /// Of the files of a folder, and where it is.
    fn start(folder: &Path) -> Option<(Self, String)> {
        let python = test_support::variable("STEPSCOPE_PYTHON", "http://")?;
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(python);
        command.args(["-m", "http.server", "--bind", "127.0.0.1", &port.to_string()]).current_dir(folder);
        let server = Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        for _ in 0..300 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some((server, format!("http://127.0.0.1:{port}")));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        panic!("http.server does not answer on port {port}");
    }
}

#[test]
fn a_server_without_ranges_gives_whole_files() {
    let dir = tempfile::tempdir().unwrap();
    let Some((_server, url)) = PlainServer::start(dir.path()) else { return };
    let (name, whole) = ("events.out.tfevents.1", event_file(150_000));
    assert!(whole.len() > 4 << 20, "more than one range: {}", whole.len());
    let early = cut(&whole, 0.7);
    fs::write(dir.path().join(name), &whole[..early]).unwrap();
    let mut bucket = Remote::open(&format!("{url}/{name}")).unwrap();
    let mut logdir = Logdir::open(&[bucket.folder().to_owned()]).unwrap();
    let fetched = bucket.fetch().unwrap();
    assert!(fetched.failed.is_empty(), "{:?}", fetched.failed);
    assert_eq!(fetched.n_bytes, early as u64);
    assert!(n_points(&mut logdir, ".") > 90_000);
    // What has grown is read again, and only what is new is taken.
    fs::write(dir.path().join(name), &whole).unwrap();
    assert_eq!(bucket.fetch().unwrap().n_bytes, whole.len() as u64);
    assert_eq!(n_points(&mut logdir, "."), 150_000);
    assert!(logdir.runs().by_name["."].damage.is_empty());

    let error = Remote::open(&format!("{url}/")).unwrap().fetch().unwrap_err().to_string();
    assert!(error.contains("name the event file"), "{error}");
    let error = Remote::open(&format!("{url}/events.out.tfevents.2")).unwrap().fetch().unwrap_err().to_string();
    assert!(error.contains("404") || error.contains("not found"), "{error}");
}

#[test]
fn what_is_no_bucket_is_refused() {
    for url in ["s3://", "ftp://host/x", "not a url"] {
        let error = Remote::open(url).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{url}: ")) && error.len() > url.len() + 5, "{error}");
    }
}
