//! Stages bundles of the kernel's events, each of one CPU.

use super::clocks::Clocks;
use super::sequence::BOOTTIME_CLOCK;
use crate::import::atrace;
use crate::import::problems::Problem;
use crate::import::sched::{Sched, SwitchThread};
use crate::import::stage::Stage;
use formats::perfetto::ftrace_event_bundle::CompactSched;
use formats::perfetto::{FtraceEvent, FtraceEventBundle};
use trace_model::ThreadState;
use trace_model::scheduling::{Comm, SchedKind};

/// `ftrace_clock` in terms of the trace's clocks.
const MONOTONIC_RAW: u32 = 5;

pub(super) fn take(bundle: &FtraceEventBundle, clocks: &Clocks, sched: &mut Sched, stage: &mut Stage) {
    if bundle.lost_events == Some(true) {
        stage.problems.count(Problem::LostByRecorder);
    }
    let cpu = bundle.cpu.unwrap_or(0);
    let clock = if bundle.ftrace_clock == Some(4) { MONOTONIC_RAW } else { BOOTTIME_CLOCK };
    let to_trace = |time: u64| match (bundle.ftrace_timestamp, bundle.boot_timestamp) {
        // Both clocks at the same moment.
        (Some(own), Some(boot)) => i64::try_from(time).ok()?.checked_add(boot.checked_sub(own)?),
        _ => clocks.builtin_to_trace(clock, time),
    };
    for event in &bundle.event {
        match event.timestamp.and_then(to_trace) {
            Some(time) => add_event(event, cpu, time, sched, stage),
            None => stage.problems.count(Problem::UnknownClock),
        }
    }
    if let Some(compact) = &bundle.compact_sched {
        self::compact(compact, cpu, to_trace, sched, stage);
    }
}

fn add_event(event: &FtraceEvent, cpu: u32, time: i64, sched: &mut Sched, stage: &mut Stage) {
    let current = event.pid.unwrap_or(0);
    if let Some(s) = &event.sched_switch {
        let side = |pid: Option<i32>, name: &Option<String>| {
            SwitchThread::new(id(pid), name.as_deref().unwrap_or_default().as_bytes())
        };
        let (prev, next) = (side(s.prev_pid, &s.prev_comm), side(s.next_pid, &s.next_comm));
        sched.switch(time, cpu, Some(prev), state_when_left(s.prev_state.unwrap_or(0)), next);
    }
    let wakings = [&event.sched_waking, &event.sched_wakeup, &event.sched_wakeup_new];
    if let Some(waking) = wakings.into_iter().flatten().next() {
        let target = waking.target_cpu.map_or(u32::MAX, i32::cast_unsigned);
        sched.take(time, cpu, SchedKind::Waking { by: current, thread: id(waking.pid), cpu: target });
    }
    if let Some(task) = &event.task_newtask {
        let thread = SwitchThread::new(id(task.pid), task.comm.as_deref().unwrap_or_default().as_bytes());
        sched.born(time, cpu, current, thread, task.clone_flags.unwrap_or(0));
    }
    if let Some(task) = &event.task_rename {
        let name = Comm::new(task.newcomm.as_deref().unwrap_or_default().as_bytes());
        sched.take(time, cpu, SchedKind::Renamed { thread: id(task.pid), name });
    }
    if let Some(exit) = &event.sched_process_exit {
        sched.take(time, cpu, SchedKind::Exit { thread: id(exit.pid) });
    }
    for (request, ends) in [(&event.block_rq_issue, false), (&event.block_rq_complete, true)] {
        if let Some(r) = request {
            let (device, sector) = (r.dev.unwrap_or(0) as u32, r.sector.unwrap_or(0));
            let is_write = r.rwbs.as_deref().is_some_and(|kind| kind.contains('W'));
            // The fourth field of a completion is its error.
            let bytes = if ends { 0 } else { r.bytes.unwrap_or(0) };
            sched.take(time, cpu, SchedKind::Disk { device, sector, bytes, by: current, is_write, ends });
        }
    }
    if let Some(text) = event.print.as_ref().and_then(|p| p.buf.as_deref()) {
        atrace::take(text, current.into(), time, sched, stage);
    }
}

fn id(pid: Option<i32>) -> u32 {
    pid.and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0)
}

fn state_when_left(state: i64) -> ThreadState {
    ThreadState::from_prev_state(state.cast_unsigned())
}

/// Columns with differences of times. What a thread switches away from is what it switched to last.
fn compact(c: &CompactSched, cpu: u32, to_trace: impl Fn(u64) -> Option<i64>, sched: &mut Sched, stage: &mut Stage) {
    let comm = |index: u32| c.intern_table.get(index as usize).map_or("", String::as_str);
    let mut time: u64 = 0;
    for (i, delta) in c.switch_timestamp.iter().enumerate() {
        time = time.wrapping_add(*delta);
        let (Some(next), Some(state)) = (c.switch_next_pid.get(i), c.switch_prev_state.get(i)) else {
            return stage.problems.count(Problem::Damaged);
        };
        let name = comm(c.switch_next_comm_index.get(i).copied().unwrap_or(u32::MAX));
        match to_trace(time) {
            Some(at) => sched.switch(
                at,
                cpu,
                None,
                state_when_left(*state),
                SwitchThread::new(id(Some(*next)), name.as_bytes()),
            ),
            None => stage.problems.count(Problem::UnknownClock),
        }
    }
    let mut time: u64 = 0;
    for (i, (delta, pid)) in c.waking_timestamp.iter().zip(&c.waking_pid).enumerate() {
        time = time.wrapping_add(*delta);
        let target = c.waking_target_cpu.get(i).map_or(u32::MAX, |cpu| cpu.cast_unsigned());
        match to_trace(time) {
            Some(at) => sched.waking_there(at, cpu, id(Some(*pid)), target),
            None => stage.problems.count(Problem::UnknownClock),
        }
    }
}
