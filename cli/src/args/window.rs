//! Options of every window.

use clap::{Args as ClapArgs, ValueEnum};

/// Options of every window.
#[derive(ClapArgs, Clone, Copy, Debug)]
pub struct Window {
    /// Colours of the window
    #[arg(long, value_enum, default_value_t = Theme::System)]
    pub theme: Theme,
    /// Graphics library
    #[arg(long, value_enum, default_value_t = Renderer::Glow)]
    pub renderer: Renderer,
}

/// The window's colours.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// Follow the desktop
    System,
    /// Dark
    Dark,
    /// Light
    Light,
}

/// The graphics library of the window.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renderer {
    /// OpenGL
    Glow,
    /// Vulkan, Metal or Direct3D
    #[cfg(feature = "wgpu")]
    Wgpu,
}
