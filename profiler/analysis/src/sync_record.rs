//! CUDA's synchronisation records: the waits for devices, and the work that they wait for.
//!
//! A record is a slice of category `sync` on a device's track, with arguments such as
//! `{"cuda_sync_kind": "Stream Wait Event", "stream": 24, "wait_on_stream": 20, "wait_on_cuda_event_record_corr_id": 1385}`;
//! its correlation is that of the host's call. Handles of events are reused, so only the call that recorded an event
//! identifies the recording.

use serde::Deserialize;
use trace_model::SliceRef;
use trace_store::Store;

/// The work that a synchronisation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncTarget {
    /// All work of the device that was launched before.
    Device,
    /// All work of a stream that was launched before.
    Stream(u64),
    /// The work that had been launched on a stream when the call with the correlation `record` recorded the event.
    Event { stream: Option<u64>, record: Option<u32> },
}

/// A wait of the host or of a stream for work of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SyncRecord {
    /// The correlation of the host's call.
    pub correlation: u32,
    /// Row of the processes.
    pub process: u32,
    /// Start of the wait, ns from the origin.
    pub time: i64,
    pub target: SyncTarget,
    /// The stream that waits; `None` if the host waits.
    pub waiter: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct SyncArgs {
    cuda_sync_kind: String,
    stream: Option<i64>,
    wait_on_stream: Option<i64>,
    wait_on_cuda_event_record_corr_id: Option<i64>,
}

fn non_negative(value: Option<i64>) -> Option<u64> {
    value.and_then(|v| u64::try_from(v).ok())
}

impl SyncRecord {
    /// Reads the record from a slice's arguments; `None` if the arguments are no synchronisation record.
    pub(crate) fn from_slice(store: &Store, slice: &SliceRef) -> Option<SyncRecord> {
        let text = store.args().get(slice.args)?;
        let args: SyncArgs = serde_json::from_str(&text).ok()?;
        let record = non_negative(args.wait_on_cuda_event_record_corr_id).and_then(|id| u32::try_from(id).ok());
        let event = SyncTarget::Event { stream: non_negative(args.wait_on_stream), record };
        let (target, waiter) = match args.cuda_sync_kind.as_str() {
            "Stream Wait Event" => (event, non_negative(args.stream)),
            "Event Sync" => (event, None),
            "Stream Sync" => (SyncTarget::Stream(non_negative(args.stream)?), None),
            "Context Sync" => (SyncTarget::Device, None),
            _ => return None,
        };
        let process = store.tracks().get(slice.id.track as usize)?.process;
        Some(SyncRecord { correlation: slice.correlation, process, time: slice.start, target, waiter })
    }
}
