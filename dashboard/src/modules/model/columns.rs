//! The columns of the tree.

use super::{Folding, Module, Rows, Tree};
use std::{borrow::Cow, cmp::Ordering};
use trace_analysis::torch::ModuleRow;
use ui::{
    format::{bytes, count, duration_ns, percent, prefixed},
    widgets::{self, SortOrder},
};

/// A column of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Module,
    Share,
    Calls,
    HostForward,
    HostBackward,
    DeviceForward,
    DeviceBackward,
    Flop,
    FlopRate,
    Allocated,
    /// Only in CSV.
    Retained,
}

/// How a column's figures are read.
enum Cells {
    Name,
    Share,
    Calls,
    Ns(fn(&ModuleRow) -> i64),
    Flop,
    FlopRate,
    Bytes(fn(&ModuleRow) -> i64),
}

/// The columns in order: heading, CSV heading, cells, explanation.
const COLUMNS: &[(Column, &str, &str, Cells, &str)] = &[
    (
        Column::Module,
        "Module",
        "module",
        Cells::Name,
        "Class and number, or path; sorted by the order of the first forward passes",
    ),
    (Column::Share, "Share", "share", Cells::Share, "Share of the time of all modules and of what is outside them"),
    (Column::Calls, "Calls", "calls", Cells::Calls, "Forward passes that began in the range"),
    (
        Column::HostForward,
        "Host fwd",
        "host_forward_ns",
        Cells::Ns(|row| row.forward.host_ns),
        "Time on the host in forward passes, inner modules included",
    ),
    (
        Column::HostBackward,
        "Host bwd",
        "host_backward_ns",
        Cells::Ns(|row| row.backward.host_ns),
        "Time on the host in gradients, inner modules and repeated forward passes included",
    ),
    (
        Column::DeviceForward,
        "Device fwd",
        "device_forward_ns",
        Cells::Ns(|row| row.forward.device_ns),
        "Time of the device's work that forward passes enqueued",
    ),
    (
        Column::DeviceBackward,
        "Device bwd",
        "device_backward_ns",
        Cells::Ns(|row| row.backward.device_ns),
        "Time of the device's work that gradients enqueued",
    ),
    (
        Column::Flop,
        "FLOP",
        "flop",
        Cells::Flop,
        "Floating-point operations of matrix products, convolutions and attention",
    ),
    (
        Column::FlopRate,
        "FLOP/s",
        "flop_per_s",
        Cells::FlopRate,
        "Operations by the time on devices, or on the host where no device is recorded",
    ),
    (
        Column::Allocated,
        "Allocated",
        "allocated_bytes",
        Cells::Bytes(|row| row.forward.allocated_bytes),
        "Bytes that forward passes allocated, whatever was freed again",
    ),
    (
        Column::Retained,
        "Retained",
        "retained_bytes",
        Cells::Bytes(|row| row.forward.net_bytes),
        "Bytes that forward passes allocated and did not free: what is left for the gradients",
    ),
];

impl Column {
    fn row(self) -> &'static (Self, &'static str, &'static str, Cells, &'static str) {
        COLUMNS.iter().find(|row| row.0 == self).unwrap_or(&COLUMNS[0])
    }

    /// Whether the column holds words.
    pub fn is_text(self) -> bool {
        self == Self::Module
    }

    /// Whether a tree has figures for the column.
    fn has_figures(self, tree: &Tree) -> bool {
        match self {
            Self::DeviceForward | Self::DeviceBackward => tree.has_device,
            Self::Flop | Self::FlopRate => tree.has_flop,
            Self::Allocated => tree.has_memory,
            Self::Retained => false,
            _ => true,
        }
    }
}

/// The columns for which a tree has figures.
pub fn columns_of(tree: &Tree) -> Vec<Heading> {
    COLUMNS.iter().map(|row| row.0).filter(|column| column.has_figures(tree)).map(Heading).collect()
}

/// The visible rows of a tree, sorted among siblings.
pub fn rows(tree: &Tree, folding: &Folding, filter: &str, order: SortOrder<Column>) -> Rows {
    tree.rows(folding, filter, |i, j| {
        let by_column = compare((i, &tree.modules[i]), (j, &tree.modules[j]), order.column);
        if order.descending { by_column.reverse() } else { by_column }
    })
}

/// Orders two modules, given with their rows.
fn compare((i, a): (usize, &Module), (j, b): (usize, &Module), column: Column) -> Ordering {
    match column.row().3 {
        Cells::Name => i.cmp(&j),
        Cells::Share => a.share.total_cmp(&b.share),
        Cells::Calls => a.row.calls.cmp(&b.row.calls),
        Cells::Ns(of) | Cells::Bytes(of) => of(&a.row).cmp(&of(&b.row)),
        Cells::Flop => a.flop().total_cmp(&b.flop()),
        Cells::FlopRate => a.flop_rate.total_cmp(&b.flop_rate),
    }
}

/// A column as the table has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heading(pub Column);

impl widgets::Column<Module> for Heading {
    fn title(&self) -> Cow<'_, str> {
        self.0.row().1.into()
    }

    fn help(&self) -> Cow<'_, str> {
        self.0.row().4.into()
    }

    fn is_text(&self) -> bool {
        self.0.is_text()
    }

    fn text<'a>(&'a self, module: &'a Module) -> Cow<'a, str> {
        let or_empty = |value: f64| if value > 0.0 { prefixed(value, "").trim_end().to_owned() } else { String::new() };
        match self.0.row().3 {
            Cells::Name => module.title().into(),
            Cells::Share => percent(module.share).into(),
            Cells::Calls if module.is_outside() => "".into(),
            Cells::Calls => count(module.row.calls).into(),
            Cells::Ns(of) => duration_ns(of(&module.row)).into(),
            Cells::Flop => or_empty(module.flop()).into(),
            Cells::FlopRate => or_empty(module.flop_rate).into(),
            Cells::Bytes(of) => bytes(of(&module.row).max(0).cast_unsigned()).into(),
        }
    }

    fn csv_title(&self) -> Cow<'_, str> {
        self.0.row().2.into()
    }

    fn exact<'a>(&'a self, module: &'a Module) -> Cow<'a, str> {
        match self.0.row().3 {
            Cells::Name => (&*module.path).into(),
            Cells::Share => module.share.to_string().into(),
            Cells::Calls => module.row.calls.to_string().into(),
            Cells::Ns(of) | Cells::Bytes(of) => of(&module.row).to_string().into(),
            Cells::Flop => module.flop().to_string().into(),
            Cells::FlopRate => module.flop_rate.to_string().into(),
        }
    }
}

/// The order in which the panel opens: that of the forward passes.
pub const USUAL: SortOrder<Column> = SortOrder { column: Column::Module, descending: false };

/// These modules with exact figures and their paths.
pub fn csv(tree: &Tree, shown: &[usize]) -> String {
    let columns: Vec<Heading> = COLUMNS.iter().map(|row| Heading(row.0)).collect();
    widgets::csv(&columns, shown.iter().filter_map(|i| tree.modules.get(*i)))
}

/// These modules as an aligned table, indented by their depths.
pub fn text(tree: &Tree, shown: &[usize]) -> String {
    use widgets::Column as _;
    let columns = columns_of(tree);
    let mut table = text::Table::new(columns.iter().map(widgets::Column::title));
    for module in shown.iter().filter_map(|i| tree.modules.get(*i)) {
        let indent = |column: &Heading| if column.is_text() { "  ".repeat(module.row.depth) } else { String::new() };
        table.row(columns.iter().map(|column| format!("{}{}", indent(column), column.text(module))));
    }
    table.to_string()
}
