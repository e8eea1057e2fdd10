//! Reads XPlane protobuf files of XLA's profilers (TensorFlow, JAX, PyTorch/XLA).
//!
//! A file is one machine, and becomes one process. Lines of a device's plane become streams, lines of the host threads.
//! Times are picoseconds; they are added before they are rounded to nanoseconds.
//!
//! The planes are read one after the other. Before the first, the file is searched for the planes that explain others:
//! the programs ([`programs`]) and the time of day.

mod category;
mod plane;
mod programs;
mod runs;
mod stats;
#[cfg(test)]
mod tests;

use super::input::{Input, MAX_EVENT, Window, varint};
use super::problems::Problem;
use super::reader::Reader;
use super::stage::Stage;
use formats::profile::{XPlane as Plane, x_stat};
use formats::wire::{Fields, Value as Wire};
use plane::{Shared, stage_plane};
use programs::METADATA_PLANE;
use prost::Message;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// The longest plane, bytes; a longer one is damage.
const MAX_PLANE: usize = MAX_EVENT * 8;
/// The plane with the time of day.
const ENVIRONMENT_PLANE: &str = "Task Environment";
/// Bytes of a plane in which its name is searched.
const HEADER_BYTES: usize = 512;
/// Times of lines are either times of day, all larger than this (2001), or count from the recording's start, ns.
const UNIX_NS: i64 = 1_000_000_000_000_000_000;

pub(super) struct XPlane {
    file: Arc<File>,
    length: u64,
    window: Window,
    n_planes: i64,
    is_searched: bool,
    shared: Shared,
    /// The time of day at which the recording began, ns.
    begin: Option<i64>,
    first_line_ns: Option<i64>,
}

impl XPlane {
    pub(super) fn new(input: &Input) -> XPlane {
        XPlane {
            file: input.file.clone(),
            length: input.length,
            window: Window::new(input),
            n_planes: 0,
            is_searched: false,
            shared: Shared::default(),
            begin: None,
            first_line_ns: None,
        }
    }

    /// Reads the planes that explain others.
    fn search(&mut self, stage: &mut Stage) -> io::Result<()> {
        let mut offset = 0;
        while offset < self.length {
            let header = read_at(&self.file, offset, HEADER_BYTES)?;
            let Some((field, begin, end)) = length_delimited(&header) else { return Ok(()) };
            if end > MAX_PLANE || offset + end as u64 > self.length {
                return Ok(());
            }
            let name = if field == 1 { plane_name(&header[begin..]) } else { None };
            if matches!(name, Some(METADATA_PLANE | ENVIRONMENT_PLANE))
                && let Ok(plane) = Plane::decode(&*read_at(&self.file, offset + begin as u64, end - begin)?)
            {
                let n_damaged = self.shared.programs.add_plane(&plane);
                stage.problems.add(Problem::Damaged, n_damaged, Some(offset));
                self.begin = self.begin.or(start_of_recording(&plane));
            }
            offset += end as u64;
        }
        Ok(())
    }

    fn take(&mut self, plane: &Plane, stage: &mut Stage) {
        let first = plane.lines.iter().filter(|line| !line.events.is_empty()).map(|line| line.timestamp_ns).min();
        self.first_line_ns = self.first_line_ns.into_iter().chain(first).min();
        stage_plane(plane, self.n_planes, &mut self.shared, stage);
    }
}

impl Reader for XPlane {
    /// Reads a plane.
    fn read(&mut self, stage: &mut Stage) -> io::Result<bool> {
        if !self.is_searched {
            self.is_searched = true;
            self.search(stage)?;
        }
        self.window.fill(16)?;
        if self.window.bytes().is_empty() {
            return Ok(false);
        }
        let Some((field, begin, end)) = length_delimited(self.window.bytes()) else {
            stage.problems.count_at(Problem::Damaged, self.window.offset());
            return Ok(false);
        };
        if end > MAX_PLANE || !self.window.fill(end)? {
            stage.problems.count_at(Problem::Truncated, self.window.offset());
            // The file ends in this plane: its complete lines are imported.
            if field == 1 {
                let plane = intact(self.window.bytes().get(begin..).unwrap_or_default());
                self.take(&plane, stage);
            }
            return Ok(false);
        }
        let bytes = &self.window.bytes()[begin..end];
        match field {
            1 => {
                let plane = Plane::decode(bytes).unwrap_or_else(|_| {
                    stage.problems.count_at(Problem::Damaged, self.window.offset());
                    intact(bytes)
                });
                self.take(&plane, stage);
            }
            4 => stage.host = String::from_utf8_lossy(bytes).into_owned(),
            _ => {}
        }
        self.n_planes += i64::from(field == 1);
        self.window.consume(end);
        Ok(true)
    }

    fn position(&self) -> u64 {
        self.window.offset()
    }

    fn finish(&mut self, stage: &mut Stage) {
        let shared = std::mem::take(&mut self.shared);
        shared.runs.finish(stage);
        settle_steps(&shared.device_steps, shared.has_host_steps, stage);
        if self.first_line_ns.is_some_and(|first| first < UNIX_NS) {
            stage.wall_offset = self.begin;
        }
    }
}

/// A step is recorded by the host, and by each device. One of them counts: the host's, else the first device's. The
/// others remain as spans.
fn settle_steps(devices: &[u32], has_host_steps: bool, stage: &mut Stage) {
    for track in devices.iter().skip(usize::from(!has_host_steps)) {
        for row in 0..stage.tracks[*track as usize].slices.len() {
            let site = stage.tracks[*track as usize].slices[row].site;
            let name = stage.sites.name(super::ids::SiteIdx(site)).to_owned();
            let span = stage.site("device span", &name).0;
            let slice = &mut stage.tracks[*track as usize].slices[row];
            (slice.site, slice.correlation, slice.arg) = (span, 0, 0);
        }
    }
}

/// The bytes at an offset, fewer at the file's end.
fn read_at(file: &File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut n = 0;
    while n < length {
        match file.read_at(&mut bytes[n..], offset + n as u64) {
            Ok(0) => break,
            Ok(more) => n += more,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    bytes.truncate(n);
    Ok(bytes)
}

/// The name at the begin of a plane.
fn plane_name(bytes: &[u8]) -> Option<&str> {
    let name = Fields::new(bytes).map_while(Result::ok).take(2).find_map(|field| match field {
        (2, Wire::Bytes(name)) => Some(name),
        _ => None,
    });
    std::str::from_utf8(name?).ok()
}

/// The time of day at which the recording began, ns, from the plane of the environment.
fn start_of_recording(plane: &Plane) -> Option<i64> {
    let is_start = |id| plane.stat_metadata.get(&id).is_some_and(|m| m.name == "profile_start_time");
    match plane.stats.iter().find(|stat| is_start(stat.metadata_id))?.value {
        Some(x_stat::Value::Uint64Value(ns)) => i64::try_from(ns).ok(),
        Some(x_stat::Value::Int64Value(ns)) => Some(ns),
        _ => None,
    }
    .filter(|ns| (UNIX_NS..UNIX_NS * 4).contains(ns))
}

/// Field number, begin and end of a message in a message; `None` for another field.
fn length_delimited(bytes: &[u8]) -> Option<(u64, usize, usize)> {
    let (key, n_key) = varint(bytes).filter(|(key, _)| key & 7 == 2)?;
    let (length, n) = varint(&bytes[n_key..])?;
    Some((key >> 3, n_key + n, usize::try_from(length).ok()?.checked_add(n_key + n)?))
}

/// The complete lines and descriptions of a damaged plane.
fn intact(bytes: &[u8]) -> Plane {
    let mut plane = Plane::default();
    for field in Fields::new(bytes) {
        let Ok((number, Wire::Bytes(value))) = field else { continue };
        let mut one = vec![(number << 3 | 2) as u8];
        prost::encoding::encode_varint(value.len() as u64, &mut one);
        one.extend_from_slice(value);
        // A field that does not decode leaves the plane as it was.
        if Plane::decode(&*one).is_ok() {
            let _ = plane.merge(&*one);
        }
    }
    plane
}
