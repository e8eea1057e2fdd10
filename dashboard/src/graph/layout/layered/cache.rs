//! Drawings cached by their request. Models repeat themselves: the 24,500 connected parts of a training step of
//! Inception on four towers come to 300 different requests.

use super::{
    draw::draw,
    drawing::{Arc, Cancelled, Drawing, End, Spacing, Vertex},
};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::{self, atomic::AtomicBool};

/// Numbers in cached requests above which the cache is emptied.
const WORDS_MAX: usize = 4_000_000;

/// Drawings made so far, for all threads.
#[derive(Default)]
pub struct DrawingCache(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    by_request: FxHashMap<Box<[u32]>, sync::Arc<Drawing>>,
    n_words: usize,
}

impl DrawingCache {
    /// Draws as [`draw`] does, once for equal requests.
    ///
    /// # Errors
    /// When it is cancelled.
    pub fn draw(
        &self,
        vertices: &[Vertex],
        arcs: &[Arc],
        spacing: Spacing,
        cancel: &AtomicBool,
    ) -> Result<sync::Arc<Drawing>, Cancelled> {
        let words = encode(vertices, arcs, spacing);
        if let Some(known) = self.0.lock().by_request.get(&words) {
            return Ok(sync::Arc::clone(known));
        }
        let made = sync::Arc::new(draw(vertices, arcs, spacing, cancel)?);
        let mut entries = self.0.lock();
        if entries.n_words > WORDS_MAX {
            *entries = Entries::default();
        }
        entries.n_words += words.len();
        entries.by_request.insert(words, sync::Arc::clone(&made));
        Ok(made)
    }
}

/// A request as numbers, equal for equal requests only.
fn encode(vertices: &[Vertex], arcs: &[Arc], spacing: Spacing) -> Box<[u32]> {
    let mut words = Vec::with_capacity(4 + 3 * vertices.len() + 5 * arcs.len());
    words.extend([spacing.node.to_bits(), spacing.edge.to_bits(), spacing.rank.to_bits(), vertices.len() as u32]);
    for Vertex { w, h, end } in vertices {
        let end = match end {
            End::Free => 0,
            End::First => 1,
            End::Last => 2,
        };
        words.extend([w.to_bits(), h.to_bits(), end]);
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
        let vertex = |w| Vertex { w, h: 10.0, end: End::Free };
        let arc = Arc { src: 0, dst: 1, src_dx: 0.0, dst_dx: 0.0, weight: 1.0 };
        let (drawings, cancel) = (DrawingCache::default(), AtomicBool::new(false));
        let ask = |vertices: &[Vertex], arcs: &[Arc]| drawings.draw(vertices, arcs, spacing, &cancel).unwrap();
        let first = ask(&[vertex(30.0), vertex(40.0)], &[arc]);
        assert!(sync::Arc::ptr_eq(&first, &ask(&[vertex(30.0), vertex(40.0)], &[arc])));
        for other in [
            ask(&[vertex(30.0), vertex(41.0)], &[arc]),
            ask(&[vertex(30.0), vertex(40.0)], &[]),
            ask(&[vertex(30.0), vertex(40.0)], &[Arc { src: 1, dst: 0, ..arc }]),
        ] {
            assert!(!sync::Arc::ptr_eq(&first, &other));
        }
        assert_eq!(*first, draw(&[vertex(30.0), vertex(40.0)], &[arc], spacing, &cancel).unwrap());
    }
}
