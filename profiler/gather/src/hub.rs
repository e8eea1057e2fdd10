//! The state that a collector's connections share: the copies by folder, the clocks' files, and the counts.

use crate::error::ServeError;
use crate::identity::{Clock, ID_BYTES, is_clock_id, to_hex};
use crate::mirror::{Mirror, MirrorError, mirror_path};
use crate::wire::{Exchange, FileLength, Hello, up};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trace_model::clocks;
use trace_model::clocks::Fact;
use trace_model::layout::{GATHERED_FILE, GatheredInfo, read_json};

/// Folders, and clocks, of one collector, at most.
const MAX_FOLDERS: usize = 4096;

type Mirrors = BTreeMap<String, Arc<Mutex<Mirror>>>;

/// A collector's counts so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerReport {
    /// Trace folders that the collector has.
    pub folders: u64,
    /// Senders that are connected now.
    pub open: u64,
    /// Connections of senders since the start.
    pub connections: u64,
    /// Bytes of traces that were received.
    pub bytes: u64,
    /// Bytes that were received again, recognised by their position.
    pub repeated: u64,
    /// Connections that were ended because they violated the protocol.
    pub refused: u64,
    /// Connections that were closed because [`crate::ServerOptions::max_connections`] were open.
    pub turned_away: u64,
    /// Exchanges of stamps with other machines' clocks.
    pub exchanges: u64,
    /// Writes that failed; their senders try again.
    pub failed_writes: u64,
}

/// A collector's copies of trace folders, its clocks' files and its counts.
pub(crate) struct Hub {
    dir: PathBuf,
    pub(crate) clock: Clock,
    sync: bool,
    mirrors: Mutex<Mirrors>,
    clocks: Mutex<BTreeMap<String, File>>,
    /// The counts except `folders` and `turned_away`, which [`crate::Server::progress`] fills in.
    pub(crate) report: Mutex<ServerReport>,
    /// The lock on the folder, for as long as the collector lives.
    _lock: File,
}

/// A connection's right to write into a copy, which ends with the next connection of the same folder.
pub(crate) struct WriteTurn {
    mirror: Arc<Mutex<Mirror>>,
    number: u64,
}

impl Hub {
    /// Opens a gathered folder, or creates one in an empty or missing folder.
    pub(crate) fn open(dir: &Path, sync: bool) -> Result<Hub, ServeError> {
        let entries = std::fs::create_dir_all(dir).and_then(|()| std::fs::read_dir(dir));
        let mut entries = entries.map_err(|e| ServeError::Folder(dir.to_owned(), e))?;
        if !dir.join(GATHERED_FILE).is_file() && entries.next().is_some() {
            return Err(ServeError::NotEmpty(dir.to_owned()));
        }
        Hub::open_within(dir, sync)
    }

    /// Opens or creates a gathered folder, also in a folder with a trace of this machine.
    pub(crate) fn open_within(dir: &Path, sync: bool) -> Result<Hub, ServeError> {
        let folder_error = |e| ServeError::Folder(dir.to_owned(), e);
        let path = dir.join(GATHERED_FILE);
        let mut options = OpenOptions::new();
        let mut lock = options.read(true).write(true).create(true).truncate(false).open(&path).map_err(folder_error)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(ServeError::InUse(dir.to_owned())),
            Err(TryLockError::Error(e)) => return Err(folder_error(e)),
        }
        let clock = Clock::of_this_host();
        match read_json::<GatheredInfo>(&path) {
            // After a restart the machine has another clock: new times could not be compared with those in the folder.
            Ok(stored) if stored.clock != clock.id => return Err(ServeError::OtherClock(dir.to_owned())),
            Ok(_) => {}
            Err(_) if lock.metadata().is_ok_and(|m| m.len() == 0) => {
                let info = GatheredInfo { version: 1, clock: clock.id.clone() };
                let text = serde_json::to_string_pretty(&info).map_err(io::Error::from);
                text.and_then(|text| lock.write_all(text.as_bytes()))
                    .and_then(|()| lock.sync_all())
                    .map_err(folder_error)?;
            }
            Err(e) => return Err(folder_error(e)),
        }
        let mirrors = Mutex::new(open_mirrors(dir).map_err(folder_error)?);
        let (dir, clocks, report) = (dir.to_owned(), Mutex::default(), Mutex::default());
        Ok(Hub { dir, clock, sync, mirrors, clocks, report, _lock: lock })
    }

    /// Accepts a connection's greeting; returns the right to write, and the lengths of the files that the collector
    /// has.
    pub(crate) fn greet(&self, hello: &Hello) -> Result<(WriteTurn, Vec<FileLength>), MirrorError> {
        if hello.folder.len() != ID_BYTES || !is_clock_id(&hello.clock) || hello.host.len() > 256 {
            return Err(MirrorError::Protocol(
                "a greeting needs a folder's id, a clock's id and a host's name".to_owned(),
            ));
        }
        let mirror = {
            let mut mirrors = self.mirrors.lock();
            let id = to_hex(&hello.folder);
            match mirrors.get(&id) {
                Some(mirror) => Arc::clone(mirror),
                None if mirrors.len() >= MAX_FOLDERS => {
                    return Err(MirrorError::Protocol(format!("this collector has {MAX_FOLDERS} folders already")));
                }
                None => {
                    let mirror = Arc::new(Mutex::new(Mirror::create(&mirror_path(&self.dir, hello), hello)?));
                    mirrors.insert(id, Arc::clone(&mirror));
                    mirror
                }
            }
        };
        let mut open = mirror.lock();
        let files = open.begin_connection()?;
        let number = open.turn;
        drop(open);
        self.report.lock().connections += 1;
        Ok((WriteTurn { mirror, number }, files))
    }

    /// Writes the items of a connection; returns the sequence number up to which all items are stored.
    pub(crate) fn write_items(&self, turn: &WriteTurn, items: Vec<up::What>) -> Result<u64, MirrorError> {
        let mut mirror = turn.mirror.lock();
        if mirror.turn != turn.number {
            return Err(MirrorError::Protocol("another connection sends this folder now".to_owned()));
        }
        let written = mirror.write_items(items, self.sync);
        let mut report = self.report.lock();
        report.repeated += std::mem::take(&mut mirror.repeated);
        report.failed_writes += u64::from(matches!(written, Err(MirrorError::Io(..))));
        let (sequence, bytes) = written?;
        report.bytes += bytes;
        Ok(sequence)
    }

    /// Writes an exchange of stamps to its clock's file.
    pub(crate) fn store_exchange(&self, clock: &str, exchange: &Exchange) -> io::Result<()> {
        let exchange = clocks::Exchange {
            request_sent: exchange.asked_ns,
            request_received: exchange.received_ns,
            response_sent: exchange.sent_ns,
            response_received: exchange.answered_ns,
        };
        if !exchange.is_monotonic() || clock == self.clock.id {
            return Ok(());
        }
        self.append(clock, &clocks::file::exchange_frame(&exchange))?;
        self.report.lock().exchanges += 1;
        Ok(())
    }

    /// Writes facts about clocks, which were derived from messages, to the clocks' files.
    pub(crate) fn store_facts(&self, facts: &[(String, Fact)]) -> io::Result<()> {
        facts.iter().try_for_each(|(clock, fact)| self.append(clock, &clocks::file::fact_frame(fact)))
    }

    fn append(&self, clock: &str, frame: &[u8]) -> io::Result<()> {
        let mut clocks = self.clocks.lock();
        if !clocks.contains_key(clock) {
            if !is_clock_id(clock) || clocks.len() >= MAX_FOLDERS {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            clocks.insert(clock.to_owned(), clocks::file::append_to(&clocks::file::path(&self.dir, clock))?);
        }
        clocks.get_mut(clock).map_or(Ok(()), |file| file.write_all(frame))
    }

    /// The number of folders that the collector has received.
    pub(crate) fn n_folders(&self) -> u64 {
        self.mirrors.lock().len() as u64
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
}

/// Opens the copies in a gathered folder, by the ids of their source folders.
fn open_mirrors(dir: &Path) -> io::Result<Mirrors> {
    let mut mirrors = Mirrors::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if let Some(folder) = Mirror::folder_of(&path) {
            let mirror = Mirror::open(&path).map_err(io::Error::other)?;
            mirrors.insert(folder, Arc::new(Mutex::new(mirror)));
        }
    }
    Ok(mirrors)
}
