//! The names of runs, which need not differ in the tools that they come from.

use std::collections::BTreeMap;

/// A run as its tool has it.
#[derive(Debug)]
pub(crate) struct StoredRun {
    /// The experiment or the project.
    pub group: String,
    pub name: String,
    pub id: String,
}

/// `GROUP/RUN` for each run, with the first characters of its id where two runs of a group have one name, or where it has
/// none.
pub(crate) fn full_names(runs: &[StoredRun]) -> Vec<String> {
    let names: Vec<(String, String)> = runs.iter().map(|run| (part(&run.group), part(&run.name))).collect();
    let mut counts: BTreeMap<&(String, String), u32> = BTreeMap::new();
    for name in &names {
        *counts.entry(name).or_default() += 1;
    }
    let full_name = |(run, key): (&StoredRun, &(String, String))| {
        let (group, name) = key;
        let is_shared = counts.get(key).is_some_and(|count| *count > 1);
        let id = part(&run.id.chars().take(8).collect::<String>());
        match (run.name.is_empty(), is_shared) {
            (true, _) => format!("{group}/{id}"),
            (_, true) => format!("{group}/{name}-{id}"),
            _ => format!("{group}/{name}"),
        }
    };
    runs.iter().zip(&names).map(full_name).collect()
}

/// A text as one part of a path: what would be another folder, or no name at all, is replaced.
fn part(text: &str) -> String {
    match text {
        "" | "." | ".." => "_".repeat(text.len().max(1)),
        text => text.replace(|c: char| matches!(c, '/' | '\\') || c.is_control(), "_"),
    }
}

#[cfg(test)]
mod tests {
    use super::{StoredRun, full_names};

    #[test]
    fn names_differ_and_stay_in_their_folder() {
        let run = |group: &str, name: &str, id: &str| StoredRun {
            group: group.to_owned(),
            name: name.to_owned(),
            id: id.to_owned(),
        };
        let runs = [
            run("a", "x", "1234567890"),
            run("a", "x", "abcdefghij"),
            run("b", "x", "1"),
            run("../c", "..", "2"),
            run("b", "p/q", "3"),
            run("b", "p_q", "4"),
            run("b", "", "56789"),
        ];
        let names = ["a/x-12345678", "a/x-abcdefgh", "b/x", ".._c/__", "b/p_q-3", "b/p_q-4", "b/56789"];
        assert_eq!(full_names(&runs), names);
    }
}
