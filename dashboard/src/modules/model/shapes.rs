//! The columns of the ops by the shapes of their inputs.

use std::{borrow::Cow, cmp::Ordering};
use trace_analysis::torch::OpShapeRow;
use ui::{
    format::{count, duration_ns, prefixed},
    natural,
    widgets::{self, SortOrder},
};

/// A column of the ops by shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeColumn {
    Op,
    Shapes,
    /// Only in CSV.
    Types,
    Count,
    Host,
    HostSelf,
    Device,
    DeviceSelf,
    Flop,
    FlopRate,
}

enum Cells {
    Text(fn(&OpShapeRow) -> &str),
    Count,
    Ns(fn(&OpShapeRow) -> i64),
    Flop(fn(&OpShapeRow) -> f64, &'static str),
}

/// The columns in order: heading, CSV heading, cells, explanation.
const COLUMNS: &[(ShapeColumn, &str, &str, Cells, &str)] = &[
    (ShapeColumn::Op, "Op", "op", Cells::Text(|row| &row.name), "The op"),
    (
        ShapeColumn::Shapes,
        "Shapes of inputs",
        "shapes",
        Cells::Text(|row| &row.dims),
        "Dimensions of each input; [] of what is no tensor",
    ),
    (ShapeColumn::Types, "Types", "types", Cells::Text(|row| &row.types), "Type of each input"),
    (ShapeColumn::Count, "Count", "count", Cells::Count, "Executions that began in the range"),
    (ShapeColumn::Host, "Host", "host_ns", Cells::Ns(|row| row.total_ns), "Time on the host, nested ops included"),
    (
        ShapeColumn::HostSelf,
        "Host self",
        "host_self_ns",
        Cells::Ns(|row| row.self_ns),
        "Time on the host without what is nested",
    ),
    (
        ShapeColumn::Device,
        "Device",
        "device_ns",
        Cells::Ns(|row| row.device_ns),
        "Time of the device's work that the op enqueued, nested ops included",
    ),
    (
        ShapeColumn::DeviceSelf,
        "Device self",
        "device_self_ns",
        Cells::Ns(|row| row.self_device_ns),
        "Time of the device's work that the op enqueued itself",
    ),
    (
        ShapeColumn::Flop,
        "FLOP",
        "flop",
        Cells::Flop(|row| row.flop, ""),
        "Floating-point operations of matrix products, convolutions and attention",
    ),
    (
        ShapeColumn::FlopRate,
        "FLOP/s",
        "flop_per_s",
        Cells::Flop(flop_rate, ""),
        "Operations by the time on devices, or on the host where no device is recorded",
    ),
];

fn flop_rate(row: &OpShapeRow) -> f64 {
    let ns = if row.device_ns > 0 { row.device_ns } else { row.total_ns };
    if ns > 0 { row.flop * 1e9 / ns as f64 } else { 0.0 }
}

impl ShapeColumn {
    fn row(self) -> &'static (Self, &'static str, &'static str, Cells, &'static str) {
        COLUMNS.iter().find(|row| row.0 == self).unwrap_or(&COLUMNS[0])
    }

    fn compare(self, a: &OpShapeRow, b: &OpShapeRow) -> Ordering {
        match self.row().3 {
            Cells::Text(of) => natural::order(of(a), of(b)),
            Cells::Count => a.count.cmp(&b.count),
            Cells::Ns(of) => of(a).cmp(&of(b)),
            Cells::Flop(of, _) => of(a).total_cmp(&of(b)),
        }
    }
}

impl widgets::Column<OpShapeRow> for ShapeColumn {
    fn title(&self) -> Cow<'_, str> {
        self.row().1.into()
    }

    fn help(&self) -> Cow<'_, str> {
        self.row().4.into()
    }

    fn is_text(&self) -> bool {
        matches!(self.row().3, Cells::Text(_))
    }

    fn text<'a>(&'a self, row: &'a OpShapeRow) -> Cow<'a, str> {
        match self.row().3 {
            Cells::Text(of) => of(row).into(),
            Cells::Count => count(row.count).into(),
            Cells::Ns(of) => duration_ns(of(row)).into(),
            Cells::Flop(of, _) if of(row) == 0.0 => "".into(),
            Cells::Flop(of, unit) => prefixed(of(row), unit).trim_end().to_owned().into(),
        }
    }

    fn csv_title(&self) -> Cow<'_, str> {
        self.row().2.into()
    }

    fn exact<'a>(&'a self, row: &'a OpShapeRow) -> Cow<'a, str> {
        match self.row().3 {
            Cells::Text(of) => of(row).into(),
            Cells::Count => row.count.to_string().into(),
            Cells::Ns(of) => of(row).to_string().into(),
            Cells::Flop(of, _) => of(row).to_string().into(),
        }
    }
}

/// The order in which the table opens: that of the analysis, the most time first.
pub const USUAL_SHAPES: SortOrder<ShapeColumn> = SortOrder { column: ShapeColumn::DeviceSelf, descending: true };

/// The columns of the table.
pub fn shape_columns(has_device: bool) -> Vec<ShapeColumn> {
    let is_shown = |column: &ShapeColumn| match column {
        ShapeColumn::Types => false,
        ShapeColumn::Device | ShapeColumn::DeviceSelf => has_device,
        _ => true,
    };
    COLUMNS.iter().map(|row| row.0).filter(is_shown).collect()
}

/// The rows whose op or shapes have `filter` in any case, in order.
pub fn sorted_shapes(rows: &[OpShapeRow], filter: &str, order: SortOrder<ShapeColumn>) -> Vec<usize> {
    let filter = filter.trim().to_lowercase();
    let fits = |row: &OpShapeRow| row.name.to_lowercase().contains(&filter) || row.dims.contains(&filter);
    let mut sorted: Vec<usize> = (0..rows.len()).filter(|i| fits(&rows[*i])).collect();
    // A stable sort: equal rows stay in the order of the analysis.
    sorted.sort_by(|a, b| {
        let by_column = order.column.compare(&rows[*a], &rows[*b]);
        if order.descending { by_column.reverse() } else { by_column }
    });
    sorted
}

/// These rows with exact figures.
pub fn shapes_csv(rows: &[OpShapeRow], shown: &[usize]) -> String {
    let columns: Vec<ShapeColumn> = COLUMNS.iter().map(|row| row.0).collect();
    widgets::csv(&columns, shown.iter().filter_map(|i| rows.get(*i)))
}

/// These rows as an aligned table.
pub fn shapes_text(rows: &[OpShapeRow], shown: &[usize], has_device: bool) -> String {
    use widgets::Column as _;
    let columns = shape_columns(has_device);
    let titles = columns.iter().map(|column| match column.is_text() {
        true => format!("<{}", column.title()),
        false => column.title().into_owned(),
    });
    let mut table = text::Table::new(titles);
    for row in shown.iter().filter_map(|i| rows.get(*i)) {
        table.row(columns.iter().map(|column| column.text(row).into_owned()));
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, dims: &str, self_device_ns: i64, flop: f64) -> OpShapeRow {
        let (name, dims, device_ns) = (name.to_owned(), dims.to_owned(), self_device_ns);
        OpShapeRow { name, dims, count: 2, device_ns, self_device_ns, flop, ..OpShapeRow::default() }
    }

    #[test]
    fn rows_sort_filter_and_copy() {
        let rows = [
            row("aten::mm", "[[2, 3], [3, 5]]", 30, 60.0),
            row("aten::add", "[[2, 5], [2, 5]]", 40, 0.0),
            row("aten::mm", "[[8, 8], [8, 8]]", 10, 1024.0),
        ];
        assert_eq!(sorted_shapes(&rows, "", USUAL_SHAPES), [1, 0, 2]);
        let by_rate = SortOrder { column: ShapeColumn::FlopRate, descending: true };
        assert_eq!(sorted_shapes(&rows, "MM", by_rate), [2, 0]);
        assert_eq!(sorted_shapes(&rows, "[3, 5]", by_rate), [0]);
        let text = shapes_text(&rows, &[0], true);
        assert!(text.starts_with("Op        Shapes of inputs  Count"), "{text}");
        assert!(text.ends_with("60.00  2.00 G"), "{text}");
        let csv = shapes_csv(&rows, &[2]);
        let line = csv.lines().nth(1).unwrap_or_default();
        assert_eq!(line, "aten::mm,\"[[8, 8], [8, 8]]\",,2,0,0,10,10,1024,102400000000");
    }
}
