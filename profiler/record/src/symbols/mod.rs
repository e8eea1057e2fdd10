//! The functions of sampled addresses, looked up after the run: from symbol tables and debug information, the kernel's
//! list, and the maps that just-in-time compilers write (`/tmp/perf-PID.map`; Python's with `-X perf`).

mod list;

use events::meta::Entry;
use list::SymbolList;
use std::collections::BTreeMap;

/// The module of the kernel's frames.
pub(crate) const KERNEL: &str = "[kernel]";
/// The most bytes of a symbol list that are read; the kernel's list has 10 MB.
const MAX_LIST: u64 = 256 << 20;

/// Returns the path of the file in which process `pid` lists the functions that it generated at run time.
pub(crate) fn perf_map(pid: u32) -> String {
    format!("/tmp/perf-{pid}.map")
}

/// Looks up the symbols of frames (module, address in the module, id), in any order. A frame without a name gets no
/// symbol.
pub(crate) fn resolve<'a>(frames: impl Iterator<Item = (&'a str, u64, u32)>) -> Vec<Entry> {
    let mut by_module: BTreeMap<&str, Vec<(u64, u32)>> = BTreeMap::new();
    for (module, address, id) in frames {
        by_module.entry(module).or_default().push((address, id));
    }
    let mut symbols = Vec::new();
    for (module, frames) in by_module {
        if module == KERNEL {
            resolve_listed(&SymbolList::kernel(&read_text("/proc/kallsyms")), &frames, &mut symbols);
        } else if module.starts_with("/tmp/perf-") {
            resolve_listed(&SymbolList::perf_map(&read_text(module)), &frames, &mut symbols);
        } else if module.starts_with('/') {
            resolve_file(module, &frames, &mut symbols);
        }
    }
    symbols
}

/// Reads a file's text, empty where the file cannot be read; replaces invalid UTF-8.
fn read_text(path: &str) -> String {
    use std::io::Read;
    let mut bytes = Vec::new();
    if let Ok(file) = std::fs::File::open(path) {
        // After an error the part that was read is used: a shorter list names fewer frames.
        let _ = file.take(MAX_LIST).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn resolve_listed(list: &SymbolList, frames: &[(u64, u32)], out: &mut Vec<Entry>) {
    for (address, frame) in frames {
        if let Some(name) = list.find(*address) {
            let (frame, name) = (*frame, name.to_owned());
            out.push(Entry::Symbol { frame, inlined: 0, line: 0, name, file: String::new() });
        }
    }
}

fn resolve_file(path: &str, frames: &[(u64, u32)], out: &mut Vec<Entry>) {
    let Ok(loader) = addr2line::Loader::new(path) else { return };
    for (address, frame) in frames {
        let before = out.len();
        if let Ok(mut functions) = loader.find_frames(*address) {
            while let Ok(Some(function)) = functions.next() {
                let name = function.function.as_ref().and_then(|f| f.demangle().ok().map(std::borrow::Cow::into_owned));
                let Some(name) = name else { continue };
                let location = function.location.as_ref();
                let file = location.and_then(|l| l.file).unwrap_or_default().to_owned();
                let line = location.and_then(|l| l.line).unwrap_or(0);
                out.push(Entry::Symbol { frame: *frame, inlined: 0, line, name, file });
            }
        }
        // The library returns inlined functions innermost first.
        out[before..].reverse();
        for (n, symbol) in out[before..].iter_mut().enumerate() {
            if let Entry::Symbol { inlined, .. } = symbol {
                *inlined = n as u32;
            }
        }
        if out.len() == before
            && let Some(name) = loader.find_symbol(*address)
        {
            let name = addr2line::demangle_auto(name.into(), None).into_owned();
            out.push(Entry::Symbol { frame: *frame, inlined: 0, line: 0, name, file: String::new() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This test's name in its own executable, with its file and line.
    #[test]
    fn a_function_of_this_program() {
        let exe = std::env::current_exe().unwrap();
        let exe = exe.to_str().unwrap();
        let here = a_function_of_this_program as fn() as usize as u64;
        // Where the executable lies in memory, and which of its bytes.
        let code = crate::proc::code_mappings(std::process::id()).into_iter();
        let mut own = code.filter(|(from, len, ..)| (*from..from + len).contains(&here));
        let (from, len, offset, _) = own.next().unwrap();
        let mut maps = crate::sample::maps::Maps::default();
        maps.add_mapping(1, from, len, offset, exe);
        let address = here.wrapping_add(maps.process(1).find(here).unwrap().bias);
        let found = resolve([(exe, address, 7)].into_iter());
        let Entry::Symbol { frame: 7, inlined: 0, name, file, line } = &found[0] else { panic!("{found:?}") };
        assert!(name.ends_with("a_function_of_this_program"), "{name}");
        assert!(file.ends_with("symbols/mod.rs") && *line > 0, "{file}:{line}");
        assert!(resolve([("/no/such/file", 1, 0), ("", 1, 1)].into_iter()).is_empty());
    }
}
