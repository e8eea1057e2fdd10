//! A cache of drawings by request. Models are repetitive: the 24,500 connected parts of a training step of Inception on
//! four towers make only 300 different requests.

use super::{
    draw::draw,
    drawing::{Arc, Cancelled, Drawing, RankConstraint, Spacing, Vertex},
};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::{self, atomic::AtomicBool};

/// Words of all cached requests above which the cache is emptied.
const MAX_WORDS: usize = 4_000_000;

/// Finished drawings, shared by all threads.
#[derive(Default)]
pub struct DrawingCache(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    /// Drawings by encoded request.
    by_request: FxHashMap<Box<[u32]>, sync::Arc<Drawing>>,
    n_words: usize,
}

impl DrawingCache {
    /// Returns the same drawing as [`draw`], which runs once for equal requests.
    ///
    /// # Errors
    /// [`Cancelled`] once `cancel` is set.
    pub fn draw(
        &self,
        vertices: &[Vertex],
        arcs: &[Arc],
        spacing: Spacing,
        cancel: &AtomicBool,
    ) -> Result<sync::Arc<Drawing>, Cancelled> {
        let words = encode(vertices, arcs, spacing);
        if let Some(cached) = self.0.lock().by_request.get(&words) {
            return Ok(sync::Arc::clone(cached));
        }
        let drawing = sync::Arc::new(draw(vertices, arcs, spacing, cancel)?);
        let mut entries = self.0.lock();
        if entries.n_words > MAX_WORDS {
            *entries = Entries::default();
        }
        entries.n_words += words.len();
        entries.by_request.insert(words, sync::Arc::clone(&drawing));
        Ok(drawing)
    }
}

/// Encodes a request as words, equal for equal requests only.
fn encode(vertices: &[Vertex], arcs: &[Arc], spacing: Spacing) -> Box<[u32]> {
    let mut words = Vec::with_capacity(4 + 3 * vertices.len() + 5 * arcs.len());
    words.extend([spacing.node.to_bits(), spacing.edge.to_bits(), spacing.rank.to_bits(), vertices.len() as u32]);
    for Vertex { w, h, constraint } in vertices {
        let constraint = match constraint {
            RankConstraint::Free => 0,
            RankConstraint::First => 1,
            RankConstraint::Last => 2,
        };
        words.extend([w.to_bits(), h.to_bits(), constraint]);
    }
    for Arc { src, dst, src_dx, dst_dx, weight } in arcs {
        words.extend([*src, *dst, src_dx.to_bits(), dst_dx.to_bits(), weight.to_bits()]);
    }
    words.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equal_request_is_drawn_once() {
        let spacing = Spacing { node: 5.0, edge: 3.0, rank: 20.0 };
        let vertex = |w| Vertex { w, h: 10.0, constraint: RankConstraint::Free };
        let arc = Arc { src: 0, dst: 1, src_dx: 0.0, dst_dx: 0.0, weight: 1.0 };
        let (drawings, cancel) = (DrawingCache::default(), AtomicBool::new(false));
        let request = |vertices: &[Vertex], arcs: &[Arc]| drawings.draw(vertices, arcs, spacing, &cancel).unwrap();
        let first = request(&[vertex(30.0), vertex(40.0)], &[arc]);
        assert!(sync::Arc::ptr_eq(&first, &request(&[vertex(30.0), vertex(40.0)], &[arc])));
        for other in [
            request(&[vertex(30.0), vertex(41.0)], &[arc]),
            request(&[vertex(30.0), vertex(40.0)], &[]),
            request(&[vertex(30.0), vertex(40.0)], &[Arc { src: 1, dst: 0, ..arc }]),
        ] {
            assert!(!sync::Arc::ptr_eq(&first, &other));
        }
        assert_eq!(*first, draw(&[vertex(30.0), vertex(40.0)], &[arc], spacing, &cancel).unwrap());
    }
}
