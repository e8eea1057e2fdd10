//! Which rows of a file are new, although the file may be written anew from its beginning.

use std::hash::{DefaultHasher, Hash, Hasher as _};

/// Counts the rows that were handed out.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    n_done: u64,
    /// The rows since the file's beginning.
    n_seen: u64,
    /// A hash of the first row: a file that begins in another way is another log.
    first: Option<u64>,
}

impl Progress {
    /// The file is read from its beginning again.
    pub fn restart(&mut self) {
        self.n_seen = 0;
    }

    /// Counts the next row; returns its index if it was not handed out before. `content` is asked for the first row only.
    pub fn next<T: Hash>(&mut self, content: impl FnOnce() -> T) -> Option<u64> {
        if self.n_seen == 0 {
            let mut hasher = DefaultHasher::new();
            content().hash(&mut hasher);
            let first = Some(hasher.finish());
            if self.first != first {
                (self.first, self.n_done) = (first, 0);
            }
        }
        let index = self.n_seen;
        self.n_seen += 1;
        if index < self.n_done {
            return None;
        }
        self.n_done = self.n_seen;
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::Progress;

    #[test]
    fn rows_of_a_rewritten_file_are_handed_out_once() {
        let mut progress = Progress::default();
        let rows = |progress: &mut Progress, rows: &[&str]| -> Vec<u64> {
            rows.iter().filter_map(|row| progress.next(|| row.to_string())).collect()
        };
        assert_eq!(rows(&mut progress, &["a", "b"]), [0, 1]);
        progress.restart();
        assert_eq!(rows(&mut progress, &["a"]), [0_u64; 0]);
        assert_eq!(rows(&mut progress, &["b", "c"]), [2]);
        progress.restart();
        assert_eq!(rows(&mut progress, &["x", "y"]), [0, 1]);
    }
}
