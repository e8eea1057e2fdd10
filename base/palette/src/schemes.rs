//! Colour schemes of runs, curves and categories. Each colour of a published scheme is moved towards white or black
//! until it has the contrast that the window's tests require.

/// The colours of lines and fills, each as `0xRRGGBB` or as a `C`.
#[derive(Debug)]
pub struct Scheme<C = u32> {
    /// Curves and runs.
    pub series: [C; 8],
    /// Nodes; the last is grey.
    pub fills: [C; 12],
    /// Slices, bars and points; the last is grey.
    pub marks: [C; 12],
}

impl Scheme {
    /// A scheme for a dark background, where slices have the colours of nodes.
    const fn dark(series: [u32; 8], fills: [u32; 12]) -> Self {
        Self { series, fills, marks: fills }
    }

    /// Converts each colour.
    pub fn map<C>(&self, convert: impl Fn(u32) -> C + Copy) -> Scheme<C> {
        Scheme { series: self.series.map(convert), fills: self.fills.map(convert), marks: self.marks.map(convert) }
    }
}

/// Okabe and Ito's colours, on a dark and on a light background: the default.
pub const OKABE_ITO: [Scheme; 2] = [
    Scheme::dark(
        [0x56b4e9, 0xe69f00, 0x1fbf8f, 0xe58fbd, 0xf0e442, 0xf2703a, 0x6a9ff0, 0xb9c0ca],
        [
            0x3d8fc4, 0xc98a0a, 0x0f9a73, 0xb86a98, 0xb8ad2b, 0xc9591f, 0x4a6fc0, 0x9a7ac9, 0x4f9a9a, 0x7f9a3c,
            0xb57d62, 0x7a8594,
        ],
    ),
    Scheme {
        series: [0x0072b2, 0xb87a00, 0x008f68, 0xb0578c, 0x8a7f00, 0xd55e00, 0x4357b8, 0x505a66],
        fills: [
            0x8cc9ee, 0xf2c14e, 0x7fd1b3, 0xe6b3d0, 0xe9e07a, 0xf0a070, 0xa3b8ee, 0xc7b2e6, 0x9ed3d3, 0xc3d68a,
            0xdbb6a0, 0xc3cad3,
        ],
        marks: [
            0x3377a3, 0x976808, 0x0d8161, 0x9e5b83, 0x79721c, 0xb9521d, 0x4a6fc0, 0x7e64a5, 0x3f7b7b, 0x63782f,
            0x946650, 0x69727f,
        ],
    },
];

/// Paul Tol's bright scheme and the orange of his vibrant one (personal.sron.nl/~pault), dark and light.
pub const TOL: [Scheme; 2] = [
    Scheme::dark(
        [0x668fb9, 0xee6677, 0x459b54, 0xccbb44, 0x66ccee, 0xc470a0, 0xee7733, 0xbbbbbb],
        [
            0x5d81a5, 0xd15a69, 0x458d51, 0xb4a53c, 0x5ab4d1, 0xae668f, 0xd1692d, 0x53887b, 0x96879d, 0x789643,
            0x838caf, 0x7a8594,
        ],
    ),
    Scheme {
        series: [0x4477aa, 0xe46272, 0x228833, 0x9b8e34, 0x4b97b0, 0xaa3377, 0xdb6d2f, 0x8a8a8a],
        fills: [
            0x98b4d0, 0xf0a9b1, 0x85be8f, 0xc8c18f, 0x9cc6d4, 0xd08fb4, 0xebaf8d, 0x8eb9b0, 0xc6b8c2, 0xa6c08f,
            0xb6aac4, 0xc3cad3,
        ],
        marks: [
            0x547494, 0xb84f5c, 0x3d7d48, 0x7c7229, 0x3c798c, 0x9d5c81, 0xb05826, 0x4b7a6f, 0x7a6d7f, 0x607836,
            0x69708c, 0x69727f,
        ],
    },
];

/// TensorBoard's colours of runs, dark and light.
pub const TENSORBOARD: [Scheme; 2] = [
    Scheme::dark(
        [0xe8710a, 0x12b5cb, 0xea4ca6, 0x7cb342, 0xaf69ec, 0xf9ab00, 0x4a8af4, 0x828c9a],
        [
            0xcc6309, 0x109fb3, 0xd04b96, 0x6d9e3a, 0x9e63d2, 0xdb9600, 0x457cd8, 0xce5652, 0x557ec2, 0xa07369,
            0xba7968, 0x7a8594,
        ],
    ),
    Scheme {
        series: [0xdf6c0a, 0x0f98ab, 0xe52592, 0x6b9a39, 0x9334e6, 0xbd8200, 0x4285f4, 0x425066],
        fills: [
            0xedae78, 0x7bc6d1, 0xf187c3, 0xaec792, 0xc48ff1, 0xdbba73, 0x97bcf9, 0xef9a9e, 0xa0aae1, 0xd0a7aa,
            0xd0a4b2, 0xc3cad3,
        ],
        marks: [
            0xb45708, 0x0c7c8c, 0xbb4487, 0x557b2d, 0x8e59bd, 0x976700, 0x3e70c2, 0xbb4e4b, 0x4c71af, 0x90685e,
            0x9a6456, 0x69727f,
        ],
    },
];
