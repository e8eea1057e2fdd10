//! The trait of what is drawn on the canvas.

use super::{
    context::{Areas, FrameContext},
    tags::Tags,
};
use crate::timeline::command::Command;
use egui::{Painter, Pos2, Rect, Ui};

/// Shows the contents of a tooltip.
pub type Tooltip<'a> = Box<dyn FnOnce(&mut Ui) + 'a>;

/// Something that is drawn on the canvas.
pub trait Layer {
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

/// A layer and the part of the canvas that it is clipped to.
pub struct ClippedLayer {
    pub layer: Box<dyn Layer>,
    pub area: fn(&Areas) -> Rect,
}
