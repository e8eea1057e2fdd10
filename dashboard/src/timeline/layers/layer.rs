//! The trait of the layers of the canvas.

use super::{
    context::{Areas, FrameContext},
    tags::Tags,
};
use crate::timeline::command::Command;
use egui::{Painter, Pos2, Rect, Ui};

/// A function that shows the contents of a tooltip.
pub type Tooltip<'a> = Box<dyn FnOnce(&mut Ui) + 'a>;

/// A layer of the canvas, painted over the layers before it.
pub trait Layer {
    /// Adds the layer's texts over the ruler. Called on every layer before any layer paints.
    fn add_tags(&self, _ctx: &FrameContext<'_>, _painter: &Painter, _tags: &mut Tags) {}

    /// Paints the layer.
    fn paint(&mut self, ctx: &FrameContext<'_>, painter: &Painter);

    /// The tooltip for a point, if the layer has one there.
    fn tooltip<'a>(&self, _ctx: &'a FrameContext<'_>, _pos: Pos2) -> Option<Tooltip<'a>> {
        None
    }

    /// The command of a click at a point, if the layer reacts to the click.
    fn click(&self, _ctx: &FrameContext<'_>, _pos: Pos2) -> Option<Command> {
        None
    }
}

/// A layer and the part of the canvas that it is clipped to.
pub struct ClippedLayer {
    pub layer: Box<dyn Layer>,
    pub area: fn(&Areas) -> Rect,
}
