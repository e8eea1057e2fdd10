//! Creating a ring: the producer's side outside the hot path, which is in [`crate::local`].

use super::{HEADER_BYTES, Header, MAGIC, MAX_RECORDS, MIN_FLIGHT_RECORDS, NAME_BYTES, Slot, file};
use memmap2::MmapRaw;
use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

/// A ring's mapping, as the producing process holds it.
pub(crate) struct RingFile {
    map: MmapRaw,
}

impl RingFile {
    /// Creates the file of ring `ring`, with its space reserved and its pages present.
    ///
    /// # Errors
    /// `AlreadyExists` when the number is taken, else that the folder is gone, full or not writable.
    pub(crate) fn create(
        trace_dir: &Path,
        ring: u32,
        records: u32,
        overwrites: bool,
        tid: u32,
        name: &str,
    ) -> io::Result<Self> {
        let pid = std::process::id();
        let min_records = if overwrites { MIN_FLIGHT_RECORDS } else { 2 };
        let capacity = records.clamp(min_records, MAX_RECORDS).next_power_of_two();
        let path = super::path(trace_dir, pid, ring);
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        let map = file::reserve(&file, HEADER_BYTES as u64 + u64::from(capacity) * 32)
            .and_then(|()| file::map_present(&file))
            // An incomplete file would look like a damaged ring.
            .inspect_err(|_| drop(std::fs::remove_file(&path)))?;
        let this = Self { map };
        let header = this.header();
        header.header_bytes.store(HEADER_BYTES as u32, Ordering::Relaxed);
        header.capacity.store(capacity, Ordering::Relaxed);
        header.pid.store(pid, Ordering::Relaxed);
        header.tid.store(tid, Ordering::Relaxed);
        header.ring.store(ring, Ordering::Relaxed);
        header.made.store(crate::clock::now(), Ordering::Relaxed);
        let name = &name.as_bytes()[..name.floor_char_boundary(NAME_BYTES)];
        header.name_len.store(name.len() as u32, Ordering::Relaxed);
        for (name_word, part) in header.name.iter().zip(name.chunks(8)) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            name_word.store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
        header.producer.overwrites.store(u32::from(overwrites), Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
        Ok(this)
    }

    pub(crate) fn header(&self) -> &Header {
        // SAFETY: the mapping is page-aligned, longer than a header (`create` made it so), lives as long as `self`, and
        // a header is made of atomics and padding, for which every bit pattern is valid.
        unsafe { &*self.map.as_ptr().cast::<Header>() }
    }

    pub(crate) fn slots(&self) -> *const Slot {
        // SAFETY: the mapping is HEADER_BYTES and at least two slots long.
        unsafe { self.map.as_ptr().add(HEADER_BYTES).cast::<Slot>() }
    }

    pub(crate) fn capacity(&self) -> u32 {
        // From the mapping, not the header: another process that maps the file could change the header.
        ((self.map.len() - HEADER_BYTES) / size_of::<Slot>()) as u32
    }

    /// Whether the producer overwrites the oldest records.
    pub(crate) fn overwrites(&self) -> bool {
        self.header().producer.overwrites.load(Ordering::Relaxed) != 0
    }

    /// Marks the ring as finished: no record follows.
    pub(crate) fn finish(&self) {
        self.header().producer.finished.store(1, Ordering::Release);
    }

    /// Whether the collector drained everything and removed the file.
    pub(crate) fn is_retired(&self) -> bool {
        self.header().consumer.retired.load(Ordering::Relaxed) != 0
    }
}
