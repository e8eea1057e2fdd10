//! The meaning of a record's bytes. Pure: nothing is read but the bytes, so that text is only an address here.
//!
//! Numbers in the functions that read records are offsets in bytes. NVIDIA adds fields at the end only: since CUDA 9 no field of the records
//! that are read here has moved, so that one set of offsets serves all versions, and what a version lacks lies beyond its record's end.
//! The tests hold them against `cudarc`'s bindings. All numbers are little-endian; records are aligned to 8 bytes.

use crate::layout::Kind;

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
pub enum Record {
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
    Other(u32),
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
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Payload {
    /// A fraction.
    Real(f64),
    /// A natural number.
    Natural(u64),
    /// A whole number.
    Integer(i64),
    /// None that is known.
    #[default]
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

    fn three(&self, at: usize) -> Result<[u32; 3], Short> {
        Ok([self.u32(at)?, self.u32(at + 4)?, self.u32(at + 8)?])
    }

    /// Begin and end, which lie next to each other in every record.
    fn span(&self, at: usize) -> Result<Span, Short> {
        Ok(Span { start: self.u64(at)?, end: self.u64(at + 8)? })
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
pub fn record(bytes: &[u8]) -> Result<Record, Short> {
    let kind = Fields { bytes, kind: 0 }.u32(0)?;
    let f = Fields { bytes, kind };
    let Some(known) = Kind::from_bits(kind) else { return Ok(Record::Other(kind)) };
    match known {
        Kind::ConcurrentKernel => kernel(&f).map(Record::Kernel),
        Kind::Memcpy | Kind::MemcpyPeer | Kind::Memset => memory(&f, known),
        Kind::Driver | Kind::Runtime => Ok(Record::Call {
            is_runtime: known == Kind::Runtime,
            span: f.span(8)?,
            id: f.u32(4)?,
            process: f.u32(24)?,
            thread: f.u32(28)?,
            correlation: f.u32(32)?,
            result: f.u32(36)?,
        }),
        Kind::Marker | Kind::MarkerData | Kind::Name | Kind::Context | Kind::Device => named(&f, known),
        Kind::Overhead | Kind::CudaEvent | Kind::Synchronization | Kind::ExternalCorrelation | Kind::GraphTrace => {
            waited(&f, known)
        }
    }
}

fn kernel(f: &Fields<'_>) -> Result<Kernel, Short> {
    Ok(Kernel {
        span: f.span(16)?,
        place: f.place(40, 44, 48)?,
        correlation: f.u32(92)?,
        name: Text(f.u64(104)?),
        grid: f.three(52)?,
        block: f.three(64)?,
        // From CUDA 11.8 on.
        cluster: f.three(176).unwrap_or_default(),
        registers_per_thread: f.u16(6)?,
        static_shared: f.u32(76)?,
        dynamic_shared: f.u32(80)?,
        local_per_thread: f.u32(84)?,
        graph: f.u32(156)?,
        graph_node: f.u64(144)?,
    })
}

fn memory(f: &Fields<'_>, kind: Kind) -> Result<Record, Short> {
    let is_peer = kind == Kind::MemcpyPeer;
    let work = if kind == Kind::Memset {
        MemoryWork::Set { value: f.u32(4)?, memory: f.u16(50)? }
    } else {
        MemoryWork::Copy {
            way: f.u8(4)?,
            from: f.u8(5)?,
            to: f.u8(6)?,
            peers: if is_peer { Some((f.u32(44)?, f.u32(52)?)) } else { None },
            is_async: f.u8(7)? & 1 != 0,
        }
    };
    Ok(Record::Memory {
        span: f.span(16)?,
        place: f.place(32, 36, 40)?,
        correlation: f.u32(if is_peer { 60 } else { 44 })?,
        bytes: f.u64(8)?,
        graph: f.u32(if is_peer { 80 } else { 72 })?,
        work,
    })
}

fn named(f: &Fields<'_>, kind: Kind) -> Result<Record, Short> {
    Ok(match kind {
        Kind::Marker => Record::Marker {
            flags: f.u32(4)?,
            time: f.u64(8)?,
            id: f.u32(16)?,
            object: f.object(20)?,
            name: Text(f.u64(40)?),
            domain: Text(f.u64(48)?),
        },
        Kind::MarkerData => Record::MarkerData {
            flags: f.u32(4)?,
            id: f.u32(8)?,
            // CUpti_MetricValueKind.
            payload: match (f.u32(12)?, f.u64(16)?) {
                (0, bits) => Payload::Real(f64::from_bits(bits)),
                (1, n) => Payload::Natural(n),
                (4, n) => Payload::Integer(n.cast_signed()),
                _ => Payload::None,
            },
            color: f.u32(24)?,
            category: f.u32(28)?,
        },
        Kind::Name => Record::Name { object: f.object(4)?, name: Text(f.u64(24)?) },
        Kind::Context => Record::Context { context: f.u32(4)?, device: f.u32(8)? },
        _ => Record::Device { device: f.u32(112)?, name: Text(f.u64(136)?) },
    })
}

fn waited(f: &Fields<'_>, kind: Kind) -> Result<Record, Short> {
    Ok(match kind {
        Kind::Overhead => Record::Overhead {
            what: f.u32(4)?,
            span: f.span(24)?,
            object: f.object(8)?,
            // From CUDA 12.3 on.
            correlation: f.u32(40).unwrap_or(0),
        },
        Kind::CudaEvent => Record::Event {
            correlation: f.u32(4)?,
            context: f.u32(8)?,
            stream: f.u32(12)?,
            event: f.u32(16)?,
            // From CUDA 12.8 on.
            sync_id: f.u64(48).ok().filter(|id| *id != 0),
        },
        Kind::Synchronization => Record::Synchronization {
            what: f.u32(4)?,
            span: f.span(8)?,
            correlation: f.u32(24)?,
            context: f.u32(28)?,
            stream: f.u32(32)?,
            event: f.u32(36)?,
            // CUPTI_SYNCHRONIZATION_INVALID_VALUE in 32 bits, or in 64.
            sync_id: f.u64(40).ok().filter(|id| ![0, u64::from(u32::MAX), u64::MAX].contains(id)),
        },
        Kind::GraphTrace => {
            Record::Graph { span: f.span(8)?, place: f.place(24, 32, 36)?, correlation: f.u32(4)?, graph: f.u32(28)? }
        }
        _ => Record::External { kind: f.u32(4)?, id: f.u64(8)?, correlation: f.u32(16)? },
    })
}
