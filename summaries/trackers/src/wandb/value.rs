//! The JSON of a value, as Python and Go write it, and the values in a dictionary.

use jiter::JsonValue;

use crate::json;

/// The longest name of a value. A longer one would be repeated for each value of its dictionary.
const MAX_NAME: usize = 4096;

/// Parses a value. Numbers become the closest `f64` where `i64` is too small: whole numbers of any length, and `-0`.
pub(super) fn parse(text: &str) -> Option<JsonValue<'_>> {
    if text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        match text.parse::<i64>() {
            Ok(value) if text != "-0" => return Some(JsonValue::Int(value)),
            // Rust reads `-Infinity` as well.
            _ => return text.parse().ok().map(JsonValue::Float),
        }
    }
    json::parse(text).or_else(|| json::parse(&with_exponents(text)).map(JsonValue::into_static))
}

/// The text with `e0` behind each whole number that may be too large for `i64`, so that it is read as an `f64`.
fn with_exponents(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut in_text, mut is_escaped, mut n_digits) = (false, false, 0);
    for char in text.chars() {
        if n_digits > 18 && !matches!(char, '.' | 'e' | 'E' | '0'..='9') {
            out.push_str("e0");
        }
        // Digits behind a point or an exponent are no whole number: the count begins far below.
        n_digits = match char {
            '0'..='9' if !in_text => n_digits + 1,
            '.' | 'e' | 'E' | '+' if !in_text => i64::MIN,
            '-' if !in_text && n_digits < 0 => n_digits,
            _ => 0,
        };
        in_text ^= char == '"' && !is_escaped;
        is_escaped = in_text && char == '\\' && !is_escaped;
        out.push(char);
    }
    out
}

/// Adds the values in a value, each under its own name, whose parts are joined by `.`. Returns whether all of them
/// could be added: names have a limit.
pub(super) fn flatten<'j>(name: String, value: JsonValue<'j>, out: &mut Vec<(String, JsonValue<'j>)>) -> bool {
    if name.len() > MAX_NAME {
        return false;
    }
    match value {
        JsonValue::Object(object) => {
            let mut is_complete = true;
            for (inner, value) in object.iter() {
                is_complete &=
                    name.len() + inner.len() <= MAX_NAME && flatten(format!("{name}.{inner}"), value.clone(), out);
            }
            is_complete
        }
        value => {
            out.push((name, value));
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use jiter::JsonValue;

    use super::{flatten, parse};
    use crate::json::{display, number};

    #[test]
    fn numbers_of_any_size_and_sign() {
        let bits = |text: &str| parse(text).as_ref().and_then(number).map(f64::to_bits);
        assert_eq!(bits("-0"), Some((-0.0_f64).to_bits()));
        assert_eq!(bits("1000000000000000000000000000000"), Some(1e30_f64.to_bits()));
        assert_eq!(bits("18446744073709551615"), Some(18446744073709551615.0_f64.to_bits()));
        assert_eq!(bits("-Infinity"), Some(f64::NEG_INFINITY.to_bits()));
        assert_eq!(bits("Infinity"), Some(f64::INFINITY.to_bits()));
        assert!(bits("NaN").is_some_and(|bits| f64::from_bits(bits).is_nan()));
        assert_eq!(bits("\"NaN\""), None);
        assert_eq!(bits("1x"), None);
    }

    #[test]
    fn large_whole_numbers_in_a_dictionary() {
        let text = r#"{"a": 1000000000000000000000000000000, "b": "\"1000000000000000000000000000000",
            "c": [-99999999999999999999], "d": 0.10000000000000000000000001, "e": 1e-5}"#;
        let mut values = Vec::new();
        assert!(flatten("x".to_owned(), parse(text).unwrap(), &mut values));
        let shown: Vec<String> = values.iter().map(|(name, value)| format!("{name}={}", display(value))).collect();
        let expected = [
            "x.a=1000000000000000000000000000000",
            "x.b=\"1000000000000000000000000000000",
            "x.c=[-100000000000000000000]",
            "x.d=0.1",
            "x.e=0.00001",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_name_that_is_too_long_is_left_out() {
        let long = "n".repeat(5000);
        let mut values = Vec::new();
        let text = format!(r#"{{"{long}": 1, "a": 2}}"#);
        assert!(!flatten(String::new(), parse(&text).unwrap(), &mut values));
        assert_eq!(values, [(".a".to_owned(), JsonValue::Int(2))]);
    }
}
