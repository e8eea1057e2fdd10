//! Traces of other machines: what is said where not all that an analysis needs is here.

use profiler::AtHand;

/// Says that slices are missing, and what to do; nothing where all are here.
pub fn note(hand: AtHand) -> Option<&'static str> {
    match hand {
        AtHand::All => None,
        AtHand::Coming => Some("Slices are being fetched from the other machine…"),
        AtHand::TooMany => Some(
            "Too many slices to fetch from the other machine: select a shorter range, or run stepscope analyze there.",
        ),
    }
}
