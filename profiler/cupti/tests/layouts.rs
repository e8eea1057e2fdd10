//! Every record version that is claimed, held against `cudarc`'s bindings: lengths, and each field through the decoder.

#![allow(clippy::unwrap_used)] // a test file

mod common;

use common::{call, event, marker, memcpy, wait};
use cudarc::cupti::sys;
use cupti::buffer::records;
use cupti::layout::{Kind, Layout, NEWEST, OLDEST};
use cupti::record::{MemoryWork, Object, Payload, Record, Span, StreamLocation, Text, record};

/// Versions of the library with the structs that their headers name for each kind, from the list of versions in
/// `cupti_version.h` and the comments of `CUpti_ActivityKind`.
#[test]
fn lengths_are_those_of_the_bindings() {
    let check = |versions: &[u32], kind, length: usize| {
        for version in versions {
            assert_eq!(Layout::for_version(*version).unwrap().length(kind), length, "version {version}, {kind:?}");
        }
    };
    let kernel = Kind::ConcurrentKernel;
    check(&[17], kernel, size_of::<sys::CUpti_ActivityKernel7>());
    assert_eq!(Layout::CUDA_11_8.length(kernel), size_of::<sys::CUpti_ActivityKernel8>());
    check(&[18, 19, 20, 21, 22, 23, 24, 26, 27, 28], kernel, size_of::<sys::CUpti_ActivityKernel9>());
    check(&[130_000, 130_001], kernel, size_of::<sys::CUpti_ActivityKernel10>());
    check(&[130_100, 130_101, 130_200, 130_201], kernel, size_of::<sys::CUpti_ActivityKernel11>());
    check(&[130_300, 130_301], kernel, size_of::<sys::CUpti_ActivityKernel12>());
    check(&[130_400, NEWEST], kernel, size_of::<sys::CUpti_ActivityKernel13>());
    check(&[17, 18, 20, 24], Kind::Memcpy, size_of::<sys::CUpti_ActivityMemcpy5>());
    check(&[26, 28, 130_000, 130_300], Kind::Memcpy, size_of::<sys::CUpti_ActivityMemcpy6>());
    check(&[130_400, NEWEST], Kind::Memcpy, size_of::<sys::CUpti_ActivityMemcpy7>());
    let all = [17, 18, 20, 24, 28, 130_000, 130_201, NEWEST];
    check(&all, Kind::MemcpyPeer, size_of::<sys::CUpti_ActivityMemcpyPtoP4>());
    check(&all[..7], Kind::Memset, size_of::<sys::CUpti_ActivityMemset4>());
    check(&[130_400, NEWEST], Kind::Memset, size_of::<sys::CUpti_ActivityMemset5>());
    check(&all, Kind::Runtime, size_of::<sys::CUpti_ActivityAPI>());
    check(&all, Kind::Driver, size_of::<sys::CUpti_ActivityAPI>());
    check(&[17, 18, 20], Kind::Overhead, size_of::<sys::CUpti_ActivityOverhead>());
    check(&[21], Kind::Overhead, size_of::<sys::CUpti_ActivityOverhead2>());
    check(&[22, 28, NEWEST], Kind::Overhead, size_of::<sys::CUpti_ActivityOverhead3>());
    check(&[17, 20], Kind::GraphTrace, size_of::<sys::CUpti_ActivityGraphTrace>());
    check(&[21, 28, NEWEST], Kind::GraphTrace, size_of::<sys::CUpti_ActivityGraphTrace2>());
    check(&[17, 24], Kind::CudaEvent, size_of::<sys::CUpti_ActivityCudaEvent>());
    check(&[26, 130_400], Kind::CudaEvent, size_of::<sys::CUpti_ActivityCudaEvent2>());
    // The bindings end with CUDA 13.4: 13.5's header has 24 bytes more (graphs).
    check(&[NEWEST], Kind::CudaEvent, size_of::<sys::CUpti_ActivityCudaEvent2>() + 24);
    check(&[17, 24], Kind::Synchronization, size_of::<sys::CUpti_ActivitySynchronization>());
    check(&[26, NEWEST], Kind::Synchronization, size_of::<sys::CUpti_ActivitySynchronization2>());
    check(&all, Kind::ExternalCorrelation, size_of::<sys::CUpti_ActivityExternalCorrelation>());
    check(&all, Kind::Marker, size_of::<sys::CUpti_ActivityMarker2>());
    check(&all[..5], Kind::MarkerData, size_of::<sys::CUpti_ActivityMarkerData>());
    check(&all[5..], Kind::MarkerData, size_of::<sys::CUpti_ActivityMarkerData2>());
    check(&all, Kind::Name, size_of::<sys::CUpti_ActivityName>());
    check(&[17, 21], Kind::Context, size_of::<sys::CUpti_ActivityContext>());
    check(&[22], Kind::Context, size_of::<sys::CUpti_ActivityContext2>());
    check(&[23, 28, 130_001], Kind::Context, size_of::<sys::CUpti_ActivityContext3>());
    check(&[130_100, NEWEST], Kind::Context, size_of::<sys::CUpti_ActivityContext4>());
    check(&[17, 18], Kind::Device, size_of::<sys::CUpti_ActivityDevice4>());
    check(&[20, 28, 130_101], Kind::Device, size_of::<sys::CUpti_ActivityDevice5>());
    check(&[130_200, NEWEST], Kind::Device, size_of::<sys::CUpti_ActivityDevice6>());
    assert_eq!((Layout::for_version(OLDEST - 1), Layout::for_version(NEWEST + 1)), (None, None));
}

#[test]
fn a_kernel_of_every_version_is_read() {
    let name = 0xabcd_ef01_u64;
    let mut versions = vec![
        ("CUDA 11.7", kernel!(CUpti_ActivityKernel7, 5u64, 9u64, 7u32, 42u32, name)),
        ("CUDA 11.8", kernel!(CUpti_ActivityKernel8, 5u64, 9u64, 7u32, 42u32, name)),
        ("CUDA 12", kernel!(CUpti_ActivityKernel9, 5u64, 9u64, 7u32, 42u32, name)),
        ("CUDA 13.0", kernel!(CUpti_ActivityKernel10, 5u64, 9u64, 7u32, 42u32, name)),
        ("CUDA 13.1", kernel!(CUpti_ActivityKernel11, 5u64, 9u64, 7u32, 42u32, name)),
        ("CUDA 13.3", kernel!(CUpti_ActivityKernel12, 5u64, 9u64, 7u32, 42u32, name)),
        ("CUDA 13.4", kernel!(CUpti_ActivityKernel13, 5u64, 9u64, 7u32, 42u32, name)),
    ];
    let at = std::mem::offset_of!(sys::CUpti_ActivityKernel9, clusterX);
    versions[2].1[at..at + 4].copy_from_slice(&2u32.to_le_bytes());
    for (version, bytes) in versions {
        let Ok(Record::Kernel(kernel)) = record(&bytes) else { panic!("{version}: not read") };
        assert_eq!(kernel.span, Span { start: 5, end: 9 }, "{version}");
        assert_eq!(kernel.location, StreamLocation { device: 2, context: 1, stream: 7 }, "{version}");
        assert_eq!((kernel.correlation, kernel.name), (42, Text(name)), "{version}");
        assert_eq!((kernel.grid, kernel.block), ([11, 12, 13], [14, 15, 16]), "{version}");
        let memory = (kernel.static_shared, kernel.dynamic_shared, kernel.local_per_thread);
        assert_eq!((kernel.registers_per_thread, memory), (37, (1024, 2048, 24)), "{version}");
        assert_eq!(kernel.cluster, if version == "CUDA 12" { [2, 0, 0] } else { [0; 3] }, "{version}");
    }
}

#[test]
fn memory_work_of_every_version_is_read() {
    let location = StreamLocation { device: 2, context: 1, stream: 7 };
    let span = Span { start: 5, end: 9 };
    let work = MemoryWork::Copy { direction: 2, from: 3, to: 1, peers: None, is_async: true };
    for bytes in records_of!([CUpti_ActivityMemcpy5, CUpti_ActivityMemcpy6, CUpti_ActivityMemcpy7] {
        kind: 1u32, copyKind: 2u8, srcKind: 3u8, dstKind: 1u8, flags: 1u8, bytes: 4096u64, start: 5u64, end: 9u64,
        deviceId: 2u32, contextId: 1u32, streamId: 7u32, correlationId: 42u32, graphId: 6u32,
    }) {
        assert_eq!(record(&bytes), Ok(Record::Memory { span, location, correlation: 42, bytes: 4096, graph: 6, work }));
    }
    let peer = record!(CUpti_ActivityMemcpyPtoP4 {
        kind: 22u32,
        copyKind: 10u8,
        srcKind: 3u8,
        dstKind: 3u8,
        bytes: 4096u64,
        start: 5u64,
        end: 9u64,
        deviceId: 2u32,
        contextId: 1u32,
        streamId: 7u32,
        srcDeviceId: 2u32,
        srcContextId: 1u32,
        dstDeviceId: 3u32,
        dstContextId: 8u32,
        correlationId: 42u32,
        graphId: 6u32,
    });
    let work = MemoryWork::Copy { direction: 10, from: 3, to: 3, peers: Some((2, 3)), is_async: false };
    assert_eq!(record(&peer), Ok(Record::Memory { span, location, correlation: 42, bytes: 4096, graph: 6, work }));
    let work = MemoryWork::Set { value: 255, memory: 3 };
    for bytes in records_of!([CUpti_ActivityMemset4, CUpti_ActivityMemset5] {
        kind: 2u32, value: 255u32, bytes: 4096u64, start: 5u64, end: 9u64, deviceId: 2u32, contextId: 1u32,
        streamId: 7u32, correlationId: 42u32, memoryKind: 3u16, graphId: 6u32,
    }) {
        assert_eq!(record(&bytes), Ok(Record::Memory { span, location, correlation: 42, bytes: 4096, graph: 6, work }));
    }
}

#[test]
fn waits_events_and_graphs_of_every_version_are_read() {
    let span = Span { start: 5, end: 9 };
    let old = record!(CUpti_ActivitySynchronization {
        kind: 38u32,
        type_: 2u32,
        start: 5u64,
        end: 9u64,
        correlationId: 42u32,
        contextId: 1u32,
        streamId: 7u32,
        cudaEventId: 3u32,
    });
    let wait_of = |sync_id| {
        Ok(Record::Synchronization { sync_type: 2, span, correlation: 42, context: 1, stream: 7, event: 3, sync_id })
    };
    assert_eq!(record(&old), wait_of(None));
    assert_eq!(record(&wait(2, 5, 9, 42, 7, 3, 77)), wait_of(Some(77)));
    assert_eq!(record(&wait(2, 5, 9, 42, 7, 3, u32::MAX.into())), wait_of(None));

    let old = record!(CUpti_ActivityCudaEvent {
        kind: 36u32,
        correlationId: 42u32,
        contextId: 1u32,
        streamId: 7u32,
        eventId: 3u32,
    });
    let event_of = |sync_id| Ok(Record::Event { correlation: 42, context: 1, stream: 7, event: 3, sync_id });
    assert_eq!((record(&old), record(&event(42, 7, 3, 77))), (event_of(None), event_of(Some(77))));

    let location = StreamLocation { device: 2, context: 1, stream: 7 };
    for bytes in records_of!([CUpti_ActivityGraphTrace, CUpti_ActivityGraphTrace2] {
        kind: 51u32, correlationId: 42u32, start: 5u64, end: 9u64, deviceId: 2u32, graphId: 6u32, contextId: 1u32,
        streamId: 7u32,
    }) {
        assert_eq!(record(&bytes), Ok(Record::Graph { span, location, correlation: 42, graph: 6 }));
    }
    let external = record!(CUpti_ActivityExternalCorrelation {
        kind: 39u32,
        externalKind: 3u32,
        externalId: 99u64,
        correlationId: 42u32
    });
    assert_eq!(record(&external), Ok(Record::External { kind: 3, id: 99, correlation: 42 }));

    let object = std::mem::offset_of!(sys::CUpti_ActivityOverhead3, objectId);
    for mut bytes in records_of!([CUpti_ActivityOverhead, CUpti_ActivityOverhead2, CUpti_ActivityOverhead3] {
        kind: 17u32, overheadKind: 65536u32, objectKind: 2u32, start: 5u64, end: 9u64,
    }) {
        bytes[object..object + 8].copy_from_slice(&[4, 0, 0, 0, 8, 0, 0, 0]);
        let object = Object::Thread { process: 4, thread: 8 };
        assert_eq!(record(&bytes), Ok(Record::Overhead { overhead_kind: 65536, span, object, correlation: 0 }));
    }
}

#[test]
fn names_and_markers_of_every_version_are_read() {
    for bytes in records_of!([CUpti_ActivityMarkerData, CUpti_ActivityMarkerData2] {
        kind: 13u32, flags: 2u32, id: 9u32, payloadKind: 4u32, payload: -5i64, color: 0xff_10_20_30u32, category: 3u32,
    }) {
        let payload = Payload::Signed(-5);
        let want = Record::MarkerData { flags: 2, id: 9, payload, color: 0xff_10_20_30, category: 3 };
        assert_eq!(record(&bytes), Ok(want));
    }
    let object = Object::Thread { process: std::process::id(), thread: 33 };
    let want = Record::Marker { flags: 2, time: 5, id: 9, object, name: Text(70), domain: Text(80) };
    assert_eq!(record(&marker(2, 5, 9, 2, 33, 70, 80)), Ok(want));

    let name = record!(CUpti_ActivityName { kind: 11u32, objectKind: 1u32, name: 70u64 });
    assert_eq!(record(&name), Ok(Record::Name { object: Object::Process(0), name: Text(70) }));
    for bytes in records_of!([CUpti_ActivityDevice4, CUpti_ActivityDevice5, CUpti_ActivityDevice6] { kind: 8u32, id: 2u32, name: 70u64 })
    {
        assert_eq!(record(&bytes), Ok(Record::Device { device: 2, name: Text(70) }));
    }
    for bytes in records_of!([CUpti_ActivityContext, CUpti_ActivityContext2, CUpti_ActivityContext3, CUpti_ActivityContext4] { kind: 9u32, contextId: 1u32, deviceId: 2u32 })
    {
        assert_eq!(record(&bytes), Ok(Record::Context { context: 1, device: 2 }));
    }
    let want = Record::Call {
        is_runtime: true,
        span: Span { start: 5, end: 9 },
        id: 211,
        process: std::process::id(),
        thread: 33,
        correlation: 42,
        result: 0,
    };
    assert_eq!(record(&call(true, 211, 5, 9, 33, 42)), Ok(want));
}

/// The offsets of the records in a buffer, as the library finds them.
fn begins(records: &[Vec<u8>]) -> Vec<usize> {
    let ends = records.iter().scan(0, |end, record| {
        *end += record.len();
        Some(*end)
    });
    [0].into_iter().chain(ends).take(records.len()).collect()
}

#[test]
fn a_buffer_is_cut_into_its_records() {
    let kernel = kernel!(CUpti_ActivityKernel9, 5u64, 9u64, 7u32, 42u32, 0u64);
    let parts = [call(true, 211, 5, 9, 33, 42), kernel, memcpy(1, 2, 7, 3, 8), wait(3, 1, 2, 3, 4, 5, 6)];
    let (buffer, begins) = (parts.concat(), begins(&parts));
    let (found, unread) = records(&buffer, &begins);
    assert_eq!((found.len(), unread.total()), (4, 0));
    assert!(parts.iter().zip(&found).all(|(part, found)| record(part) == Ok(*found)));

    // Cut in the last's fields: that one is counted.
    let (found, unread) = records(&buffer[..buffer.len() - 17], &begins);
    assert_eq!((found.len(), unread.n_truncated), (3, 1));

    // A kind that is not read is counted, and what follows is read.
    let mut odd = buffer.clone();
    odd[40..44].copy_from_slice(&77u32.to_le_bytes());
    let (found, unread) = records(&odd, &begins);
    assert_eq!((found.len(), unread.n_by_unknown_kind[&77], unread.total()), (3, 1, 1));
}

mod hostile {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Any bytes with any bounds: nothing panics, and each record is read or counted.
        #[test]
        fn any_bytes_are_valid_input(
            bytes in prop::collection::vec(any::<u8>(), 0..2_000),
            begins in prop::collection::vec(prop_oneof![any::<usize>(), 0usize..2_000], 0..20),
        ) {
            let (found, unread) = records(&bytes, &begins);
            prop_assert_eq!(found.len() as u64 + unread.total(), begins.len() as u64);
        }

        /// Good records with some bytes changed: everything that is there is read or counted.
        #[test]
        fn what_is_not_read_is_counted(at in 0usize..400, byte in any::<u8>(), cut in 0usize..400) {
            let parts = [call(true, 211, 5, 9, 33, 42), memcpy(1, 2, 7, 3, 8), wait(3, 1, 2, 3, 4, 5, 6)];
            let mut buffer = parts.concat();
            let len = buffer.len();
            buffer[at % len] = byte;
            buffer.truncate(len - cut % len);
            let (found, unread) = records(&buffer, &begins(&parts));
            prop_assert_eq!(found.len() as u64 + unread.total(), 3);
        }
    }
}
