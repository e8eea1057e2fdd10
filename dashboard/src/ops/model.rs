//! The rows of the ops table: figures per op type or per node, filtered and sorted. No egui.

use crate::natural;
use profiler::{Figures, NodeStat, OpStat};
use std::cmp::Ordering;

/// What a row stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// An op type.
    #[default]
    Op,
    /// A graph node.
    Node,
}

/// The table's columns, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Name of the op type or node.
    Name,
    /// The node's op type; only per node.
    Op,
    /// What it is: an op, a kernel, a call; only per name.
    Category,
    /// Slices.
    Count,
    /// Time inside the range.
    Total,
    /// Of that, what no nested slice covers.
    SelfTime,
    /// Mean duration.
    Mean,
    /// Median.
    P50,
    /// 99th percentile.
    P99,
    /// Longest.
    Max,
    /// Share of the self time of all rows.
    Share,
}

impl Column {
    /// The columns of a grouping.
    pub fn of(grouping: Grouping) -> &'static [Self] {
        use Column::{Category, Count, Max, Mean, Name, Op, P50, P99, SelfTime, Share, Total};
        match grouping {
            Grouping::Op => &[Name, Category, Count, Total, SelfTime, Mean, P50, P99, Max, Share],
            Grouping::Node => &[Name, Op, Count, Total, SelfTime, Mean, P50, P99, Max, Share],
        }
    }

    /// The heading.
    pub fn title(self, grouping: Grouping) -> &'static str {
        match self {
            Self::Name if grouping == Grouping::Op => "Op",
            Self::Name => "Node",
            Self::Op => "Op",
            Self::Category => "Category",
            Self::Count => "Count",
            Self::Total => "Total",
            Self::SelfTime => "Self",
            Self::Mean => "Mean",
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::Max => "Max",
            Self::Share => "Share",
        }
    }

    /// What the heading means.
    pub fn help(self) -> &'static str {
        match self {
            Self::Name => "Name; click a row to highlight its slices",
            Self::Op => "Op type",
            Self::Category => "What it is: an op, a kernel, a call of a device's runtime, a span",
            Self::Count => "Slices that touch the range",
            Self::Total => "Time inside the range",
            Self::SelfTime => "Time inside the range that no nested slice covers; of a node with that of its shards",
            Self::Mean => "Mean duration of whole slices",
            Self::P50 => "Half of the slices are at most this long",
            Self::P99 => "99 of 100 slices are at most this long",
            Self::Max => "The longest slice",
            Self::Share => "Share of the self time of all rows",
        }
    }

    /// Whether it holds words, which align left and sort upwards first.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Name | Self::Op | Self::Category)
    }
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Op type or full node name.
    pub name: String,
    /// Op type.
    pub op: String,
    /// Its category as recorded.
    pub category: String,
    /// The node's device; empty per op.
    pub device: String,
    /// Its figures.
    pub figures: Figures,
}

impl From<&OpStat> for Row {
    fn from(stat: &OpStat) -> Self {
        let (name, op, category) = (stat.op.clone(), stat.op.clone(), stat.category.clone());
        Self { name, op, category, device: String::new(), figures: stat.figures }
    }
}

impl From<&NodeStat> for Row {
    fn from(stat: &NodeStat) -> Self {
        let (name, op, device) = (stat.name.clone(), stat.op.clone(), stat.device.clone());
        Self { name, op, category: "op".to_owned(), device, figures: stat.figures }
    }
}

/// How the rows are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// By which column.
    pub column: Column,
    /// Greatest first.
    pub descending: bool,
}

impl Default for Order {
    fn default() -> Self {
        Self { column: Column::SelfTime, descending: true }
    }
}

impl Order {
    /// After a click on a heading: that column, or the other way round.
    #[must_use]
    pub fn clicked(self, column: Column) -> Self {
        let descending = if self.column == column { !self.descending } else { !column.is_text() };
        Self { column, descending }
    }
}

/// Indices of the rows whose name, op or category contains `filter` (in any case), in order. Equal rows are ordered by name.
pub fn arranged(rows: &[Row], filter: &str, order: Order) -> Vec<usize> {
    let filter = filter.trim().to_lowercase();
    let fits = |row: &Row| [&row.name, &row.op, &row.category].iter().any(|text| text.to_lowercase().contains(&filter));
    let mut out: Vec<usize> = (0..rows.len()).filter(|i| filter.is_empty() || fits(&rows[*i])).collect();
    out.sort_by(|a, b| {
        let (a, b) = (&rows[*a], &rows[*b]);
        let by_column = compare(a, b, order.column);
        let directed = if order.descending { by_column.reverse() } else { by_column };
        directed.then_with(|| natural::order(&a.name, &b.name))
    });
    out
}

fn compare(a: &Row, b: &Row, column: Column) -> Ordering {
    let (f, g) = (&a.figures, &b.figures);
    match column {
        Column::Name => natural::order(&a.name, &b.name),
        Column::Op => natural::order(&a.op, &b.op),
        Column::Category => a.category.cmp(&b.category),
        Column::Count => f.count.cmp(&g.count),
        Column::Total => f.total_ns.cmp(&g.total_ns),
        Column::SelfTime => f.self_ns.cmp(&g.self_ns),
        Column::Mean => f.mean_ns.total_cmp(&g.mean_ns),
        Column::P50 => f.p50_ns.cmp(&g.p50_ns),
        Column::P99 => f.p99_ns.cmp(&g.p99_ns),
        Column::Max => f.max_ns.cmp(&g.max_ns),
        Column::Share => f.share.total_cmp(&g.share),
    }
}

/// A cell's text.
pub fn cell(row: &Row, column: Column) -> String {
    use crate::format::{count, duration_ns, percent};
    let f = &row.figures;
    match column {
        Column::Name => row.name.clone(),
        Column::Op => row.op.clone(),
        Column::Category => row.category.clone(),
        Column::Count => count(f.count),
        Column::Total => duration_ns(f.total_ns),
        Column::SelfTime => duration_ns(f.self_ns),
        Column::Mean => duration_ns(f.mean_ns.round() as i64),
        Column::P50 => duration_ns(f.p50_ns),
        Column::P99 => duration_ns(f.p99_ns),
        Column::Max => duration_ns(f.max_ns),
        Column::Share => percent(f.share),
    }
}

/// The rows `shown` with exact figures in ns.
pub fn csv(rows: &[Row], shown: &[usize]) -> String {
    let headings = [
        "name", "op", "category", "device", "count", "total_ns", "self_ns", "mean_ns", "p50_ns", "p99_ns", "max_ns",
        "share",
    ];
    let line = |row: &Row| {
        let f = &row.figures;
        [
            row.name.clone(),
            row.op.clone(),
            row.category.clone(),
            row.device.clone(),
            f.count.to_string(),
            f.total_ns.to_string(),
            f.self_ns.to_string(),
            f.mean_ns.to_string(),
            f.p50_ns.to_string(),
            f.p99_ns.to_string(),
            f.max_ns.to_string(),
            f.share.to_string(),
        ]
    };
    crate::export::csv(&headings, shown.iter().filter_map(|i| rows.get(*i)).map(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::testing::demo;

    fn rows(grouping: Grouping) -> Vec<Row> {
        let store = demo(3);
        match grouping {
            Grouping::Op => profiler::op_stats(&store, store.range()).iter().map(Row::from).collect(),
            Grouping::Node => profiler::node_stats(&store, store.range()).iter().map(Row::from).collect(),
        }
    }

    fn check(grouping: Grouping, filter: &str, order: Order) -> Vec<String> {
        let rows = rows(grouping);
        arranged(&rows, filter, order).into_iter().map(|i| rows[i].name.clone()).collect()
    }

    #[test]
    fn orders_by_any_column_and_back() {
        let order = Order::default();
        assert_eq!(check(Grouping::Node, "", order), ["layer1/MatMul", "layer2/MatMul", "layer1/Add"]);
        let by_name = order.clicked(Column::Name);
        assert_eq!(check(Grouping::Node, "", by_name), ["layer1/Add", "layer1/MatMul", "layer2/MatMul"]);
        let back = by_name.clicked(Column::Name);
        assert_eq!(check(Grouping::Node, "", back), ["layer2/MatMul", "layer1/MatMul", "layer1/Add"]);
        let shortest = order.clicked(Column::P50).clicked(Column::P50);
        assert_eq!(check(Grouping::Node, "", shortest), ["layer1/Add", "layer2/MatMul", "layer1/MatMul"]);
        let rows = rows(Grouping::Node);
        for column in Column::of(Grouping::Node) {
            let up = Order { column: *column, descending: false };
            let sorted = arranged(&rows, "", up);
            assert!(sorted.windows(2).all(|w| compare(&rows[w[0]], &rows[w[1]], *column) != Ordering::Greater));
        }
    }

    #[test]
    fn filters_by_name_and_op() {
        assert_eq!(check(Grouping::Op, "", Order::default()), ["MatMul", "MatMul", "Add"], "an op, and its shards");
        assert_eq!(check(Grouping::Op, "SHARD", Order::default()), ["MatMul"]);
        assert_eq!(check(Grouping::Node, "LAYER1", Order::default()), ["layer1/MatMul", "layer1/Add"]);
        assert_eq!(check(Grouping::Node, "add", Order::default()), ["layer1/Add"]);
        assert!(check(Grouping::Node, "nothing", Order::default()).is_empty());
    }

    #[test]
    fn cells_carry_their_units() {
        let rows = rows(Grouping::Op);
        let text: Vec<String> = Column::of(Grouping::Op).iter().map(|c| cell(&rows[0], *c)).collect();
        assert_eq!(text[..4], ["MatMul", "op", "6", "189 µs"]);
        assert_eq!(text[9], "67.6 %", "48 of 71 µs a step: what its shards take is theirs");
        let table = csv(&rows, &[0]);
        assert!(table.starts_with("name,op,category,device,count,total_ns,"));
        assert!(table.contains("\nMatMul,MatMul,op,,6,189000,"), "{table}");
    }
}
