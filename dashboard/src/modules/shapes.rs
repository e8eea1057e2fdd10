//! The ops by the shapes of their inputs as a table.

use super::model::{ShapeColumn, shape_columns};
use egui::{Label, Sense, Ui, vec2};
use egui_extras::Column as Width;
use trace_analysis::torch::OpShapeRow;
use ui::{
    format,
    theme::{metrics, palette},
    widgets::{DataTable, SortOrder, TableClicks, names_column, text_cell},
};

/// Least width of the shapes.
const SHAPES_W: f32 = 200.0;

/// Shows the rows `shown` of `rows`; rows of the op `selected` are highlighted.
pub(super) fn table_ui(
    ui: &mut Ui,
    rows: &[OpShapeRow],
    shown: &[usize],
    order: SortOrder<ShapeColumn>,
    selected: Option<&str>,
) -> TableClicks<ShapeColumn> {
    let columns = shape_columns(rows.iter().any(|row| row.device_ns > 0));
    let table = DataTable::new(("op shapes", format::is_exact()), &columns, rows)
        .order(shown)
        .width(0, names_column(ui, shown.iter().map(|i| &*rows[*i].name)))
        .width(1, Width::remainder().at_least(SHAPES_W).clip(true));
    table.show(
        ui,
        |column| order.descending_by(column),
        |row| selected == Some(&*row.name),
        |ui, column, row, _| match column {
            ShapeColumn::Op => {
                let (rect, _) = ui.allocate_exact_size(vec2(metrics::SWATCH, metrics::SWATCH), Sense::hover());
                ui.painter().rect_filled(rect, 2.0, palette(ui).mark_of_name(&row.name));
                ui.add(Label::new(&row.name).truncate().selectable(false));
            }
            ShapeColumn::Shapes => {
                let response = ui.add(Label::new(&row.dims).truncate().selectable(false));
                response.on_hover_text(format!("{}\n{}", row.dims, row.types));
            }
            _ => text_cell(ui, column, row),
        },
    )
}
