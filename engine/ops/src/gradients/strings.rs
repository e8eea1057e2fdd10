//! Strings have no gradients; what logs passes them on.

use super::{GRADIENT_TABLES, GradientSpec, Rule::Unary, Rule::Zero};

#[linkme::distributed_slice(GRADIENT_TABLES)]
static STRINGS: &[GradientSpec] =
    &[("Print", Unary(|g, _, _| g)), ("AsString", Zero), ("StringFormat", Zero), ("StringToNumber", Zero)];
