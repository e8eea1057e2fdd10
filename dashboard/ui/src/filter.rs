//! A text field that filters a list by regular expression.

use crate::address::{Accepts, Value};
use regex::{Regex, RegexBuilder};

/// Memory of a compiled expression, bytes, at most.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// A filter as typed by the user. An invalid expression matches literally; [`Filter::error`] says why it is invalid.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    text: String,
    regex: Option<Regex>,
    error: Option<String>,
}

impl Filter {
    /// The typed text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Replaces the typed text.
    pub fn set(&mut self, text: &str) {
        if text == self.text {
            return;
        }
        text.clone_into(&mut self.text);
        // The limit is low, as every key press compiles the expression.
        let compiled = RegexBuilder::new(text).case_insensitive(true).size_limit(MAX_REGEX_BYTES).build();
        (self.regex, self.error) = match compiled {
            _ if text.is_empty() => (None, None),
            Ok(regex) => (Some(regex), None),
            Err(error) => {
                let message = error.to_string();
                let reason = message.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                (None, Some(reason))
            }
        };
    }

    /// The error of an invalid expression.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// The compiled expression; `None` where the text is empty or invalid.
    pub fn regex(&self) -> Option<&Regex> {
        self.regex.as_ref()
    }

    /// Whether `name` matches; everything matches an empty filter.
    pub fn matches(&self, name: &str) -> bool {
        match &self.regex {
            Some(regex) => regex.is_match(name),
            None => self.text.is_empty() || name.contains(&self.text),
        }
    }
}

impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Value for Filter {
    fn accepts() -> Accepts {
        Accepts::Text
    }

    fn texts(&self) -> Vec<String> {
        vec![self.text.clone()]
    }

    fn from_texts<'a>(mut texts: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut filter = Self::default();
        filter.set(texts.next()?);
        Some(filter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regex_ignores_case_and_a_broken_one_is_literal() {
        let mut filter = Filter::default();
        assert!(filter.matches("anything"));
        filter.set("LOSS|acc");
        assert!(filter.matches("train/loss") && filter.matches("accuracy") && !filter.matches("lr"));
        filter.set("f(x");
        assert!(filter.error().is_some_and(|e| !e.is_empty()));
        assert!(filter.matches("f(x)") && !filter.matches("fx"));
        filter.set("");
        assert!(filter.error().is_none() && filter.matches("anything"));
    }
}
