//! Invariants that every drawing keeps.

use super::{draw::draw, *};
use proptest::prelude::*;
use std::sync::atomic::AtomicBool;

const SPACING: Spacing = Spacing { node: 10.0, edge: 6.0, rank: 20.0 };

fn draw_all(sizes: &[(f32, f32)], edges: &[(u32, u32)]) -> Drawing {
    let vertices: Vec<_> = sizes.iter().map(|&(w, h)| Vertex { w, h, constraint: RankConstraint::Free }).collect();
    let arcs: Vec<_> =
        edges.iter().map(|&(src, dst)| Arc { src, dst, src_dx: 0.0, dst_dx: 0.0, weight: 1.0 }).collect();
    draw(&vertices, &arcs, SPACING, &AtomicBool::new(false)).unwrap()
}

fn check(sizes: &[(f32, f32)], edges: &[(u32, u32)]) {
    let drawing = draw_all(sizes, edges);
    let rect = |i: usize| {
        let [x, y] = drawing.centers[i];
        (x - sizes[i].0 / 2.0, y - sizes[i].1 / 2.0, x + sizes[i].0 / 2.0, y + sizes[i].1 / 2.0)
    };
    for i in 0..sizes.len() {
        let a = rect(i);
        assert!(a.0 >= -0.5 && a.1 >= -0.5 && a.2 <= drawing.size[0] + 0.5 && a.3 <= drawing.size[1] + 0.5);
        for j in 0..i {
            let b = rect(j);
            let apart = a.2 <= b.0 + 0.1 || b.2 <= a.0 + 0.1 || a.3 <= b.1 + 0.1 || b.3 <= a.1 + 0.1;
            assert!(apart, "{i} {a:?} overlaps {j} {b:?}");
        }
    }
    for (idx, &(src, dst)) in edges.iter().enumerate() {
        let path = &drawing.paths[idx];
        if src == dst {
            assert!(path.is_empty());
            continue;
        }
        assert!(path.len() >= 2, "edge {src}->{dst} is not drawn");
        let back = drawing.reversed[idx];
        let monotone = path.windows(2).all(|w| if back { w[0][1] >= w[1][1] } else { w[0][1] <= w[1][1] });
        assert!(monotone, "{path:?} back {back}");
        assert_eq!(back, drawing.ranks[src as usize] > drawing.ranks[dst as usize]);
    }
    assert_eq!(drawing, draw_all(sizes, edges), "deterministic");
}

#[test]
fn nothing_and_one_box_are_drawn() {
    check(&[], &[]);
    check(&[(30.0, 10.0)], &[(0, 0)]);
}

#[test]
fn a_chain_is_straight() {
    let edges: Vec<_> = (0..9).map(|i| (i, i + 1)).collect();
    let drawing = draw_all(&[(30.0, 10.0); 10], &edges);
    assert!(drawing.centers.iter().all(|c| (c[0] - drawing.centers[0][0]).abs() < 0.1));
    check(&[(30.0, 10.0); 10], &edges);
}

#[test]
fn a_cycle_is_opened_once() {
    let drawing = draw_all(&[(30.0, 10.0); 3], &[(0, 1), (1, 2), (2, 0)]);
    assert_eq!(drawing.reversed.iter().filter(|r| **r).count(), 1);
}

#[test]
fn crossings_that_can_be_avoided_are() {
    // A ladder given in the wrong order.
    let drawing = draw_all(&[(10.0, 10.0); 6], &[(0, 5), (1, 4), (2, 3)]);
    for (top, bottom) in [(0, 5), (1, 4), (2, 3)] {
        assert!((drawing.centers[top][0] - drawing.centers[bottom][0]).abs() < 0.5);
    }
}

#[test]
fn held_vertices_are_at_the_ends() {
    let vertex = |constraint| Vertex { w: 10.0, h: 10.0, constraint };
    let vertices = [
        vertex(RankConstraint::Free),
        vertex(RankConstraint::Free),
        vertex(RankConstraint::First),
        vertex(RankConstraint::Last),
    ];
    let arc = |src, dst| Arc { src, dst, src_dx: 0.0, dst_dx: 0.0, weight: 1.0 };
    let arcs = [arc(0, 1), arc(2, 1), arc(0, 3)];
    let drawing = draw(&vertices, &arcs, SPACING, &AtomicBool::new(false)).unwrap();
    assert_eq!(drawing.ranks, [1, 2, 0, 3]);
}

#[test]
fn a_cancelled_drawing_ends() {
    let vertices = [Vertex { w: 10.0, h: 10.0, constraint: RankConstraint::Free }];
    assert_eq!(draw(&vertices, &[], SPACING, &AtomicBool::new(true)), Err(Cancelled));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_graph_keeps_the_invariants(
        sizes in prop::collection::vec((4.0_f32..90.0, 4.0_f32..40.0), 1..40),
        raw in prop::collection::vec((any::<u32>(), any::<u32>()), 0..90),
    ) {
        let n = sizes.len() as u32;
        let edges: Vec<_> = raw.iter().map(|&(a, b)| (a % n, b % n)).collect();
        check(&sizes, &edges);
    }
}
