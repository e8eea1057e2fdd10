//! Every bucket of the histograms on the page, as CSV.

use crate::{Data, catalogue::Catalogue};
use std::fmt::Write as _;
use summaries::HistogramSeries;
use ui::export::csv_field;

/// `run,tag,step,wall_time,left,right,count`, a line per bucket of the tags and runs that pass the filters. A histogram that
/// cannot be read any more (its temporary file is gone) is left out.
pub(super) fn csv(catalogue: &Catalogue, data: &Data) -> String {
    let mut out = String::from("run,tag,step,wall_time,left,right,count\n");
    for row in catalogue.groups.iter().filter(|group| !group.is_pinned).flat_map(|group| &group.rows) {
        for member in &row.members {
            let Some(series) = member.series::<HistogramSeries>(data, &row.tag) else { continue };
            let (run, tag) = (csv_field(&member.label), csv_field(&row.tag));
            for (i, (step, wall)) in series.step.iter().zip(&series.wall).enumerate() {
                let buckets = series.histogram(i).map(|histogram| histogram.buckets).unwrap_or_default();
                for bucket in buckets {
                    let (left, right, count) = (bucket.left, bucket.right, bucket.count);
                    let _ = writeln!(out, "{run},{tag},{step},{wall:.6},{left},{right},{count}");
                }
            }
        }
    }
    out
}
