//! Folders and typed paths, for the dialogs. No egui here.

use formats::{FileKind, TraceFormat, sniff};
use std::path::{Path, PathBuf};
use ui::natural;

/// Entries of a folder that are read, at most: it may have millions.
const MAX_ENTRIES: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderEntry {
    pub name: String,
    pub is_folder: bool,
    /// The size of a file, bytes.
    pub bytes: u64,
}

/// The entries of a folder whose names begin with `prefix` in any case, folders first, sorted by name. Hidden entries
/// are included only if `prefix` begins with a dot. The flag is set where the folder has more entries than are read.
pub fn entries(folder: &Path, prefix: &str) -> std::io::Result<(Vec<FolderEntry>, bool)> {
    let lower = prefix.to_lowercase();
    let mut all = Vec::new();
    let mut is_cut = false;
    for (n, entry) in std::fs::read_dir(folder)?.enumerate() {
        if n >= MAX_ENTRIES {
            is_cut = true;
            break;
        }
        let Ok(entry) = entry else { continue };
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_hidden = name.starts_with('.') && !prefix.starts_with('.');
        if is_hidden || !name.to_lowercase().starts_with(&lower) {
            continue;
        }
        // Follows links: a link to a folder can be entered.
        let meta = std::fs::metadata(entry.path()).ok();
        let is_folder = meta.as_ref().is_some_and(std::fs::Metadata::is_dir);
        all.push(FolderEntry { name, is_folder, bytes: meta.map_or(0, |m| m.len()) });
    }
    all.sort_unstable_by(|a, b| b.is_folder.cmp(&a.is_folder).then_with(|| natural::order(&a.name, &b.name)));
    Ok((all, is_cut))
}

/// The kind of a path's contents in a few words; `None` where it cannot be opened.
pub fn kind_text(path: &Path) -> Option<&'static str> {
    Some(match sniff(path).ok()? {
        FileKind::EventFile => "event file",
        FileKind::GraphDef | FileKind::GraphDefText => "graph",
        FileKind::TraceFolder => "trace",
        FileKind::RunFolder => "run",
        FileKind::Logdir => "logdir",
        FileKind::RunLog => "log of runs",
        FileKind::MemorySnapshot => "memory snapshot",
        FileKind::Trace(format) => match format {
            TraceFormat::ChromeJson => "trace (Chrome JSON)",
            TraceFormat::Perfetto => "trace (Perfetto)",
            TraceFormat::XPlane => "trace (XPlane)",
            TraceFormat::StepStats => "trace (StepStats)",
            TraceFormat::Ftrace => "trace (ftrace)",
            TraceFormat::PerfScript => "trace (perf script)",
            TraceFormat::Nsys => "trace (Nsight Systems)",
            TraceFormat::TraceDat => "trace (trace-cmd)",
        },
        FileKind::Unknown(_) if crate::loader::opens_whole(path) => "graphs or traces",
        FileKind::Unknown(_) => return None,
    })
}

/// A path or URL typed or pasted after another path replaces it: `/b` of `/a//b`, `~/b` of `/a/~/b`, `ssh://h/b` of
/// `/a/ssh://h/b`.
pub fn replaced(text: &str) -> &str {
    if let Some(scheme) = text.find("://") {
        return &text[text[..scheme].rfind('/').map_or(0, |at| at + 1)..];
    }
    text.rfind("//").or_else(|| text.rfind("/~/")).map_or(text, |at| &text[at + 1..])
}

/// Splits the typed text into the folder to list and the begin of a name in it.
pub fn split(text: &str) -> (PathBuf, &str) {
    match text.rsplit_once('/') {
        Some(("", prefix)) => (PathBuf::from("/"), prefix),
        Some((folder, prefix)) => (expand_home(folder), prefix),
        None => (PathBuf::from("."), text),
    }
}

/// Replaces `~` at the begin by the home folder.
pub fn expand_home(text: &str) -> PathBuf {
    match (text.strip_prefix('~'), std::env::home_dir()) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => Path::new(text).to_owned(),
    }
}

/// `text` with its last part replaced by `name`; a folder's ends in a slash.
pub fn completed(text: &str, name: &str, is_folder: bool) -> String {
    let stem = text.rfind('/').map_or("", |at| &text[..=at]);
    format!("{stem}{name}{}", if is_folder { "/" } else { "" })
}

/// The folder above the one that is listed.
pub fn parent(text: &str) -> String {
    let (folder, _) = split(text);
    let folder = folder.canonicalize().unwrap_or(folder);
    let above = folder.parent().unwrap_or(&folder).display().to_string();
    if above.ends_with('/') { above } else { format!("{above}/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_first_and_what_each_is() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["run-b", "Run-a"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        std::fs::write(dir.path().join("run.json"), "{\"traceEvents\":[]}").unwrap();
        std::fs::write(dir.path().join(".hidden"), "").unwrap();
        let names = |prefix: &str| -> Vec<String> {
            entries(dir.path(), prefix).unwrap().0.into_iter().map(|e| e.name).collect()
        };
        assert_eq!(names("r"), ["Run-a", "run-b", "run.json"]);
        assert_eq!(names(".h"), [".hidden"]);
        assert_eq!(names("nothing"), Vec::<String>::new());
        assert!(entries(Path::new("/no/such/folder"), "").is_err());
        assert_eq!(kind_text(&dir.path().join("run.json")), Some("trace (Chrome JSON)"));
        assert_eq!(kind_text(&dir.path().join(".hidden")), None);
    }

    #[test]
    fn typed_paths() {
        let replaced = ["/a/", "/a//b/c", "/a/~/b", "/a/ssh://h/b", "ssh://h/b", "~/b"].map(replaced);
        assert_eq!(replaced, ["/a/", "/b/c", "~/b", "ssh://h/b", "ssh://h/b", "~/b"]);
        assert_eq!(split("/usr/lo"), (PathBuf::from("/usr"), "lo"));
        assert_eq!(split("/x"), (PathBuf::from("/"), "x"));
        assert_eq!(split("x"), (PathBuf::from("."), "x"));
        assert_eq!(completed("/usr/lo", "local", true), "/usr/local/");
        assert_eq!(completed("r", "run.pb", false), "run.pb");
        assert_eq!(parent("/usr/lo"), "/");
    }
}
