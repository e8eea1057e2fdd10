//! The system's clocks on Unix, by `clock_gettime`; nanoseconds.

fn read_clock(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that the call fills.
    let status = unsafe { libc::clock_gettime(clock, &raw mut time) };
    debug_assert_eq!(status, 0, "these clocks exist on every supported system");
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

pub(super) fn mono_ns() -> i64 {
    read_clock(libc::CLOCK_MONOTONIC_RAW)
}

pub(super) fn wall_ns() -> i64 {
    read_clock(libc::CLOCK_REALTIME)
}

pub(super) fn process_cpu_ns() -> i64 {
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

pub(super) fn thread_cpu_ns() -> i64 {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}
