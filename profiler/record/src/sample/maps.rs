//! The executable mappings of each process.

use super::elf::Elf;
use super::unwind::Unwinder;
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most files whose unwinding tables are in memory; code of further files is not unwound.
const MAX_FILES: usize = 4096;
/// The most mappings of one process; further mappings are ignored.
const MAX_MAPS: usize = 1 << 16;

/// An executable file that a process has mapped.
#[derive(Clone)]
pub(crate) struct Mapping {
    pub(crate) end: u64,
    /// The address in the file minus the address in memory (wrapping).
    pub(crate) bias: u64,
    /// The file's row in [`Maps::paths`].
    pub(crate) path_row: u32,
}

/// The executable mappings of a process by start address, and its unwinder.
#[derive(Clone, Default)]
pub(crate) struct Process {
    by_start: BTreeMap<u64, Mapping>,
    pub(crate) unwinder: Unwinder,
}

impl Process {
    /// Finds the mapping that contains an address.
    pub(crate) fn find(&self, address: u64) -> Option<&Mapping> {
        let (_, mapping) = self.by_start.range(..=address).next_back()?;
        (address < mapping.end).then_some(mapping)
    }
}

/// The executable mappings of all processes, and the mapped files.
#[derive(Default)]
pub(crate) struct Maps {
    processes: FxHashMap<u32, Process>,
    files: FxHashMap<String, Option<Arc<Elf>>>,
    /// Paths, each once.
    pub(crate) paths: IndexSet<String, FxBuildHasher>,
}

impl Maps {
    /// Adds a mapping of a process; removes earlier mappings that begin in the range of the new one.
    pub(crate) fn add_mapping(&mut self, pid: u32, start: u64, len: u64, offset: u64, path: &str) {
        let file = if path.starts_with('/') { self.file(path) } else { None };
        let base = file.as_deref().and_then(|elf| elf.address_of(offset)).unwrap_or(offset);
        let path_row = self.path_row(path);
        let process = self.processes.entry(pid).or_default();
        let (end, bias) = (start.saturating_add(len), base.wrapping_sub(start));
        // The kernel has replaced the mappings in the range.
        let replaced: Vec<u64> = process.by_start.range(start..end).map(|(start, _)| *start).collect();
        for start in replaced {
            process.by_start.remove(&start);
            process.unwinder.remove(start);
        }
        if process.by_start.len() < MAX_MAPS {
            process.by_start.insert(start, Mapping { end, bias, path_row });
            if let Some(elf) = file {
                process.unwinder.add(path, start..end, bias, &elf);
            }
        }
    }

    fn file(&mut self, path: &str) -> Option<Arc<Elf>> {
        if let Some(known) = self.files.get(path) {
            return known.clone();
        }
        if self.files.len() >= MAX_FILES {
            return None;
        }
        let elf = Elf::read(path).map(Arc::new);
        self.files.insert(path.to_owned(), elf.clone());
        elf
    }

    /// The row of a path, which is added if new.
    pub(crate) fn path_row(&mut self, path: &str) -> u32 {
        let path_row = self.paths.get_index_of(path);
        path_row.unwrap_or_else(|| self.paths.insert_full(path.to_owned()).0) as u32
    }

    /// Copies the mappings of a process to a forked child.
    pub(crate) fn fork(&mut self, parent: u32, pid: u32) {
        if parent != pid
            && let Some(process) = self.processes.get(&parent).cloned()
        {
            self.processes.insert(pid, process);
        }
    }

    /// Removes the mappings of a process that executes another program.
    pub(crate) fn exec(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    pub(crate) fn process(&mut self, pid: u32) -> &mut Process {
        self.processes.entry(pid).or_default()
    }
}
