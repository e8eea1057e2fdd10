//! Small parts that several views use.

mod busy;
mod card_frame;
mod columns;
mod dialog;
mod empty;
mod filter_box;
mod icon;
mod keyboard;
mod name;
mod names;
mod pointer;
mod scroll;
mod side;
mod sort_heading;
mod swatch;
mod table;
mod text;
mod toolbar;

pub use busy::busy;
pub use card_frame::{CardFrame, CardHeader};
pub use columns::columns;
pub use dialog::Dialog;
pub use empty::empty_state;
pub use filter_box::filter_box;
pub use icon::{Icon, icon_button, paint as paint_icon};
pub use keyboard::{focus_all, keys_are_free, note_typing};
pub use name::{describe, named};
pub use names::with_names;
pub use pointer::pointer;
pub use scroll::scroll_area;
pub use side::{Edge, Extent, SideSizes, put_side_sizes, side, side_panel, side_sizes};
pub use sort_heading::{Sorting, beside, sort_heading};
pub use swatch::swatch;
pub use table::{figure_column, wide_table, word_column};
pub use text::{text_elided, text_elided_at};
pub use toolbar::{at_the_end, together, toolbar};
