//! Tracks of work that is on no thread: a device's stream, requests. Their events have times that the program gives.

use std::ffi::{c_char, c_int};
use std::sync::{Mutex, MutexGuard, PoisonError};

use events::track::{Track, TrackSlice, TrackSubject};
use events::{Kind, NodeId};

use crate::args::{self, stepscope_arg};
use crate::errors::{self, Error};
use crate::sites::{self, stepscope_site_t};

/// A stream's number where the work is on no stream.
pub const STEPSCOPE_NO_STREAM: u64 = u64::MAX;

/// A track of the running recording.
pub struct stepscope_track {
    pid: u32,
    track: Mutex<Track>,
}

impl stepscope_track {
    fn open(subject: TrackSubject<'_>, name: &str, order: i32) -> Result<*mut stepscope_track, Error> {
        let track = Track::open(subject, name, order).ok_or("nothing is recorded, or there are too many tracks")?;
        Ok(Box::into_raw(Box::new(stepscope_track { pid: std::process::id(), track: Mutex::new(track) })))
    }

    fn lock(&self) -> Result<MutexGuard<'_, Track>, Error> {
        if self.pid != std::process::id() {
            return Err("the track is that of the process that forked this one".into());
        }
        Ok(self.track.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The track behind a pointer.
///
/// # Safety
/// `track` is null, or open.
unsafe fn opened<'a>(track: *const stepscope_track) -> Result<MutexGuard<'a, Track>, Error> {
    // SAFETY: as the caller promises.
    unsafe { track.as_ref() }.ok_or("the track is a null pointer")?.lock()
}

/// Adds a track for the work of a device's stream, in its order of execution; tracks are sorted by `order`. Returns null
/// where nothing is recorded. `stepscope_track_close` frees it.
///
/// # Safety
/// `device` and `name` are null, or end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepscope_track_of_stream(
    device: *const c_char,
    stream: u64,
    name: *const c_char,
    order: i32,
) -> *mut stepscope_track {
    errors::value(std::ptr::null_mut(), || {
        // SAFETY: as the caller promises.
        let (device, name) = unsafe { (errors::text(device, "device")?, errors::text(name, "name")?) };
        let stream = (stream != STEPSCOPE_NO_STREAM).then_some(stream);
        stepscope_track::open(TrackSubject::Stream { device, stream }, name, order)
    })
}

/// Adds a track for operations that begin and end on no thread, such as requests. As `stepscope_track_of_stream`.
///
/// # Safety
/// `name` is null, or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepscope_track_of_operations(name: *const c_char, order: i32) -> *mut stepscope_track {
    errors::value(std::ptr::null_mut(), || {
        // SAFETY: as the caller promises.
        stepscope_track::open(TrackSubject::Operations, unsafe { errors::text(name, "name") }?, order)
    })
}

/// The current time in ticks, for events of tracks. What a tick is differs between machines.
#[unsafe(no_mangle)]
pub extern "C" fn stepscope_now() -> u64 {
    events::now()
}

/// Writes a slice from `begin` to `end`, ticks of `stepscope_now`, which may be in the past; `depth` slices of the track
/// are around it. An end before the begin counts as the begin. Events after the end of the recording are lost.
///
/// # Safety
/// `track` is null or open; `args` as for `stepscope_close_with`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepscope_track_slice(
    track: *const stepscope_track,
    site: stepscope_site_t,
    depth: u32,
    begin: u64,
    end: u64,
    args: *const stepscope_arg,
    n_args: usize,
) -> c_int {
    errors::status(|| {
        // SAFETY: as the caller promises.
        let (mut track, args) = unsafe { (opened(track)?, args::json(args, n_args)?) };
        let (site, node) = (sites::id(site), NodeId::NONE);
        track.slice(TrackSlice { depth, begin, end, site, node, correlation: 0, arg: 0, args: &args });
        Ok(())
    })
}

/// Writes an instant at `at`, in ticks.
///
/// # Safety
/// `track` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepscope_track_instant(
    track: *const stepscope_track,
    site: stepscope_site_t,
    at: u64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { point(track, Kind::Instant, site, at, 0) }
}

/// Writes the begin of an arrow at `at`, in ticks: as `stepscope_flow_out`.
///
/// # Safety
/// `track` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepscope_track_flow_out(
    track: *const stepscope_track,
    site: stepscope_site_t,
    at: u64,
    id: u32,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { point(track, Kind::FlowOut, site, at, id) }
}

/// Writes the end of an arrow at `at`, in ticks: as `stepscope_flow_in`.
///
/// # Safety
/// `track` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepscope_track_flow_in(
    track: *const stepscope_track,
    site: stepscope_site_t,
    at: u64,
    id: u32,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { point(track, Kind::FlowIn, site, at, id) }
}

/// Writes an event without duration.
///
/// # Safety
/// `track` is null or open.
unsafe fn point(track: *const stepscope_track, kind: Kind, site: stepscope_site_t, at: u64, id: u32) -> c_int {
    errors::status(|| {
        // SAFETY: as the caller promises.
        unsafe { opened(track) }?.point(kind, at, sites::id(site), NodeId::NONE, id, "");
        Ok(())
    })
}

/// Frees a track, which nobody may use any more; its events stay. Null is allowed.
///
/// # Safety
/// `track` is null, or open and not used by another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepscope_track_close(track: *mut stepscope_track) {
    errors::status(|| {
        if !track.is_null() {
            // SAFETY: it comes from `Box::into_raw` in `open`, and is freed once, as the caller promises.
            drop(unsafe { Box::from_raw(track) });
        }
        Ok(())
    });
}
