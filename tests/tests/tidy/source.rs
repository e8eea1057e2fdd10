//! Rust source as tokens: comments, strings and what is compiled for tests only are left out.

/// A word or a sign of Rust source; `::` is one sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    Word(&'a str),
    Sign(char),
    Path,
    /// A string, a character or a number, whose text matters to no rule.
    Literal,
}

impl<'a> Token<'a> {
    pub fn word(self) -> Option<&'a str> {
        match self {
            Token::Word(word) => Some(word),
            _ => None,
        }
    }

    pub fn is(self, sign: char) -> bool {
        self == Token::Sign(sign)
    }
}

/// The tokens of a file without those of its tests, and the modules that it declares for tests only.
pub struct Source<'a> {
    pub tokens: Vec<Token<'a>>,
    pub test_modules: Vec<&'a str>,
}

impl<'a> Source<'a> {
    pub fn of_product(text: &'a str) -> Self {
        let all = tokens(text);
        let (mut kept, mut test_modules) = (Vec::with_capacity(all.len()), Vec::new());
        let mut at = 0;
        while at < all.len() {
            if let Some(end) = attribute_end(&all, at) {
                if is_for_tests(&all[at..end]) {
                    let next = item_end(&all, end);
                    test_modules.extend(declared_module(&all[end..next]));
                    at = next;
                } else {
                    at = end;
                }
                continue;
            }
            kept.push(all[at]);
            at += 1;
        }
        Self { tokens: kept, test_modules }
    }
}

/// The end of the attribute `#[...]` or `#![...]` that begins at `at`.
fn attribute_end(all: &[Token<'_>], at: usize) -> Option<usize> {
    all[at].is('#').then_some(())?;
    let open = at + 1 + usize::from(all.get(at + 1)?.is('!'));
    all.get(open)?.is('[').then(|| group_end(all, open))
}

/// Behind the bracket that closes the one at `open`.
pub fn group_end(all: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0;
    for (i, token) in all.iter().enumerate().skip(open) {
        match token {
            Token::Sign('(' | '[' | '{') => depth += 1,
            Token::Sign(')' | ']' | '}') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i + 1;
        }
    }
    all.len()
}

fn is_for_tests(attribute: &[Token<'_>]) -> bool {
    let has = |word| attribute.contains(&Token::Word(word));
    (has("cfg") && has("test") && !has("not")) || attribute.get(2) == Some(&Token::Word("test"))
}

/// Behind the item, statement, field or arm that begins at `at`, its other attributes included.
fn item_end(all: &[Token<'_>], mut at: usize) -> usize {
    while let Some(end) = all.get(at).and_then(|_| attribute_end(all, at)) {
        at = end;
    }
    let is_item = all[at..].iter().take(4).filter_map(|t| t.word()).any(|word| {
        ["fn", "impl", "mod", "use", "struct", "enum", "trait", "const", "static", "type", "macro_rules"]
            .contains(&word)
    });
    let ends_at_semicolon = all[at..].iter().take(3).filter_map(|t| t.word()).any(|w| ["use", "static"].contains(&w));
    while at < all.len() {
        match all[at] {
            Token::Sign(';') => return at + 1,
            Token::Sign(',') if !is_item => return at + 1,
            Token::Sign('}' | ')' | ']') => return at,
            Token::Sign('{') => {
                at = group_end(all, at);
                if !ends_at_semicolon {
                    return at;
                }
            }
            Token::Sign('(' | '[') => at = group_end(all, at),
            _ => at += 1,
        }
    }
    at
}

fn declared_module<'a>(item: &[Token<'a>]) -> Option<&'a str> {
    let at = item.iter().position(|t| *t == Token::Word("mod"))?;
    item.get(at + 2)?.is(';').then(|| item[at + 1].word())?
}

/// All tokens of a text.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let mut all = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        let byte = bytes[at];
        if byte.is_ascii_whitespace() {
            at += 1;
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            at += comment_length(rest);
        } else if let Some(length) = literal_length(rest) {
            all.push(Token::Literal);
            at += length;
        } else if rest.starts_with("::") {
            all.push(Token::Path);
            at += 2;
        } else if byte == b'\'' {
            // A lifetime: the literals are gone.
            at += 1 + word_length(&rest[1..]);
        } else if is_word(byte) {
            let word = rest.strip_prefix("r#").unwrap_or(rest);
            let length = word_length(word);
            all.push(if byte.is_ascii_digit() { Token::Literal } else { Token::Word(&word[..length]) });
            at += rest.len() - word.len() + length;
        } else {
            let sign = rest.chars().next().unwrap_or(' ');
            all.push(Token::Sign(sign));
            at += sign.len_utf8();
        }
    }
    all
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn word_length(text: &str) -> usize {
    text.bytes().take_while(|b| is_word(*b)).count()
}

fn comment_length(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    loop {
        match text.get(at..).and_then(|rest| rest.find(['/', '*']).map(|i| at + i)) {
            None => return text.len(),
            Some(i) if text[i..].starts_with("/*") => (depth, at) = (depth + 1, i + 2),
            Some(i) if text[i..].starts_with("*/") => (depth, at) = (depth - 1, i + 2),
            Some(i) => at = i + 1,
        }
        if depth == 0 {
            return at;
        }
    }
}

/// The length of the string or character that `text` begins with.
fn literal_length(text: &str) -> Option<usize> {
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        let rest = text.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with(['"', '\'']) || prefix.ends_with('r') && is_raw(rest))
    })?;
    let rest = &text[prefix.len()..];
    if prefix.ends_with('r') && is_raw(rest) {
        let hashes = rest.bytes().take_while(|b| *b == b'#').count();
        let close = format!("\"{}", "#".repeat(hashes));
        let end = rest[hashes + 1..].find(&close)?;
        return Some(prefix.len() + hashes + 1 + end + close.len());
    }
    let quote = rest.as_bytes()[0];
    if quote == b'\'' {
        // 'a' and '\n' are characters, 'a alone is a lifetime.
        let mut chars = rest[1..].chars();
        let first = chars.next()?;
        if first != '\\' && chars.next() != Some('\'') {
            return None;
        }
    }
    let mut at = 1;
    while at < rest.len() {
        match rest.as_bytes()[at] {
            b'\\' => at += 2,
            byte if byte == quote => return Some(prefix.len() + at + 1),
            _ => at += 1,
        }
    }
    Some(text.len())
}

fn is_raw(text: &str) -> bool {
    text.trim_start_matches('#').starts_with('"')
}

#[test]
fn strings_comments_and_lifetimes_are_no_words() {
    let text =
        r##"fn f<'a>(x: &'a str) { /* no /* nested */ */ g("no", r#"no "no" "#, 'n', '\'', b'\\', 1.5e3); } // no"##;
    let words: Vec<&str> = tokens(text).into_iter().filter_map(Token::word).collect();
    assert_eq!(words, ["fn", "f", "x", "str", "g"]);
}

#[test]
fn what_is_for_tests_is_cut() {
    let text = "
        #[derive(Debug)] struct A;
        #[cfg(test)] mod far;
        #[cfg(test)] #[path = \"x.rs\"] mod near;
        #[cfg(all(test, unix))] mod inner { use no; }
        #[cfg(not(test))] fn product() {}
        #[test] fn no() { no(); }
        #[cfg(test)] use no::{no, no};
        struct B { #[cfg(test)] no: Vec<u8>, b: u8 }
        #[cfg(test)] impl<A, B> No for (A, B) { fn no() {} }
        fn last() {}";
    let source = Source::of_product(text);
    let words: Vec<&str> = source.tokens.iter().filter_map(|t| t.word()).collect();
    assert_eq!(words, ["struct", "A", "fn", "product", "struct", "B", "b", "u8", "fn", "last"]);
    assert_eq!(source.test_modules, ["far", "near"]);
}
