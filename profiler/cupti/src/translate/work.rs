//! The work of a device (kernels, copies, memsets, graphs) and the waits for it.

use super::tracks::TrackKey;
use super::{EventKey, Translator, slice};
use crate::library::Library;
use crate::record::{Kernel, MemoryWork, Record, Span, StreamLocation};
use crate::words;
use events::track::TrackSlice;
use serde_json::{Map, Value, json};

/// Numbers of `CUpti_ActivitySynchronizationType`.
const EVENT_SYNCHRONIZE: u32 = 1;
const STREAM_WAIT_EVENT: u32 = 2;
/// `CUPTI_SYNCHRONIZATION_INVALID_VALUE` as a stream: the wait belongs to no stream.
const NO_STREAM: u32 = u32::MAX;

impl Translator {
    pub(super) fn write_kernel(&mut self, kernel: &Kernel, library: &dyn Library) {
        if !self.is_timed(kernel.span) {
            return;
        }
        let name =
            library.text(kernel.name).map_or_else(|| "kernel without a name".to_owned(), |n| words::demangle(&n));
        let mut args = json!({
            "correlation": kernel.correlation, "context": kernel.location.context, "grid": kernel.grid, "block": kernel.block,
            "registers per thread": kernel.registers_per_thread,
        });
        add_unless_zero(&mut args, "static shared memory", kernel.static_shared.into());
        add_unless_zero(&mut args, "dynamic shared memory", kernel.dynamic_shared.into());
        add_unless_zero(&mut args, "local memory per thread", kernel.local_per_thread.into());
        add_unless_zero(&mut args, "graph id", kernel.graph.into());
        add_unless_zero(&mut args, "graph node id", kernel.graph_node);
        if kernel.cluster.iter().any(|n| *n > 0) {
            args["cluster"] = json!(kernel.cluster);
        }
        self.write_work(
            words::kernel_category(&name),
            &name,
            kernel.span,
            kernel.location,
            kernel.correlation,
            0,
            &args,
        );
    }

    pub(super) fn write_memory(&mut self, record: &Record) {
        let Record::Memory { span, location, correlation, bytes, graph, work } = *record else { return };
        if !self.is_timed(span) {
            return;
        }
        let ns = self.clock.ns(span.end).saturating_sub(self.clock.ns(span.start));
        let mut args = json!({"correlation": correlation, "context": location.context, "bytes": bytes});
        if ns > 0 {
            // Bytes per nanosecond are gigabytes per second; three decimals suffice.
            let rate = (bytes as f64 / ns as f64 * 1000.0).round() / 1000.0;
            args["memory bandwidth (GB/s)"] = json!(rate);
        }
        add_unless_zero(&mut args, "graph id", graph.into());
        let name = match work {
            MemoryWork::Copy { direction, from, to, peers, is_async } => {
                if let Some((from, to)) = peers {
                    (args["from device"], args["to device"]) = (from.into(), to.into());
                }
                args["async"] = is_async.into();
                let (from, to) = (words::memory(from.into()), words::memory(to.into()));
                format!("Memcpy {} ({from} -> {to})", words::direction(direction))
            }
            MemoryWork::Set { value, memory } => {
                args["value"] = value.into();
                format!("Memset ({})", words::memory(memory))
            }
        };
        self.write_work("copy", &name, span, location, correlation, bytes, &args);
    }

    pub(super) fn write_graph(&mut self, span: Span, location: StreamLocation, correlation: u32, graph: u32) {
        if self.is_timed(span) {
            let args = json!({"correlation": correlation, "context": location.context, "graph id": graph});
            self.write_work("kernel", &format!("CUDA graph {graph}"), span, location, correlation, 0, &args);
        }
    }

    /// Writes a device's work as a slice of its stream, and the flow from its call.
    #[allow(clippy::too_many_arguments)] // a record's fields
    fn write_work(
        &mut self,
        category: &'static str,
        name: &str,
        span: Span,
        location: StreamLocation,
        correlation: u32,
        bytes: u64,
        args: &Value,
    ) {
        let (site, node, args) = (self.site(category, name), self.node(correlation), args.to_string());
        let slice = TrackSlice { node, arg: bytes, ..slice(span, site, correlation, &args) };
        self.tracks.write(TrackKey::Stream(location), |track| track.slice(slice));
        self.add_work(correlation, location, span.start);
    }

    /// Writes a wait and the work that it waited for. The arguments have the names that PyTorch's profiler uses, since
    /// the analysis reads the traces of both.
    pub(super) fn write_synchronization(&mut self, record: &Record) {
        let Record::Synchronization { sync_type, span, correlation, context, stream, event, sync_id } = *record else {
            return;
        };
        let Some(kind) = words::synchronization(sync_type) else { return };
        if !self.is_timed(span) {
            return;
        }
        let mut args = Map::new();
        args.insert("cuda_sync_kind".to_owned(), kind.into());
        let stream = Some(stream).filter(|stream| *stream != NO_STREAM);
        if let Some(stream) = stream {
            args.insert("stream".to_owned(), stream.into());
            args.insert("wait_on_stream".to_owned(), stream.into());
        }
        // An event's handle is used again for later recordings; the synchronisation id, where the version has one,
        // names one recording.
        let keys = [sync_id.map(EventKey::Sync), Some(EventKey::Handle(context, event))];
        let recording = keys.into_iter().flatten().find_map(|key| self.events.get(key).copied());
        if let Some(recording) = recording.filter(|_| matches!(sync_type, EVENT_SYNCHRONIZE | STREAM_WAIT_EVENT)) {
            args.insert("wait_on_stream".to_owned(), recording.stream.into());
            args.insert("wait_on_cuda_event_record_corr_id".to_owned(), recording.correlation.into());
        }
        let args = Value::Object(args).to_string();
        let site = self.site("sync", kind);
        let slice = slice(span, site, correlation, &args);
        let device = self.contexts.get(&context).copied().unwrap_or(0);
        // Only `cudaStreamWaitEvent` blocks the stream itself: its slice lies on the stream, the others on the device.
        let stream =
            stream.filter(|_| sync_type == STREAM_WAIT_EVENT).map(|stream| StreamLocation { device, context, stream });
        let track = stream.map_or(TrackKey::Waits(device), TrackKey::Stream);
        self.tracks.write(track, |track| track.slice(slice));
        self.report.waits += 1;
    }
}

fn add_unless_zero(args: &mut Value, name: &str, number: u64) {
    if number != 0 {
        args[name] = number.into();
    }
}
