//! Signals to `record` are the command's: passed on, unless the terminal has sent them to both already.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use events::control::Control;

const FORWARDED: [libc::c_int; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// The command; 0 before it runs, and after it ended.
static COMMAND: AtomicI32 = AtomicI32::new(0);

/// Signals that came and were not passed on yet, a bit for each: some come before the command's process is known.
static CAME: AtomicU64 = AtomicU64::new(0);

/// The page of a flight recorder, which SIGUSR2 makes write what it holds.
static FLIGHT: OnceLock<Control> = OnceLock::new();

/// From now on SIGUSR2 asks for a dump, and does not reach the command.
pub fn dump_on_signal(control: Control) {
    // A process records one command.
    let _ = FLIGHT.set(control);
}

/// Signals are passed on while it lives.
pub struct Forwarding(());

extern "C" fn forward(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    if signal == libc::SIGUSR2
        && let Some(control) = FLIGHT.get()
    {
        // Adds to a number on a mapped page, which a signal handler may.
        control.request_dump();
        return;
    }
    // SAFETY: the kernel gives a handler that asked for it a valid `info`.
    let by_kernel = unsafe { info.as_ref() }.is_some_and(|info| info.si_code > 0);
    // From the terminal: it goes to all of the foreground group, the command included.
    if !by_kernel {
        CAME.fetch_or(1 << signal, Ordering::SeqCst);
        pass_on();
    }
}

/// Sends the command the signals that came, if it runs. Called after the command was noted as running, and after a signal was noted: one of the
/// two sees both.
fn pass_on() {
    let command = COMMAND.load(Ordering::SeqCst);
    if command > 0 {
        let came = CAME.swap(0, Ordering::SeqCst);
        for signal in FORWARDED.into_iter().filter(|signal| came & (1 << signal) != 0) {
            // SAFETY: kill is allowed in signal handlers; a command that has ended is not waited for twice, so its id is not
            // another process's.
            unsafe { libc::kill(command, signal) };
        }
    }
}

impl Forwarding {
    /// Takes the signals over; what comes before the command runs is stored for it.
    ///
    /// # Errors
    /// That the system refuses.
    pub fn begin() -> io::Result<Forwarding> {
        for signal in FORWARDED {
            // SAFETY: zeros are a valid sigaction; the handler only uses atomics and calls kill.
            let status = unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                // What is ignored (by nohup) the command ignores too, and so inherits.
                if libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0
                    && action.sa_sigaction == libc::SIG_IGN
                {
                    continue;
                }
                action.sa_sigaction = forward as extern "C" fn(_, _, _) as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                libc::sigaction(signal, &raw const action, std::ptr::null_mut())
            };
            if status != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(Forwarding(()))
    }

    /// The command runs as this process.
    pub fn to(&self, pid: u32) {
        COMMAND.store(pid.cast_signed(), Ordering::SeqCst);
        pass_on();
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        COMMAND.store(0, Ordering::SeqCst);
    }
}
