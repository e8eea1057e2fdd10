//! A thousand damaged event files: no panic, and nothing lost without a word.

// Clippy's exceptions for tests do not reach the helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::{fs, path::Path};

use summaries::{Logdir, Series, SummaryWriter, WriterOptions};

/// SplitMix64 (Steele, Lea, Flood 2014): the same files in every run.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len());
        let n = self.below(200).min(bytes.len() - at);
        match self.below(6) {
            0 => bytes[at] ^= 1 << self.below(8),
            1 => bytes[at..at + n].fill(self.next() as u8),
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..at + n)),
            4 => {
                let noise: Vec<u8> = (0..n).map(|_| self.next() as u8).collect();
                bytes.splice(at..at, noise);
            }
            _ => {
                let length = self.next() >> self.below(64);
                let n = 8.min(bytes.len() - at);
                bytes[at..at + n].copy_from_slice(&length.to_le_bytes()[..n]);
            }
        }
    }
}

/// Points, and whether anything was reported about the file.
fn read(path: &Path) -> (usize, bool) {
    let mut logdir = Logdir::open(&[path.to_owned()]).unwrap();
    logdir.read_all();
    let runs = logdir.runs();
    let run = runs.by_name.values().next().unwrap();
    let file = &run.files[0];
    let size = fs::metadata(path).unwrap().len();
    assert_eq!(file.n_read + file.n_waiting, size, "every byte is accounted for");
    assert_eq!(run.n_damaged as usize, run.damage.len());
    assert!(run.damage.iter().all(|d| d.bytes.start < d.bytes.end && d.bytes.end <= size));
    for series in run.series.values() {
        if let Series::Media(media) = series {
            // Whatever comes out, a sample or an error.
            (0..media.len()).for_each(|row| drop(media.read(row)));
        }
    }
    (run.series.values().map(Series::n_points).sum(), run.n_damaged > 0 || file.n_waiting > 0)
}

fn written() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let writer = SummaryWriter::create(dir.path(), WriterOptions::default()).unwrap();
    for step in 0..100 {
        writer.add_scalar("loss", 1.0 / (1.0 + step as f32), step);
        writer.add_histogram("w", (0..50).map(|i| (i * step) as f32), step);
    }
    let path = writer.path().to_owned();
    writer.close().unwrap();
    fs::read(path).unwrap()
}

#[test]
fn a_thousand_mutated_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.out.tfevents.mutated");
    let whole = written();
    let mut rng = Rng(1);
    let mut n_points = 0;
    for i in 0..1000 {
        let mut bytes = whole.clone();
        for _ in 0..=rng.below(4) {
            rng.mutate(&mut bytes);
        }
        fs::write(&path, &bytes).unwrap();
        let (n, is_told) = read(&path);
        // A cut between two records leaves a shorter whole file, as does one that takes whole records out.
        let is_shorter_whole = whole.starts_with(&bytes);
        assert!(n == 200 || is_told || is_shorter_whole, "file {i} has {n} points and nothing is printed");
        n_points += n;
    }
    // One mutation costs one or two records, except a cut: half the points come through even with four of them.
    assert!(n_points > 100_000, "{n_points} of 200,000 points were read");
}

#[test]
fn a_thousand_mutated_real_files() {
    let root = test_support::data_folder().join("events");
    let files = [
        "tf2_all_plugins.tfevents.v2",
        "tf1_filewriter_runmetadata.tfevents",
        "odd_huge_length_valid_crc_record20.tfevents",
    ];
    let wholes: Vec<Vec<u8>> = files.iter().map(|file| fs::read(root.join(file)).unwrap()).collect();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.out.tfevents.mutated");
    let mut rng = Rng(2);
    for i in 0..1000 {
        let mut bytes = wholes[i % wholes.len()].clone();
        for _ in 0..=rng.below(8) {
            rng.mutate(&mut bytes);
        }
        fs::write(&path, &bytes).unwrap();
        read(&path);
    }
}
