//! Writes Chrome's trace event format. Times are microseconds with three decimals, so that no nanosecond is lost;
//! arguments are written as recorded. The kind of a track (stream, CPU) is in a metadata event that other tools ignore.

use super::rows::{counter_names, instant_args, memory_args, open_names, site_names, slice_args, slices, thread_ids};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{self, Write};
use trace_store::{Store, Track};

/// The name of the metadata event with a track's kind, device, stream and thread id.
pub(crate) const TRACK_EVENT: &str = "stepscope_track";

/// Phase and scope of an instant on a thread.
const INSTANT: &str = "\"ph\":\"i\",\"s\":\"t\"";

pub(super) fn write(store: &Store, out: &mut dyn Write, progress: &mut dyn FnMut(f64)) -> io::Result<()> {
    let mut writer = Writer { store, tids: thread_ids(store), out, line: String::new(), is_first: true };
    writer.out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    writer.names()?;
    let n_tracks = store.tracks().len().max(1);
    for (idx, track) in store.tracks().iter().enumerate() {
        writer.track(track)?;
        progress((idx + 1) as f64 / n_tracks as f64);
    }
    writer.counters()?;
    writer.flows()?;
    writer.memory()?;
    let warnings: Vec<String> = store.warnings().iter().map(|w| format!("{}: {}", w.source, w.text)).collect();
    write!(writer.out, "\n],\"otherData\":{}}}\n", json!({"writer": "stepscope", "warnings": warnings}))
}

struct Writer<'a> {
    store: &'a Store,
    tids: Vec<u32>,
    out: &'a mut dyn Write,
    line: String,
    is_first: bool,
}

impl Writer<'_> {
    /// Writes `self.line` as one event.
    fn end_line(&mut self) -> io::Result<()> {
        self.out.write_all(if self.is_first { b"\n" } else { b",\n" })?;
        self.is_first = false;
        self.out.write_all(self.line.as_bytes())
    }

    fn event(&mut self, event: &Value) -> io::Result<()> {
        self.line = event.to_string();
        self.end_line()
    }

    fn names(&mut self) -> io::Result<()> {
        for process in self.store.processes() {
            let pid = process.pid;
            let names = json!({"name": process.name, "host": process.host});
            self.event(&json!({"ph": "M", "name": "process_name", "pid": pid, "args": names}))?;
        }
        for (track, tid) in self.store.tracks().iter().zip(self.tids.clone()) {
            let pid = self.pid(track);
            self.event(
                &json!({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": track.name}}),
            )?;
            let order = json!({"sort_index": track.order});
            self.event(&json!({"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": order}))?;
            let description = json!({
                "kind": track.kind.name(), "device": track.device, "stream": track.stream, "tid": track.tid,
            });
            self.event(&json!({"ph": "M", "name": TRACK_EVENT, "pid": pid, "tid": tid, "args": description}))?;
        }
        Ok(())
    }

    fn pid(&self, track: &Track) -> u32 {
        self.store.processes().get(track.process as usize).map_or(0, |p| p.pid)
    }

    /// Writes an event of a track. `head` is the phase with the fields that come first.
    fn track_event(
        &mut self,
        head: &str,
        (track, time, dur): (&Track, i64, Option<i64>),
        (name, category): (&str, &str),
        args: Option<String>,
    ) -> io::Result<()> {
        self.line.clear();
        let (pid, tid) = (self.pid(track), self.tids[track.id.0 as usize]);
        let _ = write!(self.line, "{{{head},\"pid\":{pid},\"tid\":{tid},\"ts\":");
        push_us(&mut self.line, i128::from(self.store.origin_ns()) + i128::from(time));
        if let Some(dur) = dur {
            self.line.push_str(",\"dur\":");
            push_us(&mut self.line, i128::from(dur));
        }
        push_names(&mut self.line, name, category);
        if let Some(args) = args {
            let _ = write!(self.line, ",\"args\":{args}");
        }
        self.line.push('}');
        self.end_line()
    }

    fn track(&mut self, track: &Track) -> io::Result<()> {
        let store = self.store;
        for slice in slices(track) {
            let names = (store.slice_name(&slice), site_names(store, slice.site).1);
            let times = (track, slice.start, Some(slice.dur()));
            self.track_event("\"ph\":\"X\"", times, names, slice_args(store, &slice))?;
        }
        for instant in &track.instants {
            let names = site_names(store, instant.site);
            self.track_event(INSTANT, (track, instant.time, None), names, instant_args(store, instant))?;
        }
        for open in &track.open {
            self.track_event("\"ph\":\"B\"", (track, open.start, None), open_names(store, open), None)?;
        }
        Ok(())
    }

    fn counters(&mut self) -> io::Result<()> {
        for counter in self.store.counters() {
            let pid = self.store.processes().get(counter.process as usize).map_or(0, |p| p.pid);
            let (title, category) = counter_names(self.store, counter);
            let mut names = String::new();
            push_names(&mut names, &title, category);
            for (time, value) in counter.time.iter().zip(&counter.value) {
                self.line.clear();
                let _ = write!(self.line, "{{\"ph\":\"C\",\"pid\":{pid},\"ts\":");
                push_us(&mut self.line, i128::from(self.store.origin_ns()) + i128::from(*time));
                let value = if value.is_finite() { json!(value) } else { json!(value.to_string()) };
                let _ = write!(self.line, "{names},\"args\":{{\"value\":{value}}}}}");
                self.end_line()?;
            }
        }
        Ok(())
    }

    fn flows(&mut self) -> io::Result<()> {
        let store = self.store;
        for (id, flow) in store.flows().enumerate() {
            for (phase, end) in [("s", flow.from), ("f", flow.to)] {
                let Some((end, track)) = end.and_then(|end| Some((end, store.track(end.track)?))) else { continue };
                let head = format!("\"ph\":\"{phase}\",\"bp\":\"e\",\"id\":{id}");
                self.track_event(&head, (track, end.time, None), site_names(store, flow.site), None)?;
            }
        }
        Ok(())
    }

    fn memory(&mut self) -> io::Result<()> {
        let store = self.store;
        for event in store.memory() {
            let Some(track) = store.track(event.track) else { continue };
            let times = (track, event.time, None);
            self.track_event(INSTANT, times, ("[memory]", "alloc"), Some(memory_args(store, event)))?;
        }
        Ok(())
    }
}

fn push_names(line: &mut String, name: &str, category: &str) {
    let _ = write!(line, ",\"name\":{}", Value::from(name));
    if !category.is_empty() {
        let _ = write!(line, ",\"cat\":{}", Value::from(category));
    }
}

/// Appends nanoseconds as microseconds with three decimals.
fn push_us(line: &mut String, ns: i128) {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    let _ = write!(line, "{sign}{}.{:03}", ns / 1_000, ns % 1_000);
}
