//! Dates and times of ISO 8601.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

/// Unix seconds of `2026-11-26T21:35:14.123456+00:00`, `2026-11-26 21:35:14Z` or a time without a zone, which counts as
/// UTC. To microseconds, as Python's `datetime` has it.
pub(crate) fn parse(text: &str) -> Option<f64> {
    let in_utc = |time: DateTime| time.to_zoned(TimeZone::UTC).ok().map(|time| time.timestamp());
    let time: Timestamp = text.parse().ok().or_else(|| in_utc(text.parse().ok()?))?;
    Some(time.as_microsecond() as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn times_with_and_without_zones() {
        // By Python: datetime.fromisoformat(...).timestamp().
        assert_eq!(parse("2026-11-26T21:35:14.5+00:00"), Some(1_795_728_914.5));
        assert_eq!(parse("2026-11-26 21:35:14"), Some(1_795_728_914.0));
        assert_eq!(parse("2026-11-26T22:35:14+01:00"), Some(1_795_728_914.0));
        assert_eq!(parse("2024-02-29T00:00:00Z"), Some(1_709_164_800.0));
        assert_eq!(parse("1970-01-01T00:00"), Some(0.0));
        assert_eq!(parse("2026-11-26T22:52:01.103343+00:00"), Some(1_795_733_521.103_343));
        for text in ["", "2026", "2026-13-01T00:00:00", "2026-11-26T25:00:00", "T", "a-b-cTd:e"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
