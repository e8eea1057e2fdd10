//! Findings: the changes to make first, in plain words.
//!
//! A finding is ranked by the time that its change would save at most, which is the problem's time on the critical
//! path: a long op that nothing waited for saves nothing. Shares are shares of the critical path without the profiler's
//! own work.
//!
//! | rules | about |
//! |---|---|
//! | `path` | kinds of segments on the path, slow ops |
//! | `devices` | communication that no compute hides |
//! | `straggler` | the rank that others wait for in collectives |
//! | `program` | a program without steps: its hottest functions, what its threads waited for |

mod devices;
mod facts;
mod path;
mod program;
mod straggler;
mod words;

pub(crate) use facts::Facts;
pub use facts::Finding;

/// All findings, the one that saves most first.
pub(crate) fn findings(facts: &Facts<'_>) -> Vec<Finding> {
    let mut findings = path::findings(facts);
    devices::add_findings(facts, &mut findings);
    findings.extend(straggler::finding(facts));
    program::add_findings(facts, &mut findings);
    findings.retain(|f| f.share >= facts::MIN_SHARE);
    findings.sort_by(|a, b| b.saves_ns.cmp(&a.saves_ns).then_with(|| a.title.cmp(&b.title)));
    findings
}

#[cfg(test)]
mod tests;
