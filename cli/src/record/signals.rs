//! Forwards signals from `record` to the command, unless the terminal has sent them to both.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use events::control::Control;

const FORWARDED_SIGNALS: [libc::c_int; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// The process id of the command; 0 before it runs, and after it has ended.
static COMMAND_PID: AtomicI32 = AtomicI32::new(0);

/// The signals that were received and not yet forwarded, a bit for each: some arrive before the command's process is
/// known.
static PENDING: AtomicU64 = AtomicU64::new(0);

/// The control page of a flight recorder, which writes its events on SIGUSR2.
static FLIGHT_CONTROL: OnceLock<Control> = OnceLock::new();

/// Makes SIGUSR2 request a dump instead of reaching the command.
pub fn dump_on_signal(control: Control) {
    // Set once: a process records one command.
    let _ = FLIGHT_CONTROL.set(control);
}

/// A guard that forwards signals while it exists.
pub struct ForwardGuard(());

extern "C" fn forward(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    if signal == libc::SIGUSR2
        && let Some(control) = FLIGHT_CONTROL.get()
    {
        // Async-signal-safe: the request adds to a number on a mapped page.
        control.request_dump();
        return;
    }
    // SAFETY: the handler is installed with SA_SIGINFO, for which the kernel passes a valid `info`.
    let is_from_kernel = unsafe { info.as_ref() }.is_some_and(|info| info.si_code > 0);
    // A signal of the terminal has reached the command, which is in the same foreground group.
    if !is_from_kernel {
        PENDING.fetch_or(1 << signal, Ordering::SeqCst);
        forward_pending();
    }
}

/// Forwards the received signals, if the command runs. Called after the command's process id is set and after a signal
/// is received: one of the two calls sees both.
fn forward_pending() {
    let pid = COMMAND_PID.load(Ordering::SeqCst);
    if pid > 0 {
        let pending = PENDING.swap(0, Ordering::SeqCst);
        for signal in FORWARDED_SIGNALS.into_iter().filter(|signal| pending & (1 << signal) != 0) {
            // SAFETY: kill is allowed in signal handlers; a command that has ended is not waited for twice, so its id
            // is not another process's.
            unsafe { libc::kill(pid, signal) };
        }
    }
}

impl ForwardGuard {
    /// Installs the handlers. Signals that arrive before the command runs are stored for it.
    ///
    /// # Errors
    /// The system refuses a handler.
    pub fn begin() -> io::Result<ForwardGuard> {
        for signal in FORWARDED_SIGNALS {
            // SAFETY: zeros are a valid sigaction; the handler only uses atomics and calls kill.
            let status = unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                // Ignored signals (by nohup) stay ignored, which the command inherits.
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
        Ok(ForwardGuard(()))
    }

    /// Sets the command's process id, and forwards the stored signals.
    pub fn forward_to(&self, pid: u32) {
        COMMAND_PID.store(pid.cast_signed(), Ordering::SeqCst);
        forward_pending();
    }
}

impl Drop for ForwardGuard {
    fn drop(&mut self) {
        COMMAND_PID.store(0, Ordering::SeqCst);
    }
}
