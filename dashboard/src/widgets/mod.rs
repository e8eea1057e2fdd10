//! Small parts that several views use.

mod busy;
mod card_frame;
mod card_grid;
mod empty;
mod filter_box;
mod icon;
mod keyboard;
mod name;
mod run_list;
mod sort_heading;
mod swatch;
mod text;
mod toolbar;

pub use busy::busy;
pub use card_frame::{CardFrame, CardHeader};
pub use card_grid::{CardGrid, side_panel, width_button};
pub use empty::empty_state;
pub use filter_box::filter_box;
pub use icon::{Icon, icon_button, paint as paint_icon};
pub use keyboard::{focus_all, keys_are_free, note_typing};
pub use name::{describe, named};
pub use run_list::run_list;
pub use sort_heading::{Sorting, sort_heading};
pub use swatch::swatch;
pub use text::text_elided;
pub use toolbar::toolbar;
