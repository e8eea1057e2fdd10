//! Strings have no gradients; what logs passes them on.

use super::{GRADIENT_TABLES, GradientSpec, Rule::Function, Rule::Zero};

#[linkme::distributed_slice(GRADIENT_TABLES)]
static STRINGS: &[GradientSpec] = &[
    (
        "Print",
        Function(|c| {
            let g = c.grad(0)?;
            c.set(0, g);
            Ok(())
        }),
    ),
    ("AsString", Zero),
    ("StringFormat", Zero),
    ("StringToNumber", Zero),
];
