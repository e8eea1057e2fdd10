//! Traces of other machines: what is said where not all that an analysis needs is here.

use trace_store::Residency;

/// Says that slices are missing, and what to do; nothing where all are here.
pub fn note(hand: Residency) -> Option<&'static str> {
    match hand {
        Residency::Resident => None,
        Residency::Loading => Some("Slices are being fetched from the other machine…"),
        Residency::TooLarge => Some(
            "Too many slices to fetch from the other machine: select a shorter range, or run stepscope analyze there.",
        ),
    }
}
