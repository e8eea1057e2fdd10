//! Detects whether a window can be opened.

/// The reason why no window can be opened, if one is known before trying.
pub fn unavailable_reason() -> Option<&'static str> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if cfg!(target_os = "linux") && !is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY") {
        return Some("no display (neither DISPLAY nor WAYLAND_DISPLAY is set)");
    }
    None
}
