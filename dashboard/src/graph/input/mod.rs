//! Input: `canvas` runs one frame of the picture with its pointer and keys, `commands` lists the panel's commands.

pub(super) mod canvas;
pub(super) mod commands;
