//! Ctrl-C, SIGTERM and SIGHUP, which commands handle that have something to finish. The exit code then names the signal
//! as a shell does: 130, 143 or 129.

use std::sync::atomic::{AtomicI32, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// The first signal that was received; 0 for none.
static FIRST_SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Calls `stop` in a thread of its own for each signal that asks the program to end.
///
/// # Errors
/// The system refuses the handler.
pub fn on_stop(mut stop: impl FnMut() + Send + 'static) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("taking over signals")?;
    let listen = move || {
        for signal in signals.forever() {
            // Only the first signal determines the exit code.
            let _ = FIRST_SIGNAL.compare_exchange(0, signal, SeqCst, SeqCst);
            stop();
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(listen).map(drop).context("taking over signals")
}

/// A channel that receives a message for each signal that asks the program to end.
///
/// # Errors
/// The system refuses the handler.
pub fn stop_signals() -> anyhow::Result<Receiver<()>> {
    let (sender, stops) = mpsc::channel();
    // Fails where the receiver has been dropped.
    on_stop(move || _ = sender.send(()))?;
    Ok(stops)
}

/// The exit code of a command that a signal ended, if one did.
pub fn exit_code() -> Option<u8> {
    match FIRST_SIGNAL.load(SeqCst) {
        0 => None,
        signal => u8::try_from(128 + signal).ok(),
    }
}
