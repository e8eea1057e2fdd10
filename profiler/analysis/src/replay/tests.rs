//! Replays of small traces whose outcome follows by hand, and what holds for any.

use super::{Change, Replay};
use crate::deps::Deps;
use crate::lines::PieceId;
use crate::tests::{random, slices_of_random};
use proptest::prelude::*;
use trace_store::{Store, testkit};

/// Slices of these names take this part of their time.
struct Scaled<'a>(&'a Deps<'a>, &'a [&'a str], f64);

impl Change for Scaled<'_> {
    fn factor(&self, piece_id: PieceId) -> f64 {
        let name = self.0.store.slice_name(self.0.lines.slice(piece_id));
        if self.1.contains(&name) { self.2 } else { 1.0 }
    }
}

/// The hosts do not wait.
struct Unsynchronised;

impl Change for Unsynchronised {
    fn factor(&self, _: PieceId) -> f64 {
        1.0
    }

    fn skips_host_waits(&self) -> bool {
        true
    }
}

/// The times at which each piece of work ends.
fn ends(deps: &Deps<'_>, change: &dyn Change) -> Vec<(i64, i64)> {
    let replay = Replay::new(deps, &deps.store.range()).expect("it is small");
    let lines = (0..).zip(&deps.lines.lines);
    let pieces =
        lines.flat_map(|(line, l)| (0..).zip(&l.pieces).map(move |(piece, p)| (PieceId { line, piece }, p.end)));
    pieces.map(|(piece_id, end)| (end, replay.end_of(&[piece_id], change))).collect()
}

fn deps(store: &Store) -> Deps<'_> {
    Deps::new(store, &store.range())
}

fn last_end(text: &str, change: impl for<'a> Fn(&'a Deps<'a>) -> Box<dyn Change + 'a>) -> i64 {
    let store = testkit::store(text);
    let deps = deps(&store);
    ends(&deps, &*change(&deps)).into_iter().map(|(_, end)| end).max().unwrap_or(0)
}

const TWO_KERNELS: &str = "
    main python: load 0..1000
    main launch: cudaLaunchKernel 1100..1200 c 1
    main launch: cudaLaunchKernel 1300..1400 c 2
    gpu7 kernel: first 1250..3000 c 1
    gpu7 kernel: second 3010..4000 c 2
    main sync: cudaDeviceSynchronize 1500..4050
    main python: log 4100..4200";

#[test]
fn all_that_waits_moves_with_what_it_waits_for() {
    // Both kernels, the host's wait and what follows it.
    assert_eq!(last_end(TWO_KERNELS, |deps| Box::new(Scaled(deps, &["load"], 0.0))), 3_200);
    assert_eq!(last_end(TWO_KERNELS, |deps| Box::new(Scaled(deps, &["second"], 0.5))), 3_705);
    assert_eq!(last_end(TWO_KERNELS, |deps| Box::new(Scaled(deps, &["first", "second"], 2.0))), 6_940);
}

#[test]
fn work_does_not_begin_before_its_launch() {
    // Without the first kernel the second begins after its launch, as soon as the first had after its own.
    let expected = 1_400 + (1_250 - 1_200) + 990 + 50 + 150;
    assert_eq!(last_end(TWO_KERNELS, |deps| Box::new(Scaled(deps, &["first"], 0.0))), expected + 10);
}

#[test]
fn a_host_that_does_not_wait_goes_on_while_the_device_works() {
    let text = "
        main launch: cudaLaunchKernel 0..10 c 1
        gpu7 kernel: first 20..1000 c 1
        main sync: cudaDeviceSynchronize 10..1005
        main launch: cudaLaunchKernel 1205..1215 c 2
        gpu7 kernel: second 1225..2000 c 2";
    // The launch is 200 after the wait: at 210, so that the kernel begins as soon as the first ends.
    assert_eq!(last_end(text, |_| Box::new(Unsynchronised)), 1_000 + 775);
}

#[test]
fn gradients_end_when_the_engines_thread_has_computed_them() {
    let text = "
        main op: aten::mm 0..100
        main python: run_backward 150..1000
        engine op: autograd::engine::evaluate_function:MmBackward0 300..900
        flow 1 main 50 -> engine 300
        main op: step 1010..1100";
    const GRADIENTS: &[&str] = &["autograd::engine::evaluate_function:MmBackward0"];
    assert_eq!(last_end(text, |deps| Box::new(Scaled(deps, GRADIENTS, 0.5))), 800);
}

proptest! {
    /// Nothing changes without a change, and nothing ends later where work takes less time.
    #[test]
    fn without_a_change_all_is_as_recorded(slices in slices_of_random(), factor in 0.0..1.0) {
        let store = testkit::store(&random(&slices));
        let deps = deps(&store);
        for (recorded, replayed) in ends(&deps, &Scaled(&deps, &[], 0.0)) {
            prop_assert_eq!(recorded, replayed);
        }
        for (recorded, replayed) in ends(&deps, &Scaled(&deps, &["x"], factor)) {
            prop_assert!(replayed <= recorded, "{} after {}", replayed, recorded);
        }
    }
}
