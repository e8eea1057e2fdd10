//! Bundles of the kernel's events of one CPU.

use super::clocks::Clocks;
use super::sequence::DEFAULT_CLOCK;
use crate::import::atrace;
use crate::import::problems::Problem;
use crate::import::sched::{Left, Sched, Side, Waker};
use crate::import::stage::Stage;
use formats::perfetto::ftrace_event_bundle::CompactSched;
use formats::perfetto::{FtraceEvent, FtraceEventBundle};

/// `ftrace_clock` in terms of the trace's clocks.
const MONOTONIC_RAW: u32 = 5;

pub(super) fn take(bundle: &FtraceEventBundle, clocks: &Clocks, sched: &mut Sched, stage: &mut Stage) {
    if bundle.lost_events == Some(true) {
        stage.problems.count(Problem::LostByRecorder);
    }
    let cpu = i64::from(bundle.cpu.unwrap_or(0));
    let clock = if bundle.ftrace_clock == Some(4) { MONOTONIC_RAW } else { DEFAULT_CLOCK };
    let to_trace = |time: u64| match (bundle.ftrace_timestamp, bundle.boot_timestamp) {
        // Both clocks at the same moment.
        (Some(own), Some(boot)) => i64::try_from(time).ok()?.checked_add(boot.checked_sub(own)?),
        _ => clocks.builtin_to_trace(clock, time),
    };
    for event in &bundle.event {
        match event.timestamp.and_then(to_trace) {
            Some(time) => one(event, cpu, time, sched, stage),
            None => stage.problems.count(Problem::UnknownClock),
        }
    }
    if let Some(compact) = &bundle.compact_sched {
        self::compact(compact, cpu, to_trace, sched, stage);
    }
}

fn one(event: &FtraceEvent, cpu: i64, time: i64, sched: &mut Sched, stage: &mut Stage) {
    let tid = i64::from(event.pid.unwrap_or(0));
    if let Some(s) = &event.sched_switch {
        let (prev, next) = (s.prev_comm.as_deref().unwrap_or(""), s.next_comm.as_deref().unwrap_or(""));
        let prev = Side { tid: s.prev_pid.unwrap_or(0).into(), name: sched.name(prev) };
        let next = Side { tid: s.next_pid.unwrap_or(0).into(), name: sched.name(next) };
        sched.switch(time, cpu, Some(prev), Left::from_bits(s.prev_state.unwrap_or(0)), next);
    }
    if let Some(waking) = event.sched_waking.as_ref().or(event.sched_wakeup.as_ref()) {
        sched.waking(time, Waker::Thread(tid), waking.pid.unwrap_or(0).into());
    }
    if let Some(text) = event.print.as_ref().and_then(|p| p.buf.as_deref()) {
        atrace::take(text, tid, time, sched, stage);
    }
}

/// Columns with differences of times. What a thread switches away from is what it switched to last.
fn compact(c: &CompactSched, cpu: i64, to_trace: impl Fn(u64) -> Option<i64>, sched: &mut Sched, stage: &mut Stage) {
    let comm = |index: u32| c.intern_table.get(index as usize).map_or("", String::as_str);
    let mut time: u64 = 0;
    for (i, delta) in c.switch_timestamp.iter().enumerate() {
        time = time.wrapping_add(*delta);
        let (Some(next), Some(state)) = (c.switch_next_pid.get(i), c.switch_prev_state.get(i)) else {
            return stage.problems.count(Problem::Damaged);
        };
        let name = sched.name(comm(c.switch_next_comm_index.get(i).copied().unwrap_or(u32::MAX)));
        let next = Side { tid: i64::from(*next), name };
        match to_trace(time) {
            Some(at) => sched.switch(at, cpu, None, Left::from_bits(*state), next),
            None => stage.problems.count(Problem::UnknownClock),
        }
    }
    let mut time: u64 = 0;
    for (delta, pid) in c.waking_timestamp.iter().zip(&c.waking_pid) {
        time = time.wrapping_add(*delta);
        if let Some(at) = to_trace(time) {
            sched.waking(at, Waker::OnCpu(cpu), i64::from(*pid));
        }
    }
}
