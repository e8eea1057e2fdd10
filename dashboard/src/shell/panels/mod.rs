//! The panels: `arrangement` as a value, `tabs` as shown, `navigation` to addresses.

mod arrangement;
mod navigation;
mod tabs;

pub use arrangement::Layout;
pub use navigation::{Navigation, address, command_line};
pub use tabs::{Tabs, panel_key};
