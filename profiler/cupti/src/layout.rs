//! Where the fields of CUPTI's activity records are.
//!
//! A record begins with its kind and says neither its length nor its version: the version of the library does. NVIDIA adds fields
//! at the end only: since CUDA 9 no field of the records that are read here has moved, so that one set of places serves all
//! versions, and what a version lacks lies beyond its record's end. [`Layout`] has the lengths, from the headers of
//! CUDA 11.7, 11.8, 12.0 to 12.6, 12.8, 12.9 and 13.0 to 13.5; the tests hold places and lengths against `cudarc`'s bindings.
//!
//! All numbers are little-endian; records are aligned to 8 bytes.

/// Numbers of `CUpti_ActivityKind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Kind {
    /// A copy between memories, by a device.
    Memcpy = 1,
    /// Memory set by a device.
    Memset = 2,
    /// A call of the driver's interface.
    Driver = 4,
    /// A call of the runtime's interface.
    Runtime = 5,
    /// A device and its name.
    Device = 8,
    /// A context and its device.
    Context = 9,
    /// A kernel, which may run at the same time as others.
    ConcurrentKernel = 10,
    /// A name that the program gave to something.
    Name = 11,
    /// A begin, an end or a mark of NVTX.
    Marker = 12,
    /// Colour, category and payload of such.
    MarkerData = 13,
    /// Time that driver or profiler took.
    Overhead = 17,
    /// A copy between two devices.
    MemcpyPeer = 22,
    /// An event was recorded on a stream.
    CudaEvent = 36,
    /// A wait of the host or of a stream.
    Synchronization = 38,
    /// Joins a call with what the program said it worked for.
    ExternalCorrelation = 39,
    /// A graph ran.
    GraphTrace = 51,
}

impl Kind {
    /// Every kind that is read, those first that others need.
    pub const ALL: [Kind; 16] = [
        Kind::Device,
        Kind::Context,
        Kind::Name,
        Kind::ExternalCorrelation,
        Kind::CudaEvent,
        Kind::MarkerData,
        Kind::Marker,
        Kind::Driver,
        Kind::Runtime,
        Kind::ConcurrentKernel,
        Kind::Memcpy,
        Kind::MemcpyPeer,
        Kind::Memset,
        Kind::Synchronization,
        Kind::GraphTrace,
        Kind::Overhead,
    ];

    pub(crate) fn from_bits(bits: u32) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| *kind as u32 == bits)
    }
}

/// The records' lengths in one version of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    kernel: usize,
    memcpy: usize,
    memset: usize,
    context: usize,
    device: usize,
    overhead: usize,
    graph: usize,
    event: usize,
    synchronization: usize,
    marker_data: usize,
}

/// The oldest version that is read: CUDA 11.7, the first that lets its user give the clock.
pub const OLDEST: u32 = 17;
/// The newest version whose header was read: CUDA 13.5.
pub const NEWEST: u32 = 130_500;

impl Layout {
    /// What `cuptiGetVersion` says; `None` outside [`OLDEST`] to [`NEWEST`]. Three toolkits say 18: it stands for CUDA 12.0 and
    /// 12.1 here, see [`Layout::CUDA_11_8`].
    #[must_use]
    pub fn of(version: u32) -> Option<Layout> {
        if !(OLDEST..=NEWEST).contains(&version) {
            return None;
        }
        // The length from the last of these versions on that is not later.
        let length = |steps: &[(u32, usize)]| {
            steps.iter().take_while(|(from, _)| *from <= version).last().map_or(0, |(_, length)| *length)
        };
        Some(Layout {
            kernel: length(&[(17, 176), (18, 208), (130_000, 216), (130_100, 224), (130_300, 232), (130_400, 248)]),
            memcpy: length(&[(17, 88), (26, 96), (130_400, 112)]),
            memset: length(&[(17, 88), (130_400, 104)]),
            context: length(&[(17, 16), (22, 24), (23, 32), (130_100, 40)]),
            device: length(&[(17, 176), (20, 184), (130_200, 192)]),
            overhead: length(&[(17, 40), (21, 48), (22, 56)]),
            graph: length(&[(17, 48), (21, 56)]),
            event: length(&[(17, 24), (26, 56), (130_500, 80)]),
            synchronization: length(&[(17, 40), (26, 56)]),
            marker_data: length(&[(17, 32), (130_000, 40)]),
        })
    }

    /// CUDA 11.8, whose library says 18 as CUDA 12.0's does.
    pub const CUDA_11_8: Layout = Layout {
        kernel: 200,
        memcpy: 88,
        memset: 88,
        context: 16,
        device: 176,
        overhead: 40,
        graph: 48,
        event: 24,
        synchronization: 40,
        marker_data: 32,
    };

    /// Bytes of a record of this kind.
    #[must_use]
    pub fn length(&self, kind: Kind) -> usize {
        match kind {
            Kind::ConcurrentKernel => self.kernel,
            Kind::Memcpy => self.memcpy,
            Kind::MemcpyPeer => 96,
            Kind::Memset => self.memset,
            Kind::Driver | Kind::Runtime => 40,
            Kind::Device => self.device,
            Kind::Context => self.context,
            Kind::Name => 32,
            Kind::Marker => 56,
            Kind::MarkerData => self.marker_data,
            Kind::Overhead => self.overhead,
            Kind::CudaEvent => self.event,
            Kind::Synchronization => self.synchronization,
            Kind::ExternalCorrelation => 24,
            Kind::GraphTrace => self.graph,
        }
    }
}

/// Places of fields in a kernel's record.
pub(crate) mod kernel {
    pub(crate) const REGISTERS: usize = 6;
    pub(crate) const START: usize = 16;
    pub(crate) const END: usize = 24;
    pub(crate) const DEVICE: usize = 40;
    pub(crate) const CONTEXT: usize = 44;
    pub(crate) const STREAM: usize = 48;
    pub(crate) const GRID: usize = 52;
    pub(crate) const BLOCK: usize = 64;
    pub(crate) const STATIC_SHARED: usize = 76;
    pub(crate) const DYNAMIC_SHARED: usize = 80;
    pub(crate) const LOCAL_PER_THREAD: usize = 84;
    pub(crate) const CORRELATION: usize = 92;
    pub(crate) const NAME: usize = 104;
    pub(crate) const GRAPH_NODE: usize = 144;
    pub(crate) const GRAPH: usize = 156;
    pub(crate) const CLUSTER: usize = 176;
}

/// Places of fields in the records of copies, copies between devices and settings of memory.
pub(crate) mod copy {
    pub(crate) const COPY_KIND: usize = 4;
    pub(crate) const FROM: usize = 5;
    pub(crate) const TO: usize = 6;
    pub(crate) const FLAGS: usize = 7;
    /// Of a setting.
    pub(crate) const VALUE: usize = 4;
    pub(crate) const BYTES: usize = 8;
    pub(crate) const START: usize = 16;
    pub(crate) const END: usize = 24;
    pub(crate) const DEVICE: usize = 32;
    pub(crate) const CONTEXT: usize = 36;
    pub(crate) const STREAM: usize = 40;
    pub(crate) const CORRELATION: usize = 44;
    /// Of a copy between devices.
    pub(crate) const PEER_FROM: usize = 44;
    pub(crate) const PEER_TO: usize = 52;
    pub(crate) const PEER_CORRELATION: usize = 60;
    /// Of a setting.
    pub(crate) const MEMORY: usize = 50;
    /// Of a copy and of a setting.
    pub(crate) const GRAPH: usize = 72;
    pub(crate) const PEER_GRAPH: usize = 80;
}

/// Places of fields in a call's record.
pub(crate) mod call {
    pub(crate) const ID: usize = 4;
    pub(crate) const START: usize = 8;
    pub(crate) const END: usize = 16;
    pub(crate) const PROCESS: usize = 24;
    pub(crate) const THREAD: usize = 28;
    pub(crate) const CORRELATION: usize = 32;
    pub(crate) const RESULT: usize = 36;
}

/// Places of fields in the records of events, waits, overhead, graphs and external correlations.
pub(crate) mod other {
    pub(crate) const EVENT_CORRELATION: usize = 4;
    pub(crate) const EVENT_CONTEXT: usize = 8;
    pub(crate) const EVENT_STREAM: usize = 12;
    pub(crate) const EVENT_ID: usize = 16;
    pub(crate) const EVENT_SYNC_ID: usize = 48;

    pub(crate) const SYNC_TYPE: usize = 4;
    pub(crate) const SYNC_START: usize = 8;
    pub(crate) const SYNC_END: usize = 16;
    pub(crate) const SYNC_CORRELATION: usize = 24;
    pub(crate) const SYNC_CONTEXT: usize = 28;
    pub(crate) const SYNC_STREAM: usize = 32;
    pub(crate) const SYNC_EVENT: usize = 36;
    pub(crate) const SYNC_EVENT_SYNC_ID: usize = 40;

    pub(crate) const OVERHEAD_KIND: usize = 4;
    pub(crate) const OVERHEAD_OBJECT: usize = 8;
    pub(crate) const OVERHEAD_START: usize = 24;
    pub(crate) const OVERHEAD_END: usize = 32;
    pub(crate) const OVERHEAD_CORRELATION: usize = 40;

    pub(crate) const EXTERNAL_KIND: usize = 4;
    pub(crate) const EXTERNAL_ID: usize = 8;
    pub(crate) const EXTERNAL_CORRELATION: usize = 16;

    pub(crate) const GRAPH_CORRELATION: usize = 4;
    pub(crate) const GRAPH_START: usize = 8;
    pub(crate) const GRAPH_END: usize = 16;
    pub(crate) const GRAPH_DEVICE: usize = 24;
    pub(crate) const GRAPH_ID: usize = 28;
    pub(crate) const GRAPH_CONTEXT: usize = 32;
    pub(crate) const GRAPH_STREAM: usize = 36;
}

/// Places of fields in the records that say what something is called.
pub(crate) mod about {
    pub(crate) const MARKER_FLAGS: usize = 4;
    pub(crate) const MARKER_TIME: usize = 8;
    pub(crate) const MARKER_ID: usize = 16;
    pub(crate) const MARKER_OBJECT: usize = 20;
    pub(crate) const MARKER_NAME: usize = 40;
    pub(crate) const MARKER_DOMAIN: usize = 48;

    pub(crate) const DATA_FLAGS: usize = 4;
    pub(crate) const DATA_ID: usize = 8;
    pub(crate) const DATA_PAYLOAD_KIND: usize = 12;
    pub(crate) const DATA_PAYLOAD: usize = 16;
    pub(crate) const DATA_COLOR: usize = 24;
    pub(crate) const DATA_CATEGORY: usize = 28;

    pub(crate) const NAME_OBJECT: usize = 4;
    pub(crate) const NAME_TEXT: usize = 24;

    pub(crate) const CONTEXT_ID: usize = 4;
    pub(crate) const CONTEXT_DEVICE: usize = 8;

    pub(crate) const DEVICE_ID: usize = 112;
    pub(crate) const DEVICE_NAME: usize = 136;
}
