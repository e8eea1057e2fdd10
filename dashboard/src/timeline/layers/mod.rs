//! What is drawn on the canvas, layer over layer: each draws itself, says what is under the pointer, and answers clicks.

mod context;
mod counters;
mod critical_path;
mod flows;
mod instants;
pub mod minimap;
mod notes;
mod open_slices;
mod pointer;
mod range;
mod remark;
mod ruler;
mod selection;
mod shapes;
mod slices;
pub mod stalls;
mod steps;
mod tags;
pub mod track_labels;

pub use context::{Areas, Content, FrameContext, sizes};
pub use tags::Tags;

use super::command::Command;
use egui::{Painter, Pos2, Rect, Ui};

/// Shows the contents of a tooltip.
pub type Tooltip<'a> = Box<dyn FnOnce(&mut Ui) + 'a>;

/// Something that is drawn on the canvas.
pub trait Layer {
    /// The part of the canvas that it is clipped to.
    fn area(&self, areas: &Areas) -> Rect {
        areas.body
    }

    /// Puts its texts over the ruler, before anything is drawn.
    fn tag(&self, _ctx: &FrameContext<'_>, _painter: &Painter, _tags: &mut Tags) {}

    /// Draws it.
    fn paint(&mut self, ctx: &FrameContext<'_>, painter: &Painter);

    /// The tooltip of what is at a point.
    fn hit<'a>(&self, _ctx: &'a FrameContext<'_>, _at: Pos2) -> Option<Tooltip<'a>> {
        None
    }

    /// What a click at a point does.
    fn click(&self, _ctx: &FrameContext<'_>, _at: Pos2) -> Option<Command> {
        None
    }
}

/// Every layer, from the lowest to the highest. The highest that is under the pointer answers; of the texts over the ruler
/// the lowest layer's comes first.
pub fn all() -> Vec<Box<dyn Layer>> {
    vec![
        Box::<minimap::Minimap>::default(),
        Box::new(ruler::Ruler),
        Box::new(steps::Steps),
        Box::<slices::SlicesLayer>::default(),
        Box::new(counters::Counters),
        Box::new(open_slices::OpenSlices),
        Box::new(stalls::StallBands),
        Box::new(instants::Instants),
        Box::new(remark::Remark),
        Box::new(critical_path::CriticalPaths),
        Box::new(range::SelectedRange),
        Box::new(stalls::StallBlame),
        Box::new(flows::Flows),
        Box::new(selection::SelectedSlice),
        Box::new(notes::Notes),
        Box::new(pointer::PointerTime),
        Box::new(tags::TagLabels),
    ]
}
