//! Texts of Linux's tracers: the kernel's `trace` file (also as `trace-cmd report` and systrace print it), and what
//! `perf script` prints.
//!
//! Switches and wake-ups become [`super::sched`]'s slices, marks of programs slices, everything else instants with their
//! text. A sample of `perf` is an instant of category `sample` on its thread: its name is the innermost function, its
//! arguments have the whole `stack`, innermost first, with the event and its weight.

use super::atrace;
use super::input::{Input, Window};
use super::problems::Problem;
use super::reader::Reader;
use super::sched::{Sched, SwitchThread};
use super::stage::Stage;
use serde_json::json;
use std::io;
use trace_model::scheduling::{Comm, SchedKind};
use trace_model::{Event, EventKind, ThreadState};

/// Lines that one call reads.
const PART: usize = 1 << 14;

/// The kernel's text.
pub(super) struct Ftrace {
    window: Window,
    sched: Sched,
    is_counter: bool,
}

impl Ftrace {
    pub(super) fn new(input: &Input) -> Ftrace {
        Ftrace { window: Window::new(input), sched: Sched::default(), is_counter: false }
    }
}

/// One line: who, where, when, what.
struct Line<'a> {
    comm: &'a str,
    tid: i64,
    process: Option<i64>,
    cpu: u32,
    time: i64,
    name: &'a str,
    rest: &'a str,
}

impl<'a> Line<'a> {
    /// `comm-123 (120) [001] d..2. 12.345678: name: rest`; the process and the flags need not be there.
    fn parse(text: &'a str, is_counter: &mut bool) -> Option<Line<'a>> {
        // A name may have any of these marks in it: the last `-` before the CPU is the one.
        let (task, after) = text.split_once(" [")?;
        let (cpu, after) = after.split_once(']')?;
        let cpu = cpu.trim().parse().ok()?;
        let task = task.trim();
        let (task, process) = match task.rsplit_once('(') {
            Some((task, pid)) => (task.trim_end(), pid.trim_end_matches(')').trim().parse().ok()),
            None => (task, None),
        };
        let (comm, tid) = task.rsplit_once('-')?;
        let (head, after) = after.split_once(": ")?;
        let stamp = head.split_whitespace().next_back()?;
        *is_counter |= !stamp.contains('.');
        let time = seconds(stamp)?;
        let (name, rest) = after.split_once(':').unwrap_or((after, ""));
        let tid = tid.trim().parse().ok()?;
        Some(Line { comm: comm.trim(), tid, process, cpu, time, name: name.trim(), rest: rest.trim() })
    }
}

/// `12.345678` seconds as nanoseconds; a number without a point counts ticks and is taken as it is.
fn seconds(text: &str) -> Option<i64> {
    let Some((whole, fraction)) = text.split_once('.') else { return text.parse().ok() };
    let digits = fraction.get(..fraction.len().min(9))?;
    let ns: i64 = digits.parse().ok()?;
    let scale = 10_i64.pow(9 - digits.len() as u32);
    whole.parse::<i64>().ok()?.checked_mul(1_000_000_000)?.checked_add(ns.checked_mul(scale)?)
}

/// The value of `key=`; up to the next ` key=` where values have spaces in them.
fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let begin = text.match_indices(key).find(|(at, _)| *at == 0 || text.as_bytes()[at - 1] == b' ')?.0 + key.len();
    let value = text[begin..].strip_prefix('=')?;
    let next = value.find('=').map_or(value.len(), |equals| value[..equals].rfind(' ').unwrap_or(equals));
    Some(value[..next].trim_end_matches(" ==>").trim())
}

impl Ftrace {
    fn line(text: &str, is_counter: &mut bool, sched: &mut Sched, stage: &mut Stage) -> bool {
        let Some(line) = Line::parse(text, is_counter) else { return false };
        if let Some(pid) = line.process {
            sched.process_of.insert(line.tid, pid);
        }
        match line.name {
            "sched_switch" => return switch(&line, sched).is_some(),
            "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => {
                if waking(&line, sched).is_none() {
                    return false;
                }
            }
            "tracing_mark_write" | "print" | "bprint" => {
                // The kernel puts the writing function before the text.
                let text = line.rest.strip_prefix("tracing_mark_write:").map_or(line.rest, str::trim);
                atrace::take(text, line.tid, line.time, sched, stage);
            }
            _ => {
                happened(&line, sched);
                let track = stage.thread_of_any(line.tid);
                let args = stage.args.push(&json!({"text": line.rest, "cpu": line.cpu}).to_string());
                let site = stage.site("ftrace", line.name);
                stage.instant(track, line.time, site, args);
            }
        }
        let track = stage.thread_of_any(line.tid);
        if line.comm != "<...>" && line.tid != 0 {
            stage.name_track(track, line.comm);
        }
        true
    }
}

fn switch(line: &Line<'_>, sched: &mut Sched) -> Option<()> {
    let side = |comm: &str, pid: &str| {
        let tid = field(line.rest, pid)?.parse().ok()?;
        Some(SwitchThread::new(tid, field(line.rest, comm)?.as_bytes()))
    };
    let (prev, next) = (side("prev_comm", "prev_pid")?, side("next_comm", "next_pid")?);
    let left = ThreadState::from_letters(field(line.rest, "prev_state")?);
    sched.switch(line.time, line.cpu, Some(prev), left, next);
    Some(())
}

fn waking(line: &Line<'_>, sched: &mut Sched) -> Option<()> {
    let (by, thread) = (u32::try_from(line.tid).ok()?, field(line.rest, "pid")?.parse().ok()?);
    let cpu = field(line.rest, "target_cpu").and_then(|cpu| cpu.parse().ok()).unwrap_or(u32::MAX);
    sched.take(line.time, line.cpu, SchedKind::Waking { by, thread, cpu });
    Some(())
}

/// Reports other events that concern the scheduling, as far as they can be read.
fn happened(line: &Line<'_>, sched: &mut Sched) -> Option<()> {
    let by = u32::try_from(line.tid).ok()?;
    let number = |key: &str| field(line.rest, key)?.parse::<u32>().ok();
    let what = match line.name {
        "task_newtask" => {
            let flags = u64::from_str_radix(field(line.rest, "clone_flags")?.trim_start_matches("0x"), 16).ok()?;
            let thread = SwitchThread::new(number("pid")?, field(line.rest, "comm")?.as_bytes());
            sched.born(line.time, line.cpu, by, thread, flags);
            return Some(());
        }
        "task_rename" => {
            let name = field(line.rest, "newcomm")?;
            SchedKind::Renamed { thread: number("pid").unwrap_or(by), name: Comm::new(name.as_bytes()) }
        }
        "sched_process_exit" => SchedKind::Exit { thread: number("pid")? },
        "block_rq_issue" | "block_rq_complete" => request(line, by)?,
        _ => return None,
    };
    sched.take(line.time, line.cpu, what);
    Some(())
}

/// `8,0 WS 4096 () 5523 + 8 none,0,0 [comm]`, where a completion has no bytes.
fn request(line: &Line<'_>, by: u32) -> Option<SchedKind> {
    let (front, back) = line.rest.split_once('(')?;
    let mut words = front.split_whitespace();
    let (major, minor) = words.next()?.split_once(',')?;
    let (major, minor) = (major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?);
    let is_write = words.next()?.contains('W');
    let bytes = words.next().and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
    let sector = back.split_once(')')?.1.split_whitespace().next()?.parse().ok()?;
    let device = major.checked_shl(20)? | (minor & 0xf_ffff);
    Some(SchedKind::Disk { device, sector, bytes, by, is_write, ends: line.name == "block_rq_complete" })
}

impl Reader for Ftrace {
    fn read(&mut self, stage: &mut Stage) -> io::Result<bool> {
        for _ in 0..PART {
            let offset = self.window.offset();
            let Some(line) = self.window.line()? else { return Ok(false) };
            // A text that was cut out of a JavaScript string ends its lines so.
            let text = String::from_utf8_lossy(line.strip_suffix(b"\\n\\").unwrap_or(line));
            if let Some(lost) = text.strip_prefix("CPU:").and_then(|t| t.split_once("[LOST ")) {
                let n = lost.1.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(1);
                stage.problems.add(Problem::LostByRecorder, n, Some(offset));
                continue;
            }
            let is_comment = text.trim().is_empty() || text.starts_with('#') || text.starts_with("cpus=");
            if !is_comment && !Self::line(&text, &mut self.is_counter, &mut self.sched, stage) {
                stage.problems.count_at(Problem::Damaged, offset);
            }
        }
        Ok(true)
    }

    fn position(&self) -> u64 {
        self.window.offset()
    }

    fn finish(&mut self, stage: &mut Stage) {
        self.sched.finish(stage);
        if self.is_counter {
            stage.problems.count(Problem::TicksAsNs);
        }
    }
}

/// What `perf script` prints.
pub(super) struct PerfScript {
    window: Window,
    /// The sample whose stack is being read.
    sample: Option<Sample>,
    sched: Sched,
}

struct Sample {
    tid: i64,
    time: i64,
    event: String,
    weight: u64,
    cpu: Option<u32>,
    stack: Vec<String>,
}

impl PerfScript {
    pub(super) fn new(input: &Input) -> PerfScript {
        PerfScript { window: Window::new(input), sample: None, sched: Sched::default() }
    }

    /// Whether the line is a sample's first, or one of its stack.
    fn line(&mut self, text: &str, stage: &mut Stage) -> bool {
        if text.starts_with(char::is_whitespace) && self.sample.is_some() && header(text).is_none() {
            if let Some(sample) = &mut self.sample {
                sample.stack.push(function(text).to_owned());
            }
            return true;
        }
        self.end(stage);
        let sched = &mut self.sched;
        let Some((comm, pid, sample, rest)) = header(text) else { return false };
        if let Some(pid) = pid {
            sched.process_of.insert(sample.tid, pid);
        }
        let name = sample.event.split_once(':').map_or(sample.event.as_str(), |(_, name)| name);
        let cpu = sample.cpu.unwrap_or(0);
        let line = Line { comm, tid: sample.tid, process: pid, cpu, time: sample.time, name, rest };
        match sample.event.as_str() {
            "sched:sched_switch" => return switch(&line, sched).is_some(),
            "sched:sched_waking" | "sched:sched_wakeup" | "sched:sched_wakeup_new" => {
                return waking(&line, sched).is_some();
            }
            _ => _ = happened(&line, sched),
        }
        let track = stage.thread_of_any(sample.tid);
        stage.name_track(track, comm);
        self.sample = Some(sample);
        true
    }

    /// Stages the sample that is complete.
    fn end(&mut self, stage: &mut Stage) {
        let Some(s) = self.sample.take() else { return };
        let track = stage.thread_of_any(s.tid);
        let name = s.stack.first().map_or(s.event.as_str(), String::as_str);
        let site = stage.site("sample", name);
        let args = json!({"event": s.event, "weight": s.weight, "cpu": s.cpu, "stack": s.stack});
        let args = stage.args.push(&args.to_string());
        stage.point(track, Event { arg: s.weight, args, ..site.at(EventKind::Instant, s.time) });
    }
}

/// `comm 123/124 [001] 12.345678: 250000 cpu-clock:u: rest`: the name, the process, the sample, the rest.
fn header(text: &str) -> Option<(&str, Option<i64>, Sample, &str)> {
    let (head, after) = text.split_once(": ").or_else(|| text.trim_end().strip_suffix(':').map(|t| (t, "")))?;
    let (head, stamp) = head.trim_end().rsplit_once(char::is_whitespace)?;
    stamp.contains('.').then_some(())?;
    let time = seconds(stamp)?;
    let (head, cpu) = match head.trim_end().strip_suffix(']').and_then(|h| h.rsplit_once('[')) {
        Some((head, cpu)) => (head, cpu.trim().parse().ok()),
        None => (head, None),
    };
    let (comm, ids) = head.trim_end().rsplit_once(char::is_whitespace)?;
    let (pid, tid) = match ids.split_once('/') {
        Some((pid, tid)) => (pid.parse().ok(), tid.parse().ok()?),
        None => (None, ids.parse().ok()?),
    };
    let after = after.trim_start();
    let (weight, named) = match after.split_once(char::is_whitespace) {
        Some((first, rest)) if first.bytes().all(|c| c.is_ascii_digit()) => {
            (first.parse().unwrap_or(1), rest.trim_start())
        }
        _ => (1, after),
    };
    // The event's name ends with `: ` or with the line's last colon.
    let (event, rest) = named.split_once(": ").unwrap_or_else(|| (named.trim_end().trim_end_matches(':'), ""));
    let sample = Sample { tid, time, event: event.trim_end_matches(':').to_owned(), weight, cpu, stack: Vec::new() };
    Some((comm.trim(), pid, sample, rest.trim()))
}

/// `ffff81 do_syscall_64+0x33 ([kernel])`: the function.
fn function(text: &str) -> &str {
    let text = text.trim();
    let name = text.split_once(char::is_whitespace).map_or(text, |(_, name)| name);
    let name = name.rsplit_once(" (").map_or(name, |(name, _)| name);
    let offset = |hex: &str| hex.strip_prefix("0x").is_some_and(|h| h.bytes().all(|c| c.is_ascii_hexdigit()));
    name.rsplit_once('+').filter(|(_, at)| offset(at)).map_or(name, |(name, _)| name).trim()
}

impl Reader for PerfScript {
    fn read(&mut self, stage: &mut Stage) -> io::Result<bool> {
        for _ in 0..PART {
            let offset = self.window.offset();
            let Some(line) = self.window.line()? else {
                self.end(stage);
                return Ok(false);
            };
            let text = String::from_utf8_lossy(line).into_owned();
            if text.trim().is_empty() {
                self.end(stage);
            } else if !text.starts_with('#') && !self.line(&text, stage) {
                stage.problems.count_at(Problem::Damaged, offset);
            }
        }
        Ok(true)
    }

    fn position(&self) -> u64 {
        self.window.offset()
    }

    fn finish(&mut self, stage: &mut Stage) {
        self.sched.finish(stage);
    }
}
