//! A file as data, whichever of its two formats it has.

use std::io::{BufRead as _, BufReader, Read};

use crate::{document::Document, error::Error, json, pickle};

/// Reads a pickle as a stream, or JSON, by the first byte.
pub(crate) fn read(reader: impl Read) -> Result<Document, Error> {
    let mut reader = BufReader::new(reader);
    let first = reader.fill_buf()?.iter().find(|byte| !byte.is_ascii_whitespace());
    if !matches!(first, Some(b'{' | b'[')) {
        return pickle::read(reader);
    }
    let mut text = Vec::new();
    reader.read_to_end(&mut text)?;
    json::read(&text)
}
