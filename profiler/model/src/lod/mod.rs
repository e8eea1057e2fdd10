//! Level of detail: the spans that a lane shows at a pixel width, as a pure function.
//!
//! Contract of `Lane::spans` for a half-open view of `V` ns on `px` pixels, with a pixel of `p = max(1, ceil(V / px))`
//! ns:
//!
//! * Every slice that touches the view (see `Lane::touching`) is in exactly one span, and no other slice is in one. So
//!   the `count`s add up to the number of slices, `busy_ns` to the total duration of those that work, and `wait_ns` to
//!   that of those that wait ([`SiteInfo::waits`](crate::names::SiteInfo::waits)). Durations are not clipped to the
//!   view.
//! * A slice longer than `p` is a separate span (`count == 1`).
//! * A span of several slices reaches from the first one's start to the last one's end, which is at most `p`.
//! * Spans are in order of time and do not overlap. There are at most `2 * px + 2`.
//! * `top` is the longest slice of the span that works, or if none works the longest; on a tie the first. `site`,
//!   `node` and `top_ns` are those of `top`. `first` and `top` are indices of the lane as it is now.
//! * An empty or reversed view has no spans; `px == 0` counts as 1.
//!
//! The spans are found with a pyramid over the order of the slices, not over time, so that bursts and pauses cost the
//! same. A node of the lowest level covers 16 slices, one of a higher level four nodes of the level below. A node has
//! 56 bytes, 4.7 bytes per slice (mostly 28 and 2.4 in a sealed trace). A query goes through the view from left to
//! right, and takes the largest complete node that begins at the current slice and fits into a pixel; it descends only
//! if a node is wider than a pixel. So a query visits a few nodes per pixel, for any number of slices.
//!
//! A query never waits for the disk. If slices are on disk only (`seal`), it takes complete nodes of the lowest level:
//! such a span may be wider than a pixel, and at the edges of the view it includes slices that do not touch the view.
//! `count`, `busy_ns` and `wait_ns` are those of all its slices. The missing page is requested; once `load_requested`
//! has loaded it, the query is exact.

mod merge;
mod node;
mod pyramid;
mod span;

pub use crate::columns::Columns;
pub use merge::{SliceSource, SpanMerger, collect_spans, feed_spans, pixel_ns};
pub use node::{LEAF, LEVELS, NarrowNode, Node, Nodes};
pub use pyramid::{Leaf, Pyramid, level_lens};
pub use span::Span;
