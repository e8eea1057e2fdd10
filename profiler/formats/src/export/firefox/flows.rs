//! The formats of arrows' fields, which the crate that writes profiles has no names for.
//!
//! The values are texts like those of any other field; only the schema's word for their format is another one. A field's key is
//! in quotes, which a text in JSON has no way to contain bare: so it stands in the schema alone, at the profile's begin.

use std::io::{self, Write};

/// What the schema says, and what it has to say.
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
/// The schema lies before this many bytes, if the profile has arrows.
const HEAD: usize = 1 << 20;

/// Passes a profile on, with the formats of arrows' fields in its schema.
pub(super) struct WithFlows<'a> {
    out: &'a mut dyn Write,
    /// The begin, until it is complete.
    head: Option<Vec<u8>>,
}

impl<'a> WithFlows<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> WithFlows<'a> {
        WithFlows { out, head: Some(Vec::new()) }
    }

    /// Writes what is left.
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
        if head.len() >= HEAD {
            self.write_head()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // The head has to be whole first.
        if self.head.is_some() { Ok(()) } else { self.out.flush() }
    }
}
