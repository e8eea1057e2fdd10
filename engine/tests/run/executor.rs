//! Random graphs, run by one and by several workers, against a serial reference.

use crate::common::{session, source};
use engine::Tensor;
use engine::graph::{Graph, NodeId, Output, Value};
use proptest::prelude::*;

/// A node of a random graph: indices of data inputs and of nodes it runs after, all before itself.
#[derive(Debug, Clone)]
struct Spec {
    inputs: Vec<usize>,
    after: Vec<usize>,
    bias: u8,
    work: u16,
}

fn specs() -> impl Strategy<Value = Vec<Spec>> {
    let raw = (
        prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        any::<u8>(),
        // Mostly cheap, some worth another thread.
        prop_oneof![4 => Just(0u16), 1 => 0..3000u16],
    );
    prop::collection::vec(raw, 1..80).prop_map(|nodes| {
        let before = |at: usize, picks: Vec<prop::sample::Index>| {
            if at == 0 { Vec::new() } else { picks.into_iter().map(|pick| pick.index(at)).collect() }
        };
        let spec = |(at, (inputs, after, bias, work))| Spec {
            inputs: before(at, inputs),
            after: before(at, after),
            bias,
            work,
        };
        nodes.into_iter().enumerate().map(spec).collect()
    })
}

fn build(specs: &[Spec]) -> Graph {
    let g = Graph::new();
    let mut values: Vec<Value<'_>> = Vec::new();
    for (i, spec) in specs.iter().enumerate() {
        let name = format!("n{i}");
        let inputs: Vec<Value<'_>> = spec.inputs.iter().map(|input| values[*input]).collect();
        let after: Vec<NodeId> = spec.after.iter().map(|node| values[*node].node()).collect();
        let node = if inputs.is_empty() {
            g.add_node("TestSource").attr("value", f32::from(spec.bias))
        } else {
            let bias = f32::from(spec.bias);
            g.add_node("TestSum").inputs(&inputs).attr("bias", bias).attr("work", i64::from(spec.work))
        };
        values.push(node.name(&name).after(&after).value());
    }
    g
}

/// What each node gives when `fed` nodes have the value -1. Kept small, so that sums are exact.
fn reference(specs: &[Spec], fed: &[usize]) -> Vec<f32> {
    let mut values: Vec<f32> = Vec::new();
    for (i, spec) in specs.iter().enumerate() {
        let sum: f32 = f32::from(spec.bias) + spec.inputs.iter().map(|input| values[*input]).sum::<f32>();
        values.push(if fed.contains(&i) { -1.0 } else { sum });
    }
    values
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_graph_gives_what_a_serial_run_gives(
        specs in specs(),
        feeds in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        fetches in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
        threads in 1usize..5,
    ) {
        let g = build(&specs);
        let s = session(&g, threads);
        let mut fed: Vec<usize> = feeds.iter().map(|feed| feed.index(specs.len())).collect();
        fed.sort_unstable();
        fed.dedup();
        let wanted: Vec<usize> = fetches.iter().map(|fetch| fetch.index(specs.len())).collect();
        let names: Vec<String> = (0..specs.len()).map(|i| format!("n{i}")).collect();
        let feeds: Vec<(&str, Tensor)> = fed.iter().map(|i| (&*names[*i], Tensor::scalar(-1.0f32))).collect();
        let fetches: Vec<&str> = wanted.iter().map(|i| &*names[*i]).collect();
        let expected = reference(&specs, &fed);
        // Sums beyond 2^24 would round by order.
        prop_assume!(expected.iter().all(|v| v.abs() < 1e7));
        // Several times: the first steps are measured, later ones chosen by what was measured.
        for _ in 0..6 {
            let values = s.run(&feeds, &fetches, &[]).unwrap();
            for (value, want) in values.iter().zip(&wanted) {
                prop_assert_eq!(value.item::<f32>().unwrap(), expected[*want]);
            }
        }
    }
}

/// Many expensive nodes at once, again and again: every worker steals, parks and wakes.
#[test]
fn wide_steps_lose_no_node() {
    let g = Graph::new();
    let x = source(&g, "x", 1.0);
    let mut layer = vec![x; 8];
    for i in 0..6 {
        let next = |k: usize| {
            let inputs = [layer[k], layer[(k + 1) % 8]];
            g.add_node("TestSum").name(&format!("w{i}_{k}")).inputs(&inputs).attr("work", 20_000).value().output()
        };
        layer = (0..8).map(next).collect();
    }
    crate::common::sum(&g, "y", &layer);
    for threads in [2, 3, 8] {
        let s = session(&g, threads);
        let y = s.prepare(&[], &["y"], &[]).unwrap();
        for _ in 0..40 {
            assert_eq!(crate::common::value(&y.run(&[]).unwrap()), 8.0 * 64.0);
        }
    }
}

/// A step that fails in the middle of shared work leaves nothing behind.
#[test]
fn failed_shared_steps_are_drained() {
    let g = Graph::new();
    let x = source(&g, "x", 1.0);
    let work = |name: &str, x: Output| g.add_node("TestSum").name(name).input(x).attr("work", 20_000).value().output();
    let mut ends: Vec<Output> = (0..8).map(|i| work(&format!("w{i}"), work(&format!("v{i}"), x))).collect();
    ends.push(g.add_node("TestFail").name("bad").input(ends[3]).value().output());
    crate::common::sum(&g, "y", &ends);
    let s = session(&g, 3);
    for _ in 0..20 {
        assert!(s.run(&[], &["y"], &[]).unwrap_err().to_string().starts_with("node bad (op TestFail"));
        assert_eq!(crate::common::value(&s.run(&[("bad", Tensor::scalar(1.0f32))], &["y"], &[]).unwrap()), 9.0);
    }
}
