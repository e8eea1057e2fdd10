//! Natural order of names: `run 2` before `run 10`, ignoring case; the contents of a folder right after it.

use std::cmp::Ordering;

/// A name that is sorted in natural order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Natural<T>(pub T);

impl<T: AsRef<str> + Eq> Ord for Natural<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        order(self.0.as_ref(), other.0.as_ref())
    }
}

impl<T: AsRef<str> + Eq> PartialOrd for Natural<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares two names. Only identical names are equal: names that differ in case or leading zeros only are compared by
/// their letters.
pub fn order(a: &str, b: &str) -> Ordering {
    name_parts(a).cmp(name_parts(b)).then_with(|| a.cmp(b))
}

/// A part of a name for comparison.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    /// Between folders; sorts first.
    Separator,
    /// A number of any length: the number of its digits without leading zeros, and these digits.
    Number(usize, &'a str),
    /// A letter in lower case; a letter with several lower-case letters becomes several parts.
    Letter(char),
}

fn name_parts(name: &str) -> impl Iterator<Item = Part<'_>> {
    let mut rest = name;
    let mut lower: Option<std::char::ToLowercase> = None;
    std::iter::from_fn(move || {
        if let Some(letter) = lower.as_mut().and_then(Iterator::next) {
            return Some(Part::Letter(letter));
        }
        let first = rest.chars().next()?;
        if first.is_ascii_digit() {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let digits = rest[..end].trim_start_matches('0');
            rest = &rest[end..];
            return Some(Part::Number(digits.len(), digits));
        }
        rest = &rest[first.len_utf8()..];
        if first == '/' {
            return Some(Part::Separator);
        }
        let mut letters = first.to_lowercase();
        let letter = letters.next();
        lower = Some(letters);
        letter.map(Part::Letter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(sorted: &[&str]) {
        let mut names = sorted.to_vec();
        names.reverse();
        names.sort_by_key(|name| Natural(*name));
        assert_eq!(names, sorted);
    }

    #[test]
    fn numbers_count_wherever_they_stand() {
        check(&[
            "thread 0 (python)",
            "thread 1 (python)",
            "thread 2 (python)",
            "thread 10 (python)",
            "thread 11 (python)",
        ]);
        check(&["", "layer1", "layer1/b", "layer1 b", "layer2/w10", "layer2/w11", "layer10/w2"]);
        check(&["A", "a", "B", "b01", "b1", "b2", "b10x1", "b10x2", "v1.2.9", "v1.2.10"].map(|s| s));
        check(&["step 99999999999999999999999999999998", "step 99999999999999999999999999999999"]);
    }

    fn name() -> impl Strategy<Value = String> {
        // Much of what the order distinguishes, and what it does not.
        proptest::collection::vec(
            prop_oneof![
                Just("a"),
                Just("A"),
                Just("0"),
                Just("1"),
                Just("10"),
                Just("007"),
                Just("/"),
                Just("_"),
                Just("İ"),
                Just("ß")
            ],
            0..6,
        )
        .prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn it_is_a_total_order(a in name(), b in name(), c in name()) {
            prop_assert_eq!(order(&a, &b), order(&b, &a).reverse());
            prop_assert_eq!(order(&a, &b) == Ordering::Equal, a == b);
            if order(&a, &b).is_le() && order(&b, &c).is_le() {
                prop_assert!(order(&a, &c).is_le(), "{:?} {:?} {:?}", a, b, c);
            }
        }

        #[test]
        fn numbers_of_one_kind_of_name_are_in_their_order(head in "[a-z /_.-]{0,8}", tail in "[a-z /_.-]{0,8}", x: u64, y: u64) {
            let named = |n: u64| format!("{head}{n}{tail}");
            prop_assert_eq!(order(&named(x), &named(y)), x.cmp(&y));
        }
    }
}
