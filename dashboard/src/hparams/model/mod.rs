//! Sessions as a table, its columns as axes. No egui here.

pub mod axis;
pub mod sessions;
pub mod table;

pub use table::{Cell, Column, Filters, Key, Session, Statistic, Table};
