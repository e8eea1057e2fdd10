//! Tables of text.

use crate::out;

/// Columns, and rows of cells; all but the first column align right unless their title begins with `<`.
pub struct Table {
    titles: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these titles.
    pub fn new(titles: &[&str]) -> Table {
        Table { titles: titles.iter().map(|t| (*t).to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Prints it on stdout after an empty line; nothing without rows.
    pub fn print(&self) {
        if !self.rows.is_empty() {
            out::line(format!("\n{}", self.text()));
        }
    }

    fn text(&self) -> String {
        let titles: Vec<String> = self.titles.iter().map(|t| t.trim_start_matches('<').to_owned()).collect();
        let is_left: Vec<bool> = self.titles.iter().enumerate().map(|(i, t)| i == 0 || t.starts_with('<')).collect();
        let mut widths: Vec<usize> = titles.iter().map(|t| t.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let line = |cells: &[String]| {
            let cells = cells.iter().zip(&widths).zip(&is_left);
            let padded = cells.map(|((cell, width), left)| match left {
                true => format!("{cell:<width$}"),
                false => format!("{cell:>width$}"),
            });
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let lines = std::iter::once(line(&titles)).chain(self.rows.iter().map(|row| line(row)));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// At most this many characters, with an ellipsis where it was longer.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align() {
        let mut table = Table::new(&["op", "count", "<where"]);
        table.row(["MatMul", "12", "w0"].map(str::to_owned));
        table.row(["Add", "7", "worker-1"].map(str::to_owned));
        assert_eq!(table.text(), "op      count  where\nMatMul     12  w0\nAdd         7  worker-1");
        assert_eq!((cut("abcdef", 4), cut("abcd", 4)), ("abc…".to_owned(), "abcd".to_owned()));
    }
}
