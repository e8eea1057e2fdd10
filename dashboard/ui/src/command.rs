//! Commands and gestures of a panel as a table, which the list of shortcuts and the command palette read.

/// A line of a panel's table: a command with its keys, or a gesture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The command's name; empty for keys and gestures that are no command of the palette.
    pub id: &'static str,
    /// The keys or the gesture: `W / S`, `Ctrl + wheel`; empty for none.
    pub keys: &'static str,
    /// The effect, in the imperative: `Show the whole trace`.
    pub what: &'static str,
}

impl Entry {
    /// A key or gesture that is not in the palette.
    pub const fn gesture(keys: &'static str, what: &'static str) -> Self {
        Self { id: "", keys, what }
    }

    /// A command of the palette.
    pub const fn command(id: &'static str, keys: &'static str, what: &'static str) -> Self {
        Self { id, keys, what }
    }
}
