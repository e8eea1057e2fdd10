//! Compressed sparse rows: lists of lists in two vectors.

/// A slice of values for each row.
#[derive(Clone, Debug)]
pub struct Csr<T> {
    /// The start of each row in `values`, and the end of the last row.
    start: Vec<u32>,
    values: Vec<T>,
}

impl<T> Default for Csr<T> {
    fn default() -> Self {
        Self { start: vec![0], values: Vec::new() }
    }
}

impl<T> Csr<T> {
    /// An empty list of rows; fill it with [`Csr::push_row`].
    pub fn with_capacity(n_rows: usize, n_values: usize) -> Self {
        let mut start = Vec::with_capacity(n_rows + 1);
        start.push(0);
        Self { start, values: Vec::with_capacity(n_values) }
    }

    /// Adds the next row.
    pub fn push_row(&mut self, values: impl IntoIterator<Item = T>) {
        self.values.extend(values);
        self.start.push(self.values.len() as u32);
    }

    /// Returns the values of a row; empty beyond the last row.
    pub fn row(&self, row: usize) -> &[T] {
        match (self.start.get(row), self.start.get(row + 1)) {
            (Some(&a), Some(&b)) => &self.values[a as usize..b as usize],
            _ => &[],
        }
    }

    /// Returns the values of rows `from..to`, which are contiguous.
    pub fn range(&self, from: usize, to: usize) -> &[T] {
        match (self.start.get(from), self.start.get(to)) {
            (Some(&a), Some(&b)) if a <= b => &self.values[a as usize..b as usize],
            _ => &[],
        }
    }
}

impl Csr<u32> {
    /// Groups the indices of `items` by row.
    pub fn index<T>(n_rows: usize, items: &[T], row: impl Fn(&T) -> u32) -> Self {
        let pairs: Vec<(u32, u32)> = items.iter().map(row).zip(0..).collect();
        Self::from_pairs(n_rows, &pairs)
    }
}

impl<T: Copy> Csr<T> {
    /// Groups (row, value) pairs by row in a stable order: counting sort, O(rows + pairs).
    pub fn from_pairs(n_rows: usize, pairs: &[(u32, T)]) -> Self {
        let mut start = vec![0_u32; n_rows + 1];
        for &(row, _) in pairs {
            start[row as usize + 1] += 1;
        }
        for row in 0..n_rows {
            start[row + 1] += start[row];
        }
        let Some(&(_, first)) = pairs.first() else { return Self { start, values: Vec::new() } };
        let mut next = start.clone();
        let mut values = vec![first; pairs.len()];
        for &(row, value) in pairs {
            let idx = &mut next[row as usize];
            values[*idx as usize] = value;
            *idx += 1;
        }
        Self { start, values }
    }
}
