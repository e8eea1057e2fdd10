//! Formatted Markdown. Texts of logs must not open files or addresses: pictures are replaced by their descriptions, and
//! a click on a link copies its address.

mod model;
mod paint;

pub use model::{Block, parse};
pub use paint::blocks_ui;
