//! What the panel shows, without egui: the tree of modules and which of its rows are visible, and the columns of both
//! tables.

mod columns;
mod folding;
mod shapes;
#[cfg(test)]
mod tests;
mod tree;

pub use columns::{Column, Heading, USUAL, columns_of, csv, rows, text};
pub use folding::Folding;
pub use shapes::{ShapeColumn, USUAL_SHAPES, shape_columns, shapes_csv, shapes_text, sorted_shapes};
pub use tree::{Module, Rows, Tree};
