//! Markdown as it is meant to look. A text of a log opens no files and no addresses: of pictures the words for them are
//! shown, and a click on a link copies its address.

mod model;
mod paint;

pub use model::{Block, parse};
pub use paint::blocks_ui;
