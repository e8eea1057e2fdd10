//! Other colours for runs, curves and categories, for those who are used to them: each moved towards white or black until it has
//! the contrast that the palette's tests ask for.

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

/// Colours of lines, and fills.
#[derive(Debug)]
pub(super) struct Scheme {
    /// Of curves and runs.
    pub series: [Color32; 8],
    /// Of nodes; the last is grey.
    pub fills: [Color32; 12],
    /// Of slices, bars and points; the last is grey.
    pub marks: [Color32; 12],
}

/// Paul Tol's bright scheme and the orange of his vibrant one (personal.sron.nl/~pault), on a dark ground.
pub(super) const TOL_DARK: Scheme = Scheme {
    series: [
        rgb(0x668fb9),
        rgb(0xee6677),
        rgb(0x459b54),
        rgb(0xccbb44),
        rgb(0x66ccee),
        rgb(0xc470a0),
        rgb(0xee7733),
        rgb(0xbbbbbb),
    ],
    fills: [
        rgb(0x5d81a5),
        rgb(0xd15a69),
        rgb(0x458d51),
        rgb(0xb4a53c),
        rgb(0x5ab4d1),
        rgb(0xae668f),
        rgb(0xd1692d),
        rgb(0x53887b),
        rgb(0x96879d),
        rgb(0x789643),
        rgb(0x838caf),
        rgb(0x7a8594),
    ],
    marks: [
        rgb(0x5d81a5),
        rgb(0xd15a69),
        rgb(0x458d51),
        rgb(0xb4a53c),
        rgb(0x5ab4d1),
        rgb(0xae668f),
        rgb(0xd1692d),
        rgb(0x53887b),
        rgb(0x96879d),
        rgb(0x789643),
        rgb(0x838caf),
        rgb(0x7a8594),
    ],
};

/// Paul Tol's bright scheme and the orange of his vibrant one (personal.sron.nl/~pault), on a light ground.
pub(super) const TOL_LIGHT: Scheme = Scheme {
    series: [
        rgb(0x4477aa),
        rgb(0xe46272),
        rgb(0x228833),
        rgb(0x9b8e34),
        rgb(0x4b97b0),
        rgb(0xaa3377),
        rgb(0xdb6d2f),
        rgb(0x8a8a8a),
    ],
    fills: [
        rgb(0x98b4d0),
        rgb(0xf0a9b1),
        rgb(0x85be8f),
        rgb(0xc8c18f),
        rgb(0x9cc6d4),
        rgb(0xd08fb4),
        rgb(0xebaf8d),
        rgb(0x8eb9b0),
        rgb(0xc6b8c2),
        rgb(0xa6c08f),
        rgb(0xb6aac4),
        rgb(0xc3cad3),
    ],
    marks: [
        rgb(0x547494),
        rgb(0xb84f5c),
        rgb(0x3d7d48),
        rgb(0x7c7229),
        rgb(0x3c798c),
        rgb(0x9d5c81),
        rgb(0xb05826),
        rgb(0x4b7a6f),
        rgb(0x7a6d7f),
        rgb(0x607836),
        rgb(0x69708c),
        rgb(0x69727f),
    ],
};

/// TensorBoard's own for runs, on a dark ground.
pub(super) const TENSORBOARD_DARK: Scheme = Scheme {
    series: [
        rgb(0xe8710a),
        rgb(0x12b5cb),
        rgb(0xea4ca6),
        rgb(0x7cb342),
        rgb(0xaf69ec),
        rgb(0xf9ab00),
        rgb(0x4a8af4),
        rgb(0x828c9a),
    ],
    fills: [
        rgb(0xcc6309),
        rgb(0x109fb3),
        rgb(0xd04b96),
        rgb(0x6d9e3a),
        rgb(0x9e63d2),
        rgb(0xdb9600),
        rgb(0x457cd8),
        rgb(0xce5652),
        rgb(0x557ec2),
        rgb(0xa07369),
        rgb(0xba7968),
        rgb(0x7a8594),
    ],
    marks: [
        rgb(0xcc6309),
        rgb(0x109fb3),
        rgb(0xd04b96),
        rgb(0x6d9e3a),
        rgb(0x9e63d2),
        rgb(0xdb9600),
        rgb(0x457cd8),
        rgb(0xce5652),
        rgb(0x557ec2),
        rgb(0xa07369),
        rgb(0xba7968),
        rgb(0x7a8594),
    ],
};

/// TensorBoard's own for runs, on a light ground.
pub(super) const TENSORBOARD_LIGHT: Scheme = Scheme {
    series: [
        rgb(0xdf6c0a),
        rgb(0x0f98ab),
        rgb(0xe52592),
        rgb(0x6b9a39),
        rgb(0x9334e6),
        rgb(0xbd8200),
        rgb(0x4285f4),
        rgb(0x425066),
    ],
    fills: [
        rgb(0xedae78),
        rgb(0x7bc6d1),
        rgb(0xf187c3),
        rgb(0xaec792),
        rgb(0xc48ff1),
        rgb(0xdbba73),
        rgb(0x97bcf9),
        rgb(0xef9a9e),
        rgb(0xa0aae1),
        rgb(0xd0a7aa),
        rgb(0xd0a4b2),
        rgb(0xc3cad3),
    ],
    marks: [
        rgb(0xb45708),
        rgb(0x0c7c8c),
        rgb(0xbb4487),
        rgb(0x557b2d),
        rgb(0x8e59bd),
        rgb(0x976700),
        rgb(0x3e70c2),
        rgb(0xbb4e4b),
        rgb(0x4c71af),
        rgb(0x90685e),
        rgb(0x9a6456),
        rgb(0x69727f),
    ],
};
