//! The states of a thread, as an operating system's scheduler distinguishes them.

/// The state of a thread: running, or the reason why it does not run.
///
/// A slice of category `off cpu` has the [code](ThreadState::code) of its state as `arg`. Traces of older versions have
/// 0 there; then the name of the slice says the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[repr(u8)]
pub enum ThreadState {
    /// The thread has a CPU.
    Running = 1,
    /// The thread was woken and waits for a CPU.
    Runnable = 2,
    /// The thread lost or yielded its CPU, and could have continued.
    Preempted = 3,
    /// The thread waits for a lock, a timer or a pipe; a signal can interrupt the wait.
    Sleeping = 4,
    /// The thread waits, mostly for a disk; no signal can interrupt the wait.
    Uninterruptible = 5,
    /// A signal or a debugger stopped the thread.
    Stopped = 6,
    /// The thread waits for something that the trace does not name; also parked and idle threads of the kernel.
    Waiting = 7,
    /// The thread ended.
    Dead = 8,
}

impl ThreadState {
    /// Number of codes, including 0 for no state.
    pub const N_CODES: usize = 9;

    /// The states with the names of their slices; the index is the code less 1.
    const NAMES: [(ThreadState, &'static str); 8] = [
        (ThreadState::Running, "running"),
        (ThreadState::Runnable, "runnable"),
        (ThreadState::Preempted, "preempted"),
        (ThreadState::Sleeping, "sleeping"),
        (ThreadState::Uninterruptible, "uninterruptible"),
        (ThreadState::Stopped, "stopped"),
        (ThreadState::Waiting, "waiting"),
        (ThreadState::Dead, "ended"),
    ];

    /// Name of the slices in this state.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize - 1].1
    }

    /// The state with this name of slices; `None` for an unknown name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<ThreadState> {
        // The name in traces that older versions imported.
        let name = if name == "waking" { "runnable" } else { name };
        Self::NAMES.iter().find(|(_, state_name)| *state_name == name).map(|(state, _)| *state)
    }

    /// Number of the state in traces, never 0.
    #[must_use]
    pub fn code(self) -> u64 {
        self as u64
    }

    /// The state with this number in traces.
    #[must_use]
    pub fn from_code(code: u64) -> Option<ThreadState> {
        Self::NAMES.iter().find(|(state, _)| state.code() == code).map(|(state, _)| *state)
    }

    /// Why a thread left its CPU, from `prev_state` of the kernel's `sched_switch` (Linux 4.14 and later). The lowest
    /// bit that is set counts; without one the thread could have continued. 0x100, preemption by the kernel, makes no
    /// difference.
    pub fn from_prev_state(bits: u64) -> ThreadState {
        match bits & 0xff {
            0 => ThreadState::Preempted,
            b if b & 0x01 != 0 => ThreadState::Sleeping,
            b if b & 0x02 != 0 => ThreadState::Uninterruptible,
            b if b & 0x0c != 0 => ThreadState::Stopped,
            b if b & 0x30 != 0 => ThreadState::Dead,
            // `TASK_PARKED`, `TASK_IDLE`.
            _ => ThreadState::Waiting,
        }
    }

    /// As [`ThreadState::from_prev_state`], from the letters that the kernel prints, such as `S`, `R+` or `D|K`.
    pub fn from_letters(letters: &str) -> ThreadState {
        match letters.as_bytes().first() {
            Some(b'R') => ThreadState::Preempted,
            Some(b'S') => ThreadState::Sleeping,
            Some(b'D') => ThreadState::Uninterruptible,
            Some(b'T' | b't') => ThreadState::Stopped,
            Some(b'X' | b'Z' | b'x') => ThreadState::Dead,
            _ => ThreadState::Waiting,
        }
    }

    /// Whether the thread could run, but has no CPU.
    #[must_use]
    pub fn is_ready(self) -> bool {
        matches!(self, ThreadState::Runnable | ThreadState::Preempted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_come_back() {
        for (state, name) in ThreadState::NAMES {
            assert_eq!((state.name(), ThreadState::from_name(name)), (name, Some(state)));
            assert_eq!(ThreadState::from_code(state.code()), Some(state));
            assert!(state.code() > 0 && (state.code() as usize) < ThreadState::N_CODES);
        }
        assert_eq!(ThreadState::from_code(0), None);
        assert_eq!(ThreadState::from_name("waking"), Some(ThreadState::Runnable), "imports of older versions");
        assert_eq!(ThreadState::from_name("futex"), None);
    }

    /// The same states as bits and as letters: `TASK_STATE_TO_CHAR_STR` of the kernel is `RSDTtXZPI`.
    #[test]
    fn bits_and_letters_agree() {
        for (n, letter) in "RSDTtXZPI".chars().enumerate() {
            let bits = if n == 0 { 0 } else { 1 << (n - 1) };
            assert_eq!(ThreadState::from_prev_state(bits), ThreadState::from_letters(&letter.to_string()), "{letter}");
        }
        assert_eq!(ThreadState::from_prev_state(0x100), ThreadState::from_letters("R+"));
    }
}
