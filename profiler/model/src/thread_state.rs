//! The states of a thread, as an operating system's scheduler distinguishes them.

/// What a thread is doing, or why it is not running.
///
/// A slice of category `off cpu` has its state's [code](ThreadState::code) as `arg`. Traces that were written before the code was have 0
/// there; then the slice's name says the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[repr(u8)]
pub enum ThreadState {
    /// It has a CPU.
    Running = 1,
    /// It was woken and waits for a CPU.
    Runnable = 2,
    /// Its CPU was taken, or it gave it up, and it could have gone on.
    Preempted = 3,
    /// It waits for something that a signal may interrupt: a lock, a timer, a pipe.
    Sleeping = 4,
    /// It waits for something that no signal interrupts: mostly a disk.
    Uninterruptible = 5,
    /// It was stopped, by a signal or a debugger.
    Stopped = 6,
    /// It waits for something that the trace does not say; so do parked and idle threads of the kernel.
    Waiting = 7,
    /// It ended.
    Dead = 8,
}

impl ThreadState {
    /// Number of codes, that of no state included.
    pub const N_CODES: usize = 9;

    /// By code, from 1 on: what their slices are called.
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

    /// What its slices are called.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize - 1].1
    }

    /// From the name of a slice; `None` for a name that no scheduler's slices have.
    #[must_use]
    pub fn from_name(name: &str) -> Option<ThreadState> {
        // What imports called it once.
        let name = if name == "waking" { "runnable" } else { name };
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(state, _)| *state)
    }

    /// Its number in traces, never 0.
    #[must_use]
    pub fn code(self) -> u64 {
        self as u64
    }

    /// From its number in a trace.
    #[must_use]
    pub fn from_code(code: u64) -> Option<ThreadState> {
        Self::NAMES.iter().find(|(state, _)| state.code() == code).map(|(state, _)| *state)
    }

    /// Why a thread left its CPU, from `prev_state` of the kernel's `sched_switch` (Linux 4.14 and later): the lowest bit counts, and
    /// none means that the thread could have gone on. 0x100 says that its CPU was taken, which is the same here.
    pub fn from_prev_state(bits: u64) -> ThreadState {
        match bits & 0xff {
            0 => ThreadState::Preempted,
            b if b & 0x01 != 0 => ThreadState::Sleeping,
            b if b & 0x02 != 0 => ThreadState::Uninterruptible,
            b if b & 0x0c != 0 => ThreadState::Stopped,
            b if b & 0x30 != 0 => ThreadState::Dead,
            // Parked, idle.
            _ => ThreadState::Waiting,
        }
    }

    /// The same from the letters that the kernel prints, as `S`, `R+` or `D|K`.
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

    /// Whether it could run and has no CPU.
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
