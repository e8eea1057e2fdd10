//! Bookmarks: flags in the ruler with their texts, and lines through the rows.

use super::{FrameContext, Layer, Tags};
use crate::{config::Note, timeline::command::Command};
use egui::{Align2, Painter, Pos2, Shape, Stroke, pos2};
use ui::theme::metrics;

/// Letters of a note that are shown next to its flag, at most.
const MAX_SHOWN: usize = 40;

/// The bookmarks.
pub struct Notes;

impl Layer for Notes {
    fn add_tags(&self, ctx: &FrameContext<'_>, painter: &Painter, tags: &mut Tags) {
        for note in visible_notes(ctx).filter(|note| !note.text.is_empty()) {
            let text = note.text.chars().take(MAX_SHOWN).collect();
            let x = ctx.frame.scale.x_from_time(note.time) + metrics::FLAG + 2.0 * metrics::GAP;
            let pos = pos2(x, ctx.areas.ruler.top() + 1.0);
            tags.add_if_free(painter, text, &[(pos, Align2::LEFT_TOP)], ctx.palette);
        }
    }

    fn paint(&mut self, ctx: &FrameContext<'_>, painter: &Painter) {
        let (top, p, size) = (ctx.areas.ruler.top(), ctx.palette, metrics::FLAG);
        for note in visible_notes(ctx) {
            let x = ctx.frame.scale.x_from_time(note.time);
            painter.vline(x, top..=ctx.areas.body.bottom(), Stroke::new(metrics::HAIRLINE, p.accent));
            let flag = vec![pos2(x, top), pos2(x + size, top + size / 2.0), pos2(x, top + size)];
            painter.add(Shape::convex_polygon(flag, p.accent, Stroke::NONE));
        }
    }

    fn click(&self, ctx: &FrameContext<'_>, pos: Pos2) -> Option<Command> {
        let ruler = ctx.areas.ruler;
        if !ruler.contains(pos) || pos.y > ruler.top() + metrics::FLAG + metrics::GAP {
            return None;
        }
        let is_near = |n: &&Note| {
            let x = ctx.frame.scale.x_from_time(n.time);
            (x - metrics::GAP..=x + metrics::FLAG + metrics::GAP).contains(&pos.x)
        };
        let note = ctx.content.notes.iter().find(is_near)?;
        Some(Command::EditNote(Some(note.time)))
    }
}

/// The bookmarks in the view.
fn visible_notes<'a>(ctx: &'a FrameContext<'_>) -> impl Iterator<Item = &'a Note> {
    ctx.content.notes.iter().filter(|n| (ctx.frame.view.start..ctx.frame.view.end).contains(&n.time))
}
