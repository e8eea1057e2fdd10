//! Microseconds in decimal, to the nanosecond, without floating point.

/// A time or a span: nanoseconds and the millionths of one that are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Time {
    ns: i64,
    femto: u32,
}

/// Femtoseconds of a nanosecond.
const FEMTO: i128 = 1_000_000;
/// Times beyond this are no clock's (146 years).
const ABSURD_NS: i64 = 1 << 62;

/// Why there is no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoTime {
    /// It is no number.
    Unreadable,
    /// It is too large.
    Absurd,
}

impl Time {
    pub(super) const ZERO: Time = Time { ns: 0, femto: 0 };

    /// From a number of microseconds as JSON has it, in quotes or not.
    pub(super) fn parse(value: &[u8]) -> Result<Time, NoTime> {
        let text = value.strip_prefix(b"\"").map_or(value, |v| v.strip_suffix(b"\"").unwrap_or(v));
        let (negative, digits) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let (mut us, mut i) = (0_u64, 0);
        while let Some(d) = digits.get(i).map(|c| c.wrapping_sub(b'0')).filter(|d| *d < 10) {
            if i == 15 {
                return Self::general(negative, digits);
            }
            us = us * 10 + u64::from(d);
            i += 1;
        }
        let n_whole = i;
        let mut femto = 0_u64;
        if digits.get(i) == Some(&b'.') {
            i += 1;
            let (mut scale, first) = (100_000_000, i);
            while let Some(d) = digits.get(i).map(|c| c.wrapping_sub(b'0')).filter(|d| *d < 10) {
                femto += u64::from(d) * scale;
                scale /= 10;
                i += 1;
            }
            if n_whole + i == first {
                return Err(NoTime::Unreadable);
            }
        }
        if i < digits.len() || n_whole == 0 {
            return Self::general(negative, digits);
        }
        let time = Time { ns: us as i64 * 1_000 + (femto / 1_000_000) as i64, femto: (femto % 1_000_000) as u32 };
        Ok(if negative { time.negated() } else { time })
    }

    /// The same for long numbers and exponents.
    fn general(negative: bool, digits: &[u8]) -> Result<Time, NoTime> {
        let (mut mantissa, mut exponent, mut seen, mut in_fraction) = (0_i128, 9_i64, 0, false);
        let mut rest = digits.iter().enumerate();
        for (i, c) in &mut rest {
            match c {
                b'0'..=b'9' if mantissa < i128::MAX / 100 => {
                    mantissa = mantissa * 10 + i128::from(c - b'0');
                    exponent -= i64::from(in_fraction);
                }
                // Digits beyond the 36th.
                b'0'..=b'9' => exponent += i64::from(!in_fraction),
                b'.' if !in_fraction => {
                    in_fraction = true;
                    continue;
                }
                b'e' | b'E' if seen > 0 => {
                    let text = std::str::from_utf8(&digits[i + 1..]).map_err(|_| NoTime::Unreadable)?;
                    let more: i64 = text.parse().map_err(|_| NoTime::Unreadable)?;
                    exponent = exponent.saturating_add(more);
                    break;
                }
                _ => return Err(NoTime::Unreadable),
            }
            seen += 1;
        }
        if seen == 0 {
            return Err(NoTime::Unreadable);
        }
        if mantissa == 0 || exponent < -38 {
            return Ok(Time::ZERO);
        }
        let power = 10_i128.checked_pow(exponent.unsigned_abs().min(39) as u32).ok_or(NoTime::Absurd)?;
        let femto = if exponent < 0 { Some(mantissa / power) } else { mantissa.checked_mul(power) };
        let femto = femto.ok_or(NoTime::Absurd)? * if negative { -1 } else { 1 };
        Time::from_femto(femto)
    }

    fn from_femto(femto: i128) -> Result<Time, NoTime> {
        let ns = i64::try_from(femto.div_euclid(FEMTO)).map_err(|_| NoTime::Absurd)?;
        if ns.unsigned_abs() > ABSURD_NS.unsigned_abs() {
            return Err(NoTime::Absurd);
        }
        Ok(Time { ns, femto: femto.rem_euclid(FEMTO) as u32 })
    }

    fn negated(self) -> Time {
        match self.femto {
            0 => Time { ns: -self.ns, femto: 0 },
            femto => Time { ns: -self.ns - 1, femto: FEMTO as u32 - femto },
        }
    }

    pub(super) fn is_negative(self) -> bool {
        self.ns < 0
    }

    /// This much later.
    pub(super) fn plus(self, span: Time) -> Time {
        let femto = self.femto + span.femto;
        let carry = i64::from(femto >= FEMTO as u32);
        Time { ns: self.ns.saturating_add(span.ns).saturating_add(carry), femto: femto - carry as u32 * FEMTO as u32 }
    }

    /// The nearest nanosecond. What does not overlap before does not overlap after.
    pub(super) fn ns(self) -> i64 {
        self.ns + i64::from(self.femto >= FEMTO as u32 / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ns(text: &str) -> Result<i64, NoTime> {
        Time::parse(text.as_bytes()).map(Time::ns)
    }

    #[test]
    fn numbers_as_traces_have_them() {
        for (text, expected) in [
            ("0", 0),
            ("1712867402348256", 1_712_867_402_348_256_000),
            ("1712867402348256.817", 1_712_867_402_348_256_817),
            ("4458676522690.655", 4_458_676_522_690_655),
            ("\"12.5\"", 12_500),
            ("-5", -5_000),
            ("-0.0004", 0),
            ("-1.0006", -1_001),
            ("1e3", 1_000_000),
            ("1.5E-1", 150),
            ("1.7128674023482568e15", 1_712_867_402_348_256_800),
            ("0.3000000000000000004", 300),
            (".5", 500),
            ("7.", 7_000),
            ("1e-400", 0),
            ("0e999", 0),
        ] {
            assert_eq!(ns(text), Ok(expected), "{text}");
        }
        for text in ["", "-", "x", "1x", "1.2.3", "\"\"", "e5", ".", "1e", "null", "--1"] {
            assert_eq!(ns(text), Err(NoTime::Unreadable), "{text}");
        }
        for text in ["1e+18", "123456789012345678901", "1e999999999999999999", "9223372036854775807"] {
            assert!(ns(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn sums_keep_the_order(a in 0_u64..1 << 50, fa in 0_u32..1_000_000, d in 0_u64..1 << 30, fd in 0_u32..1_000_000) {
            let at = Time::parse(format!("{a}.{fa:06}").as_bytes()).unwrap();
            let span = Time::parse(format!("{d}.{fd:06}").as_bytes()).unwrap();
            let end = at.plus(span);
            let exact = (i128::from(a) + i128::from(d)) * 1_000_000 + i128::from(fa + fd);
            prop_assert_eq!(i128::from(end.ns()), (exact + 500).div_euclid(1_000));
            prop_assert!(end >= at);
            // What begins at the written end does not overlap.
            let text = format!("{}.{:06}", exact / 1_000_000, exact % 1_000_000);
            prop_assert_eq!(Time::parse(text.as_bytes()).unwrap(), end);
        }
    }
}
