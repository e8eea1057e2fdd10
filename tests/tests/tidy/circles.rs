//! Files of a crate that import each other in a circle: there are none.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::modules::{Crate, Imports, circles};
use super::{fail_by_member, members, rust_files};

/// The imports between the files of a member, over its library and its programs.
pub fn imports_of(member: &str, files: &BTreeMap<PathBuf, String>) -> Imports {
    let source = PathBuf::from(member).join("src");
    let is_root = |path: &PathBuf| {
        let is_main = ["lib.rs", "main.rs"].iter().any(|name| *path == source.join(name));
        is_main || path.parent() == Some(&source.join("bin"))
    };
    files.keys().filter(|path| is_root(path)).flat_map(|root| Crate::read(root, files).imports()).collect()
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let files: BTreeMap<PathBuf, String> = rust_files().into_iter().collect();
    let mut found = BTreeMap::new();
    for member in members() {
        let imports = imports_of(member, &files);
        let mut lines = Vec::new();
        for circle in circles(&imports) {
            for ((from, to), names) in &imports {
                if circle.contains(from.as_path()) && circle.contains(to.as_path()) {
                    let names: Vec<&str> = names.iter().map(String::as_str).collect();
                    lines.push(format!("{} -> {}: {}", from.display(), to.display(), names.join(", ")));
                }
            }
        }
        found.insert(member.clone(), lines);
    }
    fail_by_member("files in circles of imports", &found);
}
