//! What can be done in a panel, as a table: the list of shortcuts and the command palette read it.

/// A line of a panel's table: a command with its keys, or a gesture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The command's name; empty for what only keys or the pointer can do.
    pub id: &'static str,
    /// `W / S`, `Ctrl + wheel`; empty without any.
    pub keys: &'static str,
    /// The effect, as an order: `Show the whole trace`.
    pub what: &'static str,
}

impl Entry {
    /// A key or gesture that is no command of the palette.
    pub const fn gesture(keys: &'static str, what: &'static str) -> Self {
        Self { id: "", keys, what }
    }

    /// A command.
    pub const fn command(id: &'static str, keys: &'static str, what: &'static str) -> Self {
        Self { id, keys, what }
    }
}
