//! Pages of cards, one for each tag: what Scalars, Histograms and Media have in common.

mod grid;
mod run_list;

pub use grid::CardGrid;
pub use run_list::run_list;
