//! The trait of every panel.

use crate::{Data, Selection, panels::ViewKind};
use ui::address::Params;
use ui::command::Entry;

/// One panel. It owns its state (zoom, filters, caches); data and selection belong to the window.
///
/// In a frame every visible view gets the same [`Data`], which does not change during the frame. A view caches what it
/// derives, with the `revision` of its source, so that an unchanged frame only paints.
pub trait View {
    /// The panel's kind.
    fn kind(&self) -> ViewKind;

    /// The tab's title.
    fn title(&self) -> &'static str {
        self.kind().title()
    }

    /// Shows the panel in all of `ui`'s space and handles its input.
    fn ui(&mut self, ui: &mut egui::Ui, data: &Data, selection: &mut Selection);

    /// The panel's commands and gestures, for the list of shortcuts and the command palette.
    fn entries(&self) -> &'static [Entry] {
        &[]
    }

    /// Whether a command of [`View::entries`] has an effect, or may have one once more is read.
    fn can(&self, _id: &'static str, _data: &Data) -> bool {
        true
    }

    /// Carries out a command of [`View::entries`] in the next frame.
    fn run(&mut self, _id: &'static str) {}

    /// The panel's state as parameters of an address, for undo and deep links.
    fn address(&self, _data: &Data) -> Params {
        Params::default()
    }

    /// Applies an address in the next frame, or once its data is read. Unknown names are ignored.
    fn go_to(&mut self, _params: &Params) {}

    /// The panel's table as CSV; `None` without one.
    fn table(&self, _data: &Data, _selection: &Selection) -> Option<String> {
        None
    }
}
