//! Aligned columns, by the width of characters on a terminal.

use std::fmt;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The side on which the cells of a column align.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// The left side, for texts.
    Left,
    /// The right side, for numbers.
    Right,
}

/// The alignments and widths of columns. The widths are those of the widest cells that were measured.
#[derive(Clone, Debug)]
pub struct Columns(Vec<(Align, usize)>);

impl Columns {
    /// Columns of width 0.
    pub fn new(aligns: impl IntoIterator<Item = Align>) -> Columns {
        Columns(aligns.into_iter().map(|align| (align, 0)).collect())
    }

    /// Widens the columns to the cells of a row.
    pub fn measure(&mut self, cells: &[String]) {
        for ((_, width), cell) in self.0.iter_mut().zip(cells) {
            *width = (*width).max(cell.width());
        }
    }

    /// The text of a row; a cell that is wider than its column moves the following cells to the right.
    pub fn line(&self, cells: &[String]) -> String {
        let mut line = String::new();
        for (i, ((align, width), cell)) in self.0.iter().zip(cells).enumerate() {
            let padding = " ".repeat(width.saturating_sub(cell.width()));
            let gap = if i > 0 { "  " } else { "" };
            match align {
                Align::Left => line.extend([gap, cell, &padding]),
                Align::Right => line.extend([gap, &padding, cell]),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// A table: titles, and rows of cells. All but the first column align right unless their title begins with `<`.
///
/// ```
/// let mut table = text::Table::new(["op", "count"]);
/// table.row(["MatMul".to_owned(), text::count(1200)]);
/// assert_eq!(table.to_string(), "op      count\nMatMul  1,200");
/// ```
#[derive(Clone, Debug)]
pub struct Table {
    columns: Columns,
    titles: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these titles.
    pub fn new(titles: impl IntoIterator<Item = impl AsRef<str>>) -> Table {
        let parse_title = |(i, title): (usize, _)| {
            let title: &str = AsRef::as_ref(&title);
            let align = if i == 0 || title.starts_with('<') { Align::Left } else { Align::Right };
            (align, title.trim_start_matches('<').to_owned())
        };
        let (aligns, titles): (Vec<Align>, Vec<String>) = titles.into_iter().enumerate().map(parse_title).unzip();
        let mut columns = Columns::new(aligns);
        columns.measure(&titles);
        Table { columns, titles, rows: Vec::new() }
    }

    /// The cells of the titles' row, then those of the other rows.
    pub fn lines(&self) -> impl Iterator<Item = &[String]> {
        std::iter::once(&self.titles).chain(&self.rows).map(Vec::as_slice)
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        self.columns.measure(&cells);
        self.rows.push(cells);
    }

    /// The table in Markdown.
    pub fn markdown(&self) -> String {
        let escaped = |cell: &String| cell.replace('\\', "\\\\").replace('|', "\\|").replace('\n', " ");
        let line = |cells: &[String]| format!("| {} |", cells.iter().map(escaped).collect::<Vec<_>>().join(" | "));
        let rule = |(align, _): &(Align, usize)| if *align == Align::Left { "---" } else { "--:" };
        let rules: Vec<&str> = self.columns.0.iter().map(rule).collect();
        let head = [line(&self.titles), format!("| {} |", rules.join(" | "))];
        head.into_iter().chain(self.rows.iter().map(|row| line(row))).collect::<Vec<_>>().join("\n")
    }

    /// Whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.columns.line(&self.titles))?;
        self.rows.iter().try_for_each(|row| write!(f, "\n{}", self.columns.line(row)))
    }
}

/// Cuts a text to at most `max_width` columns of a terminal; a text that is cut ends with an ellipsis.
pub fn truncated(text: &str, max_width: usize) -> String {
    if text.width() <= max_width {
        return text.to_owned();
    }
    let mut width = 0;
    let fits = |c: &char| {
        width += c.width().unwrap_or(0);
        width < max_width // one column is the ellipsis's
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells<const N: usize>(cells: [&str; N]) -> [String; N] {
        cells.map(str::to_owned)
    }

    #[test]
    fn markdown_escapes_its_signs() {
        let mut table = Table::new(["op", "count"]);
        table.row(cells(["a|b", "12"]));
        assert_eq!(table.markdown(), "| op | count |\n| --- | --: |\n| a\\|b | 12 |");
    }

    #[test]
    fn columns_align() {
        let mut table = Table::new(["op", "count", "<where"]);
        assert!(table.is_empty());
        table.row(cells(["MatMul", "12", "w0"]));
        table.row(cells(["Add", "7", "worker-1"]));
        assert_eq!(table.to_string(), "op      count  where\nMatMul     12  w0\nAdd         7  worker-1");
    }

    #[test]
    fn columns_align_by_width_and_not_by_characters() {
        let mut table = Table::new(["name", "n"]);
        // Two columns each; one column in two characters.
        table.row(cells(["日本", "1"]));
        table.row(cells(["e\u{301}t", "22"]));
        assert_eq!(table.to_string(), "name   n\n日本   1\ne\u{301}t    22");
    }

    #[test]
    fn a_wide_cell_pushes_the_others() {
        let mut columns = Columns::new([Align::Left, Align::Right]);
        columns.measure(&cells(["ab", "1"]));
        assert_eq!(columns.line(&cells(["abcd", "7"])), "abcd  7");
        assert_eq!(columns.line(&cells(["a", "7"])), "a   7");
    }

    #[test]
    fn long_texts_are_cut_to_a_width() {
        assert_eq!((truncated("abcdef", 4), truncated("abcd", 4)), ("abc…".to_owned(), "abcd".to_owned()));
        assert_eq!(truncated("日本語", 4), "日…", "half a character does not fit");
        assert_eq!(truncated("日本", 4), "日本");
    }
}
