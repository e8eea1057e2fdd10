//! Sentences with names between backticks, which the screen shows in the monospace font without backticks.

use egui::{
    Color32, FontId,
    text::{LayoutJob, TextFormat},
};

/// Lays out a sentence. A backtick without a partner stays.
pub fn with_names(text: &str, size: f32, color: Color32) -> LayoutJob {
    let mut job = LayoutJob::default();
    let mut append =
        |text: &str, font_id| job.append(text, 0.0, TextFormat { font_id, color, ..TextFormat::default() });
    let mut rest = text;
    while let Some((before, name, after)) =
        rest.split_once('`').and_then(|(before, rest)| rest.split_once('`').map(|(name, after)| (before, name, after)))
    {
        append(before, FontId::proportional(size));
        append(name, FontId::monospace(size));
        rest = after;
    }
    append(rest, FontId::proportional(size));
    job
}

#[cfg(test)]
mod tests {
    use super::*;
    use egui::FontFamily;
    use proptest::prelude::*;

    fn parts(text: &str) -> Vec<(String, bool)> {
        let job = with_names(text, 10.0, Color32::PLACEHOLDER);
        let part = |section: &egui::text::LayoutSection| {
            let range = section.byte_range.clone();
            let text = job.text.get(range.start.0..range.end.0).unwrap_or_default();
            (text.to_owned(), section.format.font_id.family == FontFamily::Monospace)
        };
        job.sections.iter().map(part).filter(|(text, _)| !text.is_empty()).collect()
    }

    #[test]
    fn names_are_mono_and_have_no_backticks() {
        let expected = [("waited for MatMul ", false), ("layer1/y", true), (", then ", false), ("a", true)];
        assert_eq!(parts("waited for MatMul `layer1/y`, then `a`"), expected.map(|(text, is)| (text.to_owned(), is)));
        assert_eq!(parts("a lone ` stays"), [("a lone ` stays".to_owned(), false)]);
    }

    proptest! {
        #[test]
        fn nothing_but_pairs_of_backticks_goes(text in "[a`é ]{0,12}") {
            let job = with_names(&text, 10.0, Color32::PLACEHOLDER);
            let n = text.matches('`').count();
            prop_assert_eq!(job.text.matches('`').count(), n % 2);
            prop_assert_eq!(job.text.replace('`', ""), text.replace('`', ""));
        }
    }
}
