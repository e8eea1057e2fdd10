//! The colour schemes that the settings offer; `base/palette` defines their colours.

use crate::address::Choice;
use serde::{Deserialize, Serialize};

/// Colours of runs, curves, slices and nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum ColorScheme {
    /// Okabe and Ito's, which colour-blind readers can distinguish.
    #[default]
    #[serde(rename = "Okabe-Ito")]
    OkabeIto,
    /// Paul Tol's, which colour-blind readers can distinguish too.
    Tol,
    /// TensorBoard's colours of runs.
    TensorBoard,
}

impl Choice for ColorScheme {
    const TABLE: &'static [(Self, &'static str, &'static str)] = &[
        (Self::OkabeIto, "Okabe-Ito", "Okabe-Ito"),
        (Self::Tol, "Tol", "Tol"),
        (Self::TensorBoard, "TensorBoard", "TensorBoard"),
    ];
}
