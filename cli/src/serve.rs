//! `stepscope serve`: serves runs, logdirs and traces to a window on another machine.

use gather::{Host, HostError};
use serde_json::json;

use crate::args::{self, Verbosity};
use crate::out;
use crate::outcome::{Failure, Outcome};
use crate::signals;

/// Serves until Ctrl-C, or until the reader of standard output has ended.
///
/// # Errors
/// `Failure::Usage` when the path holds nothing that can be shown, or the address cannot be listened at.
pub fn run(args: &args::Serve, verbosity: Verbosity) -> Outcome {
    if args.stdio {
        return gather::serve_stdio(&args.path).map_err(failure);
    }
    let stopped = signals::stop_signals()?;
    let host = Host::start(&args.path, args.listen).map_err(failure)?;
    let address = host.address();
    if args.json {
        out::announce(1, json!({ "address": address.to_string(), "path": args.path.display().to_string() }))?;
    }
    if verbosity > Verbosity::Quiet {
        note!("stepscope: {} is served at {address}; Ctrl-C ends it", args.path.display());
        note!("stepscope: to open it: stepscope view --connect {address}");
    }
    if !address.ip().is_loopback() {
        note!("warning: {address} is not a loopback address: anyone who reaches it can read what is served");
    }
    // Fails only if the thread that handles signals has ended, which it never does before the program.
    let _ = stopped.recv();
    Ok(())
}

fn failure(error: HostError) -> Failure {
    match error {
        HostError::Path(..) | HostError::Listen(..) => Failure::wrong_use(error),
        HostError::Threads(_) => Failure::Work(error.into()),
    }
}
