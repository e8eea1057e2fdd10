//! Which checks the tests left out, for want of something from outside. Each test appends a line to one file
//! (`tests/support` says how); they are counted and printed by their reasons, as the last lines of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;

use crate::prepare::target_folder;
use crate::steps::Failed;

/// The file of one run, empty at its begin.
pub struct List(PathBuf);

impl List {
    pub fn new() -> Result<List, Failed> {
        let path = target_folder().join("left-out.txt");
        let failed = |error| Failed(format!("writing {}: {error}", path.display()));
        std::fs::create_dir_all(target_folder()).and_then(|()| std::fs::write(&path, "")).map_err(failed)?;
        Ok(List(path))
    }

    /// For tests that run in other folders, absolute.
    pub fn path(&self) -> String {
        std::path::absolute(&self.0).unwrap_or_else(|_| self.0.clone()).display().to_string()
    }

    /// A check that xtask itself leaves out.
    pub fn add(&self, place: &str, why: &str) {
        let file = std::fs::OpenOptions::new().append(true).open(&self.0);
        if let Err(error) = file.and_then(|mut file| writeln!(file, "{place}\t\t{why}")) {
            eprintln!("left out: {why} ({error})");
        }
    }

    /// The count, and each reason with the tests that it concerns.
    pub fn report(&self) -> String {
        match std::fs::read_to_string(&self.0) {
            Ok(lines) => report(&lines),
            Err(error) => format!("\nwhich checks were left out is unknown: {}: {error}\n", self.0.display()),
        }
    }
}

fn report(lines: &str) -> String {
    // A check that several tests share is one for each of them, however often a test asks.
    let mut by_reason: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for line in lines.lines() {
        let mut parts = line.splitn(3, '\t');
        let (place, test, why) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""), parts.next().unwrap_or(line));
        let file = place.rsplit_once(':').map_or(place, |(file, _)| file);
        by_reason.entry(why).or_default().insert(format!("{file} {test}"));
    }
    let n: usize = by_reason.values().map(BTreeSet::len).sum();
    let mut text = match n {
        0 => "\nno check was left out\n".to_owned(),
        1 => "\n1 check was left out:\n".to_owned(),
        n => format!("\n{n} checks were left out:\n"),
    };
    for (why, tests) in by_reason {
        text += &format!("  {why}\n");
        for test in tests {
            text += &format!("    {}\n", test.trim_end());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_counted_once_for_each_test() {
        let lines = "a.rs:3\tone\tX is not set\na.rs:9\tone\tX is not set\na.rs:9\ttwo\tX is not set\nb.rs\t\tno MPI\n";
        let text = report(lines);
        assert!(text.starts_with("\n3 checks were left out:\n"), "{text}");
        assert!(
            text.contains("  X is not set\n    a.rs one\n    a.rs two\n") && text.ends_with("  no MPI\n    b.rs\n"),
            "{text}"
        );
        assert_eq!(report(""), "\nno check was left out\n");
    }
}
