//! Decodes CUPTI's records. Pure functions over bytes, which do not read the texts that records point to.
//!
//! Numbers in the functions that read records are offsets in bytes. NVIDIA adds fields at the end only: since CUDA 9 no
//! field of the records that are read here has moved, so that one set of offsets serves all versions, and a field that
//! a version lacks lies beyond its record's end. The tests compare the offsets with `cudarc`'s bindings. Numbers are
//! little-endian; records are aligned to 8 bytes.

use crate::layout::Kind;
use bytemuck::AnyBitPattern;

/// The address of a C string in the recorded process; 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Text(pub u64);

/// The begin and end of a record, in ticks of the clock that CUPTI was given; 0 where unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Begin.
    pub start: u64,
    /// End.
    pub end: u64,
}

/// The stream that a device's work ran on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StreamLocation {
    /// The device.
    pub device: u32,
    /// The context.
    pub context: u32,
    /// The stream in its context.
    pub stream: u32,
}

/// A kernel that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // CUDA's own words
pub struct Kernel {
    pub span: Span,
    pub location: StreamLocation,
    pub correlation: u32,
    pub name: Text,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// All 0 for a launch without clusters.
    pub cluster: [u32; 3],
    pub registers_per_thread: u16,
    pub static_shared: u32,
    pub dynamic_shared: u32,
    pub local_per_thread: u32,
    /// The graph's id; 0 outside a graph.
    pub graph: u32,
    pub graph_node: u64,
}

/// A device's work on memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryWork {
    /// A memcpy.
    Copy {
        /// The direction, a `CUpti_ActivityMemcpyKind`.
        direction: u8,
        /// The source's `CUpti_ActivityMemoryKind`.
        from: u8,
        /// The destination's `CUpti_ActivityMemoryKind`.
        to: u8,
        /// The two devices of a copy between devices.
        peers: Option<(u32, u32)>,
        /// Whether the call did not wait for the copy.
        is_async: bool,
    },
    /// A memset.
    Set {
        /// The value of every byte or word.
        value: u32,
        /// The destination's `CUpti_ActivityMemoryKind`.
        memory: u16,
    },
}

/// A record. Enums and ids are CUPTI's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // CUPTI's own words
pub enum Record {
    Kernel(Kernel),
    Memory {
        span: Span,
        location: StreamLocation,
        correlation: u32,
        bytes: u64,
        graph: u32,
        work: MemoryWork,
    },
    Graph {
        span: Span,
        location: StreamLocation,
        correlation: u32,
        graph: u32,
    },
    Call {
        is_runtime: bool,
        span: Span,
        id: u32,
        process: u32,
        thread: u32,
        correlation: u32,
        result: u32,
    },
    Synchronization {
        sync_type: u32,
        span: Span,
        correlation: u32,
        context: u32,
        stream: u32,
        event: u32,
        sync_id: Option<u64>,
    },
    Event {
        correlation: u32,
        context: u32,
        stream: u32,
        event: u32,
        sync_id: Option<u64>,
    },
    Overhead {
        overhead_kind: u32,
        span: Span,
        object: Object,
        correlation: u32,
    },
    External {
        kind: u32,
        id: u64,
        correlation: u32,
    },
    Marker {
        flags: u32,
        time: u64,
        id: u32,
        object: Object,
        name: Text,
        domain: Text,
    },
    MarkerData {
        flags: u32,
        id: u32,
        payload: Payload,
        color: u32,
        category: u32,
    },
    Name {
        object: Object,
        name: Text,
    },
    Context {
        context: u32,
        device: u32,
    },
    Device {
        device: u32,
        name: Text,
    },
    /// A record of another kind, with the kind's number.
    Other(u32),
}

/// The subject of a record: `CUpti_ActivityObjectKind` with its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Object {
    /// A process.
    Process(u32),
    /// A thread of a process.
    Thread {
        /// The thread's process.
        process: u32,
        /// The thread's id: the system's where [`crate::Library::use_system_thread_ids`] succeeded.
        thread: u32,
    },
    /// A stream, or a device or context alone with `u32::MAX` for the other numbers.
    Device(StreamLocation),
    /// An object of another kind.
    Unknown,
}

/// A number that came with a marker.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Payload {
    /// A floating-point number.
    Double(f64),
    /// An unsigned integer.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
    /// No number, or one of another type.
    #[default]
    None,
}

impl Eq for Payload {}

/// The error of a record that ends before its fields do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TruncatedRecord {
    /// The number of the record's kind; 0 where even the kind is missing.
    pub kind: u32,
}

/// The numbers of `CUpti_MetricValueKind` that a marker's payload may have.
const VALUE_DOUBLE: u32 = 0;
const VALUE_UINT64: u32 = 1;
const VALUE_INT64: u32 = 4;

/// Reads a record's fields by offset.
struct Fields<'a> {
    bytes: &'a [u8],
    kind: u32,
}

impl Fields<'_> {
    /// Reads the field at an offset, as many bytes as `T` has.
    fn get<T: AnyBitPattern>(&self, at: usize) -> Result<T, TruncatedRecord> {
        let bytes = self.bytes.get(at..at + size_of::<T>());
        bytes.map(bytemuck::pod_read_unaligned).ok_or(TruncatedRecord { kind: self.kind })
    }

    /// Reads begin and end, which are adjacent in every record.
    fn span(&self, at: usize) -> Result<Span, TruncatedRecord> {
        Ok(Span { start: self.get(at)?, end: self.get(at + 8)? })
    }

    fn stream_location(&self, device: usize, context: usize, stream: usize) -> Result<StreamLocation, TruncatedRecord> {
        Ok(StreamLocation { device: self.get(device)?, context: self.get(context)?, stream: self.get(stream)? })
    }

    fn object(&self, at: usize) -> Result<Object, TruncatedRecord> {
        // CUpti_ActivityObjectKind.
        const PROCESS: u32 = 1;
        const THREAD: u32 = 2;
        const DEVICE: u32 = 3;
        const CONTEXT: u32 = 4;
        const STREAM: u32 = 5;
        let [a, b, c]: [u32; 3] = self.get(at + 4)?;
        Ok(match self.get::<u32>(at)? {
            PROCESS => Object::Process(a),
            THREAD => Object::Thread { process: a, thread: b },
            DEVICE => Object::Device(StreamLocation { device: a, context: u32::MAX, stream: u32::MAX }),
            CONTEXT => Object::Device(StreamLocation { device: a, context: b, stream: u32::MAX }),
            STREAM => Object::Device(StreamLocation { device: a, context: b, stream: c }),
            _ => Object::Unknown,
        })
    }
}

/// Reads one record. `bytes` must end where the record does, so that fields which a version lacks are missing, not read
/// from the next record.
///
/// # Errors
/// The record is shorter than its fields.
pub fn record(bytes: &[u8]) -> Result<Record, TruncatedRecord> {
    let kind = Fields { bytes, kind: 0 }.get::<u32>(0)?;
    let fields = Fields { bytes, kind };
    let Some(known) = Kind::from_bits(kind) else { return Ok(Record::Other(kind)) };
    match known {
        Kind::ConcurrentKernel => read_kernel(&fields).map(Record::Kernel),
        Kind::Memcpy | Kind::MemcpyPeer | Kind::Memset => read_memory(&fields, known),
        Kind::Driver | Kind::Runtime => Ok(Record::Call {
            is_runtime: known == Kind::Runtime,
            span: fields.span(8)?,
            id: fields.get(4)?,
            process: fields.get(24)?,
            thread: fields.get(28)?,
            correlation: fields.get(32)?,
            result: fields.get(36)?,
        }),
        Kind::Marker | Kind::MarkerData | Kind::Name | Kind::Context | Kind::Device => read_metadata(&fields, known),
        Kind::Overhead | Kind::CudaEvent | Kind::Synchronization | Kind::ExternalCorrelation | Kind::GraphTrace => {
            read_activity(&fields, known)
        }
    }
}

fn read_kernel(fields: &Fields<'_>) -> Result<Kernel, TruncatedRecord> {
    Ok(Kernel {
        span: fields.span(16)?,
        location: fields.stream_location(40, 44, 48)?,
        correlation: fields.get(92)?,
        name: Text(fields.get(104)?),
        grid: fields.get(52)?,
        block: fields.get(64)?,
        // From CUDA 11.8 on.
        cluster: fields.get(176).unwrap_or_default(),
        registers_per_thread: fields.get(6)?,
        static_shared: fields.get(76)?,
        dynamic_shared: fields.get(80)?,
        local_per_thread: fields.get(84)?,
        graph: fields.get(156)?,
        graph_node: fields.get(144)?,
    })
}

fn read_memory(fields: &Fields<'_>, kind: Kind) -> Result<Record, TruncatedRecord> {
    let is_peer = kind == Kind::MemcpyPeer;
    let work = if kind == Kind::Memset {
        MemoryWork::Set { value: fields.get(4)?, memory: fields.get(50)? }
    } else {
        MemoryWork::Copy {
            direction: fields.get(4)?,
            from: fields.get(5)?,
            to: fields.get(6)?,
            peers: if is_peer { Some((fields.get(44)?, fields.get(52)?)) } else { None },
            is_async: fields.get::<u8>(7)? & 1 != 0,
        }
    };
    Ok(Record::Memory {
        span: fields.span(16)?,
        location: fields.stream_location(32, 36, 40)?,
        correlation: fields.get(if is_peer { 60 } else { 44 })?,
        bytes: fields.get(8)?,
        graph: fields.get(if is_peer { 80 } else { 72 })?,
        work,
    })
}

fn read_metadata(fields: &Fields<'_>, kind: Kind) -> Result<Record, TruncatedRecord> {
    Ok(match kind {
        Kind::Marker => Record::Marker {
            flags: fields.get(4)?,
            time: fields.get(8)?,
            id: fields.get(16)?,
            object: fields.object(20)?,
            name: Text(fields.get(40)?),
            domain: Text(fields.get(48)?),
        },
        Kind::MarkerData => Record::MarkerData {
            flags: fields.get(4)?,
            id: fields.get(8)?,
            payload: match (fields.get::<u32>(12)?, fields.get::<u64>(16)?) {
                (VALUE_DOUBLE, bits) => Payload::Double(f64::from_bits(bits)),
                (VALUE_UINT64, n) => Payload::Unsigned(n),
                (VALUE_INT64, n) => Payload::Signed(n.cast_signed()),
                _ => Payload::None,
            },
            color: fields.get(24)?,
            category: fields.get(28)?,
        },
        Kind::Name => Record::Name { object: fields.object(4)?, name: Text(fields.get(24)?) },
        Kind::Context => Record::Context { context: fields.get(4)?, device: fields.get(8)? },
        _ => Record::Device { device: fields.get(112)?, name: Text(fields.get(136)?) },
    })
}

fn read_activity(fields: &Fields<'_>, kind: Kind) -> Result<Record, TruncatedRecord> {
    Ok(match kind {
        Kind::Overhead => Record::Overhead {
            overhead_kind: fields.get(4)?,
            span: fields.span(24)?,
            object: fields.object(8)?,
            // From CUDA 12.3 on.
            correlation: fields.get(40).unwrap_or(0),
        },
        Kind::CudaEvent => Record::Event {
            correlation: fields.get(4)?,
            context: fields.get(8)?,
            stream: fields.get(12)?,
            event: fields.get(16)?,
            // From CUDA 12.8 on.
            sync_id: fields.get(48).ok().filter(|id: &u64| *id != 0),
        },
        Kind::Synchronization => Record::Synchronization {
            sync_type: fields.get(4)?,
            span: fields.span(8)?,
            correlation: fields.get(24)?,
            context: fields.get(28)?,
            stream: fields.get(32)?,
            event: fields.get(36)?,
            // CUPTI_SYNCHRONIZATION_INVALID_VALUE in 32 bits, or in 64.
            sync_id: fields.get(40).ok().filter(|id: &u64| ![0, u64::from(u32::MAX), u64::MAX].contains(id)),
        },
        Kind::GraphTrace => Record::Graph {
            span: fields.span(8)?,
            location: fields.stream_location(24, 32, 36)?,
            correlation: fields.get(4)?,
            graph: fields.get(28)?,
        },
        _ => Record::External { kind: fields.get(4)?, id: fields.get(8)?, correlation: fields.get(16)? },
    })
}
