//! Public items that only their own file and tests use: none, but for what is API.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::source::{Source, Token};
use super::{fail_by_member, member_of, rust_files};

/// Members that are not looked at: libraries for other people's programs, the engine's parts, and what is for tests.
const OUTSIDE: &[&str] = &["base/c", "base/events", "base/net", "docs", "engine", "tests", "xtask"];

/// Files and folders whose public items are API, and single items that tests need, with the reason.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("summaries/src/writer", "*", "programs log with it"),
    ("base/formats/src/npy.rs", "*", "tests read numpy's archives with it"),
    ("base/text/src/counts.rs", "signed_count", "dashboard uses it under another name"),
    ("base/threads/src/simulation.rs", "*", "tests drive simulations with it"),
    ("profiler/analysis/src/critical.rs", "critical_path_of_range", "tests compare the path of a trace with HTA's"),
    ("dashboard/src/app.rs", "set_fonts", "tests give the window fonts of their own"),
    ("dashboard/src/data.rs", "with_graph", "benchmarks and an example show a graph of their own"),
    ("dashboard/ui/src/theme/fonts.rs", "install_from", "tests give the window fonts of their own"),
    ("profiler/cupti/src/layout.rs", "CUDA_11_8", "a layout that tests compare with CUDA's headers"),
    ("summaries/src/histograms.rs", "n_spilled_bytes", "tests observe the temporary file by it"),
    ("summaries/src/logdir.rs", "is_watching", "tests wait for it"),
];

/// The public functions, constants and types of a file; `true` for a type.
fn public_items<'a>(tokens: &[Token<'a>]) -> Vec<(&'a str, bool)> {
    let mut items = Vec::new();
    for (at, _) in tokens.iter().enumerate().filter(|(_, token)| **token == Token::Word("pub")) {
        let rest = &tokens[at + 1..];
        let mut words = rest.iter().map_while(|t| t.word()).skip_while(|w| ["const", "unsafe", "async"].contains(w));
        let first = rest.first().and_then(|t| t.word());
        match (words.next(), words.next()) {
            (Some("fn"), Some(name)) => items.push((name, false)),
            (Some("struct" | "enum" | "trait" | "type"), Some(name)) => items.push((name, true)),
            (Some(name), _) if first == Some("const") => items.push((name, false)),
            _ => {}
        }
    }
    items
}

/// How often each word occurs in a file, its re-exports left out.
fn words<'a>(tokens: &[Token<'a>]) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    let mut in_reexport = false;
    for (at, token) in tokens.iter().enumerate() {
        let begins =
            *token == Token::Word("use") && matches!(tokens[..at].last(), Some(Token::Word("pub") | Token::Sign(')')));
        in_reexport = (in_reexport || begins) && !token.is(';');
        if let Some(word) = token.word().filter(|_| !in_reexport) {
            *counts.entry(word).or_default() += 1;
        }
    }
    counts
}

fn is_product(path: &Path) -> bool {
    let is_of_tests = |part: &std::ffi::OsStr| ["tests", "examples", "benches", "tests.rs"].iter().any(|n| part == *n);
    !path.iter().any(is_of_tests)
}

fn is_allowed(path: &Path, item: &str) -> bool {
    ALLOWED.iter().any(|(place, name, _)| {
        let is_there = path.starts_with(place) || path == Path::new(place).with_extension("rs");
        is_there && (*name == "*" || *name == item)
    })
}

#[test]
fn public_items_have_callers() {
    let files: Vec<(PathBuf, String)> = rust_files().into_iter().filter(|(path, _)| is_product(path)).collect();
    let sources: Vec<Source<'_>> = files.iter().map(|(_, text)| Source::of_product(text)).collect();
    let counts: Vec<BTreeMap<&str, usize>> = sources.iter().map(|source| words(&source.tokens)).collect();
    let mut users: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (file, counts) in counts.iter().enumerate() {
        counts.keys().for_each(|word| _ = users.entry(word).or_default().insert(file));
    }
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, (path, _)) in files.iter().enumerate() {
        let member = member_of(path);
        if OUTSIDE.iter().any(|outside| Path::new(&member).starts_with(outside)) {
            continue;
        }
        let entry = found.entry(member).or_default();
        for (name, is_type) in public_items(&sources[file].tokens) {
            // A type may be used without its name, where a public function of its file returns it.
            let is_used = users[name].len() > 1 || (is_type && counts[file][name] > 1);
            if !is_used && !is_allowed(path, name) {
                entry.push(format!("{}: {name}", path.display()));
            }
        }
    }
    fail_by_member("public items that only their own file and tests use", &found);
}

#[test]
fn public_items_and_words_of_a_file() {
    let text = "pub fn f() {} pub(crate) fn g() {} pub const fn h() {} pub const LIMIT: u8 = 1; pub enum E {}
        impl E { pub async unsafe fn m() {} } pub use crate::other::f; use E;";
    let source = Source::of_product(text);
    let items = public_items(&source.tokens);
    assert_eq!(items, [("f", false), ("h", false), ("LIMIT", false), ("E", true), ("m", false)]);
    assert_eq!((words(&source.tokens)["f"], words(&source.tokens)["E"]), (1, 3));
}
