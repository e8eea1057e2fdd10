//! Sets the field formats `flow-id` and `terminating-flow-id`, which `fxprof_processed_profile` lacks, in a written
//! profile.
//!
//! The values are texts like those of any other field; only the format in the schema has to be replaced. The pattern
//! has bare quotes, which JSON escapes in texts, so it matches in the schema only, at the begin of the profile.

use std::io::{self, Write};

/// Fields in the schema as the crate writes them, and their replacements.
const FORMATS: [(&str, &str); 2] = [
    (
        r#"{"key":"leaves","label":"Arrow","format":"unique-string""#,
        r#"{"key":"leaves","label":"Arrow","format":"flow-id""#,
    ),
    (
        r#"{"key":"arrives","label":"Arrow","format":"unique-string""#,
        r#"{"key":"arrives","label":"Arrow","format":"terminating-flow-id""#,
    ),
];
/// The schema is within this many first bytes.
const HEAD_BYTES: usize = 1 << 20;

/// Passes a profile on to `out`, with the formats of flows in its schema.
pub(super) struct WithFlows<'a> {
    out: &'a mut dyn Write,
    /// The first bytes, until the schema is in them.
    head: Option<Vec<u8>>,
}

impl<'a> WithFlows<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> WithFlows<'a> {
        WithFlows { out, head: Some(Vec::new()) }
    }

    /// Writes the first bytes of a profile that is shorter than [`HEAD_BYTES`].
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.write_head()
    }

    fn write_head(&mut self) -> io::Result<()> {
        let Some(mut head) = self.head.take() else { return Ok(()) };
        for (from, to) in FORMATS {
            if let Some(at) = memchr::memmem::find(&head, from.as_bytes()) {
                head.splice(at..at + from.len(), to.bytes());
            }
        }
        self.out.write_all(&head)
    }
}

impl Write for WithFlows<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(head) = &mut self.head else { return self.out.write(bytes) };
        head.extend_from_slice(bytes);
        if head.len() >= HEAD_BYTES {
            self.write_head()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // The first bytes are retained until the schema is complete.
        if self.head.is_some() { Ok(()) } else { self.out.flush() }
    }
}
