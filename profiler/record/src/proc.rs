//! Reads the files of recorded processes in `/proc`.

use trace_model::scheduling::Comm;

/// The most processes, and the most threads of one process, that are listed.
const MAX_PROCESSES: usize = 1024;

/// Reads a file of a process; empty where the file cannot be read.
pub(crate) fn read(process: u32, file: &str) -> String {
    std::fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default()
}

/// Reads the name of a thread; a process has the name of its first thread.
pub(crate) fn name(thread: u32) -> Comm {
    let name = std::fs::read(format!("/proc/{thread}/comm")).unwrap_or_default();
    Comm::new(name.trim_ascii_end())
}

/// Lists a process and its living descendants.
pub(crate) fn descendants(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut next_idx = 0;
    while let Some(process) = found.get(next_idx).copied() {
        next_idx += 1;
        for thread in threads(process) {
            let children = read(process, &format!("task/{thread}/children"));
            found.extend(children.split_whitespace().filter_map(|c| c.parse::<u32>().ok()));
        }
        if found.len() > MAX_PROCESSES {
            break;
        }
    }
    found
}

/// Lists the threads of a process.
pub(crate) fn threads(process: u32) -> Vec<u32> {
    let entries = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).take(MAX_PROCESSES).collect()
}

/// Reads the executable mappings of a process: address, length, offset in the file, path.
pub(crate) fn code_mappings(process: u32) -> Vec<(u64, u64, u64, String)> {
    let maps = read(process, "maps");
    let parsed = maps.lines().filter_map(|line| {
        let mut fields = line.splitn(6, ' ');
        let (range, rights, offset) = (fields.next()?, fields.next()?, fields.next()?);
        let path = fields.nth(2).unwrap_or("").trim_start();
        let (from, to) = range.split_once('-')?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let (from, to) = (hex(from)?, hex(to)?);
        rights.contains('x').then_some((from, to.checked_sub(from)?, hex(offset)?, path.to_owned()))
    });
    parsed.collect()
}
