//! What all connections of a collector share: the copies by folder, the clocks' files, the counts.

use crate::identity::{Clock, ID_BYTES, is_clock_id, to_hex};
use crate::mirror::{Item, Mirror, MirrorError, place};
use crate::wire::{Exchange, FileLength, Hello};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trace_model::clocks;
use trace_model::clocks::Fact;
use trace_model::layout::{GATHERED_FILE as FILE, GatheredInfo, read_json};

/// Folders and clocks of one collector, at most.
const MAX_FOLDERS: usize = 4096;

/// Counts of what a collector received so far.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) connections: AtomicU64,
    pub(crate) open: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) repeated: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) exchanges: AtomicU64,
    pub(crate) failed_writes: AtomicU64,
}

/// Why a folder cannot be gathered into.
#[derive(Debug)]
pub(crate) enum HubError {
    /// It holds something else.
    NotEmpty,
    /// Another collector gathers into it.
    InUse,
    /// It was begun before the machine restarted: times on the new clock would not fit.
    OtherClock,
    /// It cannot be written.
    Io(io::Error),
}

impl From<io::Error> for HubError {
    fn from(error: io::Error) -> Self {
        HubError::Io(error)
    }
}

/// A collector's copies of trace folders, its clocks' files and its counts.
pub(crate) struct Hub {
    dir: PathBuf,
    pub(crate) clock: Clock,
    sync: bool,
    mirrors: Mutex<BTreeMap<String, Arc<Mutex<Mirror>>>>,
    clocks: Mutex<BTreeMap<String, File>>,
    pub(crate) counts: Counts,
    /// Locked as long as the collector lives.
    _lock: File,
}

/// A connection's right to write into a copy, until the next connection of the same folder.
pub(crate) struct Turn {
    mirror: Arc<Mutex<Mirror>>,
    number: u64,
}

impl Hub {
    /// Opens a gathered folder, or makes one in an empty or missing folder.
    ///
    /// # Errors
    /// See [`HubError`].
    pub(crate) fn open(dir: &Path, sync: bool) -> Result<Hub, HubError> {
        std::fs::create_dir_all(dir)?;
        if !dir.join(FILE).is_file() && std::fs::read_dir(dir)?.next().is_some() {
            return Err(HubError::NotEmpty);
        }
        Hub::within(dir, sync)
    }

    /// The same in a folder that may hold a trace of its own.
    ///
    /// # Errors
    /// As [`Hub::open`].
    pub(crate) fn within(dir: &Path, sync: bool) -> Result<Hub, HubError> {
        let path = dir.join(FILE);
        let mut lock = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        lock.try_lock().map_err(|e| match e {
            TryLockError::WouldBlock => HubError::InUse,
            TryLockError::Error(e) => HubError::Io(e),
        })?;
        let clock = Clock::here();
        let info = GatheredInfo { version: 1, clock: clock.id.clone() };
        match read_json::<GatheredInfo>(&path) {
            // After a restart of the machine its clock is another one, and times would not fit together.
            Ok(before) if before.clock != clock.id => return Err(HubError::OtherClock),
            Ok(_) => {}
            Err(_) if lock.metadata()?.len() == 0 => {
                lock.write_all(serde_json::to_string_pretty(&info).map_err(io::Error::from)?.as_bytes())?;
                lock.sync_all()?;
            }
            Err(e) => return Err(HubError::Io(e)),
        }
        let mut mirrors = BTreeMap::new();
        for entry in std::fs::read_dir(dir)? {
            let path = entry?.path();
            if let Some(folder) = Mirror::folder_of(&path) {
                let mirror = Mirror::open(&path).map_err(io::Error::other)?;
                mirrors.insert(folder, Arc::new(Mutex::new(mirror)));
            }
        }
        let (dir, clocks, counts) = (dir.to_owned(), Mutex::default(), Counts::default());
        Ok(Hub { dir, clock, sync, mirrors: Mutex::new(mirrors), clocks, counts, _lock: lock })
    }

    /// A connection greets.
    pub(crate) fn greet(&self, hello: &Hello) -> Result<(Turn, Vec<FileLength>), MirrorError> {
        if hello.folder.len() != ID_BYTES || !is_clock_id(&hello.clock) || hello.host.len() > 256 {
            return Err(MirrorError::Wrong(
                "a greeting needs a folder's id, a clock's id and a host's name".to_owned(),
            ));
        }
        let mirror = {
            let mut mirrors = self.mirrors.lock();
            let id = to_hex(&hello.folder);
            match mirrors.get(&id) {
                Some(mirror) => Arc::clone(mirror),
                None if mirrors.len() >= MAX_FOLDERS => {
                    return Err(MirrorError::Wrong(format!("this collector has {MAX_FOLDERS} folders already")));
                }
                None => {
                    let mirror = Arc::new(Mutex::new(Mirror::create(&place(&self.dir, hello), hello)?));
                    mirrors.insert(id, Arc::clone(&mirror));
                    mirror
                }
            }
        };
        let mut open = mirror.lock();
        let files = open.begin()?;
        let number = open.turn;
        drop(open);
        self.counts.connections.fetch_add(1, Ordering::Relaxed);
        Ok((Turn { mirror, number }, files))
    }

    /// Takes what a connection brought; returns the sequence number up to which it is safe.
    pub(crate) fn take(&self, turn: &Turn, items: Vec<Item>) -> Result<u64, MirrorError> {
        let mut mirror = turn.mirror.lock();
        if mirror.turn != turn.number {
            return Err(MirrorError::Wrong("another connection sends this folder now".to_owned()));
        }
        let taken = mirror.take(items, self.sync);
        self.counts.repeated.fetch_add(std::mem::take(&mut mirror.repeated), Ordering::Relaxed);
        match taken {
            Ok((sequence, bytes)) => {
                self.counts.bytes.fetch_add(bytes, Ordering::Relaxed);
                Ok(sequence)
            }
            Err(error) => {
                let is_io = matches!(error, MirrorError::Io(..));
                self.counts.failed_writes.fetch_add(u64::from(is_io), Ordering::Relaxed);
                Err(error)
            }
        }
    }

    /// Keeps an exchange of stamps with a clock.
    pub(crate) fn exchanged(&self, clock: &str, exchange: &Exchange) -> io::Result<()> {
        let exchange = clocks::Exchange {
            asked: exchange.asked_ns,
            received: exchange.received_ns,
            sent: exchange.sent_ns,
            answered: exchange.answered_ns,
        };
        if !exchange.is_sound() || clock == self.clock.id {
            return Ok(());
        }
        self.append(clock, &clocks::file::exchange_frame(&exchange))?;
        self.counts.exchanges.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Stores what messages say about clocks.
    pub(crate) fn learnt(&self, facts: &[(String, Fact)]) -> io::Result<()> {
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

    /// Folders that were sent here, ever.
    pub(crate) fn n_folders(&self) -> u64 {
        self.mirrors.lock().len() as u64
    }

    /// The gathered folder.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
}
