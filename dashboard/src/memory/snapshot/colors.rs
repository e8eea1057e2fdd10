//! The colours of places, the same in the chart, the table and the segments.

use egui::Color32;
use torch_dumps::{HistoryGroups, StackId};
use ui::theme::Palette;

/// The colour of a stack's area.
pub(super) fn color_of(p: &Palette, groups: Option<&HistoryGroups>, stack: StackId) -> Color32 {
    let Some(groups) = groups else { return p.aggregate };
    let group = groups.of(stack);
    if group < groups.list().len() { p.mark(group) } else { p.aggregate }
}
