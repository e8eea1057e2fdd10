//! Traces of other machines: notes where an analysis lacks slices.

use trace_store::Residency;

/// A note that slices are missing and what to do; `None` where all are resident.
pub fn note(hand: Residency) -> Option<&'static str> {
    match hand {
        Residency::Resident => None,
        Residency::Loading => Some("Slices are being fetched from the other machine…"),
        Residency::TooLarge => Some(
            "Too many slices to fetch from the other machine: select a shorter range, or run stepscope analyze there.",
        ),
    }
}
