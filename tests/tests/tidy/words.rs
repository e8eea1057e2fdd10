//! Words that are banned, each with the one to use instead: docs/words.md has the glossary.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::source::{Token, tokens};
use super::{fail_by_member, member_of, members, rust_files, text_files};

/// Names of a moment, not of a thing: no type is called so.
const TYPES: &[(&str, &str)] = &[
    ("Answer", "Reply, Rows or what the answer is"),
    ("Ask", "Request"),
    ("Asked", "Request"),
    ("AtHand", "Residency"),
    ("Beside", "Adjacent..., or what stands there"),
    ("Brief", "...Header, ...Summary"),
    ("Done", "Result"),
    ("Found", "Match, Hit"),
    ("From", "what it comes from: the standard library has a From"),
    ("Given", "Transport, Input"),
    ("Giver", "Transport, Sender"),
    ("Giving", "Transport, Output"),
    ("Got", "Reply, Received..."),
    ("Happened", "...Event"),
    ("Held", "...Guard, ...Buffer"),
    ("Ink", "StrokeStyle, TextStyle"),
    ("Kept", "Cached..., Retained..., Stored..."),
    ("Known", "Cached..., ...Set"),
    ("Late", "...Delay"),
    ("Lead", "Link, Target"),
    ("Left", "Remaining..., ...Reason"),
    ("Look", "Cursor, Listing, View"),
    ("Made", "what is made"),
    ("Means", "Resources"),
    ("Of", "...Key, ...Source: what it is of"),
    ("Place", "Position, Site, Slot, Location, Endpoint"),
    ("Plate", "RasterCache"),
    ("Said", "...Message, ...Report"),
    ("Says", "...Message, ...Report"),
    ("Seen", "...State, ...Set"),
    ("Sent", "...Request, ...Message"),
    ("Shelf", "MediaCache"),
    ("Shown", "View, Visible..., Display..."),
    ("Spread", "DurationHistogram, AxisRange"),
    ("Stay", "CpuRun"),
    ("Stopped", "...End, ...Reason"),
    ("Taken", "Drained..., Allocated..."),
    ("Then", "Next..., ...Action"),
    ("There", "Existing..., Present..."),
    ("Told", "...Message, ...Event, ...Report"),
    ("Via", "Route, Transport"),
    ("Wanted", "Request, Spec"),
    ("Way", "Path, Method, Transport"),
    ("What", "...Kind, ...Event"),
    ("Where", "Location, Filter"),
    ("Whole", "Full..., Complete..."),
    ("Whose", "Owner"),
    ("Wish", "Request"),
];

/// What is said otherwise in comments, messages and docs. Written in lower case; any case is found.
const PHRASES: &[(&str, &str)] = &[
    ("see the module's notes", "one sentence that says what it is, or nothing"),
    ("as ever", "as always"),
    ("a process each", "one process each"),
    ("all of it", "fit, everything, the entire ..."),
    ("at hand", "resident"),
    ("by the clock", "wall time"),
    ("come closer", "zoom in"),
    ("given back", "freed, returned"),
    ("given up", "evicted, abandoned"),
    ("in its whole", "entirely"),
    ("the least of three", "best of three"),
    ("tell", "report, say, print"),
    ("tells", "reports, says, prints"),
    ("told", "reported, said, printed"),
    ("distant", "remote"),
    ("wish", "request"),
    ("wishes", "requests"),
    ("beside", "next to, compared with, in addition to"),
    ("what there is", "what exists, the content"),
    ("gutter", "track labels"),
    ("synchroniz", "synchronis"),
];

/// Identifiers follow egui: `color`.
const IDENTIFIERS: &[(&str, &str)] = &[("colour", "color")];

/// Names of others: CUPTI's records and CUDA's functions.
const FOREIGN: &[&str] = &["Synchronization", "synchronization", "Synchronize", "SYNCHRONIZ"];

fn is_own_list(path: &Path) -> bool {
    path.ends_with("tidy/words.rs") || path.ends_with("docs/words.md")
}

/// A report by member of what `find` finds in each file.
fn by_member(files: &[(PathBuf, String)], find: impl Fn(&str) -> Vec<String>) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> =
        members().iter().cloned().chain(["docs".to_owned()]).map(|member| (member, Default::default())).collect();
    for (path, text) in files.iter().filter(|(path, _)| !is_own_list(path)) {
        let entry = found.entry(member_of(path)).or_default();
        let lines = find(text);
        entry.extend(lines.into_iter().map(|line| format!("{}: {line}", path.display())));
    }
    found
}

/// The better name of a type, if its own is banned.
fn better_type(name: &str) -> Option<&'static str> {
    let is_far = name.strip_prefix("Far").is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_lowercase()));
    let listed = TYPES.iter().find(|(banned, _)| *banned == name).map(|(_, better)| *better);
    listed.or(is_far.then_some("Remote..."))
}

fn banned_types(text: &str) -> Vec<String> {
    let all = tokens(text);
    let names = all.windows(2).filter_map(|pair| match pair {
        [Token::Word("struct" | "enum" | "trait" | "type" | "union"), Token::Word(name)] => Some(*name),
        _ => None,
    });
    names.filter_map(|name| Some(format!("{name} is banned, use {}", better_type(name)?))).collect()
}

fn banned_phrases(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = FOREIGN.iter().fold(line.to_owned(), |line, name| line.replace(name, "")).to_lowercase();
        for (phrase, better) in PHRASES.iter().filter(|(phrase, _)| has_phrase(&line, phrase)) {
            found.push(format!("{}: \"{phrase}\" is banned, use {better}", number + 1));
        }
    }
    found
}

/// Whether `phrase` begins at a word's beginning in `line`.
fn has_phrase(line: &str, phrase: &str) -> bool {
    line.match_indices(phrase).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + phrase.len()..].chars().next();
        let is_part = phrase == "synchroniz";
        let ends = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        is_part || ends(before) && ends(after)
    })
}

fn banned_identifiers(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for word in tokens(text).into_iter().filter_map(Token::word) {
        let lower = word.to_lowercase();
        let banned = IDENTIFIERS.iter().filter(|(banned, _)| lower.contains(banned));
        found.extend(banned.map(|(banned, better)| format!("{word}: {banned} is banned, use {better}")));
    }
    found.sort();
    found.dedup();
    found
}

#[test]
fn types_are_called_by_what_they_are() {
    fail_by_member("types with a banned name", &by_member(&rust_files(), banned_types));
}

#[test]
fn texts_use_plain_words() {
    fail_by_member("banned phrases", &by_member(&text_files(), banned_phrases));
}

#[test]
fn identifiers_are_spelled_as_egui_spells() {
    fail_by_member("banned identifiers", &by_member(&rust_files(), banned_identifiers));
}

#[test]
fn banned_words_are_found_and_others_are_not() {
    assert_eq!(
        banned_types("pub(crate) enum Told { A } struct FarLane; trait Farm {} // struct Found"),
        ["Told is banned, use ...Message, ...Event, ...Report", "FarLane is banned, use Remote..."]
    );
    assert_eq!(
        banned_phrases("fine\n// Come closer, small ofit\n// call of its own"),
        ["2: \"come closer\" is banned, use zoom in"]
    );
    assert_eq!(
        banned_identifiers("fn colour_by() { \"colour\" } // colour"),
        ["colour_by: colour is banned, use color"]
    );
}
