//! What a rule says.

use std::{fmt, str::FromStr};

use regex::Regex;

/// A rule: `TAG OP NUMBER`, `TAG is nan`, `TAG is infinite`, `TAG stalled` or `run stalled`, each with `for N steps`, `points`,
/// `seconds`, `minutes` or `hours` behind it. In a tag `*` stands for any text.
#[derive(Debug, Clone)]
pub struct Rule {
    text: String,
    /// The tags; none for a rule about runs.
    tags: Option<Regex>,
    /// When a point is against it.
    pub(crate) comparison: Comparison,
    /// How long it must hold.
    pub(crate) span: Span,
}

/// What a value is compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Comparison {
    /// `<`
    Less(f64),
    /// `<=`
    LessOrEqual(f64),
    /// `>`
    Greater(f64),
    /// `>=`
    GreaterOrEqual(f64),
    /// `==`
    Equal(f64),
    /// `!=`
    NotEqual(f64),
    /// `is nan`
    Nan,
    /// `is infinite`
    Infinite,
    /// `stalled`: no new point.
    Stalled,
}

/// How long a rule must hold before it raises an alert.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Span {
    /// From its first point to its last, in steps.
    Steps(i64),
    /// A number of points, one after the other.
    Points(u64),
    /// From its first point to its last, in seconds of wall time.
    Seconds(f64),
}

/// Why a text is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{rule}' is no alert: {why}; write it as 'loss > 3 for 100 steps', '*loss* is nan' or 'run stalled for 10 minutes'"
)]
pub struct RuleError {
    rule: String,
    why: String,
}

/// How long a run or series may be without a new point where the rule does not say: 10 minutes.
const STALLED: Span = Span::Seconds(600.0);

impl Rule {
    /// Whether the rule is about runs rather than tags.
    pub fn is_about_runs(&self) -> bool {
        self.tags.is_none()
    }

    /// Whether the rule is about this tag.
    pub fn matches(&self, tag: &str) -> bool {
        self.tags.as_ref().is_some_and(|tags| tags.is_match(tag))
    }
}

impl Comparison {
    /// Whether a value is against the rule.
    pub(crate) fn holds(self, value: f64) -> bool {
        match self {
            Self::Less(limit) => value < limit,
            Self::LessOrEqual(limit) => value <= limit,
            Self::Greater(limit) => value > limit,
            Self::GreaterOrEqual(limit) => value >= limit,
            Self::Equal(limit) => value == limit,
            Self::NotEqual(limit) => value != limit,
            Self::Nan => value.is_nan(),
            Self::Infinite => value.is_infinite(),
            Self::Stalled => false,
        }
    }
}

impl Span {
    pub(super) fn is_reached(&self, first: &super::Point, last: &super::Point, n_points: u64) -> bool {
        match *self {
            Self::Steps(steps) => last.step.saturating_sub(first.step) >= steps,
            Self::Points(n) => n_points >= n,
            Self::Seconds(seconds) => last.wall - first.wall >= seconds,
        }
    }

    pub(super) fn seconds(&self) -> f64 {
        match *self {
            Self::Seconds(seconds) => seconds,
            // A rule about a stall has no other span.
            Self::Steps(_) | Self::Points(_) => f64::INFINITY,
        }
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        parse(text.trim()).map_err(|why| RuleError { rule: text.trim().to_owned(), why })
    }
}

fn parse(text: &str) -> Result<Rule, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let n_span = words.iter().rposition(|word| *word == "for").map_or(0, |at| words.len() - at);
    let (condition, span) = words.split_at(words.len() - n_span);
    let (comparison, n_words) = comparison(condition)?;
    let tag = condition[..condition.len() - n_words].join(" ");
    if tag.is_empty() {
        return Err("the tag is missing".to_owned());
    }
    let is_stalled = comparison == Comparison::Stalled;
    let span = match span {
        [] if is_stalled => STALLED,
        [] => Span::Points(1),
        ["for", number, unit] => self::span(number, unit)?,
        _ => return Err("'for' is followed by a number and a unit".to_owned()),
    };
    if is_stalled && !matches!(span, Span::Seconds(_)) {
        return Err("a stall is measured in seconds, minutes or hours".to_owned());
    }
    let tags = if is_stalled && tag == "run" { None } else { Some(pattern(&tag)?) };
    Ok(Rule { text: text.to_owned(), tags, comparison, span })
}

/// The comparison at the end of these words, and its number of words.
fn comparison(words: &[&str]) -> Result<(Comparison, usize), String> {
    match words {
        [.., "stalled"] => Ok((Comparison::Stalled, 1)),
        [.., "is", "nan" | "NaN"] => Ok((Comparison::Nan, 2)),
        [.., "is", "infinite" | "inf"] => Ok((Comparison::Infinite, 2)),
        [.., operator, number] => {
            let value: f64 = number.parse().map_err(|_| format!("'{number}' is no number"))?;
            let comparison = match *operator {
                "<" => Comparison::Less(value),
                "<=" => Comparison::LessOrEqual(value),
                ">" => Comparison::Greater(value),
                ">=" => Comparison::GreaterOrEqual(value),
                "=" | "==" => Comparison::Equal(value),
                "!=" => Comparison::NotEqual(value),
                _ => return Err(format!("'{operator}' is no comparison")),
            };
            Ok((comparison, 2))
        }
        _ => Err("a comparison is missing".to_owned()),
    }
}

fn span(number: &str, unit: &str) -> Result<Span, String> {
    let value: f64 = number.parse().map_err(|_| format!("'{number}' is no number"))?;
    if !(value >= 0.0 && value.is_finite()) {
        return Err(format!("'{number}' is no length of time"));
    }
    Ok(match unit {
        "step" | "steps" => Span::Steps(value as i64),
        "point" | "points" => Span::Points(value as u64),
        "s" | "second" | "seconds" => Span::Seconds(value),
        "min" | "minute" | "minutes" => Span::Seconds(value * 60.0),
        "h" | "hour" | "hours" => Span::Seconds(value * 3600.0),
        _ => return Err(format!("'{unit}' is no unit: steps, points, seconds, minutes or hours")),
    })
}

fn pattern(tag: &str) -> Result<Regex, String> {
    let parts: Vec<String> = tag.split('*').map(regex::escape).collect();
    Regex::new(&format!("^(?s:{})$", parts.join(".*"))).map_err(|error| error.to_string())
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
