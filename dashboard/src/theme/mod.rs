//! How the window looks: the only place that names colours and sizes.
//!
//! Views ask [`fn@palette`] for the colours of the theme in force and take sizes from [`metrics`].

mod fonts;
pub mod metrics;
mod palette;
mod schemes;
mod style;

pub use fonts::SystemFonts;
pub use palette::{Palette, mix, on_fill, shaded};
pub use style::install;

/// Which theme the window uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// As the desktop says.
    #[default]
    System,
    /// Dark.
    Dark,
    /// Light.
    Light,
}

impl Theme {
    /// Every choice, in order.
    pub const ALL: [Self; 3] = [Self::System, Self::Dark, Self::Light];

    /// The theme after this one, for a toggle.
    pub fn next(self) -> Self {
        match self {
            Self::System => Self::Dark,
            Self::Dark => Self::Light,
            Self::Light => Self::System,
        }
    }

    /// What to call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "System",
            Self::Dark => "Dark",
            Self::Light => "Light",
        }
    }

    /// Puts the theme in force.
    pub fn apply(self, ctx: &egui::Context) {
        ctx.set_theme(match self {
            Self::System => egui::ThemePreference::System,
            Self::Dark => egui::ThemePreference::Dark,
            Self::Light => egui::ThemePreference::Light,
        });
    }
}

/// Colours of runs, curves, slices and nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colours {
    /// Okabe and Ito's, told apart by colour-blind readers.
    #[default]
    OkabeIto,
    /// Paul Tol's, told apart by colour-blind readers too.
    Tol,
    /// As TensorBoard colours runs.
    TensorBoard,
}

impl Colours {
    /// Every choice, in order.
    pub const ALL: [Self; 3] = [Self::OkabeIto, Self::Tol, Self::TensorBoard];

    /// What to call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::OkabeIto => "Okabe-Ito",
            Self::Tol => "Tol",
            Self::TensorBoard => "TensorBoard",
        }
    }

    /// Puts the colours in force, in this thread.
    pub fn apply(self) {
        palette::set_colours(self);
    }
}

/// How much room controls and tracks take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Density {
    /// Most on the screen.
    Compact,
    /// In between.
    #[default]
    Normal,
    /// Large targets, wide gaps.
    Roomy,
}

impl Density {
    /// Every choice, in order.
    pub const ALL: [Self; 3] = [Self::Compact, Self::Normal, Self::Roomy];

    /// What to call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compact => "Compact",
            Self::Normal => "Normal",
            Self::Roomy => "Roomy",
        }
    }

    /// Heights of controls and lanes against the normal ones.
    pub fn factor(self) -> f32 {
        match self {
            Self::Compact => 0.8,
            Self::Normal => 1.0,
            Self::Roomy => 1.35,
        }
    }

    /// Puts the density in force.
    pub fn apply(self, ctx: &egui::Context) {
        ctx.all_styles_mut(|style| style::fill_spacing(style, self.factor()));
    }
}

/// The colours in force in `ui`.
pub fn palette(ui: &egui::Ui) -> &'static Palette {
    Palette::of(ui.visuals().dark_mode)
}

/// A colour that comes from a file, which is no theme's.
pub fn rgb(red: u8, green: u8, blue: u8) -> egui::Color32 {
    egui::Color32::from_rgb(red, green, blue)
}

/// `share` of 256 parts of a colour over another one; both hold their alpha in them.
pub fn laid_over(below: egui::Color32, above: egui::Color32, share: u32) -> egui::Color32 {
    let share = share.min(256);
    let rest = 256 - (u32::from(above.a()) * share + 127) / 255;
    let [r, g, b, a] = below.to_array();
    let over = |below: u8, above: u8| ((u32::from(below) * rest + u32::from(above) * share) >> 8).min(255) as u8;
    egui::Color32::from_rgba_premultiplied(
        over(r, above.r()),
        over(g, above.g()),
        over(b, above.b()),
        over(a, above.a()),
    )
}

/// What leaves a picture's own colours as they are.
pub const UNTINTED: egui::Color32 = egui::Color32::WHITE;

/// A picture's own colours, which are no theme's: red, green, blue and alpha of each pixel, row by row.
pub fn picture(size: [usize; 2], rgba: &[u8]) -> egui::ColorImage {
    egui::ColorImage::from_rgba_unmultiplied(size, rgba)
}
