//! The colours of the product by role, for the dark and the light theme. The window, charts in files and report pages
//! use them.
//!
//! Series colours are Okabe and Ito's eight (which colour-blind readers can distinguish), made lighter or darker for
//! contrast with the background. The window's tests check the contrast: text 4.5:1, curves and marks 3:1 (WCAG 2.2,
//! 1.4.3 and 1.4.11).

mod schemes;

pub use schemes::{OKABE_ITO, Scheme, TENSORBOARD, TOL};

/// The colours of one theme, each as `0xRRGGBB` or as a `C`.
#[derive(Debug)]
pub struct Colors<C = u32> {
    /// Whether the theme has light text on a dark background.
    pub dark: bool,
    /// Background of charts, the graph and the timeline.
    pub canvas: C,
    /// Background of panels.
    pub panel: C,
    /// Cards, buttons and fields on a panel.
    pub raised: C,
    /// A control under the pointer.
    pub hovered: C,
    /// Borders and separators.
    pub border: C,
    /// Grid lines of charts and rulers.
    pub grid: C,
    /// Every second row of a list.
    pub stripe: C,
    /// Body text.
    pub text: C,
    /// Secondary text: units, tooltips, axis labels.
    pub text_weak: C,
    /// Titles and selected tabs.
    pub text_strong: C,
    /// Links, focus, the selected tab's line.
    pub accent: C,
    /// Background of selected rows and ranges: translucent, as `0xAARRGGBB`, premultiplied.
    pub selected: C,
    /// Outline of what is selected.
    pub highlight: C,
    /// Success; a live connection.
    pub good: C,
    /// Something was lost or is late.
    pub warning: C,
    /// Something failed; stalls.
    pub error: C,
    /// Aggregates, unknown categories, items that a filter dims.
    pub aggregate: C,
    /// A scale from the least to the greatest of a measured value, in even steps; legible as lines on `canvas`.
    pub ramp: [C; 5],
}

impl Colors {
    /// Converts the colours: `translucent` converts the translucent ones, `opaque` all others.
    pub fn map<C>(&self, opaque: impl Fn(u32) -> C, translucent: impl Fn(u32) -> C) -> Colors<C> {
        Colors {
            dark: self.dark,
            canvas: opaque(self.canvas),
            panel: opaque(self.panel),
            raised: opaque(self.raised),
            hovered: opaque(self.hovered),
            border: opaque(self.border),
            grid: opaque(self.grid),
            stripe: opaque(self.stripe),
            text: opaque(self.text),
            text_weak: opaque(self.text_weak),
            text_strong: opaque(self.text_strong),
            accent: opaque(self.accent),
            selected: translucent(self.selected),
            highlight: opaque(self.highlight),
            good: opaque(self.good),
            warning: opaque(self.warning),
            error: opaque(self.error),
            aggregate: opaque(self.aggregate),
            ramp: self.ramp.map(opaque),
        }
    }
}

/// The dark theme.
pub const DARK: Colors = Colors {
    dark: true,
    canvas: 0x14171c,
    panel: 0x1b1f26,
    raised: 0x242932,
    hovered: 0x303742,
    border: 0x343b47,
    grid: 0x2a303a,
    stripe: 0x1f242c,
    text: 0xdfe3ea,
    text_weak: 0xa3adbb,
    text_strong: 0xffffff,
    accent: 0x56b4e9,
    selected: 0x7017303e,
    highlight: 0xffffff,
    good: 0x2fc08d,
    warning: 0xf0b429,
    error: 0xff8066,
    aggregate: 0x6b7480,
    ramp: [0x5b7bd5, 0x4fb0c6, 0x7fce8e, 0xd9d35a, 0xfff3a0],
};

/// The light theme.
pub const LIGHT: Colors = Colors {
    dark: false,
    canvas: 0xffffff,
    panel: 0xf4f5f7,
    raised: 0xffffff,
    hovered: 0xe6e9ee,
    border: 0xd0d5dd,
    grid: 0xe6e9ee,
    stripe: 0xf8f9fb,
    text: 0x24292f,
    text_weak: 0x5a6472,
    text_strong: 0x0b0e12,
    accent: 0x0068a8,
    selected: 0x48102a3a,
    highlight: 0x0b0e12,
    good: 0x00785a,
    warning: 0x8f5f00,
    error: 0xbf3600,
    aggregate: 0xa9b1bc,
    ramp: [0x9a8700, 0x3f8f5a, 0x1f7a8c, 0x34539b, 0x3b1f6b],
};

/// Red, green and blue of a colour.
pub const fn channels(color: u32) -> [u8; 3] {
    let [_, red, green, blue] = color.to_be_bytes();
    [red, green, blue]
}

/// A colour in HTML's form: `#rrggbb`.
pub fn html(color: u32) -> String {
    format!("#{color:06x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_have_channels_and_a_text() {
        assert_eq!(channels(0x0a14ff), [10, 20, 255]);
        assert_eq!(html(0x0a14ff), "#0a14ff");
    }
}
