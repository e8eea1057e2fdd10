//! The licences of the libraries that are linked into the program: they ask that their texts go with it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::command::{at, output};
use crate::steps::Failed;

/// Beginnings of the names of files with licences; the last two are those of fonts.
const NAMES: [&str; 8] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE", "OFL", "UFL"];

/// How deep below a package's folder they are: libraries in C are in a folder of their own.
const DEPTH: usize = 2;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    /// `None`: a member of the workspace.
    source: Option<String>,
    manifest_path: PathBuf,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// `None`: linked; otherwise of builds or tests.
    kind: Option<String>,
}

/// Writes [`texts`] into a folder.
pub fn write(target: &str, features: &[&str], folder: &Path) -> Result<(), Failed> {
    let file = folder.join("third-party-licenses.txt");
    at(&file, std::fs::write(&file, texts(target, features)?))
}

/// Every library in the program of this target and these features with its licence, and each text once.
pub fn texts(target: &str, features: &[&str]) -> Result<String, Failed> {
    let query = ["metadata", "--format-version", "1", "--locked", "--filter-platform", target];
    let metadata = output("cargo", &[&query[..], features].concat())?;
    let metadata: Metadata =
        serde_json::from_str(&metadata).map_err(|error| Failed(format!("cargo metadata ({error})")))?;
    let linked = linked(&metadata, "stepscope");
    let mut text = String::from("Libraries in stepscope, with their licences. The texts follow.\n\n");
    let mut by_text: BTreeMap<String, (String, Vec<&str>)> = BTreeMap::new();
    for package in &linked {
        let license = package.license.as_deref().unwrap_or("see its text");
        writeln!(text, "{} {}: {license}", package.name, package.version).ok();
        let folder = package.manifest_path.with_file_name("");
        for file in license_files(&folder, DEPTH)? {
            let content = String::from_utf8_lossy(&at(&file, std::fs::read(&file))?).into_owned();
            // Many differ in line breaks only.
            let words = content.split_whitespace().collect::<Vec<_>>().join(" ");
            let (_, packages) = by_text.entry(words).or_insert((content, Vec::new()));
            if packages.last() != Some(&&*package.name) {
                packages.push(&package.name);
            }
        }
    }
    for (content, packages) in by_text.into_values() {
        writeln!(text, "\n{}\n{}\n\n{}", "=".repeat(100), packages.join(", "), content.trim()).ok();
    }
    Ok(text)
}

/// The packages from elsewhere that `root` links, by name.
fn linked<'a>(metadata: &'a Metadata, root: &str) -> Vec<&'a Package> {
    let packages: HashMap<&str, &Package> = metadata.packages.iter().map(|p| (&*p.id, p)).collect();
    let nodes: HashMap<&str, &Node> = metadata.resolve.nodes.iter().map(|n| (&*n.id, n)).collect();
    let is_root = |package: &&Package| package.source.is_none() && package.name == root;
    let mut next: Vec<&str> = metadata.packages.iter().filter(is_root).map(|p| &*p.id).collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = next.pop() {
        if let Some(node) = nodes.get(id).filter(|_| seen.insert(id)) {
            let is_linked = |dependency: &&Dependency| dependency.dep_kinds.iter().any(|kind| kind.kind.is_none());
            next.extend(node.deps.iter().filter(is_linked).map(|dependency| &*dependency.pkg));
        }
    }
    let mut linked: Vec<&Package> = seen.into_iter().filter_map(|id| packages.get(id).copied()).collect();
    linked.retain(|package| package.source.is_some());
    linked.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    linked
}

/// The files with licences in a folder and `depth` below it, sorted.
fn license_files(folder: &Path, depth: usize) -> Result<Vec<PathBuf>, Failed> {
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in at(folder, std::fs::read_dir(folder))? {
        let path = at(folder, entry)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_dir() {
            folders.push(path);
        } else if NAMES.iter().any(|known| name.starts_with(known)) && !name.ends_with(".RS") {
            files.push(path);
        }
    }
    if depth > 0 {
        for folder in folders {
            files.extend(license_files(&folder, depth - 1)?);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_links_is_listed_with_its_texts() {
        let text = texts("x86_64-unknown-linux-gnu", &[]).unwrap_or_else(|Failed(why)| panic!("{why}"));
        let (list, texts) = text.split_once("\n\n==").unwrap_or_default();
        for (name, license) in
            [("serde ", "MIT OR Apache-2.0"), ("zstd-sys ", "BSD-3-Clause"), ("egui ", "MIT OR Apache-2.0")]
        {
            assert!(
                list.lines().any(|line| line.starts_with(name) && line.contains(license)),
                "{name}{license}\n{list}"
            );
        }
        // Of tests and of builds only.
        for name in ["proptest ", "egui_kittest ", "cc "] {
            assert!(!list.lines().any(|line| line.starts_with(name)), "{name}");
        }
        for part in ["Meta Platforms, Inc.", "SIL OPEN FONT LICENSE", "Apache License"] {
            assert!(texts.contains(part), "{part}");
        }
    }
}
