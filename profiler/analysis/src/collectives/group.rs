//! The ranks that take part in a collective.

/// A process group of PyTorch: the ranks that take part in a collective.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProcessGroup {
    /// The name, often a number: `0`.
    pub name: String,
    /// What the program calls it: `default_pg`.
    pub description: String,
    /// The ranks, as far as the trace lists them: PyTorch cuts long lists.
    pub ranks: Vec<u32>,
    /// The number of ranks.
    pub size: Option<u32>,
}

impl ProcessGroup {
    /// The description, else the name.
    #[must_use]
    pub fn title(&self) -> &str {
        if self.description.is_empty() || self.description == "undefined" { &self.name } else { &self.description }
    }

    /// The position of a rank in the group, by which the group's members call each other.
    pub(super) fn member(&self, rank: u32) -> Option<u32> {
        let (last, first) = self.ranks.split_last()?;
        let size = self.size.unwrap_or(self.ranks.len() as u32);
        if size as usize == self.ranks.len() {
            return self.ranks.iter().position(|other| *other == rank).map(|at| at as u32);
        }
        // A list that is cut has its first ranks and the last one. It is known where the group has all ranks from 0 on.
        let is_all = first.iter().zip(0..).all(|(rank, at)| *rank == at);
        (is_all && (*last == size.saturating_sub(1) || *last as usize == first.len()) && rank < size).then_some(rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_counted_from_zero() {
        let group = |ranks: &[u32], size| ProcessGroup { ranks: ranks.to_vec(), size, ..ProcessGroup::default() };
        assert_eq!(group(&[4, 6], Some(2)).member(6), Some(1));
        assert_eq!(group(&[4, 6], Some(2)).member(1), None);
        assert_eq!(group(&[0, 1, 2, 63], Some(64)).member(40), Some(40));
        assert_eq!(group(&[0, 1, 2], Some(64)).member(40), Some(40));
        assert_eq!(group(&[0, 2, 4], Some(64)).member(40), None);
        assert_eq!(group(&[0, 1, 2], Some(64)).member(64), None);
    }
}
