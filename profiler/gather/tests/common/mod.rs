//! Trace folders written by hand, on any clock, and what a trace says.
#![allow(clippy::unwrap_used, dead_code)] // Test code; each test file uses its part.

use events::clock::Source;
use events::meta::{self, Entry};
use events::record::site_word;
use events::{Anchor, Kind, NodeId, Record, SiteId};
use gather::{Sender, SenderOptions, Server, ServerOptions};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use trace_model::chunks;
use trace_model::chunks::{ChunkHeader, FLAG_LAST};
pub use trace_store::testkit::read;
use trace_store::{Store, testkit};

/// Site of the slices, and of the arrows between hosts.
pub const SLICES: u32 = 0;
pub const ARROWS: u32 = 1;

/// A process's trace folder; its ticks are ns.
pub struct Folder {
    pub dir: PathBuf,
    pub pid: u32,
    meta: meta::Writer,
    chunks: File,
    batch: Vec<Record>,
    next: u64,
}

impl Folder {
    pub fn create(dir: &Path, pid: u32, now: i64) -> Folder {
        std::fs::create_dir_all(dir).unwrap();
        let mut meta = meta::Writer::create(dir, pid).unwrap();
        let (host, exe) = (format!("host{pid}"), format!("program{pid}"));
        let clock = Source::MonotonicRaw;
        let site = |id, category: &str, name: &str| Entry::Site { id, category: category.into(), name: name.into() };
        meta.append(&Entry::Process { pid, start_ns: 0, clock, host, exe, args: Vec::new(), born: 1 });
        meta.append_all(
            [site(SLICES, "test", &format!("slice of {pid}")), site(ARROWS, "edge", "message")].into_iter(),
        );
        meta.append(&Entry::Thread { ring: 0, tid: pid, name: format!("thread of {pid}") });
        let chunks =
            OpenOptions::new().create_new(true).append(true).open(dir.join(format!("chunks-{pid}.bin"))).unwrap();
        let mut folder = Folder { dir: dir.to_owned(), pid, meta, chunks, batch: Vec::new(), next: 0 };
        folder.anchor(now);
        folder.anchor(now + 1_000);
        folder.chunks.write_all(&chunks::file_header(pid, now)).unwrap();
        folder
    }

    pub fn anchor(&mut self, now: i64) {
        self.meta.append(&Entry::Anchor(Anchor { ticks: now as u64, mono_ns: now, real_ns: now }));
    }

    fn record(&mut self, kind: Kind, site: u32, at: i64, dur: u32, correlation: u32, arg: u64) {
        let site = site_word(kind, 0, SiteId::from_bits(site));
        self.batch.push(Record { begin: at as u64, dur, site, node: NodeId::NONE.get(), correlation, arg });
    }

    pub fn slice(&mut self, at: i64, dur: u32, arg: u64) {
        self.record(Kind::Slice, SLICES, at, dur, 0, arg);
    }

    pub fn counter(&mut self, at: i64, value: f64) {
        self.record(Kind::Counter, SLICES, at, 0, 0, value.to_bits());
    }

    pub fn arrow(&mut self, is_tail: bool, at: i64, number: u32) {
        self.record(if is_tail { Kind::FlowOut } else { Kind::FlowIn }, ARROWS, at, 0, number, 0);
    }

    /// Writes what was added as one chunk.
    pub fn flush(&mut self, flags: u32) {
        let bytes = self.chunk(flags);
        self.chunks.write_all(&bytes).unwrap();
    }

    pub fn chunk(&mut self, flags: u32) -> Vec<u8> {
        let mut batch = Vec::new();
        let at = chunks::begin_chunk(&mut batch);
        batch.append(&mut self.batch);
        let n = (batch.len() - at) as u64;
        let header = ChunkHeader { pid: self.pid, ring: 0, made: 7, first: self.next, flags, ..ChunkHeader::default() };
        chunks::end_chunk(header, at, &mut batch);
        self.next += n;
        bytemuck::cast_slice(&batch).to_vec()
    }

    pub fn end(&mut self) {
        self.flush(FLAG_LAST);
    }
}

/// The slices' `arg`s by their names, in order of time.
pub fn args(store: &Store) -> BTreeMap<String, Vec<u64>> {
    let mut found: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for slice in testkit::slices(store) {
        found.entry(store.slice_name(&slice).to_owned()).or_default().push(slice.arg);
    }
    found
}

pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("waited 30 s: {what}");
}

/// A collector into a folder.
pub fn server(dir: &Path) -> Server {
    Server::start(dir, loopback(), &ServerOptions::default()).unwrap()
}

/// A temporary folder with a collector into its folder `gathered`.
pub fn gathering() -> (tempfile::TempDir, PathBuf, Server) {
    let dir = tempfile::tempdir().unwrap();
    let gathered = dir.path().join("gathered");
    let server = server(&gathered);
    (dir, gathered, server)
}

/// A sender of a folder to it.
pub fn sender(folder: &Path, server: &Server) -> Sender {
    Sender::start(folder, &server.address().to_string(), SenderOptions::default()).unwrap()
}

pub fn loopback() -> std::net::SocketAddr {
    (std::net::Ipv4Addr::LOCALHOST, 0).into()
}
