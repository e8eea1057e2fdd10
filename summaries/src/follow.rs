//! Follows one event file: each poll reads from where the last ended. The file is open only while it is read, so that
//! thousands of runs do not exhaust the file descriptors.

use std::{
    fs::{self, File},
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use flate2::bufread::MultiGzDecoder;
use formats::tfrecord::{RecordStream, Scan};
use parking_lot::Mutex;

use crate::{
    damage::{DamageKind, DamageLog},
    media::GZIP_MAGIC,
    run::{FileState, FileStatus},
    stage::{RunStage, Segment},
};

/// A file that grew within this time is read in every poll.
pub(crate) const ACTIVE_NS: i64 = 10_000_000_000;
/// The size of the first block of a poll. It is small, so that the few new bytes of a growing file are shown at once.
const FIRST_BLOCK: usize = 256 << 10;
/// The bytes that one thread decodes at a time.
const BLOCK: usize = 1 << 20;

/// A file that is followed.
#[derive(Debug)]
pub(crate) struct FileFollower {
    path: Arc<Path>,
    stream: RecordStream,
    compression: Compression,
    state: FileState,
    log: DamageLog,
    last_growth_ns: i64,
    /// The identity that distinguishes the file from another file of the same name.
    identity: Option<u64>,
}

/// Whether a file is gzipped. Such a file is read once, from its beginning to its end.
#[derive(Debug)]
enum Compression {
    Unknown,
    No,
    Reading(Box<MultiGzDecoder<BufReader<File>>>),
    Done,
}

/// The result of reading a file once.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReadReport {
    /// Bytes that were decoded or skipped.
    pub n_bytes: u64,
    /// Whether the file has more than the allowance.
    pub has_more: bool,
    /// Whether the file's state, size or damage has changed.
    pub is_changed: bool,
}

impl FileFollower {
    pub fn new(path: PathBuf, now_ns: i64) -> Self {
        let path: Arc<Path> = path.into();
        Self {
            log: DamageLog::new(path.clone()),
            path,
            stream: RecordStream::default(),
            compression: Compression::Unknown,
            state: FileState::Followed,
            last_growth_ns: now_ns,
            identity: None,
        }
    }

    pub fn path(&self) -> &Arc<Path> {
        &self.path
    }

    pub fn status(&self) -> FileStatus {
        FileStatus {
            path: self.path.clone(),
            n_read: self.stream.offset(),
            n_waiting: self.stream.n_waiting(),
            state: self.state.clone(),
        }
    }

    /// Whether the file grew within [`ACTIVE_NS`].
    pub fn is_active(&self, now_ns: i64) -> bool {
        now_ns - self.last_growth_ns < ACTIVE_NS
    }

    /// The damage of the file.
    pub fn log(&mut self) -> &mut DamageLog {
        &mut self.log
    }

    /// Reads about `allowance` new bytes into `stage`.
    pub fn read_new(&mut self, allowance: u64, now_ns: i64, stage: &mut RunStage) -> ReadReport {
        let before = (self.stream.read_offset(), self.log.count());
        let state = self.state.clone();
        let offset_before = self.stream.offset();
        let result = self.read(allowance, stage);
        let has_more = *result.as_ref().unwrap_or(&false);
        self.state = match result {
            Ok(_) => FileState::Followed,
            Err(e) if e.kind() == io::ErrorKind::NotFound => FileState::Deleted,
            Err(e) => FileState::Unreadable(e.to_string()),
        };
        let after = (self.stream.read_offset(), self.log.count());
        if after.0 != before.0 {
            self.last_growth_ns = now_ns;
        }
        ReadReport {
            n_bytes: self.stream.offset().saturating_sub(offset_before),
            has_more,
            is_changed: before != after || state != self.state,
        }
    }

    /// Reads about `allowance` new bytes; returns whether there is more to read.
    fn read(&mut self, allowance: u64, stage: &mut RunStage) -> io::Result<bool> {
        match &mut self.compression {
            Compression::Done => return Ok(false),
            Compression::Reading(_) => return self.read_gzip(allowance, stage),
            Compression::Unknown | Compression::No => {}
        }
        let metadata = fs::metadata(&self.path)?;
        let (size, identity) = (metadata.len(), identity(&metadata));
        if size < self.stream.read_offset() || identity != *self.identity.get_or_insert(identity) {
            self.restart(identity);
        }
        if size == self.stream.read_offset() && self.stream.is_idle() {
            return Ok(false);
        }
        let mut file = File::open(&self.path)?;
        if matches!(self.compression, Compression::Unknown) && self.detect_gzip(&mut file)? {
            return self.read_gzip(allowance, stage);
        }
        let begin = self.stream.read_offset();
        if begin > 0 {
            file.seek(SeekFrom::Start(begin))?;
        }
        // Only up to the size at the beginning: the next poll reads what is appended meanwhile.
        self.drain(&mut file.take(size - begin), size, allowance, stage)
    }

    /// Detects gzip by the first two bytes, once the file has two; returns whether the file is gzipped.
    fn detect_gzip(&mut self, file: &mut File) -> io::Result<bool> {
        let mut magic = [0; 2];
        let found = file.read_exact(&mut magic);
        file.seek(SeekFrom::Start(0))?;
        if let Err(e) = found {
            return if e.kind() == io::ErrorKind::UnexpectedEof { Ok(false) } else { Err(e) };
        }
        let is_gzipped = magic == GZIP_MAGIC;
        self.compression = if is_gzipped {
            Compression::Reading(Box::new(MultiGzDecoder::new(BufReader::new(file.try_clone()?))))
        } else {
            Compression::No
        };
        Ok(is_gzipped)
    }

    fn read_gzip(&mut self, allowance: u64, stage: &mut RunStage) -> io::Result<bool> {
        let Compression::Reading(mut decoder) = std::mem::replace(&mut self.compression, Compression::Done) else {
            return Ok(false);
        };
        let has_more = self.drain(&mut decoder, u64::MAX, allowance, stage)?;
        if has_more {
            self.compression = Compression::Reading(decoder);
        }
        Ok(has_more)
    }

    /// Decodes records of `source`, whose file has `size` bytes, until `allowance` bytes are read; returns whether
    /// there may be more. All processors decode blocks while this thread reads.
    fn drain(
        &mut self,
        source: &mut (impl Read + Send),
        size: u64,
        allowance: u64,
        stage: &mut RunStage,
    ) -> io::Result<bool> {
        let end = self.stream.offset().saturating_add(allowance);
        while self.stream.offset() < end {
            self.drain_blocks(source, size, end, stage)?;
            if self.stream.offset() == size {
                return Ok(false);
            }
            if self.stream.offset() >= end {
                break;
            }
            let mut segment = Segment::new(self.path.clone());
            match self.stream.next(source)? {
                Scan::Record(record) => segment.decode_record(&record, stage.known()),
                Scan::Damage(damage) => self.log.add(damage.kind.into(), damage.bytes),
                Scan::More => return Ok(false),
            }
            stage.absorb(segment, |kind, bytes| self.log.add(kind, bytes));
        }
        Ok(true)
    }

    /// Decodes the next blocks, up to `end`. The first is decoded before the others, because it has the kinds of most
    /// tags.
    fn drain_blocks(
        &mut self,
        source: &mut (impl Read + Send),
        size: u64,
        end: u64,
        stage: &mut RunStage,
    ) -> io::Result<()> {
        // No block reaches over the size that the file had.
        let block_size = |block: usize, stream: &RecordStream| (size - stream.offset()).min(block as u64) as usize;
        let Some(first) = self.stream.next_block(source, block_size(FIRST_BLOCK, &self.stream))? else { return Ok(()) };
        let segment = Segment::from_block(self.path.clone(), first, stage.known());
        stage.absorb(segment, |kind, bytes| self.log.add(kind, bytes));
        let (known, stream, path) = (stage.known(), &mut self.stream, &self.path);
        let (segments, n_waiting) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
        let decode = |i: usize, block| {
            let segment = Segment::from_block(path.clone(), block, known);
            segments.lock().push((i, segment));
        };
        let (decode, n_waiting) = (&decode, &n_waiting);
        let result = rayon::in_place_scope(|scope| {
            for i in 0.. {
                if stream.offset() >= end.min(size) {
                    break;
                }
                let Some(block) = stream.next_block(source, block_size(BLOCK, stream))? else { break };
                // Where all processors are busy this thread decodes too: blocks that wait would only take memory.
                if n_waiting.load(Ordering::Relaxed) > rayon::current_num_threads() {
                    decode(i, block);
                    continue;
                }
                n_waiting.fetch_add(1, Ordering::Relaxed);
                scope.spawn(move |_| {
                    decode(i, block);
                    n_waiting.fetch_sub(1, Ordering::Relaxed);
                });
            }
            Ok(())
        });
        let mut segments = segments.into_inner();
        segments.sort_unstable_by_key(|(i, _)| *i);
        for (_, segment) in segments {
            stage.absorb(segment, |kind, bytes| self.log.add(kind, bytes));
        }
        result
    }

    /// Starts at the beginning of a file that became shorter or was replaced.
    fn restart(&mut self, identity: u64) {
        self.identity = Some(identity);
        self.log.add(DamageKind::Rewritten, 0..self.stream.read_offset());
        self.stream = RecordStream::default();
        self.compression = Compression::Unknown;
    }
}

/// The inode number of the file.
#[cfg(unix)]
fn identity(metadata: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

/// On systems without inode numbers a replaced file is recognised by its size alone.
#[cfg(not(unix))]
fn identity(_: &fs::Metadata) -> u64 {
    0
}
