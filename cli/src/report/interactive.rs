//! `stepscope report --html`: one page with the data of traces and logdirs, which its reader pans, zooms and searches.
//!
//! The page needs no network: script, style and data are in it. The data are JSON in a `script` element, long rows of
//! numbers in it as base64 (`array`). Texts reach the document as text, never as HTML.

mod array;
mod slices;
mod summaries;
mod trace;

use std::fmt::Write as _;

use palette::{Colors, DARK, LIGHT, OKABE_ITO};
use serde_json::{Value, json};

use super::page::{MARK, escape};
use crate::args;
use crate::outcome::Failure;

/// The parts of the page that are the same in all.
const HTML: &str = include_str!("interactive/page.html");
const CSS: &str = include_str!("interactive/page.css");
/// The script, in the order of its parts.
const SCRIPT: &str = concat!(
    include_str!("interactive/page.js"),
    include_str!("interactive/timeline.js"),
    include_str!("interactive/charts.js"),
    include_str!("interactive/start.js")
);

/// The page of the paths, as HTML. Reports what it leaves out or draws merged.
///
/// # Errors
/// `Failure::Usage` when a path has neither a trace nor event files, or cannot be read.
pub fn page(args: &args::Report) -> Result<String, Failure> {
    let (mut traces, mut logdirs) = (Vec::new(), Vec::new());
    for path in &args.paths {
        let n_before = traces.len() + logdirs.len();
        traces.extend(trace::trace(path, args.max_slices)?);
        logdirs.extend(summaries::summaries(path, args.max_points)?);
        if traces.len() + logdirs.len() == n_before {
            return Err(Failure::wrong_use(format_args!("{}: neither a trace nor event files in it", path.display())));
        }
    }
    for note in traces.iter().chain(&logdirs).filter_map(|part| part["notes"].as_array()).flatten() {
        note!("note: {}", note.as_str().unwrap_or_default());
    }
    let title = args.paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let data = json!({
        "title": title, "traces": traces, "logdirs": logdirs,
        "colors": { "dark": scheme(0), "light": scheme(1) },
    });
    Ok(html(&title, &data))
}

/// The colours of curves and slices.
fn scheme(row: usize) -> Value {
    let hex = |colors: &[u32]| colors.iter().map(|color| palette::html(*color)).collect::<Vec<_>>();
    json!({ "series": hex(&OKABE_ITO[row].series), "marks": hex(&OKABE_ITO[row].marks) })
}

/// The page.
fn html(title: &str, data: &Value) -> String {
    let parts = [
        ("{mark}", MARK.to_owned()),
        ("{title}", escape(title)),
        ("{colors}", color_sheet()),
        ("{style}", CSS.to_owned()),
        ("{data}", script_safe(&data.to_string())),
        ("{script}", SCRIPT.to_owned()),
    ];
    // Each part is filled into what follows the last one, so that no text of the data is taken for a place of another.
    let (mut page, mut rest) = (String::new(), HTML);
    for (place, content) in parts {
        if let Some((before, after)) = rest.split_once(place) {
            page.push_str(before);
            page.push_str(&content);
            rest = after;
        }
    }
    page.push_str(rest);
    page
}

/// JSON that does not end the `script` element in which it is, and begins no comment there.
fn script_safe(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// The colours by role as CSS variables: by the reader's system, unless the page's button has chosen.
fn color_sheet() -> String {
    let (light, dark) = (variables(&LIGHT), variables(&DARK));
    format!(
        ":root {{ color-scheme: light; {light} }}\n\
         @media (prefers-color-scheme: dark) {{ :root {{ color-scheme: dark; {dark} }} }}\n\
         :root[data-theme=light] {{ color-scheme: light; {light} }}\n\
         :root[data-theme=dark] {{ color-scheme: dark; {dark} }}"
    )
}

fn variables(colors: &Colors) -> String {
    let named = [
        ("canvas", colors.canvas),
        ("panel", colors.panel),
        ("raised", colors.raised),
        ("hovered", colors.hovered),
        ("border", colors.border),
        ("grid", colors.grid),
        ("stripe", colors.stripe),
        ("text", colors.text),
        ("weak", colors.text_weak),
        ("strong", colors.text_strong),
        ("accent", colors.accent),
        ("highlight", colors.highlight),
        ("warning", colors.warning),
        ("error", colors.error),
        ("aggregate", colors.aggregate),
    ];
    named.iter().fold(String::new(), |mut out, (name, color)| {
        let _ = write!(out, "--{name}: {}; ", palette::html(*color));
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_end_the_script_element() {
        let data = json!({ "name": "</script><script>alert(1)</script><!-- {script}" });
        let page = html("<b>", &data);
        assert_eq!(page.matches("</script>").count(), 2, "the data's and the script's own end");
        assert!(page.contains("<title>&lt;b&gt;</title>") && !page.contains("<!-- {"));
        let (_, rest) = page.split_once("type=\"application/json\">").unwrap_or_default();
        let (json, _) = rest.split_once("</script>").unwrap_or_default();
        assert_eq!(serde_json::from_str::<Value>(json).ok(), Some(data));
    }
}
