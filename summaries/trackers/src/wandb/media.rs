//! The files next to a log, which its records name by paths below `files`.

use std::{
    fs::{self, File},
    io::Read as _,
    path::{Component, Path, PathBuf},
};

use super::table;
use crate::{entry::Value, image};

/// The largest file that is read.
const MAX_FILE: u64 = 64 << 20;
/// The most that is read for one row of the history.
const MAX_ROW: u64 = 256 << 20;

// What can be wrong.
const MISSING: &str = "a media file that is missing";
const OUTSIDE: &str = "a path of a media file that leaves the run's folder";

/// The folder of a run's media.
#[derive(Debug)]
pub(super) struct Media {
    folder: PathBuf,
    /// The number of bytes that may still be read for the row.
    left: u64,
}

impl Media {
    /// The media of a log.
    pub fn new(log: &Path) -> Self {
        Self { folder: log.with_file_name("files"), left: MAX_ROW }
    }

    /// Begins a row. Returns the number of bytes that were read for the last one.
    pub fn next_row(&mut self) -> u64 {
        MAX_ROW - std::mem::replace(&mut self.left, MAX_ROW)
    }

    /// Reads a file that lies in the folder, also after links are followed.
    fn read(&mut self, path: &str) -> Result<Vec<u8>, &'static str> {
        let path = Path::new(path);
        if path.components().any(|part| !matches!(part, Component::Normal(_))) {
            return Err(OUTSIDE);
        }
        let folder = fs::canonicalize(&self.folder).map_err(|_| MISSING)?;
        let file = fs::canonicalize(folder.join(path)).map_err(|_| MISSING)?;
        if !file.starts_with(folder) {
            return Err(OUTSIDE);
        }
        // A pipe would block when it is opened.
        let metadata = fs::metadata(&file).map_err(|_| MISSING)?;
        if !metadata.is_file() {
            return Err("a media file that is no plain file");
        }
        if metadata.len() > MAX_FILE {
            return Err("a media file of more than 64 MiB");
        }
        if metadata.len() > self.left {
            return Err("a media file of a step whose files have more than 256 MiB");
        }
        let mut bytes = Vec::new();
        File::open(&file).and_then(|file| file.take(metadata.len()).read_to_end(&mut bytes)).map_err(|_| MISSING)?;
        self.left -= bytes.len() as u64;
        Ok(bytes)
    }

    pub fn image(&mut self, path: &str) -> Result<Value, &'static str> {
        let file = self.read(path)?;
        let size = image::size(&file);
        if size == (0, 0) && !file.starts_with(b"\xff\xd8") {
            return Err("an image that is not PNG, JPEG, GIF or WebP");
        }
        Ok(Value::Image { file, size })
    }

    pub fn audio(&mut self, path: &str) -> Result<Value, &'static str> {
        let file = self.read(path)?;
        let is_wav = file.starts_with(b"RIFF") && file.get(8..12) == Some(b"WAVE");
        if is_wav { Ok(Value::Audio(file)) } else { Err("a sound that is not WAV") }
    }

    pub fn text(&mut self, path: &str) -> Result<Value, &'static str> {
        let file = self.read(path)?;
        let text = String::from_utf8(file).unwrap_or_else(|err| String::from_utf8_lossy(err.as_bytes()).into_owned());
        Ok(Value::Text(text))
    }

    pub fn table(&mut self, path: &str) -> Result<Value, &'static str> {
        let file = self.read(path)?;
        table::read(&String::from_utf8_lossy(&file)).ok_or("a table that cannot be read")
    }
}
