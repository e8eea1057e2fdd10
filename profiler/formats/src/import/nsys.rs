//! Reads the SQLite files that Nsight Systems exports (`nsys export --type sqlite`).
//!
//! The imported events are CUDA's kernels, copies, memory sets, synchronisations and graphs (on streams of the process
//! that launched them), the calls of its API, NVTX ranges and marks, calls of the operating system, names of threads,
//! processes and devices. A launch and its work are joined by `correlationId`, which is unique in a process. Columns
//! differ from version to version: a missing column is null.
//!
//! SQLite neither reads nor makes files next to the database, and only tables are read, no views.

mod sqlite;

use super::chrome::{category, step_number};
use super::flows::{FlowKey, FlowPart};
use super::ids::{ProcessIdx, TrackIdx};
use super::input::Input;
use super::problems::Problem;
use super::reader::Reader;
use super::stage::{Stage, TrackOf};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Map, Value, json};
use sqlite::{Database, Row};
use std::fs::File;
use std::io;
use std::sync::Arc;
use trace_model::{Event, EventKind, NO_ARGS};

/// Order of the first stream: after all threads.
const FIRST_STREAM: i32 = 1 << 24;
/// `eventType` of `NVTX_EVENTS`: `NvtxMark`, `NvtxPushPopRange`, `NvtxStartEndRange`, `NvtxDomainCreate`.
const MARK: i64 = 34;
const PUSH_POP: i64 = 59;
const START_END: i64 = 60;
const DOMAIN: i64 = 75;
/// `CUpti_ActivityMemcpyKind`, from 1 on.
const COPY_KINDS: [&str; 10] = ["HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"];
/// CUPTI's number for no stream.
const NO_STREAM: i64 = 0xffff_ffff;

type Take = fn(&mut Names, &Row<'_>, &mut Stage);

/// A table, its columns, and the method that stages its rows. Work of devices is read before the calls that launched
/// it.
struct Table {
    name: &'static str,
    /// Names of the columns, separated by spaces.
    columns: &'static str,
    take: Take,
}

const TABLES: [Table; 12] = [
    Table { name: "StringIds", columns: "id value", take: Names::string },
    Table { name: "TARGET_INFO_GPU", columns: "id name", take: Names::gpu },
    Table { name: "PROCESSES", columns: "globalPid name", take: Names::process_name },
    Table { name: "ThreadNames", columns: "globalTid nameId", take: Names::thread_name },
    Table {
        name: "CUPTI_ACTIVITY_KIND_KERNEL",
        columns: "start end deviceId streamId correlationId globalPid demangledName shortName \
                  gridX gridY gridZ blockX blockY blockZ registersPerThread staticSharedMemory dynamicSharedMemory",
        take: Names::kernel,
    },
    Table {
        name: "CUPTI_ACTIVITY_KIND_MEMCPY",
        columns: "start end deviceId streamId correlationId globalPid bytes copyKind",
        take: Names::memcpy,
    },
    Table {
        name: "CUPTI_ACTIVITY_KIND_MEMSET",
        columns: "start end deviceId streamId correlationId globalPid bytes value",
        take: Names::memset,
    },
    Table {
        name: "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
        columns: "start end deviceId streamId correlationId globalPid graphId",
        take: Names::graph,
    },
    Table {
        name: "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        columns: "start end deviceId streamId correlationId globalPid syncType",
        take: Names::synchronization,
    },
    Table {
        name: "CUPTI_ACTIVITY_KIND_RUNTIME",
        columns: "start end globalTid correlationId nameId returnValue",
        take: Names::call,
    },
    Table {
        name: "NVTX_EVENTS",
        columns: "start end eventType text textId globalTid domainId uint64Value int64Value doubleValue",
        take: Names::nvtx,
    },
    Table { name: "OSRT_API", columns: "start end globalTid nameId returnValue", take: Names::system_call },
];

pub(super) struct Nsys {
    file: Arc<File>,
    length: u64,
    database: Option<Database>,
    is_opened: bool,
    table: usize,
    names: Names,
}

impl Nsys {
    pub(super) fn new(input: &Input) -> Nsys {
        let (file, length) = (input.file.clone(), input.length);
        Nsys { file, length, database: None, is_opened: false, table: 0, names: Names::default() }
    }

    fn open(&mut self, stage: &mut Stage) {
        self.is_opened = true;
        match Database::open(&self.file) {
            Ok(database) => self.database = Some(database),
            Err(_) => return stage.problems.count_at(Problem::Damaged, 0),
        }
        let Some(database) = &mut self.database else { return };
        // The time of day at time 0.
        if let Some(start) = database.number("select utcEpochNs from TARGET_INFO_SESSION_START_TIME limit 1") {
            stage.wall_offset = Some(start);
        }
        if let Some(host) = database.text("select value from TARGET_INFO_SYSTEM_ENV where name = 'Hostname' limit 1") {
            stage.host = host;
        }
    }
}

impl Reader for Nsys {
    fn read(&mut self, stage: &mut Stage) -> io::Result<bool> {
        if !self.is_opened {
            self.open(stage);
        }
        let (Some(database), Some(table)) = (&mut self.database, TABLES.get(self.table)) else { return Ok(false) };
        let names = &mut self.names;
        match database.rows(table.name, table.columns, |row| (table.take)(names, row, stage)) {
            Ok(true) => {}
            Ok(false) => self.table += 1,
            Err(_) => {
                stage.problems.count(Problem::Damaged);
                self.table += 1;
            }
        }
        Ok(true)
    }

    fn position(&self) -> u64 {
        self.length / TABLES.len() as u64 * self.table as u64
    }
}

/// Names by number, and the launches that have work on a device.
#[derive(Default)]
struct Names {
    strings: FxHashMap<i64, String>,
    gpus: FxHashMap<i64, String>,
    domains: FxHashMap<(i64, i64), String>,
    /// Process and correlation of the devices' work.
    launched: FxHashSet<(i64, u32)>,
}

/// Process and thread of a `globalTid` or `globalPid`, 24 bits each; the upper bits are those of the machine.
fn ids(global: i64) -> (i64, i64) {
    (global >> 24 & 0xff_ffff, global & 0xff_ffff)
}

impl Names {
    fn string(&mut self, row: &Row<'_>, _: &mut Stage) {
        if let (Some(id), Some(text)) = (row.int("id"), row.text("value")) {
            self.strings.insert(id, text.to_owned());
        }
    }

    fn gpu(&mut self, row: &Row<'_>, _: &mut Stage) {
        if let (Some(id), Some(name)) = (row.int("id"), row.text("name")) {
            self.gpus.insert(id, name.to_owned());
        }
    }

    fn process_name(&mut self, row: &Row<'_>, stage: &mut Stage) {
        if let (Some(pid), Some(name)) = (row.int("globalPid"), row.text("name")) {
            let process = stage.process(ids(pid).0) as usize;
            stage.processes[process].name = name.to_owned();
        }
    }

    fn thread_name(&mut self, row: &Row<'_>, stage: &mut Stage) {
        let name = row.int("nameId").and_then(|id| self.strings.get(&id));
        if let (Some(tid), Some(name)) = (row.int("globalTid"), name) {
            let (pid, tid) = ids(tid);
            let track = stage.thread(pid, tid) as usize;
            stage.tracks[track].name.clone_from(name);
        }
    }

    /// The string for the first of these columns that is not null.
    fn name(&self, row: &Row<'_>, columns: &[&str], stage: &mut Stage) -> String {
        let found = columns.iter().find_map(|column| self.strings.get(&row.int(column)?));
        found.cloned().unwrap_or_else(|| {
            stage.problems.count(Problem::MissingName);
            "?".to_owned()
        })
    }

    fn stream(&self, process: ProcessIdx, device: i64, stream: i64, stage: &mut Stage) -> TrackIdx {
        let idx = stage.track(process, TrackOf::Stream(device, stream));
        let track = &mut stage.tracks[idx as usize];
        if track.device.is_empty() {
            track.device = match self.gpus.get(&device) {
                Some(name) => format!("GPU {device} ({name})"),
                None => format!("GPU {device}"),
            };
            track.stream = u64::try_from(stream).ok();
            let number = i32::try_from(stream).unwrap_or(i32::MAX).min(FIRST_STREAM);
            track.order = FIRST_STREAM + number;
        }
        idx
    }

    /// Stages work of a device, and the end of the flow from its launch.
    fn work(&mut self, row: &Row<'_>, kind: &str, name: &str, bytes: u64, args: &Value, stage: &mut Stage) {
        let (Some((start, end)), Some(global)) = (span(row, stage), row.int("globalPid")) else { return };
        let pid = ids(global).0;
        let process = stage.process(pid);
        let track = self.stream(process, row.int("deviceId").unwrap_or(0), row.int("streamId").unwrap_or(0), stage);
        let site = stage.site(category(kind, name), name);
        let correlation = row.int("correlationId").unwrap_or(0) as u32;
        let args = stage.args.push(&args.to_string());
        stage.slice(track, Event { correlation, arg: bytes, args, ..site.slice(start, end) });
        if correlation != 0 {
            self.launched.insert((pid, correlation));
            launch(pid, correlation, FlowPart::Finish, track, start, stage);
        }
    }

    fn kernel(&mut self, row: &Row<'_>, stage: &mut Stage) {
        let name = self.name(row, &["demangledName", "shortName"], stage);
        let three = |names: [&str; 3]| names.map(|name| row.int(name));
        let args = json!({
            "correlation": row.int("correlationId"), "grid": three(["gridX", "gridY", "gridZ"]),
            "block": three(["blockX", "blockY", "blockZ"]), "registers per thread": row.int("registersPerThread"),
            "static shared memory": row.int("staticSharedMemory"), "dynamic shared memory": row.int("dynamicSharedMemory"),
        });
        self.work(row, "kernel", &name, 0, &args, stage);
    }

    fn memcpy(&mut self, row: &Row<'_>, stage: &mut Stage) {
        let kind = row.int("copyKind").and_then(|kind| usize::try_from(kind).ok()?.checked_sub(1));
        let way = kind.and_then(|kind| COPY_KINDS.get(kind)).unwrap_or(&"of an unknown kind");
        let bytes = row.int("bytes").and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        let args = json!({"correlation": row.int("correlationId"), "bytes": bytes});
        self.work(row, "gpu_memcpy", &format!("Memcpy {way}"), bytes, &args, stage);
    }

    fn memset(&mut self, row: &Row<'_>, stage: &mut Stage) {
        let bytes = row.int("bytes").and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        let args = json!({"correlation": row.int("correlationId"), "bytes": bytes, "value": row.int("value")});
        self.work(row, "gpu_memset", "Memset", bytes, &args, stage);
    }

    fn graph(&mut self, row: &Row<'_>, stage: &mut Stage) {
        let id = row.int("graphId").unwrap_or(0);
        let args = json!({"correlation": row.int("correlationId"), "graph": id});
        self.work(row, "kernel", &format!("CUDA graph {id}"), 0, &args, stage);
    }

    /// Stages the wait of a stream for an event. Other synchronisations are shown by the call that waits.
    fn synchronization(&mut self, row: &Row<'_>, stage: &mut Stage) {
        let (Some((start, end)), Some(global)) = (span(row, stage), row.int("globalPid")) else { return };
        let stream = row.int("streamId").filter(|stream| (0..NO_STREAM).contains(stream));
        // `CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT` is 2.
        let (Some(stream), Some(2)) = (stream, row.int("syncType")) else { return };
        let process = stage.process(ids(global).0);
        let track = self.stream(process, row.int("deviceId").unwrap_or(0), stream, stage);
        let site = stage.site("sync", "Stream Wait Event");
        let correlation = row.int("correlationId").unwrap_or(0) as u32;
        stage.slice(track, Event { correlation, ..site.slice(start, end) });
    }

    fn call(&mut self, row: &Row<'_>, stage: &mut Stage) {
        let (Some((start, end)), Some(global)) = (span(row, stage), row.int("globalTid")) else { return };
        let (pid, tid) = ids(global);
        // `cudaLaunchKernel_v7000`: the version of the interface says nothing here.
        let name = self.name(row, &["nameId"], stage);
        let name = match name.rsplit_once("_v") {
            Some((name, version)) if version.bytes().all(|c| c.is_ascii_digit()) => name,
            _ => &name,
        };
        let track = stage.thread(pid, tid);
        let site = stage.site(category("cuda_runtime", name), name);
        let correlation = row.int("correlationId").unwrap_or(0) as u32;
        let failed = row.int("returnValue").filter(|code| *code != 0);
        let args = failed.map_or(NO_ARGS, |code| {
            stage.args.push(&json!({"correlation": correlation, "return value": code}).to_string())
        });
        stage.slice(track, Event { correlation, args, ..site.slice(start, end) });
        if self.launched.contains(&(pid, correlation)) {
            launch(pid, correlation, FlowPart::Start, track, start, stage);
        }
    }

    fn nvtx(&mut self, row: &Row<'_>, stage: &mut Stage) {
        let (kind, global) = (row.int("eventType").unwrap_or(0), row.int("globalTid").unwrap_or(0));
        let (pid, tid) = ids(global);
        let domain = (pid, row.int("domainId").unwrap_or(0));
        let own = row.text("text").map(str::to_owned);
        let text = own.or_else(|| self.strings.get(&row.int("textId")?).cloned()).unwrap_or_default();
        if kind == DOMAIN {
            self.domains.insert(domain, text);
            return;
        }
        if ![MARK, PUSH_POP, START_END].contains(&kind) {
            return;
        }
        let Some(start) = row.int("start") else { return stage.problems.count(Problem::NoTime) };
        let args = self.nvtx_args(row, domain);
        let args = if args.is_empty() { NO_ARGS } else { stage.args.push(&Value::Object(args).to_string()) };
        let step = step_number(&text);
        let site = stage.site(if step.is_some() { "step" } else { "nvtx" }, &text);
        let number = step.unwrap_or(0);
        let event = |event| Event { correlation: number, arg: number.into(), args, ..event };
        // A range may end on another thread than it began on.
        let track = if kind == START_END {
            let process = stage.process(pid);
            let id = stage.text_id("NVTX ranges");
            let track = stage.track(process, TrackOf::Async(id));
            "NVTX ranges".clone_into(&mut stage.tracks[track as usize].name);
            track
        } else {
            stage.thread(pid, tid)
        };
        match (kind, row.int("end")) {
            (MARK, _) => stage.point(track, event(site.at(EventKind::Instant, start))),
            (_, Some(end)) => stage.slice(track, event(site.slice(start, end))),
            (_, None) => stage.mark(track, start, false, Some(site), args),
        }
    }

    fn nvtx_args(&self, row: &Row<'_>, domain: (i64, i64)) -> Map<String, Value> {
        let mut args = Map::new();
        if let Some(name) = self.domains.get(&domain) {
            args.insert("domain".to_owned(), name.as_str().into());
        }
        let number = row.int("uint64Value").or(row.int("int64Value")).map(Value::from);
        if let Some(payload) = number.or_else(|| row.real("doubleValue").map(Value::from)) {
            args.insert("payload".to_owned(), payload);
        }
        args
    }

    fn system_call(&mut self, row: &Row<'_>, stage: &mut Stage) {
        let (Some((start, end)), Some(global)) = (span(row, stage), row.int("globalTid")) else { return };
        let (pid, tid) = ids(global);
        let name = self.name(row, &["nameId"], stage);
        let (track, site) = (stage.thread(pid, tid), stage.site("system call", &name));
        stage.slice(track, site.slice(start, end));
    }
}

/// Start and end of a row; a row without them is counted as a problem.
fn span(row: &Row<'_>, stage: &mut Stage) -> Option<(i64, i64)> {
    let span = row.int("start").zip(row.int("end"));
    if span.is_none() {
        stage.problems.count(Problem::NoTime);
    }
    span
}

/// Stages an end of the flow from a launch to its work.
fn launch(pid: i64, correlation: u32, part: FlowPart, track: TrackIdx, time: i64, stage: &mut Stage) {
    let site = stage.site("edge", "launch");
    let space = stage.flows.space(format!("cuda {pid}").as_bytes());
    stage.flows.point(FlowKey { space, id: correlation.into() }, part, track, time, site);
}
