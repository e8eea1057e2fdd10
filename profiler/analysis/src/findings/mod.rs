//! Findings: the changes to make first, in plain words.
//!
//! Each is ranked by what fixing it would save at most, and that is its time on the critical path: a long op that nobody
//! waited for, or a wait that something else hid, saves nothing. Shares are of that path, which is never longer than what is shown,
//! without what the profiler did for itself.
//!
//! | rules | about |
//! |---|---|
//! | `path` | kinds of segments on the path, slow ops |
//! | `devices` | communication that no compute hides, stragglers |
//! | `program` | a program without steps: its hottest functions, what its threads waited for |

mod devices;
mod facts;
mod path;
mod program;
mod words;

pub(crate) use facts::Facts;
pub use facts::Finding;

/// All findings, the one that saves most first.
pub(crate) fn findings(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found = path::findings(facts);
    devices::add(facts, &mut found);
    program::add(facts, &mut found);
    found.retain(|f| f.share >= facts::MIN_SHARE);
    found.sort_by(|a, b| b.saves_ns.cmp(&a.saves_ns).then_with(|| a.title.cmp(&b.title)));
    found
}

#[cfg(test)]
mod tests;
