//! Arguments of slices: JSON texts, decoded when somebody looks.

use crate::batch::NO_ARGS;

/// Texts in one buffer, by row.
#[derive(Clone, Debug, Default)]
pub struct Args {
    text: String,
    ends: Vec<usize>,
}

impl Args {
    /// Appends a text; gives its row, [`NO_ARGS`] when there are too many.
    pub(crate) fn push(&mut self, json: &str) -> u32 {
        let row = self.ends.len();
        if row >= NO_ARGS as usize {
            return NO_ARGS;
        }
        self.text.push_str(json);
        self.ends.push(self.text.len());
        row as u32
    }

    /// The text of a row.
    #[must_use]
    pub fn get(&self, row: u32) -> Option<&str> {
        let row = row as usize;
        let end = *self.ends.get(row)?;
        let begin = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.text.get(begin..end)
    }

    /// Takes in all of another; gives the row of its first.
    pub(crate) fn append(&mut self, other: &Args) -> u32 {
        let (first, offset) = (self.ends.len(), self.text.len());
        self.text.push_str(&other.text);
        self.ends.extend(other.ends.iter().map(|end| offset + end));
        u32::try_from(first).unwrap_or(NO_ARGS)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.text.capacity() + self.ends.capacity() * size_of::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_texts() {
        let (mut all, mut more) = (Args::default(), Args::default());
        assert_eq!((all.push("{\"a\":1}"), all.push("")), (0, 1));
        assert_eq!(more.push("{}"), 0);
        assert_eq!(all.append(&more), 2);
        assert_eq!([0, 1, 2, 3].map(|row| all.get(row)), [Some("{\"a\":1}"), Some(""), Some("{}"), None]);
    }
}
