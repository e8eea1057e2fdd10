//! What a damaged file claims is never believed: reading allocates at most the file's size and 64 MiB.

// Clippy's exceptions for tests do not reach the helpers of an integration test.
#![allow(clippy::unwrap_used)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    fs,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use formats::tfrecord::masked_crc;
use summaries::{Logdir, Pixels, Series, SummaryWriter, WriterOptions};

/// The system's allocator, with the greatest sum of what was allocated at a time.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all work is the system allocator's; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK.fetch_max(NOW.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// SplitMix64 (Steele, Lea, Flood 2014): the same files in every run.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn written() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let writer = SummaryWriter::create(dir.path(), WriterOptions::default()).unwrap();
    for step in 0..40 {
        writer.add_scalar("loss", step as f32, step);
        writer.add_histogram("w", (0..50).map(|i| (i * step) as f32), step);
        writer.add_tensor("t", &[2, 3], &[1.0; 6], step).unwrap();
        writer.add_pr_curve("pr", &[true, false], &[0.5, 0.6], 5, step);
        writer.add_image("image", Pixels { width: 2, height: 2, data: &[9; 12] }, step).unwrap();
    }
    let path = writer.path().to_owned();
    writer.close().unwrap();
    fs::read(path).unwrap()
}

/// Writes lies into the records and makes their checksums good again, so that they reach the decoders.
fn lie(bytes: &mut [u8], state: &mut u64) {
    let mut at = 0;
    while at + 16 <= bytes.len() {
        let n = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        let data = at + 12..at + 12 + n;
        for _ in 0..next(state) % 3 {
            let i = data.start + (next(state) % n as u64) as usize;
            bytes[i] = [0xff, 0x7f, 0x80, 0][(next(state) % 4) as usize];
        }
        let crc = masked_crc(&bytes[data.clone()]);
        bytes[data.end..data.end + 4].copy_from_slice(&crc.to_le_bytes());
        at = data.end + 4;
    }
}

#[test]
fn claims_cost_no_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.out.tfevents.lies");
    let whole = written();
    let mut state = 3;
    for i in 0..1000 {
        let mut bytes = whole.clone();
        lie(&mut bytes, &mut state);
        if i % 4 == 0 {
            // A length of up to 2^63 with a good checksum.
            let length = ((next(&mut state) >> (next(&mut state) % 63)) | 1 << 20).to_le_bytes();
            bytes[..8].copy_from_slice(&length);
            bytes[8..12].copy_from_slice(&masked_crc(&length).to_le_bytes());
        }
        fs::write(&path, &bytes).unwrap();
        let before = NOW.load(Relaxed);
        PEAK.store(before, Relaxed);
        let mut logdir = Logdir::open(std::slice::from_ref(&path)).unwrap();
        logdir.read_all();
        for series in logdir.runs().by_name.values().flat_map(|run| run.series.values()) {
            if let Series::Media(media) = series {
                (0..media.len()).for_each(|row| drop(media.read(row)));
            }
        }
        let peak = PEAK.load(Relaxed) - before;
        assert!(peak <= bytes.len() + (64 << 20), "file {i} of {} bytes took {peak}", bytes.len());
    }
}
