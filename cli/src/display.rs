//! Detects whether a window can be opened.

/// The reason why no window can be opened, if one is known before trying.
pub fn missing() -> Option<&'static str> {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if cfg!(target_os = "linux") && !set("DISPLAY") && !set("WAYLAND_DISPLAY") {
        return Some("no display (neither DISPLAY nor WAYLAND_DISPLAY is set)");
    }
    None
}
