//! Pages of cards, one for each tag: the common parts of Scalars, Histograms and Media.

mod axis;
mod grid;
mod panel;
mod run_list;

pub use axis::{XAxis, axis_buttons};
pub use grid::CardGrid;
pub use panel::{CardPage, CardPanel, card_frame};
pub use run_list::run_list;
