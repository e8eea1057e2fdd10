//! Finds files that repeat another file next to them: if both were read, every event would count twice.
//!
//! | file | is left out if there is | since |
//! |---|---|---|
//! | `NAME.gz`, `NAME.zst` | `NAME` | it has the same contents, compressed |
//! | `HOST.trace.json` | `HOST.xplane.pb` | XLA's profilers (JAX, TensorFlow) write it from the planes, at most a million events |
//! | `perfetto_trace.json` | a `.xplane.pb` or `.trace.json` | JAX's `create_perfetto_trace` writes it from `HOST.trace.json` |
//!
//! The sources for the last two: `jax/_src/profiler.py` and XLA's `tsl/profiler/rpc/client/save_profile.cc`.

use std::path::{Path, PathBuf};
use trace_model::{Warning, WarningKind};

const COMPRESSED: [&str; 2] = [".gz", ".zst"];
const PLANES: &str = ".xplane.pb";
const EVENTS: &str = ".trace.json";
const PERFETTO: &str = "perfetto_trace.json";

/// The files without those that repeat another one, and a warning about each of these.
#[must_use]
pub fn without_copies(paths: &[PathBuf]) -> (Vec<PathBuf>, Vec<Warning>) {
    let mut warnings = Vec::new();
    let is_read = |path: &&PathBuf| match original(path, paths) {
        None => true,
        Some(original) => {
            warnings.push(warning(path, original));
            false
        }
    };
    (paths.iter().filter(is_read).cloned().collect(), warnings)
}

fn warning(copy: &Path, original: &Path) -> Warning {
    let text = format!("{} repeats {}, and is not read", name(copy), name(original));
    Warning::new(WarningKind::Unsupported, name(copy), 1, text)
}

/// The file that `path` repeats.
fn original<'a>(path: &Path, all: &'a [PathBuf]) -> Option<&'a PathBuf> {
    let adjacent = |is_it: &dyn Fn(&str) -> bool| {
        all.iter().find(|other| *other != path && other.parent() == path.parent() && is_it(name(other)))
    };
    let own = name(path);
    let plain = uncompressed(own);
    let host = plain.strip_suffix(EVENTS);
    let same = (plain != own).then(|| adjacent(&|other| other == plain)).flatten();
    let planes = || host.and_then(|host| adjacent(&|other| uncompressed(other).strip_suffix(PLANES) == Some(host)));
    let session = |end: &'static str| {
        (plain == PERFETTO).then(|| adjacent(&|other| other != plain && uncompressed(other).ends_with(end))).flatten()
    };
    same.or_else(planes).or_else(|| session(PLANES)).or_else(|| session(EVENTS))
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn uncompressed(name: &str) -> &str {
    COMPRESSED.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[&str], read: &[&str]) {
        let paths: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
        let (left, warnings) = without_copies(&paths);
        assert_eq!(left, read.iter().map(PathBuf::from).collect::<Vec<_>>(), "of {files:?}");
        assert_eq!(warnings.len(), files.len() - read.len(), "each that is left out is named");
    }

    #[test]
    fn one_recording_is_read_once() {
        check(&["s/h.trace.json.gz", "s/h.xplane.pb", "s/perfetto_trace.json.gz"], &["s/h.xplane.pb"]);
        check(&["s/h.trace.json.gz", "s/perfetto_trace.json.gz"], &["s/h.trace.json.gz"]);
        check(&["s/perfetto_trace.json.gz"], &["s/perfetto_trace.json.gz"]);
        check(&["t/a.json", "t/a.json.gz", "t/a.json.zst"], &["t/a.json"]);
        // Hosts of one session; files of two folders; two tools' recordings; a file that was asked for twice.
        check(&["s/h1.xplane.pb", "s/h2.xplane.pb", "s/h2.trace.json"], &["s/h1.xplane.pb", "s/h2.xplane.pb"]);
        check(&["s/h.xplane.pb", "t/h.trace.json"], &["s/h.xplane.pb", "t/h.trace.json"]);
        check(&["t/trace.dat", "t/trace.json"], &["t/trace.dat", "t/trace.json"]);
        check(&["t/a.json", "t/a.json"], &["t/a.json", "t/a.json"]);
    }

    #[test]
    fn what_is_left_out_is_named_with_what_is_read() {
        let (_, warnings) = without_copies(&["s/h.trace.json.gz".into(), "s/h.xplane.pb".into()]);
        assert_eq!(warnings[0].text, "h.trace.json.gz repeats h.xplane.pb, and is not read");
    }
}
