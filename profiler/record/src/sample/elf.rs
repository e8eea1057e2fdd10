//! An ELF file: the addresses of its sections, and its tables for unwinding.

use object::read::ReadCache;
use object::{Object, ObjectSection, ObjectSegment};
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

/// A section's range of addresses in the file, and its bytes.
pub(crate) type Section = (Range<u64>, Arc<[u8]>);

/// The parts of a file that unwinding and naming need.
#[derive(Debug, Default)]
pub(crate) struct Elf {
    /// (offset in the file, length, address) of each executable segment.
    segments: Vec<(u64, u64, u64)>,
    pub(crate) text: Option<Range<u64>>,
    pub(crate) eh_frame: Option<Section>,
    pub(crate) eh_frame_hdr: Option<Section>,
    pub(crate) debug_frame: Option<Arc<[u8]>>,
    pub(crate) got: Option<Range<u64>>,
}

/// The size of a page: mappings begin at multiples of it.
const PAGE: u64 = 4096;
/// The longest section that is read, bytes: only a hostile file claims a longer one.
const MAX_SECTION: u64 = 512 << 20;

impl Elf {
    /// Reads a file's segments and sections; `None` where the file is missing or no object file.
    pub(crate) fn read(path: &str) -> Option<Elf> {
        let file = File::open(path).ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let cache = ReadCache::new(file);
        let file = object::File::parse(&cache).ok()?;
        let range = |name: &str| file.section_by_name(name).map(|s| s.address()..s.address().saturating_add(s.size()));
        let data = |name: &str| {
            let section = file.section_by_name(name).filter(|s| s.size() <= MAX_SECTION)?;
            Some(Arc::from(&*section.uncompressed_data().ok()?))
        };
        let section = |name: &str| Some((range(name)?, data(name)?));
        let is_code = |s: &object::Segment<'_, '_, _>| s.permissions().executable();
        let segments =
            file.segments().filter(is_code).map(|s| (s.file_range().0, s.file_range().1, s.address())).collect();
        Some(Elf {
            segments,
            text: range(".text"),
            eh_frame: section(".eh_frame"),
            eh_frame_hdr: section(".eh_frame_hdr"),
            debug_frame: data(".debug_frame"),
            got: range(".got"),
        })
    }

    /// Converts the offset at which a mapping begins, a multiple of the page size, to the address in the file.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        let contains_offset = |from: u64, len: u64| (from / PAGE * PAGE..from.saturating_add(len)).contains(&offset);
        let (from, _, address) = self.segments.iter().find(|(from, len, _)| contains_offset(*from, *len))?;
        Some(address.wrapping_add(offset.wrapping_sub(*from)))
    }
}
