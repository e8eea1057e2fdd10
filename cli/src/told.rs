//! How far long work has come, on a terminal.

use std::io::IsTerminal;

use crate::args::Verbosity;

/// Work that is done within this time tells nothing.
const PATIENCE_NS: i64 = 1_000_000_000;
/// Between two lines.
const PAUSE_NS: i64 = 200_000_000;

/// A line on stderr that is written over and wiped at the end.
pub struct Told {
    what: &'static str,
    begun: i64,
    last: i64,
    is_wanted: bool,
}

impl Told {
    /// Begins now.
    pub fn new(what: &'static str, verbosity: Verbosity) -> Told {
        let begun = events::clock::mono_now();
        let is_wanted = verbosity > Verbosity::Quiet && std::io::stderr().is_terminal();
        Told { what, begun, last: begun, is_wanted }
    }

    /// Tells the share that is done, 0 to 1.
    pub fn share(&mut self, share: f64) {
        let now = events::clock::mono_now();
        if self.is_wanted && now - self.last > PAUSE_NS && now - self.begun > PATIENCE_NS {
            self.last = now;
            eprint!("\r{} {:3.0} %", self.what, share * 100.0);
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if self.last != self.begun {
            eprint!("\r\x1b[K");
        }
    }
}
