//! Every bucket of the page's histograms as CSV.

use crate::{Data, catalogue::Catalogue};
use std::fmt::Write as _;
use summaries::{Bucket, HistogramSeries};
use ui::export::csv_field;

/// Returns a line `run,tag,step,wall_time,left,right,count` for each bucket of the tags and runs that pass the filters,
/// without histograms that cannot be read.
pub(super) fn csv(catalogue: &Catalogue, data: &Data) -> String {
    let mut out = String::from("run,tag,step,wall_time,left,right,count\n");
    for (row, member, series) in catalogue.series::<HistogramSeries>(data) {
        let (run, tag) = (csv_field(&member.label), csv_field(&row.tag));
        for (i, (step, wall)) in series.step.iter().zip(&series.wall).enumerate() {
            let buckets = series.histogram(i).map(|histogram| histogram.buckets).unwrap_or_default();
            for Bucket { left, right, count } in buckets {
                let _ = writeln!(out, "{run},{tag},{step},{wall:.6},{left},{right},{count}");
            }
        }
    }
    out
}
