//! What a reader passed over, counted.

use std::collections::BTreeMap;

/// What was passed over in a file, with how often. Each reads after its number: "3 events that are no dictionaries".
pub type Warnings = BTreeMap<&'static str, u64>;

/// Counts one.
pub(crate) fn warn(warnings: &mut Warnings, what: &'static str) {
    *warnings.entry(what).or_default() += 1;
}
