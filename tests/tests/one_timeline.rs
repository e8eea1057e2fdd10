//! Training in several processes is one timeline: each value between them is an arrow with both ends, and what it held up is blamed on
//! the process that it came from.

use std::collections::BTreeSet;
use std::process::Command;

use stepscope_tests::stepscope_binary;
use trace_analysis::stalls::Cause;
use trace_store::{Store, TraceReader};

const STEPS: usize = 12;

fn trained() -> Option<Store> {
    let binary = stepscope_binary("the timeline of several processes")?;
    let folder = tempfile::tempdir().expect("a scratch folder");
    let logdir = folder.path().join("run");
    let steps = STEPS.to_string();
    let args = ["train", "mlp", "--workers", "3", "--threads", "1", "--quiet", "--steps", &steps, "--logdir"];
    let output = Command::new(&binary).args(args).arg(&logdir).output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut store = Store::default();
    let mut reader = TraceReader::open(&logdir.join("trace")).expect("the trace opens");
    reader.read_all(&mut store).expect("the trace reads");
    Some(store)
}

#[test]
fn values_between_processes_are_arrows_and_stalls() {
    let Some(store) = trained() else { return };
    let process = |track: trace_model::TrackId| store.track(track).expect("an arrow's track is there").process;
    let between: Vec<_> = store.transfers().iter().filter(|transfer| transfer.scope == u32::MAX).collect();
    // Variables to two towers and their gradients back, in every step.
    assert!(between.len() > STEPS * 10, "{} values", between.len());
    let mut ways = BTreeSet::new();
    for transfer in &between {
        let (Some(from), Some(to)) = (transfer.from, transfer.to) else { panic!("an end is missing: {transfer:?}") };
        ways.insert((process(from), process(to)));
        let stamps = [transfer.enqueued, transfer.sent, transfer.left, transfer.arrived, transfer.unblocked];
        let stamps = stamps.map(|stamp| stamp.expect("each stamp came"));
        // One machine's clock: no value comes before it went, but for what the clocks of two processes differ.
        assert!(stamps[1] < stamps[3] + 50_000, "{transfer:?}");
    }
    assert_eq!(ways.len(), 4, "the home to two others and back: {ways:?}");
    assert!(ways.iter().all(|(from, to)| from != to), "{ways:?}");
    let causes: Vec<Cause> = trace_analysis::stalls(&store, store.range()).iter().map(|stall| stall.cause).collect();
    let of_others = causes.iter().filter(|cause| matches!(cause, Cause::PeerLate | Cause::Network)).count();
    assert!(of_others > STEPS, "{of_others} of {} stalls", causes.len());
}

#[test]
fn between_its_steps_a_worker_waits_for_the_others_not_for_nobody() {
    let Some(store) = trained() else { return };
    let sites = store.sites();
    let of = |name: &str| {
        let is_it = |site: u32| sites.get(site as usize).is_some_and(|s| s.category_name == "edge" && s.name == name);
        store.flows().filter(|flow| is_it(flow.site)).collect::<Vec<_>>()
    };
    for name in ["run", "ran"] {
        let arrows = of(name);
        // A message to each of three workers in every step, and its answer.
        assert!(arrows.len() >= STEPS * 3, "{} arrows '{name}'", arrows.len());
        let whole = arrows.iter().filter(|flow| flow.from.is_some() && flow.to.is_some()).count();
        assert_eq!(whole, arrows.len(), "'{name}' with both ends");
    }
    let first_step =
        store.steps().iter().filter(|step| sites[step.site as usize].name == "train").map(|s| s.start).min();
    let range = first_step.expect("steps that train")..store.range().end;
    let totals = trace_analysis::stalls::by_cause(&trace_analysis::stalls(&store, range));
    let all: i64 = totals.iter().map(|total| total.total_ns).sum();
    let unexplained: i64 = totals.iter().filter(|t| t.cause == Cause::Unexplained).map(|t| t.total_ns).sum();
    assert!(unexplained * 4 < all, "{unexplained} of {all} ns are unexplained: {totals:?}");
}
