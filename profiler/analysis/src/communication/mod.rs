//! Communication: what each collective cost, how fast it was, which rank came last, and why. docs/use/analysis.md has
//! the definitions.
//!
//! 1. [`exposed`]: the part of a collective in which its device computes nothing.
//! 2. [`exchange`]: each exchange divided in waiting for the last rank, and transfer.
//! 3. [`table`]: the collectives by kind, group, message and type. [`ranks`]: the ranks.
//! 4. [`doing`]: what a rank did. [`late`]: what the last rank did longer than the first on the way to a collective;
//!    [`unlike`]: what a rank's host does that the others do not.

mod doing;
mod exchange;
mod exposed;
mod late;
mod ranks;
mod table;
mod unlike;

pub use crate::collectives::{CollectiveKind, ProcessGroup};
pub use doing::Doing;
pub use exchange::{ExchangeRow, Participant};
pub use ranks::RankRow;
pub use table::CollectiveRow;

use crate::breakdown::DeviceBreakdown;
use crate::deps::Deps;
use std::ops::Range;

/// The collectives of a range.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Communication {
    /// The collectives by kind, group, message and type, the most time first.
    pub collectives: Vec<CollectiveRow>,
    /// The ranks, by process.
    pub ranks: Vec<RankRow>,
    /// The exchanges between ranks of the trace, by start.
    pub exchanges: Vec<ExchangeRow>,
    /// The groups that [`CollectiveRow::group`] names.
    pub groups: Vec<ProcessGroup>,
}

/// The collectives that begin in a range.
pub(crate) fn communication(deps: &Deps<'_>, range: &Range<i64>, devices: &[DeviceBreakdown]) -> Communication {
    let calls = &deps.exchanges.calls;
    if !calls.rows.iter().any(|call| range.contains(&call.start)) {
        return Communication::default();
    }
    let exposed_ns = exposed::exposed_ns(deps);
    let table = table::Table::new(deps, range, &exposed_ns);
    let mut exchanges = exchange::exchanges(deps, range, |signature| table.row_of(signature));
    let ranks = ranks::ranks(deps, range, devices, &mut exchanges);
    Communication { collectives: table.into_rows(deps, &exchanges), ranks, exchanges, groups: calls.groups.clone() }
}

#[cfg(test)]
mod tests;
