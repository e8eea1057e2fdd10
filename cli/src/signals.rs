//! Ctrl-C, SIGTERM and SIGHUP: commands that have something to finish take them over; the exit code says which one ended them, as a
//! shell does of programs that it killed: 130, 143, 129.

use std::sync::atomic::{AtomicI32, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// The first signal that came.
static CAME: AtomicI32 = AtomicI32::new(0);

/// Calls `stop` in a thread of its own for each signal that asks the program to end.
///
/// # Errors
/// When the system does not let it.
pub fn on_stop(mut stop: impl FnMut() + Send + 'static) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("taking over signals")?;
    let listen = move || {
        for signal in signals.forever() {
            // The second one changes nothing.
            let _ = CAME.compare_exchange(0, signal, SeqCst, SeqCst);
            stop();
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(listen).map(drop).context("taking over signals")
}

/// Receives something for each signal that asks the program to end.
///
/// # Errors
/// When the system does not let it.
pub fn stops() -> anyhow::Result<Receiver<()>> {
    let (sender, stops) = mpsc::channel();
    // Whoever waits for it may have gone.
    on_stop(move || _ = sender.send(()))?;
    Ok(stops)
}

/// The exit code of a command that a signal ended, if one did.
pub fn exit_code() -> Option<u8> {
    match CAME.load(SeqCst) {
        0 => None,
        signal => u8::try_from(128 + signal).ok(),
    }
}
