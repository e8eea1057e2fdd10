//! What the parts of an address may say: for each panel its names, and the values that each takes.

use crate::{ViewKind, bottlenecks, embeddings, graph, histograms, hparams, media, ops, scalars, sql, timeline};

/// The values of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// Anything: names, filters, questions. What is not there is known only once the files are read.
    Text,
    /// One of these.
    Words(Vec<&'static str>),
    /// `1`, or `0` for no.
    Flag,
    /// A number.
    Number,
    /// Two numbers with `..` between them.
    Range,
    /// Whole numbers with `.` between them.
    List,
}

/// Names with what they take.
pub type Names = Vec<(&'static str, Accepts)>;

impl Accepts {
    /// Whether a value is one of these.
    pub fn takes(&self, value: &str) -> bool {
        let is_number = |text: &str| text.parse::<f64>().is_ok();
        match self {
            Self::Text => true,
            Self::Words(words) => words.contains(&value),
            Self::Flag => matches!(value, "0" | "1"),
            Self::Number => is_number(value),
            Self::Range => value.split_once("..").is_some_and(|(from, to)| is_number(from) && is_number(to)),
            Self::List => value.split('.').all(|part| part.parse::<u32>().is_ok()),
        }
    }

    /// The values in words, for a message.
    pub fn text(&self) -> String {
        match self {
            Self::Text => "any text".to_owned(),
            Self::Words(words) => words.join(", "),
            Self::Flag => "0, 1".to_owned(),
            Self::Number => "a number".to_owned(),
            Self::Range => "two numbers, FROM..TO".to_owned(),
            Self::List => "whole numbers with dots between them".to_owned(),
        }
    }
}

/// What a panel's part of an address may name.
pub fn of_panel(kind: ViewKind) -> Names {
    match kind {
        ViewKind::Scalars => scalars::accepts(),
        ViewKind::Histograms => histograms::accepts(),
        ViewKind::Graph => graph::accepts(),
        ViewKind::Timeline => timeline::accepts(),
        ViewKind::Ops => ops::accepts(),
        ViewKind::Media => media::accepts(),
        ViewKind::Bottlenecks => bottlenecks::accepts(),
        ViewKind::HParams => hparams::accepts(),
        ViewKind::Embeddings => embeddings::accepts(),
        ViewKind::Sql => sql::accepts(),
    }
}

/// What the part that all panels share may name.
pub fn of_window() -> Names {
    ["node", "op", "runs"].map(|name| (name, Accepts::Text)).into()
}
