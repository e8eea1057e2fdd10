//! What every panel of the window implements.

use crate::{Data, Selection, panels::ViewKind};
use ui::address::Params;
use ui::command::Entry;

/// One panel. It keeps its own state (zoom, filters, caches); data and selection are the window's.
///
/// A frame hands every visible view the same [`Data`], which holds still until the frame ends. A view caches what it
/// derives by the `revision` of what it derived it from, so that an unchanged frame costs only painting.
pub trait View {
    /// Which panel this is.
    fn kind(&self) -> ViewKind;

    /// The tab's title.
    fn title(&self) -> &'static str {
        self.kind().title()
    }

    /// Shows the panel in all of `ui`'s space and answers its input.
    fn ui(&mut self, ui: &mut egui::Ui, data: &Data, selection: &mut Selection);

    /// What can be done in this panel: for the list of shortcuts and the command palette.
    fn entries(&self) -> &'static [Entry] {
        &[]
    }

    /// Whether a command of [`View::entries`] would do anything, or may once more is read.
    fn can(&self, _id: &'static str, _data: &Data) -> bool {
        true
    }

    /// Carries out a command of [`View::entries`] in the next frame.
    fn run(&mut self, _id: &'static str) {}

    /// What the panel shows, for undo and deep links.
    fn address(&self, _data: &Data) -> Params {
        Params::default()
    }

    /// Shows what an address says, as far as there is such; in the next frame, or once its data is there.
    fn go_to(&mut self, _params: &Params) {}

    /// What the panel shows as a table in CSV; `None` where it shows none.
    fn table(&self, _data: &Data, _selection: &Selection) -> Option<String> {
        None
    }
}
