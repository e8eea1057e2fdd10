//! Custom layouts: charts of several tags, as a run's `custom_scalars` summary lays them out. No egui here.

use crate::{
    Data,
    catalogue::{Group, Member, TagRow},
    runs::RunList,
};
use formats::{
    plugins::{Chart, Layout, chart::Content},
    proto::SummaryMetadata,
};
use regex::{Regex, RegexBuilder};
use std::sync::Arc;
use summaries::{RecordPosition, Sample, Series};

/// The position of a layout in its event file, and its metadata.
pub type Source = (RecordPosition, Arc<SummaryMetadata>);

/// The layouts of all runs.
#[derive(Debug, Default)]
pub struct Layouts {
    /// The categories of all layouts; categories of the same title are merged.
    categories: Vec<Category>,
    /// Errors of layouts that cannot be read and of invalid expressions.
    pub trouble: Vec<String>,
}

#[derive(Debug, PartialEq)]
struct Category {
    title: Arc<str>,
    charts: Vec<Chart>,
}

/// The newest layout of each run.
pub fn sources(data: &Data) -> Vec<Source> {
    let of_kind = data.runs().flat_map(|run| run.run.series.values()).filter_map(|series| match series {
        Series::Media(s) if s.kind() == "custom_scalars" => Some(s),
        _ => None,
    });
    of_kind.filter_map(|s| Some((s.rows().last()?.place.clone(), s.metadata.clone()))).collect()
}

/// The number of layouts. While it stays the same there is nothing new to read.
pub fn n_values(data: &Data) -> usize {
    let n = |s: &Series| if s.kind() == "custom_scalars" { s.n_points() } else { 0 };
    data.runs().flat_map(|run| run.run.series.values()).map(n).sum()
}

/// Reads layouts.
pub fn read(sources: Vec<Source>) -> Layouts {
    let mut out = Layouts::default();
    for (place, metadata) in sources {
        match place.read("custom_scalars", &metadata) {
            Ok(Sample::Layout(layout)) => out.add(layout),
            Ok(_) => {}
            Err(error) => out.trouble.push(error.to_string()),
        }
    }
    out
}

impl Layouts {
    /// Whether the layouts have no chart.
    pub fn is_empty(&self) -> bool {
        self.categories.is_empty()
    }

    fn add(&mut self, layout: Layout) {
        for category in layout.category {
            let same_title = self.categories.iter_mut().find(|other| *other.title == *category.title);
            let charts = match same_title {
                Some(other) => &mut other.charts,
                None => {
                    self.categories.push(Category { title: category.title.as_str().into(), charts: Vec::new() });
                    &mut self.categories.last_mut().expect("one was pushed").charts
                }
            };
            for chart in category.chart {
                for pattern in patterns(&chart) {
                    if let Err(error) = expression(pattern) {
                        self.trouble.push(format!("chart {:?}: {pattern:?}: {error}", chart.title));
                    }
                }
                if !charts.contains(&chart) {
                    charts.push(chart);
                }
            }
        }
    }

    /// The charts as cards of the visible runs.
    pub fn groups(&self, data: &Data, runs: &RunList) -> Vec<Group> {
        let rows = |category: &Category| {
            let chart = |(nth, chart): (usize, &Chart)| {
                let title = if chart.title.is_empty() { format!("Chart {}", nth + 1) } else { chart.title.clone() };
                TagRow {
                    key: format!("layout\n{}\n{nth}", category.title).into(),
                    tag: title.as_str().into(),
                    name: title.as_str().into(),
                    node: None,
                    source: None,
                    members: members(chart, data, runs),
                }
            };
            category.charts.iter().enumerate().map(chart).collect()
        };
        let group = |c: &Category| Group { name: c.title.clone(), is_pinned: false, rows: rows(c) };
        self.categories.iter().map(group).collect()
    }
}

fn patterns(chart: &Chart) -> &[String] {
    match &chart.content {
        Some(Content::Multiline(lines)) => &lines.tag,
        _ => &[],
    }
}

/// Compiles an expression that matches from the begin of a tag, as in TensorBoard.
fn expression(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(&format!("^(?:{pattern})")).size_limit(1 << 20).build()
}

/// The lines of a chart: each tag of each run. Where a chart has several tags each line has its own colour, else each
/// run.
fn members(chart: &Chart, data: &Data, runs: &RunList) -> Vec<Member> {
    let expressions: Vec<Regex> = patterns(chart).iter().filter_map(|pattern| expression(pattern).ok()).collect();
    let mut out = Vec::new();
    for run in data.runs() {
        let Some(color_idx) = runs.shown_color(run.label) else { continue };
        let member = |tag: &str, band: Option<[Arc<str>; 2]>| Member::of_tag(&run, color_idx, tag, band);
        match &chart.content {
            Some(Content::Multiline(_)) => {
                let scalars = run.run.series.iter().filter(|(_, series)| matches!(series, Series::Scalar(_)));
                let tags = scalars.map(|(tag, _)| tag).filter(|tag| expressions.iter().any(|e| e.is_match(tag)));
                out.extend(tags.map(|tag| member(tag, None)));
            }
            Some(Content::Margin(margin)) => {
                let present = margin.series.iter().filter(|s| run.run.series.contains_key(&s.value));
                out.extend(present.map(|s| member(&s.value, Some([s.lower.as_str().into(), s.upper.as_str().into()]))));
            }
            None => {}
        }
    }
    let first = out.first().and_then(|m: &Member| m.tag.clone());
    if out.iter().any(|member| member.tag != first) {
        out.iter_mut().enumerate().for_each(|(nth, member)| member.color_idx = nth);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use formats::plugins::{MarginChartContent, MultilineChartContent, margin_chart_content};
    use summaries::{Run, Runs};

    fn curve() -> summaries::ScalarSeries {
        let mut series = summaries::ScalarSeries::default();
        (0..2).for_each(|step| series.push(summaries::Point { step, wall: 0.0, value: 1.0 }));
        series
    }

    fn data() -> Data {
        let mut runs = Runs::default();
        for name in ["a", "b"] {
            let tags = ["loss/train", "loss/test", "x/loss", "lo", "hi"];
            // Two points are a curve, which has a colour.
            let series = tags.map(|tag| (tag.to_owned(), Series::Scalar(Box::new(curve()))));
            runs.by_name
                .insert(name.into(), Run { name: name.into(), series: series.into_iter().collect(), ..Run::default() });
        }
        Data::default().with_runs("logs", runs)
    }

    fn multiline(title: &str, tag: &[&str]) -> Chart {
        let tag = tag.iter().map(|t| (*t).to_owned()).collect();
        Chart { title: title.into(), content: Some(Content::Multiline(MultilineChartContent { tag })) }
    }

    fn layout(chart: Vec<Chart>) -> Layout {
        let title = "Losses".to_owned();
        Layout { version: 0, category: vec![formats::plugins::Category { title, chart, closed: false }] }
    }

    #[test]
    fn charts_of_several_tags_and_with_margins() {
        let series =
            margin_chart_content::Series { value: "loss/train".into(), lower: "lo".into(), upper: "hi".into() };
        let margin =
            Chart { title: String::new(), content: Some(Content::Margin(MarginChartContent { series: vec![series] })) };
        let mut layouts = Layouts::default();
        layouts.add(layout(vec![multiline("both", &["loss/.*"]), multiline("bad", &["(", "x"])]));
        // The same layout of another run, and more.
        layouts.add(layout(vec![multiline("both", &["loss/.*"]), margin]));
        assert_eq!(layouts.trouble.len(), 1, "{:?}", layouts.trouble);
        let data = data();
        let mut runs = RunList::default();
        runs.update(data.runs().map(|r| (r.label, r.run)), true);
        let groups = layouts.groups(&data, &runs);
        let rows: Vec<(&str, Vec<&str>)> =
            groups[0].rows.iter().map(|r| (&*r.name, r.members.iter().map(|m| &*m.label).collect())).collect();
        let both = vec!["a · loss/test", "a · loss/train", "b · loss/test", "b · loss/train"];
        assert_eq!(
            rows,
            [
                ("both", both),
                ("bad", vec!["a · x/loss", "b · x/loss"]),
                ("Chart 3", vec!["a · loss/train", "b · loss/train"])
            ]
        );
        assert_eq!(groups[0].rows[0].members.iter().map(|m| m.color_idx).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(groups[0].rows[2].members[1].color_idx, 1, "one tag: the run's colour");
        assert!(groups[0].rows[2].members[0].band.is_some());
    }
}
