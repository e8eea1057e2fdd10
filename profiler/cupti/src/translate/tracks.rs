//! The tracks of a process's CUDA activity, opened when first needed.

use crate::record::{Object, StreamLocation};
use events::Track;
use events::track::TrackSubject;
use rustc_hash::FxHashMap;

/// The order of the first stream's track: streams come after threads.
const FIRST_STREAM: i32 = 1 << 24;
/// Tracks of one process, at most, since each takes the memory of a ring.
const MAX_TRACKS: usize = 512;

/// The content of a track.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum TrackKey {
    Stream(StreamLocation),
    /// The waits on a device that belong to no stream.
    Waits(u32),
    Calls(u32),
    /// The NVTX ranges of a thread, or of the process (`None`).
    Ranges(Option<u32>),
    Overhead,
}

/// The open tracks by their content, and the names of devices, threads and streams.
#[derive(Default)]
pub(super) struct Tracks {
    open: FxHashMap<TrackKey, Track>,
    devices: FxHashMap<u32, String>,
    names: FxHashMap<Object, String>,
    /// The first context by device and stream number; the names of streams in further contexts include the context.
    first_context: FxHashMap<(u32, u32), u32>,
    /// The number of events for which no track could be opened.
    pub(super) n_refused: u64,
}

impl Tracks {
    pub(super) fn name_device(&mut self, device: u32, name: String) {
        self.devices.insert(device, name);
    }

    /// Names a stream or a thread; tracks that are open already keep their names.
    pub(super) fn name_object(&mut self, object: Object, name: String) {
        self.names.insert(object, name);
    }

    pub(super) fn close(&mut self) {
        self.open.clear();
    }

    /// Writes to the track of `key` and opens it if necessary; counts the event where the track cannot be opened.
    pub(super) fn write(&mut self, key: TrackKey, write: impl FnOnce(&mut Track)) {
        if !self.open.contains_key(&key)
            && self.open.len() < MAX_TRACKS
            && let Some(track) = self.open_track(key)
        {
            self.open.insert(key, track);
        }
        match self.open.get_mut(&key) {
            Some(track) => write(track),
            None => self.n_refused += 1,
        }
    }

    fn device(&self, device: u32) -> String {
        match self.devices.get(&device) {
            Some(name) => format!("GPU {device} ({name})"),
            None => format!("GPU {device}"),
        }
    }

    fn open_track(&mut self, key: TrackKey) -> Option<Track> {
        match key {
            TrackKey::Stream(location) => {
                let device = self.device(location.device);
                let number = i32::try_from(location.stream).unwrap_or(i32::MAX).min(FIRST_STREAM);
                let first_context_id =
                    *self.first_context.entry((location.device, location.stream)).or_insert(location.context);
                let mut name = match self.names.get(&Object::Device(location)) {
                    Some(name) => format!("{device} {name} (stream {})", location.stream),
                    None => format!("{device} stream {}", location.stream),
                };
                if first_context_id != location.context {
                    name = format!("{name}, context {}", location.context);
                }
                let subject = TrackSubject::Stream { device: &device, stream: Some(u64::from(location.stream)) };
                Track::open(subject, &name, FIRST_STREAM + number)
            }
            TrackKey::Waits(device) => {
                let device = self.device(device);
                let subject = TrackSubject::Stream { device: &device, stream: None };
                Track::open(subject, &format!("{device} waits"), FIRST_STREAM - 1)
            }
            TrackKey::Calls(tid) => {
                Track::open(TrackSubject::Thread { tid }, &format!("CUDA calls of {}", self.thread(tid)), 1)
            }
            TrackKey::Ranges(Some(tid)) => {
                Track::open(TrackSubject::Thread { tid }, &format!("NVTX of {}", self.thread(tid)), 1)
            }
            TrackKey::Ranges(None) => Track::open(TrackSubject::Operations, "NVTX ranges", 2),
            TrackKey::Overhead => Track::open(TrackSubject::Operations, "CUDA profiling overhead", 3),
        }
    }

    /// Returns the thread's NVTX name, else the system's.
    fn thread(&self, tid: u32) -> String {
        let named =
            self.names.iter().find(|(object, _)| matches!(object, Object::Thread { thread, .. } if *thread == tid));
        if let Some((_, name)) = named {
            return name.clone();
        }
        let comm = std::fs::read_to_string(format!("/proc/self/task/{tid}/comm")).unwrap_or_default();
        match comm.trim_end() {
            "" => format!("thread {tid}"),
            name => format!("{name} ({tid})"),
        }
    }
}
