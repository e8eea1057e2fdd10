//! Reads Perfetto's protobuf traces.
//!
//! A trace is a sequence of packets from many writers ("sequences"). Each sequence has a state of its own (interned
//! names, defaults, clocks), which is invalid after a loss until the writer resets it. [`sequence`] has that state,
//! [`clocks`] converts times to one clock, [`tracks`] finds the track of an event, [`events`] and [`ftrace`] stage
//! events, [`args`] converts debug annotations to JSON.

mod args;
mod clocks;
mod events;
mod ftrace;
mod sequence;
mod tracks;

use super::input::{Input, MAX_EVENT, Window, varint};
use super::problems::Problem;
use super::reader::Reader;
use super::sched::Sched;
use super::stage::Stage;
use clocks::Clocks;
use formats::perfetto::{ProcessTree, TracePacket, TraceStats};
use prost::Message;
use rustc_hash::FxHashMap;
use sequence::Sequence;
use std::io::{self, Read};
use tracks::Tracks;

/// Bytes that one call reads, approximately.
const PART: u64 = 4 << 20;
/// Bytes that a compressed packet expands to, at most.
const MAX_UNPACKED_BYTES: u64 = 256 << 20;

pub(super) struct Perfetto {
    window: Window,
    sequences: FxHashMap<u32, Sequence>,
    clocks: Clocks,
    tracks: Tracks,
    sched: Sched,
}

impl Perfetto {
    pub(super) fn new(input: &Input) -> Perfetto {
        Perfetto {
            window: Window::new(input),
            sequences: FxHashMap::default(),
            clocks: Clocks::default(),
            tracks: Tracks::default(),
            sched: Sched::default(),
        }
    }

    fn packet(&mut self, bytes: &[u8], stage: &mut Stage) {
        let Ok(mut packet) = TracePacket::decode(bytes) else {
            return stage.problems.count_at(Problem::Damaged, self.window.offset());
        };
        if let Some(packed) = packet.compressed_packets.take() {
            return self.read_packets(flate2::read::ZlibDecoder::new(&*packed), stage);
        }
        if let Some(packed) = packet.zstd_compressed_packets.take() {
            return match zstd::Decoder::new(&*packed) {
                Ok(decoder) => self.read_packets(decoder, stage),
                Err(_) => stage.problems.count_at(Problem::BadCompression, self.window.offset()),
            };
        }
        let id = packet.trusted_packet_sequence_id.unwrap_or(0);
        let mut sequence = self.sequences.remove(&id).unwrap_or_default();
        self.take(&packet, id, &mut sequence, stage);
        self.sequences.insert(id, sequence);
    }

    fn read_packets(&mut self, from: impl Read, stage: &mut Stage) {
        let mut bytes = Vec::new();
        if from.take(MAX_UNPACKED_BYTES).read_to_end(&mut bytes).is_err() {
            stage.problems.count_at(Problem::BadCompression, self.window.offset());
        }
        let mut rest = &*bytes;
        while !rest.is_empty() {
            match next_packet(rest) {
                Next::Packet { begin, end } => {
                    let packet = &rest[begin..end];
                    // No writer nests packets deeper.
                    match TracePacket::decode(packet) {
                        Ok(p) if p.compressed_packets.is_some() || p.zstd_compressed_packets.is_some() => {
                            stage.problems.count_at(Problem::Damaged, self.window.offset());
                        }
                        _ => self.packet(packet, stage),
                    }
                    rest = &rest[end..];
                }
                Next::More(_) => return stage.problems.count_at(Problem::Truncated, self.window.offset()),
                Next::Other(_) | Next::Bad => return stage.problems.count_at(Problem::Damaged, self.window.offset()),
            }
        }
    }

    fn take(&mut self, packet: &TracePacket, id: u32, sequence: &mut Sequence, stage: &mut Stage) {
        let lost = packet.previous_packet_dropped.unwrap_or(0);
        if lost != 0 {
            stage.problems.count(Problem::LostByRecorder);
        }
        if !sequence.begin(packet, lost != 0) {
            return stage.problems.count(Problem::LostByRecorder);
        }
        if let Some(snapshot) = &packet.clock_snapshot {
            self.clocks.snapshot(id, snapshot);
        }
        if let Some(descriptor) = &packet.track_descriptor {
            self.tracks.describe(descriptor, stage);
        }
        if let Some(process) = &packet.process_descriptor {
            tracks::name_process(process, stage);
        }
        if let Some(thread) = &packet.thread_descriptor {
            tracks::name_thread(thread, stage);
        }
        if let Some(tree) = &packet.process_tree {
            self.tree(tree, stage);
        }
        if let Some(stats) = &packet.trace_stats {
            losses(stats, stage);
        }
        if let Some(stats) = &packet.ftrace_stats
            && stats.phase == Some(2)
        {
            let lost = stats.cpu_stats.iter().map(|s| s.overrun.unwrap_or(0) + s.dropped_events.unwrap_or(0)).sum();
            stage.problems.add(Problem::LostByRecorder, lost, None);
        }
        if let Some(bundle) = &packet.ftrace_events {
            ftrace::take(bundle, &self.clocks, &mut self.sched, stage);
        }
        if let Some(event) = &packet.track_event {
            let time = sequence.time(packet, event);
            match time.and_then(|(clock, time)| self.clocks.convert_packet(id, clock, time)) {
                Some(time) => events::take(event, time, sequence, &mut self.tracks, stage),
                None => stage.problems.count_at(Problem::UnknownClock, self.window.offset()),
            }
        }
    }

    fn tree(&mut self, tree: &ProcessTree, stage: &mut Stage) {
        for process in &tree.processes {
            let pid = i64::from(process.pid.unwrap_or(0));
            self.tracks.process_of.insert(pid, pid);
            let idx = stage.process(pid);
            process.cmdline.first().inspect(|name| stage.name_process(idx, name));
        }
        for thread in &tree.threads {
            let (tid, pid) = (i64::from(thread.tid.unwrap_or(0)), i64::from(thread.tgid.unwrap_or(0)));
            self.tracks.process_of.insert(tid, pid);
            let track = stage.thread(pid, tid);
            thread.name.as_ref().inspect(|name| stage.name_track(track, name));
        }
    }
}

/// Counts the chunks and packets that the tracing service has lost.
fn losses(stats: &TraceStats, stage: &mut Stage) {
    // The counts are totals so far; a loss is reported by each later packet too.
    let lost = |b: &formats::perfetto::trace_stats::BufferStats| {
        b.chunks_discarded.unwrap_or(0) + b.trace_writer_packet_loss.unwrap_or(0)
    };
    let total = stats.buffer_stats.iter().map(lost).sum();
    stage.problems.at_least(Problem::LostByRecorder, total);
}

/// The next field in a sequence of packets.
enum Next {
    /// A packet's bytes.
    Packet { begin: usize, end: usize },
    /// Another field, with its length.
    Other(usize),
    /// The number of bytes that are needed to decide.
    More(usize),
    /// Bytes that are not a field.
    Bad,
}

fn next_packet(bytes: &[u8]) -> Next {
    let Some((key, n_key)) = varint(bytes) else { return if bytes.len() < 10 { Next::More(10) } else { Next::Bad } };
    match key & 7 {
        2 => {
            let Some((length, n)) = varint(&bytes[n_key..]) else {
                return if bytes.len() < n_key + 10 { Next::More(n_key + 10) } else { Next::Bad };
            };
            let begin = n_key + n;
            let Some(end) = usize::try_from(length).ok().and_then(|l| begin.checked_add(l)) else { return Next::Bad };
            match (key >> 3, end) {
                _ if end > bytes.len() => Next::More(end),
                (1, _) => Next::Packet { begin, end },
                _ => Next::Other(end),
            }
        }
        0 => varint(&bytes[n_key..]).map_or(Next::Bad, |(_, n)| Next::Other(n_key + n)),
        1 => Next::Other(n_key + 8),
        5 => Next::Other(n_key + 4),
        _ => Next::Bad,
    }
}

impl Reader for Perfetto {
    fn read(&mut self, stage: &mut Stage) -> io::Result<bool> {
        let until = self.window.offset() + PART;
        while self.window.offset() < until {
            if self.window.bytes().is_empty() && !self.window.more()? {
                return Ok(false);
            }
            match next_packet(self.window.bytes()) {
                Next::Packet { begin, end } => {
                    // Decoding borrows the window; a copy of one packet is cheap compared with it.
                    let packet = self.window.bytes()[begin..end].to_vec();
                    self.packet(&packet, stage);
                    self.window.consume(end);
                }
                Next::Other(n) if n <= self.window.bytes().len() => self.window.consume(n),
                Next::More(n) | Next::Other(n) if n <= MAX_EVENT => {
                    if !self.window.fill(n)? {
                        // What is left may be a short packet: only its key was in the window before.
                        if is_cut(self.window.bytes()) {
                            stage.problems.count_at(Problem::Truncated, self.window.offset());
                            self.window.consume(usize::MAX);
                            return Ok(false);
                        }
                    }
                }
                _ => {
                    if !self.skip_damage(stage)? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    fn position(&self) -> u64 {
        self.window.offset()
    }

    fn finish(&mut self, stage: &mut Stage) {
        self.sched.process_of.extend(self.tracks.process_of.drain());
        self.sched.finish(stage);
        stage.wall_offset = self.clocks.wall_offset();
    }
}

/// Whether the file ends within the next field. A varint that ends early is damage, not a cut.
fn is_cut(bytes: &[u8]) -> bool {
    match next_packet(bytes) {
        Next::More(_) => true,
        Next::Other(n) => n > bytes.len(),
        Next::Packet { .. } | Next::Bad => false,
    }
}

impl Perfetto {
    /// Skips to the next bytes that are a packet; returns false at the end of the file.
    fn skip_damage(&mut self, stage: &mut Stage) -> io::Result<bool> {
        stage.problems.count_at(Problem::Damaged, self.window.offset());
        loop {
            self.window.consume(1);
            // Packets are short: one that is longer than the window is taken for damage too.
            self.window.fill(1 << 16)?;
            let bytes = self.window.bytes();
            let Some(n) = memchr::memchr(0x0a, bytes) else {
                self.window.consume(usize::MAX);
                if !self.window.more()? {
                    return Ok(false);
                }
                continue;
            };
            let rest = &bytes[n..];
            let is_packet = match next_packet(rest) {
                Next::Packet { begin, end } => end > begin && TracePacket::decode(&rest[begin..end]).is_ok(),
                _ => false,
            };
            self.window.consume(n);
            if is_packet {
                return Ok(true);
            }
        }
    }
}
