//! Scans JSON as it occurs in traces: finds the extent of values without parsing them.
//!
//! Accepts some invalid JSON: control characters and quotes in strings that are not escaped, and trailing commas. A
//! quote ends a string if a comma, a colon or a closing bracket follows.

/// Why the extent of a value cannot be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The bytes end within it.
    More,
    /// The bytes are not JSON from this index on.
    Bad(usize),
}

/// Index of the first byte from `i` that is no white space.
pub(super) fn skip_space(b: &[u8], mut i: usize) -> usize {
    while let Some(c) = b.get(i) {
        if !c.is_ascii_whitespace() && *c != 0 {
            break;
        }
        i += 1;
    }
    i
}

/// The index of a string's closing quote; `i` is the index after its opening quote.
pub(super) fn string(b: &[u8], mut i: usize) -> Result<usize, Stop> {
    loop {
        let n = memchr::memchr2(b'"', b'\\', b.get(i..).ok_or(Stop::More)?).ok_or(Stop::More)?;
        i += n;
        if b[i] == b'\\' {
            i += 2;
            continue;
        }
        match b.get(skip_space(b, i + 1)) {
            None | Some(b',' | b':' | b'}' | b']') => return Ok(i),
            Some(_) => i += 1,
        }
    }
}

/// The index after a value; `i` is the index of its first byte.
pub(super) fn value(b: &[u8], i: usize) -> Result<usize, Stop> {
    match b.get(i) {
        None => Err(Stop::More),
        Some(b'"') => Ok(string(b, i + 1)? + 1),
        Some(b'{' | b'[') => skip_nested(b, i),
        Some(b',' | b':' | b'}' | b']') => Err(Stop::Bad(i)),
        Some(_) => {
            let ends = |c: &u8| matches!(c, b',' | b'}' | b']' | b'"' | b'{' | b'[') || c.is_ascii_whitespace();
            let n = b[i..].iter().position(ends).ok_or(Stop::More)?;
            Ok(i + n)
        }
    }
}

/// The index after a closing bracket; `i` is the index of its opening bracket.
fn skip_nested(b: &[u8], mut i: usize) -> Result<usize, Stop> {
    // Of the innermost 128 brackets, whether each is a square one: a wrong one ends the damage early.
    let (mut depth, mut square) = (0_usize, 0_u128);
    loop {
        match b.get(i) {
            None => return Err(Stop::More),
            Some(b'"') => i = string(b, i + 1)?,
            Some(open @ (b'{' | b'[')) => {
                depth += 1;
                square = square << 1 | u128::from(*open == b'[');
            }
            Some(close @ (b'}' | b']')) => {
                if depth <= 128 && (square & 1 == 1) != (*close == b']') {
                    return Err(Stop::Bad(i));
                }
                depth -= 1;
                square >>= 1;
                if depth == 0 {
                    return Ok(i + 1);
                }
            }
            Some(_) => {}
        }
        i += 1;
    }
}

/// The next member of an object, or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Member {
    /// A key (without quotes) and its value (with them), as ranges.
    Is { key: (usize, usize), value: (usize, usize), next: usize },
    /// The closing bracket; the index behind it.
    End(usize),
}

/// How to find the end of a member's string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quotes {
    /// As [`string`] does.
    Usual,
    /// A comma behind the quote is not enough, another key has to follow: for objects that are none by the usual way.
    Doubtful,
}

/// `i` is behind the opening quote of a member's value; gives the index of the closing one, behind which the object
/// ends or another member begins.
fn doubtful_string(b: &[u8], mut i: usize) -> Result<usize, Stop> {
    let begin = i;
    loop {
        i = string(b, i)?;
        // Another event is in no name.
        if memchr::memmem::find(&b[begin..i], b"{\"").is_some() {
            return Err(Stop::Bad(begin));
        }
        let after = skip_space(b, i + 1);
        match b.get(after) {
            None | Some(b'}') => return Ok(i),
            Some(b',') => {
                let key = skip_space(b, after + 1);
                match b.get(key) {
                    None | Some(b'}') => return Ok(i),
                    Some(b'"') => {
                        let n = memchr::memchr(b'"', &b[key + 1..]).ok_or(Stop::More)?;
                        if b.get(skip_space(b, key + n + 2)).is_none_or(|c| *c == b':') {
                            return Ok(i);
                        }
                    }
                    Some(_) => {}
                }
            }
            Some(_) => {}
        }
        i += 1;
    }
}

/// The next member of an object; `i` is the index after its opening bracket or after a member.
pub(super) fn member(b: &[u8], i: usize, quotes: Quotes) -> Result<Member, Stop> {
    let mut i = skip_space(b, i);
    while b.get(i) == Some(&b',') {
        i = skip_space(b, i + 1);
    }
    match b.get(i) {
        None => return Err(Stop::More),
        Some(b'}') => return Ok(Member::End(i + 1)),
        Some(b'"') => {}
        Some(_) => return Err(Stop::Bad(i)),
    }
    let key = (i + 1, string(b, i + 1)?);
    let colon = skip_space(b, key.1 + 1);
    match b.get(colon) {
        None => return Err(Stop::More),
        Some(b':') => {}
        Some(_) => return Err(Stop::Bad(colon)),
    }
    let begin = skip_space(b, colon + 1);
    let end = match (b.get(begin), quotes) {
        (Some(b'"'), Quotes::Doubtful) => doubtful_string(b, begin + 1)? + 1,
        _ => value(b, begin)?,
    };
    Ok(Member::Is { key, value: (begin, end), next: end })
}

/// The members in the text of an object, up to the first byte that is invalid.
pub(super) fn members(object: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut at = if object.first() == Some(&b'{') { Some(1) } else { None };
    std::iter::from_fn(move || match member(object, at?, Quotes::Usual) {
        Ok(Member::Is { key, value, next }) => {
            at = Some(next);
            Some((&object[key.0..key.1], &object[value.0..value.1]))
        }
        _ => {
            at = None;
            None
        }
    })
}

/// The elements in the text of an array.
pub(super) fn elements(array: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = if array.first() == Some(&b'[') { 1 } else { array.len() };
    std::iter::from_fn(move || {
        let mut begin = skip_space(array, at);
        while array.get(begin) == Some(&b',') {
            begin = skip_space(array, begin + 1);
        }
        let end = value(array, begin).ok()?;
        at = end;
        Some(&array[begin..end])
    })
}

/// The text of a value: a string's content with its escapes undone, anything else as it is written.
pub(super) fn text(value: &[u8]) -> String {
    let Some(content) = value.strip_prefix(b"\"").map(|v| v.strip_suffix(b"\"").unwrap_or(v)) else {
        return String::from_utf8_lossy(value).into_owned();
    };
    unescape(content)
}

/// Decodes the escapes in a string; invalid escapes remain.
pub(super) fn unescape(content: &[u8]) -> String {
    if !content.contains(&b'\\') {
        return String::from_utf8_lossy(content).into_owned();
    }
    let content = String::from_utf8_lossy(content);
    let mut out = String::with_capacity(content.len());
    let mut rest = &*content;
    while let Some(n) = rest.find('\\') {
        out.push_str(&rest[..n]);
        let after = &rest[n + 1..];
        let (c, n) = escaped(after);
        out.extend(c);
        rest = &after[n..];
    }
    out.push_str(rest);
    out
}

/// What stands behind a backslash, and how many bytes it takes.
fn escaped(after: &str) -> (Option<char>, usize) {
    let Some(first) = after.chars().next() else { return (Some('\\'), 0) };
    let plain = match first {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'u' => return unicode(after),
        other => other,
    };
    (Some(plain), first.len_utf8())
}

/// `uXXXX`, and two of them where they are one character.
fn unicode(after: &str) -> (Option<char>, usize) {
    let unit = |text: &str| text.get(1..5).and_then(|hex| u16::from_str_radix(hex, 16).ok());
    let Some(high) = unit(after) else { return (Some('u'), 1) };
    let low = after.get(5..).and_then(|t| t.strip_prefix('\\')).filter(|t| t.starts_with('u')).and_then(unit);
    match (char::decode_utf16([high]).next(), low) {
        (Some(Ok(c)), _) => (Some(c), 5),
        (_, Some(low)) => match char::decode_utf16([high, low]).next() {
            Some(Ok(c)) => (Some(c), 11),
            _ => (Some(char::REPLACEMENT_CHARACTER), 5),
        },
        _ => (Some(char::REPLACEMENT_CHARACTER), 5),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quotes_that_nobody_escaped_belong_to_the_string() {
        let b = br#""say "hi" to", 1"#;
        assert_eq!(value(b, 0), Ok(13));
        let b = br#"{"name": "Library("_t", "IMPL")", "pid": 1}"#;
        let is = |quotes| match member(b, 1, quotes) {
            Ok(Member::Is { value, .. }) => &b[value.0..value.1],
            other => panic!("{other:?}"),
        };
        assert_eq!(is(Quotes::Usual), br#""Library("_t""#);
        assert_eq!(is(Quotes::Doubtful), br#""Library("_t", "IMPL")""#);
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(text(br#""a\"b\\\n\u00e9\ud83d\ude00\ud83d\q""#), "a\"b\\\n\u{e9}\u{1f600}\u{fffd}q");
    }

    proptest! {
        #[test]
        fn the_extent_of_what_serde_writes(s in ".{0,40}", n in any::<f64>(), deep in 0_usize..9) {
            let inner = serde_json::json!({"k": s, "n": n, "l": [1, null, {"x": "]}"}]});
            let whole = format!("{}{inner}{}", "[".repeat(deep), "]".repeat(deep));
            prop_assert_eq!(value(whole.as_bytes(), 0), Ok(whole.len()));
            for cut in 1..whole.len() {
                prop_assert!(value(&whole.as_bytes()[..cut], 0).is_err());
            }
            let found: Vec<_> = members(inner.to_string().as_bytes()).map(|(k, v)| (unescape(k), text(v))).collect();
            prop_assert_eq!(&found[0].0, "k");
            prop_assert_eq!(&found.iter().find(|(k, _)| k == "k").unwrap().1, &s);
        }

        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(prop::sample::select(b"{}[]\",:\\ax1 ".to_vec()), 0..60)) {
            let _ = value(&bytes, 0);
            prop_assert!(members(&bytes).count() <= bytes.len());
            prop_assert!(elements(&bytes).count() <= bytes.len());
        }
    }
}
