//! Every point of the page's series as CSV.

use crate::{Data, catalogue::Catalogue};
use std::fmt::Write as _;
use summaries::ScalarSeries;
use ui::export::csv_field;

/// `run,tag,step,wall_time,value`, a line per point of the tags and runs that pass the filters.
pub(super) fn csv(catalogue: &Catalogue, data: &Data) -> String {
    let mut out = String::from("run,tag,step,wall_time,value\n");
    for (row, member, series) in catalogue.series::<ScalarSeries>(data) {
        let (run, tag) = (csv_field(&member.label), csv_field(&row.tag));
        for point in series.points() {
            let _ = writeln!(out, "{run},{tag},{},{:.6},{}", point.step, point.wall, point.value);
        }
    }
    out
}
