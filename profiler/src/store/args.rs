//! Arguments of slices: JSON texts, decoded when somebody looks.

use crate::batch::NO_ARGS;
use crate::seal::Pager;
use std::borrow::Cow;
use std::sync::Arc;

/// Rows of a sealed trace's arguments come before all others.
const IN_MEMORY: u32 = 1 << 31;

/// Texts by row: in one buffer, or in a sealed trace's files.
#[derive(Clone, Debug, Default)]
pub struct Args {
    /// Rows below [`IN_MEMORY`] are its, where there is one.
    pager: Option<Arc<Pager>>,
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

    /// Those of a sealed trace; more may follow.
    pub(crate) fn of_pager(pager: Option<Arc<Pager>>) -> Args {
        Args { pager, ..Args::default() }
    }

    /// Row of the first text in memory.
    fn first(&self) -> u32 {
        if self.pager.is_some() { IN_MEMORY } else { 0 }
    }

    /// The text of a row. One that is on disk is read with its row group, unless that was lately.
    #[must_use]
    pub fn get(&self, row: u32) -> Option<Cow<'_, str>> {
        let Some(row) = row.checked_sub(self.first()) else {
            return self.pager.as_ref()?.args(row).map(Cow::Owned);
        };
        let row = row as usize;
        let end = *self.ends.get(row)?;
        let begin = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.text.get(begin..end).map(Cow::Borrowed)
    }

    /// Takes in all of another; gives the row of its first.
    pub(crate) fn append(&mut self, other: &Args) -> u32 {
        let (first, offset) = (self.ends.len(), self.text.len());
        self.text.push_str(&other.text);
        self.ends.extend(other.ends.iter().map(|end| offset + end));
        u32::try_from(first).ok().and_then(|first| first.checked_add(self.first())).unwrap_or(NO_ARGS)
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
        let texts = [0, 1, 2, 3].map(|row| all.get(row).map(Cow::into_owned));
        assert_eq!(texts.each_ref().map(Option::as_deref), [Some("{\"a\":1}"), Some(""), Some("{}"), None]);
    }
}
