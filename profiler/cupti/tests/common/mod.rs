//! Records as CUPTI would write them, made by the places in `cudarc`'s bindings, not by ours.

#![allow(dead_code, clippy::unwrap_used)] // a test file; each test uses a part

use cudarc::cupti::sys;
use std::ffi::CString;

/// Sets fields of a record's bytes at the binding's places.
#[macro_export]
macro_rules! record {
    ($type:ident { $($field:ident: $value:expr),* $(,)? }) => {{
        let mut bytes = vec![0u8; size_of::<cudarc::cupti::sys::$type>()];
        $({
            let at = std::mem::offset_of!(cudarc::cupti::sys::$type, $field);
            let value = $value.to_le_bytes();
            bytes[at..at + value.len()].copy_from_slice(&value);
        })*
        bytes
    }};
}

/// The same fields in records of several versions.
#[macro_export]
macro_rules! records_of {
    ([$($type:ident),*] $fields:tt) => { vec![$($crate::record!($type $fields)),*] };
}

/// Texts that records point to, and that stay where they are.
#[derive(Default)]
pub struct Texts(Vec<CString>);

impl Texts {
    pub fn address(&mut self, text: &str) -> u64 {
        self.0.push(CString::new(text).unwrap());
        self.0.last().unwrap().as_ptr() as u64
    }
}

/// A kernel as the version of a binding writes it.
#[macro_export]
macro_rules! kernel {
    ($type:ident, $start:expr, $end:expr, $stream:expr, $correlation:expr, $name:expr) => {
        $crate::record!($type {
            kind: 10u32,
            registersPerThread: 37u16,
            start: $start,
            end: $end,
            deviceId: 2u32,
            contextId: 1u32,
            streamId: $stream,
            gridX: 11i32,
            gridY: 12i32,
            gridZ: 13i32,
            blockX: 14i32,
            blockY: 15i32,
            blockZ: 16i32,
            staticSharedMemory: 1024i32,
            dynamicSharedMemory: 2048i32,
            localMemoryPerThread: 24u32,
            correlationId: $correlation,
            name: $name,
            graphNodeId: 0u64,
            graphId: 0u32,
        })
    };
}

pub fn call(runtime: bool, id: u32, start: u64, end: u64, thread: u32, correlation: u32) -> Vec<u8> {
    let kind = if runtime { 5u32 } else { 4 };
    record!(CUpti_ActivityAPI {
        kind: kind,
        cbid: id,
        start: start,
        end: end,
        processId: std::process::id(),
        threadId: thread,
        correlationId: correlation,
        returnValue: 0u32,
    })
}

pub fn memcpy(start: u64, end: u64, stream: u32, correlation: u32, bytes: u64) -> Vec<u8> {
    record!(CUpti_ActivityMemcpy6 {
        kind: 1u32,
        copyKind: 1u8,
        srcKind: 2u8,
        dstKind: 3u8,
        flags: 1u8,
        bytes: bytes,
        start: start,
        end: end,
        deviceId: 2u32,
        contextId: 1u32,
        streamId: stream,
        correlationId: correlation,
    })
}

pub fn event(correlation: u32, stream: u32, event: u32, sync_id: u64) -> Vec<u8> {
    record!(CUpti_ActivityCudaEvent2 {
        kind: 36u32,
        correlationId: correlation,
        contextId: 1u32,
        streamId: stream,
        eventId: event,
        cudaEventSyncId: sync_id,
    })
}

pub fn wait(what: u32, start: u64, end: u64, correlation: u32, stream: u32, event: u32, sync_id: u64) -> Vec<u8> {
    record!(CUpti_ActivitySynchronization2 {
        kind: 38u32,
        type_: what,
        start: start,
        end: end,
        correlationId: correlation,
        contextId: 1u32,
        streamId: stream,
        cudaEventId: event,
        cudaEventSyncId: sync_id,
    })
}

/// `object`: 1 the process, 2 this thread.
pub fn marker(flags: u32, time: u64, id: u32, object: u32, thread: u32, name: u64, domain: u64) -> Vec<u8> {
    let mut bytes = record!(CUpti_ActivityMarker2 {
        kind: 12u32,
        flags: flags,
        timestamp: time,
        id: id,
        objectKind: object,
        name: name,
        domain: domain,
    });
    let at = std::mem::offset_of!(sys::CUpti_ActivityMarker2, objectId);
    bytes[at..at + 4].copy_from_slice(&std::process::id().to_le_bytes());
    bytes[at + 4..at + 8].copy_from_slice(&thread.to_le_bytes());
    bytes
}
