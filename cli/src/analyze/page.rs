//! The analysis as text for a terminal, or as Markdown.

use text::Table;

use crate::out;

/// How the analysis is printed.
#[derive(Clone, Copy)]
pub enum Page {
    /// Aligned columns.
    Text,
    /// Markdown, for issues, chats and language models.
    Markdown,
}

impl Page {
    /// Prints a heading, such as `longest stalls`.
    pub fn heading(self, title: &str) {
        match self {
            Self::Text => out::line(format_args!("\n{title}")),
            Self::Markdown => {
                let mut letters = title.chars();
                let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
                out::line(format_args!("\n## {first}{}\n", letters.as_str()));
            }
        }
    }

    /// Prints a line of a list.
    pub fn item(self, amount: &str, text: &str) {
        match self {
            Self::Text => out::line(format_args!("  {amount:>10}  {text}")),
            Self::Markdown => out::line(format_args!("- **{amount}** {text}")),
        }
    }

    /// Prints a line of text.
    pub fn text(self, text: &str) {
        match self {
            Self::Text => out::line(text),
            Self::Markdown => out::line(text.trim()),
        }
    }

    /// Prints a table that has rows.
    pub fn table(self, table: &Table) {
        match self {
            Self::Text => out::table(table),
            Self::Markdown if table.is_empty() => {}
            Self::Markdown => out::line(format_args!("\n{}", table.markdown())),
        }
    }
}
