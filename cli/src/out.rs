//! Results on stdout, for a reader who may leave before the end (`| head`).

use std::fmt::Display;
use std::io::Write;

/// Prints a line; where nobody reads any more the program ends, as others do.
pub fn line(text: impl Display) {
    if writeln!(std::io::stdout().lock(), "{text}").is_err() {
        // Only commands that look at finished files print by this: nothing is left to be flushed.
        #[expect(clippy::disallowed_methods)]
        std::process::exit(0);
    }
}
