//! Pages of cards, one for each tag: what Scalars, Histograms and Media have in common.

mod axis;
mod grid;
mod panel;
mod run_list;

pub use axis::{XAxis, axis_buttons};
pub use grid::CardGrid;
pub use panel::{CardPage, CardPanel, card_frame};
pub use run_list::run_list;
