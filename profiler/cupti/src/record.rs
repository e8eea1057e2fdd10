//! A record's bytes as what they mean. Pure: nothing is read but the bytes, so that text is only an address here.

use crate::layout::{Kind, about, call, copy, kernel, other};

/// The address of a C string in the recorded process; 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Text(pub u64);

/// From begin to end, in the clock that CUPTI was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Begin; with `end` 0 where it is not known.
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
    pub place: StreamLocation,
    pub correlation: u32,
    pub name: Text,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// All 0 where it has none.
    pub cluster: [u32; 3],
    pub registers_per_thread: u16,
    pub static_shared: u32,
    pub dynamic_shared: u32,
    pub local_per_thread: u32,
    /// 0 outside a graph.
    pub graph: u32,
    pub graph_node: u64,
}

/// A device's work on memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryWork {
    /// `CUpti_ActivityMemcpyKind` and the two `CUpti_ActivityMemoryKind`s.
    Copy {
        /// Which way.
        way: u8,
        /// Kind of memory.
        from: u8,
        /// Kind of memory.
        to: u8,
        /// The two devices of a copy between devices.
        peers: Option<(u32, u32)>,
        /// The call did not wait for it.
        is_async: bool,
    },
    /// Every byte (or word) became this.
    Set {
        /// The value.
        value: u32,
        /// Kind of memory.
        memory: u16,
    },
}

/// A record. Numbers are as CUPTI has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // CUPTI's own words
pub enum Record<'a> {
    Kernel(Kernel),
    Memory {
        span: Span,
        place: StreamLocation,
        correlation: u32,
        bytes: u64,
        graph: u32,
        work: MemoryWork,
    },
    Graph {
        span: Span,
        place: StreamLocation,
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
        what: u32,
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
        what: u32,
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
    /// Of a kind that is not read; its number.
    Other {
        kind: u32,
        bytes: &'a [u8],
    },
}

/// The subject of a record: `CUpti_ActivityObjectKind` with its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Object {
    /// A process.
    Process(u32),
    /// A thread of a process.
    Thread {
        /// Its process.
        process: u32,
        /// Its id, the system's where CUPTI was set up so.
        thread: u32,
    },
    /// A stream; device and context alone have `u32::MAX` for what is unknown.
    Device(StreamLocation),
    /// Nothing known.
    Unknown,
}

/// A number that came with a marker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Payload {
    /// A fraction.
    Real(f64),
    /// A natural number.
    Natural(u64),
    /// A whole number.
    Integer(i64),
    /// None that is known.
    None,
}

impl Eq for Payload {}

/// A record ended before its fields did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    /// The number of its kind; 0 where even that is missing.
    pub kind: u32,
}

/// Reads numbers at places.
struct Fields<'a> {
    bytes: &'a [u8],
    kind: u32,
}

impl Fields<'_> {
    fn get<const N: usize>(&self, at: usize) -> Result<[u8; N], Short> {
        let bytes = at.checked_add(N).and_then(|end| self.bytes.get(at..end));
        bytes.and_then(|b| b.try_into().ok()).ok_or(Short { kind: self.kind })
    }

    fn u8(&self, at: usize) -> Result<u8, Short> {
        self.get(at).map(u8::from_le_bytes)
    }

    fn u16(&self, at: usize) -> Result<u16, Short> {
        self.get(at).map(u16::from_le_bytes)
    }

    fn u32(&self, at: usize) -> Result<u32, Short> {
        self.get(at).map(u32::from_le_bytes)
    }

    fn u64(&self, at: usize) -> Result<u64, Short> {
        self.get(at).map(u64::from_le_bytes)
    }

    /// A field that older versions lack.
    fn later_u32(&self, at: usize) -> u32 {
        self.u32(at).unwrap_or(0)
    }

    fn three(&self, at: usize) -> Result<[u32; 3], Short> {
        Ok([self.u32(at)?, self.u32(at + 4)?, self.u32(at + 8)?])
    }

    fn span(&self, start: usize, end: usize) -> Result<Span, Short> {
        Ok(Span { start: self.u64(start)?, end: self.u64(end)? })
    }

    fn place(&self, device: usize, context: usize, stream: usize) -> Result<StreamLocation, Short> {
        Ok(StreamLocation { device: self.u32(device)?, context: self.u32(context)?, stream: self.u32(stream)? })
    }

    fn object(&self, at: usize) -> Result<Object, Short> {
        let [a, b, c] = self.three(at + 4)?;
        Ok(match self.u32(at)? {
            1 => Object::Process(a),
            2 => Object::Thread { process: a, thread: b },
            3 => Object::Device(StreamLocation { device: a, context: u32::MAX, stream: u32::MAX }),
            4 => Object::Device(StreamLocation { device: a, context: b, stream: u32::MAX }),
            5 => Object::Device(StreamLocation { device: a, context: b, stream: c }),
            _ => Object::Unknown,
        })
    }
}

/// Reads one record. `bytes` ends where the record does: what a version lacks is not looked for behind it.
///
/// # Errors
/// It is cut.
pub fn record(bytes: &[u8]) -> Result<Record<'_>, Short> {
    let kind = Fields { bytes, kind: 0 }.u32(0)?;
    let f = Fields { bytes, kind };
    let Some(known) = Kind::from_bits(kind) else { return Ok(Record::Other { kind, bytes }) };
    match known {
        Kind::ConcurrentKernel => kernel(&f).map(Record::Kernel),
        Kind::Memcpy | Kind::MemcpyPeer | Kind::Memset => memory(&f, known),
        Kind::Driver | Kind::Runtime => Ok(Record::Call {
            is_runtime: known == Kind::Runtime,
            span: f.span(call::START, call::END)?,
            id: f.u32(call::ID)?,
            process: f.u32(call::PROCESS)?,
            thread: f.u32(call::THREAD)?,
            correlation: f.u32(call::CORRELATION)?,
            result: f.u32(call::RESULT)?,
        }),
        Kind::Marker | Kind::MarkerData | Kind::Name | Kind::Context | Kind::Device => named(&f, known),
        Kind::Overhead | Kind::CudaEvent | Kind::Synchronization | Kind::ExternalCorrelation | Kind::GraphTrace => {
            waited(&f, known)
        }
    }
}

fn kernel(f: &Fields<'_>) -> Result<Kernel, Short> {
    Ok(Kernel {
        span: f.span(kernel::START, kernel::END)?,
        place: f.place(kernel::DEVICE, kernel::CONTEXT, kernel::STREAM)?,
        correlation: f.u32(kernel::CORRELATION)?,
        name: Text(f.u64(kernel::NAME)?),
        grid: f.three(kernel::GRID)?,
        block: f.three(kernel::BLOCK)?,
        // From CUDA 11.8 on.
        cluster: f.three(kernel::CLUSTER).unwrap_or_default(),
        registers_per_thread: f.u16(kernel::REGISTERS)?,
        static_shared: f.u32(kernel::STATIC_SHARED)?,
        dynamic_shared: f.u32(kernel::DYNAMIC_SHARED)?,
        local_per_thread: f.u32(kernel::LOCAL_PER_THREAD)?,
        graph: f.u32(kernel::GRAPH)?,
        graph_node: f.u64(kernel::GRAPH_NODE)?,
    })
}

fn memory<'a>(f: &Fields<'_>, kind: Kind) -> Result<Record<'a>, Short> {
    let is_peer = kind == Kind::MemcpyPeer;
    let work = if kind == Kind::Memset {
        MemoryWork::Set { value: f.u32(copy::VALUE)?, memory: f.u16(copy::MEMORY)? }
    } else {
        MemoryWork::Copy {
            way: f.u8(copy::COPY_KIND)?,
            from: f.u8(copy::FROM)?,
            to: f.u8(copy::TO)?,
            peers: if is_peer { Some((f.u32(copy::PEER_FROM)?, f.u32(copy::PEER_TO)?)) } else { None },
            is_async: f.u8(copy::FLAGS)? & 1 != 0,
        }
    };
    Ok(Record::Memory {
        span: f.span(copy::START, copy::END)?,
        place: f.place(copy::DEVICE, copy::CONTEXT, copy::STREAM)?,
        correlation: f.u32(if is_peer { copy::PEER_CORRELATION } else { copy::CORRELATION })?,
        bytes: f.u64(copy::BYTES)?,
        graph: f.u32(if is_peer { copy::PEER_GRAPH } else { copy::GRAPH })?,
        work,
    })
}

fn named<'a>(f: &Fields<'_>, kind: Kind) -> Result<Record<'a>, Short> {
    Ok(match kind {
        Kind::Marker => Record::Marker {
            flags: f.u32(about::MARKER_FLAGS)?,
            time: f.u64(about::MARKER_TIME)?,
            id: f.u32(about::MARKER_ID)?,
            object: f.object(about::MARKER_OBJECT)?,
            name: Text(f.u64(about::MARKER_NAME)?),
            domain: Text(f.u64(about::MARKER_DOMAIN)?),
        },
        Kind::MarkerData => Record::MarkerData {
            flags: f.u32(about::DATA_FLAGS)?,
            id: f.u32(about::DATA_ID)?,
            // CUpti_MetricValueKind.
            payload: match (f.u32(about::DATA_PAYLOAD_KIND)?, f.u64(about::DATA_PAYLOAD)?) {
                (0, bits) => Payload::Real(f64::from_bits(bits)),
                (1, n) => Payload::Natural(n),
                (4, n) => Payload::Integer(n.cast_signed()),
                _ => Payload::None,
            },
            color: f.u32(about::DATA_COLOR)?,
            category: f.u32(about::DATA_CATEGORY)?,
        },
        Kind::Name => Record::Name { object: f.object(about::NAME_OBJECT)?, name: Text(f.u64(about::NAME_TEXT)?) },
        Kind::Context => Record::Context { context: f.u32(about::CONTEXT_ID)?, device: f.u32(about::CONTEXT_DEVICE)? },
        _ => Record::Device { device: f.u32(about::DEVICE_ID)?, name: Text(f.u64(about::DEVICE_NAME)?) },
    })
}

fn waited<'a>(f: &Fields<'_>, kind: Kind) -> Result<Record<'a>, Short> {
    Ok(match kind {
        Kind::Overhead => Record::Overhead {
            what: f.u32(other::OVERHEAD_KIND)?,
            span: f.span(other::OVERHEAD_START, other::OVERHEAD_END)?,
            object: f.object(other::OVERHEAD_OBJECT)?,
            // From CUDA 12.3 on.
            correlation: f.later_u32(other::OVERHEAD_CORRELATION),
        },
        Kind::CudaEvent => Record::Event {
            correlation: f.u32(other::EVENT_CORRELATION)?,
            context: f.u32(other::EVENT_CONTEXT)?,
            stream: f.u32(other::EVENT_STREAM)?,
            event: f.u32(other::EVENT_ID)?,
            // From CUDA 12.8 on.
            sync_id: f.u64(other::EVENT_SYNC_ID).ok().filter(|id| *id != 0),
        },
        Kind::Synchronization => Record::Synchronization {
            what: f.u32(other::SYNC_TYPE)?,
            span: f.span(other::SYNC_START, other::SYNC_END)?,
            correlation: f.u32(other::SYNC_CORRELATION)?,
            context: f.u32(other::SYNC_CONTEXT)?,
            stream: f.u32(other::SYNC_STREAM)?,
            event: f.u32(other::SYNC_EVENT)?,
            // CUPTI_SYNCHRONIZATION_INVALID_VALUE in 32 bits, or in 64.
            sync_id: f
                .u64(other::SYNC_EVENT_SYNC_ID)
                .ok()
                .filter(|id| ![0, u64::from(u32::MAX), u64::MAX].contains(id)),
        },
        Kind::GraphTrace => Record::Graph {
            span: f.span(other::GRAPH_START, other::GRAPH_END)?,
            place: f.place(other::GRAPH_DEVICE, other::GRAPH_CONTEXT, other::GRAPH_STREAM)?,
            correlation: f.u32(other::GRAPH_CORRELATION)?,
            graph: f.u32(other::GRAPH_ID)?,
        },
        _ => Record::External {
            kind: f.u32(other::EXTERNAL_KIND)?,
            id: f.u64(other::EXTERNAL_ID)?,
            correlation: f.u32(other::EXTERNAL_CORRELATION)?,
        },
    })
}
