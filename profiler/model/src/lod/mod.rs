//! Level of detail: what a lane shows at a pixel width, as a pure function.
//!
//! Contract of `Lane::spans` for a half-open view of `V` ns on `px` pixels, with a pixel of `p = max(1, ceil(V / px))` ns:
//!
//! * Every slice that touches the view (see `Lane::touching`) is in exactly one span, and no other is: the
//!   `count`s add up to their number, `busy_ns` to the sum of the durations of those that work, and `wait_ns` to that of
//!   those that wait ([`SiteInfo::waits`](crate::names::SiteInfo::waits)). Durations are whole, not cut at the view's edges;
//!   the painter clips.
//! * A slice longer than `p` is a span of its own (`count == 1`).
//! * A span of several slices reaches from the first one's start to the last one's end, and that is at most `p`.
//! * Spans come in order and do not overlap. There are at most `2 * px + 2`.
//! * `top` is the longest slice of the span that works, however long others wait, or where none works the longest; the first of
//!   these on a tie. `site`, `node` and `top_ns` are its. `first` and `top` are indices of the lane as it is now.
//! * An empty or reversed view gives nothing; `px == 0` counts as 1.
//!
//! How: a pyramid over the slices' order (not over time, so that bursts and silence cost the same): 16 slices
//! to a node, then four nodes to a node; 56 bytes each, 4.7 bytes per slice (28 and 2.4 in a sealed trace, mostly). A query walks the view from left to
//! right and takes the largest complete node that begins here and fits into a pixel; only where a node is wider than a
//! pixel it looks inside. That visits a few nodes per pixel whatever the number of slices.
//!
//! A query never waits for the disk. Where the slices themselves are on disk only (`seal`) it shows the lowest
//! nodes, of 16 slices, whole: such a span may be wider than a pixel, and at the view's edges it brings slices that only
//! its neighbours touch. `count`, `busy_ns` and `wait_ns` are what the span's own slices add up to, as always. What is missing is
//! noted as a page request, `load_requested` reads it, and the next query is exact.

mod merge;
mod node;
mod pyramid;
mod span;

pub use crate::columns::Columns;
pub use merge::{Merge, Slices, merged, pixel_ns, walk};
pub use node::{LEAF, LEVELS, Narrow, Node, Nodes};
pub use pyramid::{Leaf, Pyramid, level_lens};
pub use span::Span;
