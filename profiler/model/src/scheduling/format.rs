//! The `format` files of tracefs: where the fields of an event lie. They differ from kernel to kernel.

use rustc_hash::FxHashMap;

/// A field's place in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    offset: usize,
    size: usize,
    /// The place holds offset and length (16 bits each) of the data, not the data.
    is_located: bool,
}

/// What one kind of event looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// The number at the front of its events.
    pub id: u16,
    fields: FxHashMap<String, Field>,
}

impl Format {
    /// From the text of a `format` file; `None` when that has no number.
    pub fn parse(text: &str) -> Option<Format> {
        let id = text.lines().find_map(|l| l.strip_prefix("ID:"))?.trim().parse().ok()?;
        let fields = text.lines().filter_map(field).collect();
        Some(Format { id, fields })
    }

    /// Its fields by their places, without those that all events have.
    pub fn own_fields(&self) -> Vec<(&str, Field)> {
        let own = self.fields.iter().filter(|(name, _)| !name.starts_with("common_"));
        let mut found: Vec<_> = own.map(|(name, field)| (name.as_str(), *field)).collect();
        found.sort_by_key(|(_, field)| field.offset);
        found
    }

    /// The field of this name.
    pub fn field(&self, name: &str) -> Option<Field> {
        self.fields.get(name).copied()
    }
}

/// `field:pid_t prev_pid; offset:24; size:4; signed:1;`, with tabs.
fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declaration = parts.next()?.strip_prefix("field:")?.trim();
    let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse::<usize>().ok();
    let (offset, size) = (number("offset:")?, number("size:")?);
    let name = declaration.rsplit([' ', '*']).next()?;
    let name = name.split('[').next()?;
    Some((name.to_owned(), Field { offset, size, is_located: declaration.starts_with("__data_loc") }))
}

impl Field {
    /// Offset in the event, bytes.
    pub fn offset(self) -> usize {
        self.offset
    }

    /// Size, bytes.
    pub fn size(self) -> usize {
        self.size
    }

    fn bytes<'a>(&self, event: &'a [u8]) -> Option<&'a [u8]> {
        let bytes = event.get(self.offset..self.offset.checked_add(self.size)?)?;
        if !self.is_located {
            return Some(bytes);
        }
        let place = u32::from_le_bytes(bytes.try_into().ok()?);
        let (offset, len) = ((place & 0xffff) as usize, (place >> 16) as usize);
        event.get(offset..offset + len)
    }

    /// Its value as a number; 0 where the event is too short or the field is none.
    pub fn number(&self, event: &[u8]) -> u64 {
        let mut word = [0; 8];
        match self.bytes(event) {
            Some(bytes) if bytes.len() <= 8 => word[..bytes.len()].copy_from_slice(bytes),
            _ => {}
        }
        u64::from_le_bytes(word)
    }

    /// Whether it is a number: its place is as wide as one and holds it.
    pub fn is_number(&self) -> bool {
        !self.is_located && matches!(self.size, 1 | 2 | 4 | 8)
    }

    /// What is from its place to the event's end, as text up to the first zero: the last field of some has no size.
    pub fn rest<'a>(&self, event: &'a [u8]) -> &'a [u8] {
        let bytes = event.get(self.offset..).unwrap_or_default();
        bytes.split(|b| *b == 0).next().unwrap_or_default()
    }

    /// Its value as text, up to the first zero.
    pub fn text<'a>(&self, event: &'a [u8]) -> &'a [u8] {
        let bytes = self.bytes(event).unwrap_or_default();
        bytes.split(|b| *b == 0).next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAKING: &str = "name: sched_waking\nID: 375\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:__data_loc char[] name;\toffset:28;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"comm=%s pid=%d\", REC->comm, REC->pid\n";

    #[test]
    fn fields_are_found_by_name() {
        let format = Format::parse(WAKING).unwrap();
        assert_eq!(format.id, 375);
        let mut event = vec![0; 40];
        event[8..12].copy_from_slice(b"init");
        event[24..28].copy_from_slice(&17u32.to_le_bytes());
        event[28..32].copy_from_slice(&(32u32 | 4 << 16).to_le_bytes());
        event[32..36].copy_from_slice(b"abc\0");
        assert_eq!(format.field("comm").unwrap().text(&event), b"init");
        assert_eq!(format.field("pid").unwrap().number(&event), 17);
        assert_eq!(format.field("name").unwrap().text(&event), b"abc");
        assert_eq!(format.field("target_cpu"), None);
        // Cut short, and a place that points outside.
        assert_eq!(format.field("pid").unwrap().number(&event[..20]), 0);
        event[28] = 0xff;
        assert_eq!(format.field("name").unwrap().text(&event), b"");
        assert_eq!(Format::parse("name: x\n"), None);
    }
}
