//! The sets of colours that the settings offer for runs, curves, slices and nodes (`base/palette` has them).

use egui::Color32;

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
}

/// The colour of `0xrrggbb`.
pub(super) const fn rgb(hex: u32) -> Color32 {
    Color32::from_rgb((hex >> 16) as u8, (hex >> 8) as u8, hex as u8)
}
