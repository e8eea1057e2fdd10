//! The kinds of CUPTI's activity records, and their lengths.
//!
//! A record begins with its kind and holds neither its length nor its version: the version of the library determines
//! both. [`Layout`] has the lengths, from the headers of CUDA 11.7, 11.8, 12.0 to 12.6, 12.8, 12.9 and 13.0 to 13.5;
//! the tests compare them with `cudarc`'s bindings.

/// The kinds that are read, with their numbers in `CUpti_ActivityKind`.
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
    /// An NVTX mark, or the begin or end of an NVTX range.
    Marker = 12,
    /// Colour, category and payload of a marker.
    MarkerData = 13,
    /// Time that the driver or the profiler took.
    Overhead = 17,
    /// A copy between two devices.
    MemcpyPeer = 22,
    /// The recording of a CUDA event on a stream.
    CudaEvent = 36,
    /// A wait of the host or of a stream.
    Synchronization = 38,
    /// The id that the program pushed for a call's thread ([`crate::Library::push`]).
    ExternalCorrelation = 39,
    /// An execution of a CUDA graph.
    GraphTrace = 51,
}

impl Kind {
    /// All kinds that are read; kinds that others refer to come first.
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

/// The oldest version that is read: CUDA 11.7, the first that lets the user set the clock.
pub const OLDEST: u32 = 17;
/// The newest version whose header was read: CUDA 13.5.
pub const NEWEST: u32 = 130_500;

/// The records' lengths in one version of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    version: u32,
    is_11_8: bool,
}

impl Layout {
    /// The layout of a version as `cuptiGetVersion` reports it; `None` outside [`OLDEST`] to [`NEWEST`]. Three toolkits
    /// report 18: it stands for CUDA 12.0 and 12.1 here, see [`Layout::CUDA_11_8`].
    #[must_use]
    pub fn for_version(version: u32) -> Option<Layout> {
        (OLDEST..=NEWEST).contains(&version).then_some(Layout { version, is_11_8: false })
    }

    /// The layout of CUDA 11.8, which reports 18 as CUDA 12.0 does. It differs from CUDA 11.7 in kernel records only.
    pub const CUDA_11_8: Layout = Layout { version: OLDEST, is_11_8: true };

    /// The length of a record of this kind, bytes.
    #[must_use]
    pub fn length(&self, kind: Kind) -> usize {
        // (first version, length from that version on).
        let lengths: &[(u32, usize)] = match kind {
            Kind::ConcurrentKernel if self.is_11_8 => &[(17, 200)],
            Kind::ConcurrentKernel => {
                &[(17, 176), (18, 208), (130_000, 216), (130_100, 224), (130_300, 232), (130_400, 248)]
            }
            Kind::Memcpy => &[(17, 88), (26, 96), (130_400, 112)],
            Kind::MemcpyPeer => &[(17, 96)],
            Kind::Memset => &[(17, 88), (130_400, 104)],
            Kind::Driver | Kind::Runtime => &[(17, 40)],
            Kind::Device => &[(17, 176), (20, 184), (130_200, 192)],
            Kind::Context => &[(17, 16), (22, 24), (23, 32), (130_100, 40)],
            Kind::Name => &[(17, 32)],
            Kind::Marker => &[(17, 56)],
            Kind::MarkerData => &[(17, 32), (130_000, 40)],
            Kind::Overhead => &[(17, 40), (21, 48), (22, 56)],
            Kind::CudaEvent => &[(17, 24), (26, 56), (130_500, 80)],
            Kind::Synchronization => &[(17, 40), (26, 56)],
            Kind::ExternalCorrelation => &[(17, 24)],
            Kind::GraphTrace => &[(17, 48), (21, 56)],
        };
        lengths.iter().take_while(|(from, _)| *from <= self.version).last().map_or(0, |(_, length)| *length)
    }
}
