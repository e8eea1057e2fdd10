//! Public items that nothing but their own file and tests use.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::source::{Source, Token};
use super::{fail_with, rust_files};

/// Members whose public items are all for this workspace.
const MEMBERS: &[&str] =
    &["base/formats", "base/text", "base/threads", "cli", "dashboard", "profiler", "query", "summaries"];

/// Public items without a caller here, with the reason.
const ALLOWED: &[(&str, &str)] = &[];

/// The public functions and types of a file, by name; `true` for a type.
fn public_items<'a>(tokens: &[Token<'a>]) -> Vec<(&'a str, bool)> {
    let mut found = Vec::new();
    for (at, _) in tokens.iter().enumerate().filter(|(_, token)| **token == Token::Word("pub")) {
        let rest = &tokens[at + 1..];
        let mut words = rest.iter().map_while(|t| t.word()).skip_while(|w| ["const", "unsafe", "async"].contains(w));
        let first = rest.first().and_then(|t| t.word());
        match (words.next(), words.next()) {
            (Some("fn"), Some(name)) => found.push((name, false)),
            (Some("struct" | "enum" | "trait" | "type"), Some(name)) => found.push((name, true)),
            (Some(name), _) if first == Some("const") => found.push((name, false)),
            _ => {}
        }
    }
    found
}

/// How often each word occurs in a file without its re-exports.
fn words<'a>(tokens: &[Token<'a>]) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    let mut in_reexport = false;
    for (at, token) in tokens.iter().enumerate() {
        let is_use = *token == Token::Word("use");
        let before = tokens[..at].last();
        in_reexport =
            (in_reexport || is_use && matches!(before, Some(Token::Word("pub") | Token::Sign(')')))) && !token.is(';');
        if let Some(word) = token.word().filter(|_| !in_reexport) {
            *counts.entry(word).or_default() += 1;
        }
    }
    counts
}

fn is_product(path: &Path) -> bool {
    !path.iter().any(|part| ["tests", "examples", "benches", "tests.rs"].iter().any(|name| part == *name))
}

#[test]
fn public_items_have_callers() {
    let files: Vec<(PathBuf, String)> = rust_files().into_iter().filter(|(path, _)| is_product(path)).collect();
    let sources: Vec<Source> = files.iter().map(|(_, text)| Source::of_product(text)).collect();
    let counts: Vec<BTreeMap<&str, usize>> = sources.iter().map(|source| words(&source.tokens)).collect();
    let mut users: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (file, counts) in counts.iter().enumerate() {
        counts.keys().for_each(|word| _ = users.entry(word).or_default().insert(file));
    }
    let mut broken = Vec::new();
    for (file, (path, _)) in files.iter().enumerate() {
        if !MEMBERS.iter().any(|member| path.starts_with(Path::new(member).join("src")))
            && !path.starts_with("profiler")
        {
            continue;
        }
        for (name, is_type) in public_items(&sources[file].tokens) {
            // A type can be used without its name, if a public function of its file returns it.
            let is_used = users[name].len() > 1 || (is_type && counts[file][name] > 1) || name == "main";
            let is_allowed = ALLOWED.iter().any(|(allowed, _)| *allowed == name);
            if !is_used && !is_allowed {
                broken.push(format!("{}: {name}", path.display()));
            }
        }
    }
    fail_with("public items that only their own file and tests use", &broken);
}
