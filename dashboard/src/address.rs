//! The window's state as text: the visible panels and what each shows.
//!
//! `timeline?view=1000..2000&slice=2.0.17;scalars?smoothing=0.9`: a segment per visible panel, the one in front first.
//! The same text is a deep link (`stepscope view PATH --at TEXT`) and a step of undo. An unknown name or value is an
//! error that lists the known ones; a node or trace that the files lack is ignored.

use crate::{
    ViewKind, bottlenecks, embeddings, graph, histograms, hparams, media, memory, modules, ops, scalars, sql, timeline,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::{fmt, str::FromStr};

use ui::address::{Accepts, Names, Params};

/// The state of the window that a deep link restores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// The visible panels with their parameters, the one in front first.
    pub panels: Vec<(ViewKind, Params)>,
    /// Parameters that all panels share: the selected node and op, the filter of runs.
    pub shared: Params,
}

/// The name of the segment with the shared parameters.
const SHARED: &str = "window";

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let panels = self.panels.iter().map(|(kind, params)| (kind.id(), params));
        let shared = self.shared.iter().next().is_some().then_some((SHARED, &self.shared));
        for (nth, (name, params)) in panels.chain(shared).enumerate() {
            f.write_str(if nth > 0 { ";" } else { "" })?;
            f.write_str(name)?;
            for (i, (name, value)) in params.iter().enumerate() {
                write!(f, "{}{name}={}", if i == 0 { '?' } else { '&' }, utf8_percent_encode(value, PLAIN))?;
            }
        }
        Ok(())
    }
}

/// Why a text is not an address.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AddressError {
    /// A segment begins with an unknown panel.
    #[error("`{0}` is no panel; there are {list}", list = ViewKind::ALL.map(ViewKind::id).join(", "))]
    Panel(String),
    /// A parameter has no `=`.
    #[error("`{0}` is no NAME=VALUE")]
    Param(String),
    /// The panel has no parameter of this name.
    #[error("{panel} has no `{name}`; there are {list}")]
    Name {
        panel: &'static str,
        /// The name in the text.
        name: String,
        /// The panel's parameters.
        list: String,
    },
    /// The parameter does not take this value.
    #[error("`{value}` is no {name} of {panel}; it takes {list}")]
    Value {
        panel: &'static str,
        name: String,
        /// The value in the text.
        value: String,
        /// The values that the parameter takes.
        list: String,
    },
}

/// The parameters that a panel's segment may have.
fn accepted_by(kind: ViewKind) -> Names {
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
        ViewKind::Modules => modules::accepts(),
        ViewKind::Memory => memory::accepts(),
        ViewKind::Sql => sql::accepts(),
    }
}

/// The parameters that the shared segment may have.
fn accepted_by_window() -> Names {
    ["node", "op", "runs"].map(|name| (name, Accepts::Text)).into()
}

/// Checks that a panel accepts the names and values of `params`.
fn check(panel: &'static str, names: &Names, params: &Params) -> Result<(), AddressError> {
    for (name, value) in params.iter() {
        let Some((_, accepts)) = names.iter().find(|(known, _)| *known == name) else {
            let list = names.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
            return Err(AddressError::Name { panel, name: name.to_owned(), list });
        };
        if !accepts.accepts(value) {
            let (name, value) = (name.to_owned(), value.to_owned());
            return Err(AddressError::Value { panel, name, value, list: accepts.text() });
        }
    }
    Ok(())
}

impl Address {
    /// Whether the panels accept all parameters. A link that the window writes must pass.
    pub(crate) fn is_accepted(&self) -> bool {
        self.panels.iter().all(|(kind, params)| check(kind.id(), &accepted_by(*kind), params).is_ok())
            && check(SHARED, &accepted_by_window(), &self.shared).is_ok()
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let mut out = Self::default();
        for segment in text.split(';').filter(|s| !s.is_empty()) {
            let (name, rest) = segment.split_once('?').unwrap_or((segment, ""));
            let pairs = rest.split('&').filter(|p| !p.is_empty());
            let pair = |p: &str| {
                let (name, value) = p.split_once('=').ok_or_else(|| AddressError::Param(p.to_owned()))?;
                Ok((name.to_owned(), percent_decode_str(value).decode_utf8_lossy().into_owned()))
            };
            let params: Params = pairs.map(pair).collect::<Result<_, _>>()?;
            match ViewKind::ALL.into_iter().find(|kind| kind.id() == name) {
                Some(kind) => {
                    check(kind.id(), &accepted_by(kind), &params)?;
                    out.panels.push((kind, params));
                }
                None if name == SHARED => {
                    check(SHARED, &accepted_by_window(), &params)?;
                    out.shared = params;
                }
                None => return Err(AddressError::Panel(name.to_owned())),
            }
        }
        Ok(out)
    }
}

/// Characters that a value contains unescaped.
const PLAIN: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/').remove(b':').remove(b',');

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_it_writes_and_refuses_nonsense() {
        let text = "timeline?view=-5..2000&hidden=1.2;scalars?filter=a%26b;window?node=layer1/w";
        let address: Address = text.parse().unwrap();
        assert_eq!(address.to_string(), text);
        let timeline = &address.panels[0].1;
        assert_eq!((timeline.read_range("view"), timeline.get("hidden")), (Some(-5..2000), Some("1.2")));
        assert_eq!(address.panels[1].1.get("filter"), Some("a&b"));
        assert_eq!("timeline?view=9..2".parse::<Address>().unwrap().panels[0].1.read_range("view"), None);
        assert_eq!("nowhere?x=1".parse::<Address>(), Err(AddressError::Panel("nowhere".into())));
        assert_eq!("ops?x".parse::<Address>(), Err(AddressError::Param("x".into())));
        assert_eq!("".parse::<Address>(), Ok(Address::default()));
        let error = |text: &str| text.parse::<Address>().unwrap_err().to_string();
        assert!(error("graph?colour=nonsense").starts_with("`nonsense` is no colour of graph; it takes "));
        assert!(error("graph?colour=nonsense").contains("Device"));
        assert_eq!(error("graph?color=device"), "graph has no `color`; there are graph, against, colour");
        assert_eq!(error("media?linked=yes"), "`yes` is no linked of media; it takes 0, 1");
        assert_eq!(error("timeline?view=all"), "`all` is no view of timeline; it takes two numbers, FROM..TO");
        assert_eq!(error("window?nodes=a"), "window has no `nodes`; there are node, op, runs");
    }

    proptest! {
        #[test]
        fn any_value_survives(value in ".*", node in ".*") {
            let mut address = Address { panels: vec![(ViewKind::Graph, Params::default())], ..Address::default() };
            address.panels[0].1.set("graph", &value);
            address.shared.set("node", &node);
            prop_assert_eq!(address.to_string().parse::<Address>(), Ok(address));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".*") {
            let _ = text.parse::<Address>();
        }
    }
}
