//! Embeddings for the projector: files next to the event file, and the configuration that names them.

use std::{fmt::Write as _, fs, io, path::Path};

use formats::plugins::{EmbeddingInfo, ProjectorConfig};

use super::SummaryWriter;

/// The file that the projector looks for.
const CONFIG: &str = "projector_config.pbtxt";

impl SummaryWriter {
    /// Writes the vectors of an embedding, row by row of `n_columns` numbers, with a label for each (or no labels), as
    /// `NAME/tensors.tsv` and `NAME/metadata.tsv`, and adds it to the run's `projector_config.pbtxt`. The files are
    /// written in this call.
    ///
    /// # Errors
    /// When a file cannot be written, the existing configuration cannot be parsed, `name` is not the name of a folder,
    /// or the numbers and labels do not fit together.
    pub fn add_embedding(&self, name: &str, n_columns: usize, vectors: &[f32], labels: &[&str]) -> io::Result<()> {
        let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidInput, message);
        if n_columns == 0 || !vectors.len().is_multiple_of(n_columns) {
            return Err(invalid(format!("{} numbers do not fill rows of {n_columns}", vectors.len())));
        }
        let n_rows = vectors.len() / n_columns;
        if !labels.is_empty() && labels.len() != n_rows {
            return Err(invalid(format!("{} labels for {n_rows} vectors", labels.len())));
        }
        let is_plain = !name.is_empty() && Path::new(name).components().all(|part| part.as_os_str() == name);
        if !is_plain || name == ".." || name == "." {
            return Err(invalid(format!("{name:?} is not the name of a folder")));
        }
        let run = self.path().parent().unwrap_or(Path::new("."));
        fs::create_dir_all(run.join(name))?;
        let mut rows = String::new();
        for vector in vectors.chunks(n_columns) {
            let cells: Vec<String> = vector.iter().map(ToString::to_string).collect();
            // Writing to a string cannot fail.
            let _ = writeln!(rows, "{}", cells.join("\t"));
        }
        fs::write(run.join(name).join("tensors.tsv"), rows)?;
        let mut info = EmbeddingInfo {
            tensor_name: name.to_owned(),
            tensor_path: format!("{name}/tensors.tsv"),
            tensor_shape: vec![n_rows as u32, n_columns as u32],
            ..EmbeddingInfo::default()
        };
        if !labels.is_empty() {
            info.metadata_path = format!("{name}/metadata.tsv");
            let lines: Vec<String> = labels.iter().map(|label| label.replace(['\t', '\n', '\r'], " ")).collect();
            fs::write(run.join(name).join("metadata.tsv"), lines.join("\n") + "\n")?;
        }
        let mut config = read_config(run)?.unwrap_or_default();
        config.embeddings.retain(|old| old.tensor_name != name);
        config.embeddings.push(info);
        fs::write(run.join(CONFIG), config.to_text())
    }
}

/// The projector's configuration of a run, if it has one.
///
/// # Errors
/// When the file cannot be read or is not one that can be parsed.
pub fn read_config(run: &Path) -> io::Result<Option<ProjectorConfig>> {
    match fs::read_to_string(run.join(CONFIG)) {
        Ok(text) => {
            let config = ProjectorConfig::from_text(&text);
            config.map(Some).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}
