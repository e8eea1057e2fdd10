//! The documents: every relative link resolves, pages that code names exist, and prose has lines of at most 140 columns.

use std::fs;
use std::path::{Path, PathBuf};

use stepscope_tests::root;

/// The files of the repository with this ending, but for those that other programs wrote.
fn files(ending: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the repository is readable").flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            let is_ours = !name.starts_with('.') && !["target", "runs", "fixtures", "node_modules"].contains(&&*name);
            if path.is_dir() && is_ours {
                folders.push(path);
            } else if path.extension().is_some_and(|ext| ext == ending) {
                let text = fs::read_to_string(&path).expect("the file is UTF-8");
                found.push((path, text));
            }
        }
    }
    assert!(!found.is_empty(), "no file ends with {ending}");
    found
}

/// The lines of a page outside code blocks, with their numbers from 1 on.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_block = false;
    text.lines().enumerate().filter_map(move |(i, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        (!in_block && !is_fence).then_some((i + 1, line))
    })
}

/// The anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// Why a link of `page` leads nowhere.
fn broken_link(page: &Path, link: &str) -> Option<String> {
    let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { page.to_path_buf() } else { page.parent()?.join(path) };
    if !target.exists() {
        return Some("no such file".to_owned());
    }
    if fragment.is_empty() {
        return None;
    }
    let text = fs::read_to_string(target).ok()?;
    let has_heading = prose(&text).any(|(_, line)| line.starts_with('#') && anchor(line) == fragment);
    (!has_heading).then(|| format!("no heading #{fragment}"))
}

#[test]
fn links_resolve() {
    let mut broken = Vec::new();
    for (page, text) in files("md") {
        for (number, line) in prose(&text) {
            for rest in line.split("](").skip(1) {
                let link = rest.split([')', ' ']).next().unwrap_or("");
                let is_relative = !link.contains("://") && !link.starts_with("mailto:");
                if let Some(why) = is_relative.then(|| broken_link(&page, link)).flatten() {
                    broken.push(format!("{}:{number}: {link}: {why}", page.display()));
                }
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n  {}", broken.join("\n  "));
}

/// The paths below `docs` that a text names.
fn named_pages(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("docs/").filter_map(|(start, _)| {
        let is_whole = !text[..start].ends_with(|c: char| c.is_alphanumeric() || "/-_.".contains(c));
        let rest = &text[start..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"/-_.".contains(c)).unwrap_or(rest.len());
        let path = rest[..end].trim_end_matches('.');
        (is_whole && [".md", ".yaml", ".png"].iter().any(|ending| path.ends_with(ending))).then_some(path)
    })
}

#[test]
fn pages_that_code_names_exist() {
    let mut broken = Vec::new();
    for (path, text) in ["rs", "proto", "py"].into_iter().flat_map(files) {
        for page in named_pages(&text).filter(|page| !root().join(page).exists()) {
            broken.push(format!("{}: {page}", path.display()));
        }
    }
    assert!(broken.is_empty(), "pages that do not exist:\n  {}", broken.join("\n  "));
}

#[test]
fn lines_of_prose_are_short() {
    let mut broken = Vec::new();
    for (page, text) in files("md") {
        for (number, line) in prose(&text).filter(|(_, line)| !line.starts_with('|') && line.chars().count() > 140) {
            broken.push(format!("{}:{number}: {} columns", page.display(), line.chars().count()));
        }
    }
    assert!(broken.is_empty(), "lines over 140 columns:\n  {}", broken.join("\n  "));
}
