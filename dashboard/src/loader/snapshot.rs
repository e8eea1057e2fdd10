//! Reads a memory snapshot once, with its progress.

use super::{
    shared::Shared,
    slots::{SourceId, short_name},
};
use crate::data::{DeviceHistory, SnapshotData, SourceKind, Status, Warning};
use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    sync::Arc,
};
use torch_dumps::{Device, History, Snapshot, lifetimes, out_of_memory, peak, read_snapshot, usage, usage_by_pool};

/// The share of the progress that is reading; the rest is what is derived.
const READ_SHARE: f32 = 0.9;

/// Reads a snapshot into the window.
pub(super) fn load(shared: &Shared, source: SourceId, path: &Path) {
    shared.slots.set_kind(source, SourceKind::Snapshot, None);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return shared.slots.fail(source, &error.to_string()),
    };
    let n_bytes = file.metadata().map_or(0, |meta| meta.len());
    let reader = Counted { file, shared, source, n_read: 0, n_bytes };
    let snapshot = match read_snapshot(reader) {
        Ok(snapshot) => snapshot,
        // The user stopped it, or the window closes.
        Err(_) if shared.is_stopping(source) => return,
        Err(error) => return shared.slots.fail(source, &error.to_string()),
    };
    let texts = snapshot.warnings.iter().map(|(what, count)| Warning { count: *count, text: (*what).to_owned() });
    shared.slots.set_warnings(source, texts.collect());
    let Some(snapshot) = derive(path, snapshot, || shared.is_stopping(source)) else { return };
    if snapshot.devices.is_empty() {
        return shared.slots.fail(source, "the snapshot is empty: it has no segments and no events");
    }
    shared.slots.put_snapshot(snapshot);
    shared.slots.set_status(source, Status::Finished);
}

/// The snapshot with what is derived of each device with contents; `None` once it is to stop.
fn derive(path: &Path, snapshot: Snapshot, is_stopping: impl Fn() -> bool) -> Option<SnapshotData> {
    let mut devices = Vec::new();
    for (number, device) in snapshot.devices.iter().enumerate() {
        if is_stopping() {
            return None;
        }
        if !(device.segments.is_empty() && device.events.is_empty()) {
            devices.push(history_of(number, device));
        }
    }
    let (name, path) = (short_name(path), path.into());
    Some(SnapshotData { name, path, snapshot: Arc::new(snapshot), devices: devices.into() })
}

/// The snapshot in a file, for tests.
#[cfg(test)]
pub(crate) fn read_file(path: &Path) -> Option<SnapshotData> {
    derive(path, read_snapshot(File::open(path).ok()?).ok()?, || false)
}

fn history_of(number: usize, device: &Device) -> DeviceHistory {
    let allocations = lifetimes(device);
    let live = (0..).zip(&allocations).filter(|(_, one)| one.end.is_none());
    DeviceHistory {
        device: number,
        history: History::new(device, &allocations),
        peak: peak(device, &allocations).map(|peak| peak.point),
        out_of_memory: out_of_memory(device, &allocations),
        usage: device.segments.iter().map(|segment| usage(device, segment)).collect(),
        pools: usage_by_pool(device),
        live_by_address: live.map(|(index, one)| (one.address, index)).collect(),
        allocations,
    }
}

/// A file that reports how much of it is read, and ends with an error once it is to stop.
struct Counted<'a> {
    file: File,
    shared: &'a Shared,
    source: SourceId,
    n_read: u64,
    n_bytes: u64,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.shared.is_stopping(self.source) {
            return Err(io::Error::other("stopped"));
        }
        let n = self.file.read(buffer)?;
        self.n_read += n as u64;
        let share = READ_SHARE * self.n_read as f32 / self.n_bytes.max(1) as f32;
        if self.shared.slots.set_progress(self.source, share) {
            (self.shared.wake)();
        }
        Ok(n)
    }
}
