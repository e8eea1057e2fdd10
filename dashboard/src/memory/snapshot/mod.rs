//! A memory snapshot: its bytes over time by place, what was live at a moment, and its segments.
//!
//! [`timeline`] computes the columns of the chart and [`moment`] what was live, each in a thread; [`page`] shows them with
//! [`table`] and [`mod@side`]; [`segments`] shows the segments.

mod colors;
mod moment;
mod page;
mod place;
mod segments;
mod side;
mod table;
mod timeline;

pub(super) use page::SnapshotPage;
pub(super) use segments::SortBy;
pub(super) use timeline::{Axis, GroupBy};
