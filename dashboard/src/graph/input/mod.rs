//! Input to commands: `canvas` is one frame of the picture with its pointer and keys, `commands` the panel's table of
//! commands.

pub(super) mod canvas;
pub(super) mod commands;
