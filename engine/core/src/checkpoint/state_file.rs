//! The file `checkpoint` next to the checkpoints: which exist, the latest first in rank (TensorFlow's text of a
//! `CheckpointState`, so that either program finds the other's).

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::CheckpointError;
use super::write::write_whole;

/// The file's name.
pub const NAME: &str = "checkpoint";

/// What the file says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StateFile {
    /// Prefixes, oldest first, with their wall times in seconds.
    pub all: Vec<(PathBuf, f64)>,
    /// The wall time of the last one that is kept for good.
    pub last_kept: f64,
}

impl StateFile {
    /// What the file in `folder` says; nothing where there is none or it is damaged (then the files in the folder decide).
    pub fn read(folder: &Path) -> StateFile {
        let text = fs::read(folder.join(NAME)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let fields = |key: &'static str| {
            text.lines()
                .filter_map(move |line| line.split_once(':').filter(|(k, _)| k.trim() == key).map(|(_, v)| v.trim()))
        };
        let number = |v: &str| v.parse::<f64>().unwrap_or(0.0);
        let times: Vec<f64> = fields("all_model_checkpoint_timestamps").map(number).collect();
        let path = |v: &str| unquote(v).map(|p| folder.join(p));
        let paths = fields("all_model_checkpoint_paths").filter_map(path);
        let mut all: Vec<(PathBuf, f64)> =
            paths.enumerate().map(|(i, p)| (p, times.get(i).copied().unwrap_or(0.0))).collect();
        // The latest may be any of them.
        if let Some(latest) = fields("model_checkpoint_path").next().and_then(path) {
            let time = all.iter().find(|(p, _)| *p == latest).map_or(0.0, |(_, t)| *t);
            all.retain(|(p, _)| *p != latest);
            all.push((latest, time));
        }
        StateFile { all, last_kept: fields("last_preserved_timestamp").map(number).next().unwrap_or(0.0) }
    }

    /// Replaces the file in `folder`.
    pub fn write(&self, folder: &Path) -> Result<(), CheckpointError> {
        let path = folder.join(NAME);
        let quoted = |p: &Path| quote(&p.strip_prefix(folder).unwrap_or(p).to_string_lossy());
        let mut text = String::new();
        let mut line = |key: &str, value: &str| text.extend([key, ": ", value, "\n"]);
        if let Some((latest, _)) = self.all.last() {
            line("model_checkpoint_path", &quoted(latest));
        }
        self.all.iter().for_each(|(p, _)| line("all_model_checkpoint_paths", &quoted(p)));
        self.all.iter().for_each(|(_, t)| line("all_model_checkpoint_timestamps", &format!("{t:.6}")));
        line("last_preserved_timestamp", &format!("{:.6}", self.last_kept));
        write_whole(&path, |out| out.write_all(text.as_bytes()).map_err(|e| CheckpointError::io(&path, e)))
    }
}

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A text without its quotes and escapes, octal ones included.
fn unquote(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&byte) = inner.get(at) {
        at += 1;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let octal = inner.get(at..at + 3).filter(|o| o.iter().all(|d| (b'0'..b'8').contains(d)));
        match octal {
            Some(o) => {
                out.push(o.iter().fold(0u32, |n, d| n * 8 + u32::from(d - b'0')) as u8);
                at += 3;
            }
            None => {
                out.push(*inner.get(at)?);
                at += 1;
            }
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensorflows_text_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let text = "model_checkpoint_path: \"model-20\"\nall_model_checkpoint_paths: \"model-10\"\n\
                    all_model_checkpoint_paths: \"model-20\"\nall_model_checkpoint_timestamps: 1500000000.25\n\
                    all_model_checkpoint_timestamps: 1500000100.5\nlast_preserved_timestamp: 1499999999.0\n";
        fs::write(folder.path().join(NAME), text).unwrap();
        let state = StateFile::read(folder.path());
        let at = |name: &str| folder.path().join(name);
        assert_eq!(state.all, [(at("model-10"), 1500000000.25), (at("model-20"), 1500000100.5)]);
        state.write(folder.path()).unwrap();
        assert_eq!(StateFile::read(folder.path()), state);
        assert_eq!(unquote(r#""a\"b\\c\303\244""#), Some("a\"b\\cä".into()));
    }
}
