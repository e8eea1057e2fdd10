//! The rows of the ops table: figures per op type or per node, filtered and sorted. No egui.

use std::{borrow::Cow, cmp::Ordering};
use trace_analysis::stats::{Figures, NodeStat, OpStat};
use ui::{
    address::Choice,
    format::{count, duration_ns, percent},
    natural,
    widgets::{self, SortOrder},
};

/// The subject of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    #[default]
    Op,
    Node,
}

impl Choice for Grouping {
    const TABLE: &'static [(Self, &'static str, &'static str)] =
        &[(Self::Op, "op", "Per op"), (Self::Node, "node", "Per node")];
}

/// The table's columns, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Name,
    /// The node's op type; only in the table of nodes.
    Op,
    /// The category; only in the table of names.
    Category,
    /// The device; only in CSV.
    Device,
    Count,
    Total,
    SelfTime,
    Mean,
    P50,
    P99,
    Max,
    Share,
}

enum Cells {
    Text(fn(&Row) -> &str),
    Count(fn(&Figures) -> u64),
    Ns(fn(&Figures) -> i64),
    Mean,
    Share,
}

/// The columns in the order of CSV: heading, CSV heading, cells, explanation.
const COLUMNS: &[(Column, &str, &str, Cells, &str)] = &[
    (Column::Name, "Op", "name", Cells::Text(|row| &row.name), "Name; click a row to highlight its slices"),
    (Column::Op, "Op", "op", Cells::Text(|row| &row.op), "Op type"),
    (
        Column::Category,
        "Category",
        "category",
        Cells::Text(|row| &row.category),
        "Kind of slice: an op, a kernel, a call of a device's runtime, a span",
    ),
    (Column::Device, "Device", "device", Cells::Text(|row| &row.device), "The node's device"),
    (Column::Count, "Count", "count", Cells::Count(|f| f.count), "Slices that touch the range"),
    (Column::Total, "Total", "total_ns", Cells::Ns(|f| f.total_ns), "Time inside the range"),
    (
        Column::SelfTime,
        "Self",
        "self_ns",
        Cells::Ns(|f| f.self_ns),
        "Time inside the range that no nested slice covers; of a node with that of its shards",
    ),
    (Column::Mean, "Mean", "mean_ns", Cells::Mean, "Mean duration of complete slices"),
    (Column::P50, "p50", "p50_ns", Cells::Ns(|f| f.p50_ns), "Half of the slices are at most this long"),
    (Column::P99, "p99", "p99_ns", Cells::Ns(|f| f.p99_ns), "99 of 100 slices are at most this long"),
    (Column::Max, "Max", "max_ns", Cells::Ns(|f| f.max_ns), "The longest slice"),
    (Column::Share, "Share", "share", Cells::Share, "Share of the self time of all rows"),
];

impl Column {
    pub fn for_grouping(grouping: Grouping) -> &'static [Self] {
        use Column::{Category, Count, Max, Mean, Name, Op, P50, P99, SelfTime, Share, Total};
        match grouping {
            Grouping::Op => &[Name, Category, Count, Total, SelfTime, Mean, P50, P99, Max, Share],
            Grouping::Node => &[Name, Op, Count, Total, SelfTime, Mean, P50, P99, Max, Share],
        }
    }

    /// The column's row of [`COLUMNS`].
    fn row(self) -> &'static (Self, &'static str, &'static str, Cells, &'static str) {
        COLUMNS.iter().find(|row| row.0 == self).unwrap_or(&COLUMNS[0])
    }

    /// Whether the column holds words, which align left and sort ascending first.
    pub fn is_text(self) -> bool {
        matches!(self.row().3, Cells::Text(_))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Op type or full node name.
    pub name: String,
    pub op: String,
    pub category: String,
    /// The node's device; empty in the table of ops.
    pub device: String,
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

/// A column of the table per op or per node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heading(pub Column, pub Grouping);

impl widgets::Column<Row> for Heading {
    fn title(&self) -> Cow<'_, str> {
        if *self == Self(Column::Name, Grouping::Node) { "Node" } else { self.0.row().1 }.into()
    }

    fn help(&self) -> Cow<'_, str> {
        self.0.row().4.into()
    }

    fn is_text(&self) -> bool {
        self.0.is_text()
    }

    fn text<'a>(&'a self, row: &'a Row) -> Cow<'a, str> {
        let f = &row.figures;
        match self.0.row().3 {
            Cells::Text(text) => text(row).into(),
            Cells::Count(of) => count(of(f)).into(),
            Cells::Ns(of) => duration_ns(of(f)).into(),
            Cells::Mean => duration_ns(f.mean_ns.round() as i64).into(),
            Cells::Share => percent(f.share).into(),
        }
    }

    fn csv_title(&self) -> Cow<'_, str> {
        self.0.row().2.into()
    }

    fn exact<'a>(&'a self, row: &'a Row) -> Cow<'a, str> {
        let f = &row.figures;
        match self.0.row().3 {
            Cells::Text(_) => self.text(row),
            Cells::Count(of) => of(f).to_string().into(),
            Cells::Ns(of) => of(f).to_string().into(),
            Cells::Mean => f.mean_ns.to_string().into(),
            Cells::Share => f.share.to_string().into(),
        }
    }
}

/// The default order of rows.
pub const USUAL: SortOrder<Column> = SortOrder { column: Column::SelfTime, descending: true };

/// Indices of the rows whose name, op or category contains `filter` (in any case), in order. Equal rows are ordered by
/// name.
pub fn arranged(rows: &[Row], filter: &str, order: SortOrder<Column>) -> Vec<usize> {
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
    match column.row().3 {
        Cells::Text(text) => natural::order(text(a), text(b)),
        Cells::Count(of) => of(f).cmp(&of(g)),
        Cells::Ns(of) => of(f).cmp(&of(g)),
        Cells::Mean => f.mean_ns.total_cmp(&g.mean_ns),
        Cells::Share => f.share.total_cmp(&g.share),
    }
}

/// The rows `shown` with exact figures in ns.
pub fn csv(rows: &[Row], shown: &[usize]) -> String {
    let columns: Vec<Heading> = COLUMNS.iter().map(|row| Heading(row.0, Grouping::Op)).collect();
    widgets::csv(&columns, shown.iter().filter_map(|i| rows.get(*i)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::testing::demo;
    use ui::widgets::Column as _;

    fn rows(grouping: Grouping) -> Vec<Row> {
        let store = demo(3);
        match grouping {
            Grouping::Op => trace_analysis::stats::op_stats(&store, store.range()).iter().map(Row::from).collect(),
            Grouping::Node => trace_analysis::stats::node_stats(&store, store.range()).iter().map(Row::from).collect(),
        }
    }

    fn check(grouping: Grouping, filter: &str, order: SortOrder<Column>) -> Vec<String> {
        let rows = rows(grouping);
        arranged(&rows, filter, order).into_iter().map(|i| rows[i].name.clone()).collect()
    }

    fn clicked(mut order: SortOrder<Column>, column: Column) -> SortOrder<Column> {
        order.click(column, !column.is_text());
        order
    }

    #[test]
    fn orders_by_any_column_and_back() {
        let order = USUAL;
        assert_eq!(check(Grouping::Node, "", order), ["layer1/MatMul", "layer2/MatMul", "layer1/Add"]);
        let by_name = clicked(order, Column::Name);
        assert_eq!(check(Grouping::Node, "", by_name), ["layer1/Add", "layer1/MatMul", "layer2/MatMul"]);
        let back = clicked(by_name, Column::Name);
        assert_eq!(check(Grouping::Node, "", back), ["layer2/MatMul", "layer1/MatMul", "layer1/Add"]);
        let shortest = clicked(clicked(order, Column::P50), Column::P50);
        assert_eq!(check(Grouping::Node, "", shortest), ["layer1/Add", "layer2/MatMul", "layer1/MatMul"]);
        let rows = rows(Grouping::Node);
        for column in Column::for_grouping(Grouping::Node) {
            let up = SortOrder { column: *column, descending: false };
            let sorted = arranged(&rows, "", up);
            assert!(sorted.windows(2).all(|w| compare(&rows[w[0]], &rows[w[1]], *column) != Ordering::Greater));
        }
    }

    #[test]
    fn filters_by_name_and_op() {
        assert_eq!(check(Grouping::Op, "", USUAL), ["MatMul", "MatMul", "Add"], "an op, and its shards");
        assert_eq!(check(Grouping::Op, "SHARD", USUAL), ["MatMul"]);
        assert_eq!(check(Grouping::Node, "LAYER1", USUAL), ["layer1/MatMul", "layer1/Add"]);
        assert_eq!(check(Grouping::Node, "add", USUAL), ["layer1/Add"]);
        assert!(check(Grouping::Node, "nothing", USUAL).is_empty());
    }

    #[test]
    fn cells_carry_their_units() {
        let rows = rows(Grouping::Op);
        let text: Vec<String> = Column::for_grouping(Grouping::Op)
            .iter()
            .map(|c| Heading(*c, Grouping::Op).text(&rows[0]).into_owned())
            .collect();
        assert_eq!(text[..4], ["MatMul", "op", "6", "189 µs"]);
        assert_eq!(text[9], "67.6 %", "48 of 71 µs a step: what its shards take is theirs");
        let table = csv(&rows, &[0]);
        assert!(table.starts_with("name,op,category,device,count,total_ns,"));
        assert!(table.contains("\nMatMul,MatMul,op,,6,189000,"), "{table}");
    }
}
