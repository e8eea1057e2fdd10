//! Groups of runs: the range of their last values, tag by tag.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::json;
use summaries::derive::group::{GroupBy, groups};
use summaries::{Extent, Runs, Series};

use crate::logdir::json_number;
use crate::out;

/// A group of runs.
pub struct Group {
    name: String,
    runs: Vec<String>,
    /// The range of the members' last values, by scalar tag.
    last_values: BTreeMap<String, Extent>,
}

/// Groups the runs; returns the groups by name.
pub fn group_runs(runs: &Runs, by: &GroupBy) -> Vec<Group> {
    let group = |(name, members): (String, Vec<&summaries::Run>)| {
        let mut last_values: BTreeMap<String, Extent> = BTreeMap::new();
        for (tag, series) in members.iter().flat_map(|run| &run.series) {
            if let Series::Scalar(scalars) = series
                && let Some(last) = scalars.last()
            {
                last_values.entry(tag.clone()).or_insert(Extent::EMPTY).add(last.value);
            }
        }
        Group { name, runs: members.iter().map(|run| run.name.clone()).collect(), last_values }
    };
    groups(runs.by_name.values(), by).into_iter().map(group).collect()
}

/// Prints a line per group and per tag, or an object per group. Values that are not finite are left out.
pub fn print(groups: &[Group], is_json: bool, writer: &mut impl Write) -> io::Result<()> {
    if is_json {
        return groups.iter().try_for_each(|group| writeln!(writer, "{}", out::versioned(1, json(group))));
    }
    let width = groups.iter().flat_map(|group| group.last_values.keys()).map(|tag| tag.chars().count()).max();
    let width = width.unwrap_or(0).min(60);
    for group in groups {
        writeln!(writer, "{}: {}", group.name, text::count_of(group.runs.len() as u64, "run"))?;
        for (tag, extent) in &group.last_values {
            let [mean, min, max] = [extent.mean(), extent.min, extent.max].map(short_number);
            writeln!(writer, "  {tag:width$}  mean {mean:<12} from {min:<12} to {max:<12} of {}", extent.n_finite)?;
        }
    }
    Ok(())
}

/// Formats a number with six decimals, or in scientific notation with six digits if it is very small or large.
fn short_number(value: f64) -> String {
    let is_plain = value == 0.0 || (1e-4..1e6).contains(&value.abs());
    if is_plain { format!("{value:.6}") } else { format!("{value:.5e}") }
}

fn json(group: &Group) -> serde_json::Value {
    let tag = |(tag, extent): (&String, &Extent)| {
        let [mean, min, max] = [extent.mean(), extent.min, extent.max].map(json_number);
        (tag.clone(), json!({"runs": extent.n_finite, "mean": mean, "min": min, "max": max}))
    };
    let tags: serde_json::Map<_, _> = group.last_values.iter().map(tag).collect();
    json!({"group": group.name, "runs": group.runs, "last_values": tags})
}
