//! The page: self-contained HTML, light or dark like the reader's system.

use std::fmt::Write as _;

use palette::{DARK, LIGHT};
use summaries::charts::{Chart, ChartError, Style, Theme};

/// Marks a file as written by this command, so that the command may replace it.
pub const MARK: &str = "<!-- written by stepscope report -->";

/// The style of the page, in the colours of the palette.
fn style_sheet() -> String {
    let [background, text, warning] = [LIGHT.canvas, LIGHT.text, LIGHT.error].map(palette::html);
    let [dark_background, dark_text, dark_warning] = [DARK.canvas, DARK.text, DARK.error].map(palette::html);
    format!(
        "
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: {text}; background: {background} }}
h1 {{ font-size: 1.6em }} h2 {{ font-size: 1.3em; margin-top: 2em }} h3 {{ font-size: 1em; margin-bottom: .3em }}
td {{ padding: .1em 1em .1em 0; vertical-align: top }} td.n {{ text-align: right; white-space: nowrap }}
svg {{ max-width: 100%; height: auto }} .dark {{ display: none }} .warning {{ color: {warning} }}
@media (prefers-color-scheme: dark) {{
  body {{ color: {dark_text}; background: {dark_background} }} .light {{ display: none }} .dark {{ display: block }} .warning {{ color: {dark_warning} }}
}}"
    )
}

/// Both themes, with their names in files and classes.
pub const THEMES: [(Theme, &str); 2] = [(Theme::Light, "light"), (Theme::Dark, "dark")];

/// The style of charts on the page and in their files.
pub fn style(theme: Theme) -> Style {
    Style { width: 720, height: 320, theme }
}

/// A chart with the name of its files: letters, digits and `-`.
pub struct Figure {
    /// The name without theme and extension.
    pub name: String,
    /// The chart.
    pub chart: Chart,
}

/// One part of the page: a trace or a logdir.
#[derive(Default)]
pub struct Section {
    /// The heading of the section.
    pub title: String,
    /// Facts, a line each.
    pub facts: Vec<String>,
    /// Warnings about the data.
    pub warnings: Vec<String>,
    /// Tables: title, rows of cells.
    pub tables: Vec<(String, Vec<Vec<String>>)>,
    /// Charts.
    pub figures: Vec<Figure>,
}

/// Escapes text for HTML.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// The complete page.
///
/// # Errors
/// When a chart cannot be drawn.
pub fn html(title: &str, sections: &[Section]) -> Result<String, ChartError> {
    let (title, style) = (escape(title), style_sheet());
    let mut page = format!(
        "<!doctype html>\n{MARK}\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title><style>{style}</style>\n<h1>{title}</h1>\n"
    );
    for section in sections {
        write_section(&mut page, section)?;
    }
    page.push_str("</html>\n");
    Ok(page)
}

// Writing to a string cannot fail.
fn write_section(page: &mut String, section: &Section) -> Result<(), ChartError> {
    let _ = writeln!(page, "<h2>{}</h2>", escape(&section.title));
    for fact in &section.facts {
        let _ = writeln!(page, "<p>{}</p>", escape(fact));
    }
    for warning in &section.warnings {
        let _ = writeln!(page, "<p class=\"warning\">{}</p>", escape(warning));
    }
    for (title, rows) in section.tables.iter().filter(|(_, rows)| !rows.is_empty()) {
        let _ = writeln!(page, "<h3>{}</h3>\n<table>", escape(title));
        for row in rows {
            page.push_str("<tr>");
            for (i, cell) in row.iter().enumerate() {
                let class = if i + 1 < row.len() { " class=\"n\"" } else { "" };
                let _ = write!(page, "<td{class}>{}</td>", escape(cell));
            }
            page.push_str("</tr>\n");
        }
        page.push_str("</table>\n");
    }
    for figure in &section.figures {
        for (theme, class) in THEMES {
            let _ = writeln!(page, "<div class=\"{class}\">{}</div>", figure.chart.svg(style(theme))?);
        }
    }
    Ok(())
}
