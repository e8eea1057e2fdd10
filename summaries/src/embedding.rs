//! Embeddings for the projector: vectors with their labels and images, in files next to a run's event files. The run's
//! `projector_config.pbtxt` names the files.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use formats::plugins::EmbeddingInfo;

use crate::projection::Vectors;

/// An embedding.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Embedding {
    /// The vectors.
    pub vectors: Vectors,
    /// The names of the columns of `metadata`.
    pub columns: Vec<String>,
    /// A row for each vector with a text for each column; no rows where the embedding has no metadata.
    pub metadata: Vec<Vec<String>>,
    /// Images of the vectors.
    pub sprites: Option<Sprites>,
    /// Problems with the files, for the user.
    pub notes: Vec<String>,
}

/// One image file with a small image for each vector, row by row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sprites {
    /// The encoded file, PNG or JPEG.
    pub file: Vec<u8>,
    /// Width and height of each small image, pixels.
    pub size: [u32; 2],
}

/// Why there is no embedding.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddingError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The vectors are in a checkpoint of TensorFlow.
    #[error("{tensor:?} names no tensor_path: its vectors are in a checkpoint; save them as a .tsv or .bytes file")]
    InCheckpoint {
        /// The tensor's name.
        tensor: String,
    },
    /// The file of the vectors cannot be parsed.
    #[error("{}: {reason}", path.display())]
    Vectors {
        /// The file.
        path: PathBuf,
        /// The fault and its position.
        reason: String,
    },
}

impl Embedding {
    /// Reads the files that `info` names; their paths are relative to `run`, where the configuration lies. Metadata and
    /// images that cannot be used are listed in the notes.
    ///
    /// # Errors
    /// When there are no vectors.
    pub fn read(run: &Path, info: &EmbeddingInfo) -> Result<Self, EmbeddingError> {
        if info.tensor_path.is_empty() {
            return Err(EmbeddingError::InCheckpoint { tensor: info.tensor_name.clone() });
        }
        let path = run.join(&info.tensor_path);
        let bytes = fs::read(&path).map_err(|source| EmbeddingError::File { path: path.clone(), source })?;
        let vectors = match info.tensor_shape[..] {
            [_, n_dims] if path.extension().is_some_and(|e| e == "bytes") => from_bytes(&bytes, n_dims as usize),
            _ => from_text(&bytes),
        };
        let vectors = vectors.map_err(|reason| EmbeddingError::Vectors { path, reason })?;
        let mut out = Self { vectors, ..Self::default() };
        if !info.metadata_path.is_empty() {
            let path = run.join(&info.metadata_path);
            match fs::read(&path) {
                Ok(bytes) => out.add_metadata(&String::from_utf8_lossy(&bytes), &path),
                Err(error) => out.notes.push(format!("{}: {error}", path.display())),
            }
        }
        if let Some(sprite) = info.sprite.as_ref().filter(|sprite| !sprite.image_path.is_empty()) {
            let path = run.join(&sprite.image_path);
            match (fs::read(&path), &sprite.single_image_dim[..]) {
                (Err(error), _) => out.notes.push(format!("{}: {error}", path.display())),
                (Ok(file), [width, height]) => out.sprites = Some(Sprites { file, size: [*width, *height] }),
                (Ok(_), dims) => {
                    out.notes.push(format!("{}: an image's size has two numbers, not {}", path.display(), dims.len()));
                }
            }
        }
        Ok(out)
    }

    /// Reads the metadata. By TensorBoard's rule a single column has no heading, several have a heading line.
    fn add_metadata(&mut self, text: &str, path: &Path) {
        let cells = |line: &str| line.split('\t').map(str::to_owned).collect::<Vec<_>>();
        let mut lines = text.lines();
        let first = text.lines().next().unwrap_or_default();
        if first.contains('\t') {
            self.columns = cells(first);
            lines.next();
        } else {
            self.columns = vec!["label".to_owned()];
        }
        let n_columns = self.columns.len();
        self.metadata = lines.map(cells).collect();
        self.metadata.iter_mut().for_each(|row| row.resize(n_columns, String::new()));
        let n = self.vectors.len();
        if self.metadata.len() != n {
            let n_rows = self.metadata.len();
            self.notes.push(format!("{}: {n_rows} rows for {n} vectors", path.display()));
            self.metadata.resize(n, vec![String::new(); n_columns]);
        }
    }
}

/// Parses 32-bit floats, little-endian.
fn from_bytes(bytes: &[u8], n_dims: usize) -> Result<Vectors, String> {
    let size = n_dims * size_of::<f32>();
    if n_dims == 0 || !bytes.len().is_multiple_of(size) {
        return Err(format!("{} bytes do not fill rows of {n_dims} numbers", bytes.len()));
    }
    let numbers = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    Ok(Vectors::new(n_dims, numbers))
}

/// Parses lines of numbers separated by tabs or spaces.
fn from_text(bytes: &[u8]) -> Result<Vectors, String> {
    let text = std::str::from_utf8(bytes).map_err(|e| format!("no text: byte {}", e.valid_up_to()))?;
    let (mut n_dims, mut values) = (0, Vec::new());
    for (line_idx, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let before = values.len();
        for word in line.split_ascii_whitespace() {
            let number: f32 = word.parse().map_err(|_| format!("line {}: {word:?} is no number", line_idx + 1))?;
            values.push(number);
        }
        let n = values.len() - before;
        if n_dims == 0 {
            n_dims = n;
        }
        if n != n_dims {
            return Err(format!("line {} has {n} numbers, the first one has {n_dims}", line_idx + 1));
        }
    }
    if values.is_empty() {
        return Err("no vectors in it".into());
    }
    Ok(Vectors::new(n_dims, values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tensors: &[u8], name: &str, metadata: &str) -> Result<Embedding, String> {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(name), tensors).unwrap();
        fs::write(dir.path().join("m.tsv"), metadata).unwrap();
        let info = EmbeddingInfo {
            tensor_name: "e".into(),
            tensor_path: name.into(),
            metadata_path: if metadata.is_empty() { String::new() } else { "m.tsv".into() },
            tensor_shape: vec![2, 2],
            ..EmbeddingInfo::default()
        };
        Embedding::read(dir.path(), &info).map_err(|e| e.to_string().replace(&dir.path().display().to_string(), ""))
    }

    #[test]
    fn texts_and_bytes() {
        let expected = Vectors::new(2, vec![1.0, 2.5, -3.0, 4e-3]);
        assert_eq!(read(b"1\t2.5\n-3\t4e-3\n", "e.tsv", "").unwrap().vectors, expected);
        let bytes: Vec<u8> = [1.0_f32, 2.5, -3.0, 4e-3].iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(read(&bytes, "e.bytes", "").unwrap().vectors, expected);
    }

    #[test]
    fn metadata_with_and_without_headings() {
        let one = read(b"1\t2\n3\t4\n", "e.tsv", "cat\ndog\n").unwrap();
        assert_eq!(
            (one.columns, one.metadata),
            (vec!["label".to_owned()], vec![vec!["cat".to_owned()], vec!["dog".to_owned()]])
        );
        let two = read(b"1\t2\n3\t4\n", "e.tsv", "name\tlegs\ncat\t4\n").unwrap();
        assert_eq!((two.columns.len(), &two.metadata[1][..]), (2, &[String::new(), String::new()][..]));
        assert!(two.notes[0].ends_with("m.tsv: 1 rows for 2 vectors"), "{:?}", two.notes);
    }

    #[test]
    fn sprites_and_what_is_wrong_with_them() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("e.tsv"), "1\t2\n").unwrap();
        fs::write(dir.path().join("s.png"), "bytes").unwrap();
        let read = |image_path: &str, single_image_dim: &[u32]| {
            let (image_path, single_image_dim) = (image_path.to_owned(), single_image_dim.to_vec());
            let sprite = Some(formats::plugins::SpriteMetadata { image_path, single_image_dim });
            let info = EmbeddingInfo { tensor_path: "e.tsv".into(), sprite, ..EmbeddingInfo::default() };
            Embedding::read(dir.path(), &info).unwrap()
        };
        assert_eq!(read("s.png", &[28, 30]).sprites, Some(Sprites { file: b"bytes".to_vec(), size: [28, 30] }));
        for (wrong, why) in [(read("no.png", &[1, 1]), "no.png"), (read("s.png", &[1]), "has two numbers, not 1")] {
            assert!(wrong.sprites.is_none() && wrong.notes[0].contains(why), "{:?}", wrong.notes);
        }
    }

    #[test]
    fn nonsense_says_where() {
        assert_eq!(read(b"1\t2\n3\tx\n", "e.tsv", "").unwrap_err(), "/e.tsv: line 2: \"x\" is no number");
        assert_eq!(read(b"1\t2\n3\n", "e.tsv", "").unwrap_err(), "/e.tsv: line 2 has 1 numbers, the first one has 2");
        assert_eq!(read(b"\n", "e.tsv", "").unwrap_err(), "/e.tsv: no vectors in it");
        assert_eq!(read(b"123", "e.bytes", "").unwrap_err(), "/e.bytes: 3 bytes do not fill rows of 2 numbers");
        assert!(read(b"\xff\n", "e.tsv", "").unwrap_err().ends_with("no text: byte 0"));
    }
}
