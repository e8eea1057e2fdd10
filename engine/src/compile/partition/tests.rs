//! Divided graphs in the simulation: what delayed receives do to time and memory.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::compile::Signature;
use crate::compile::WorkId;
use crate::compile::placement::simulate::Outcome;
use crate::compile::placement::{self, Costs, Pins, PlacementOptions, fixed_simulation};
use engine_core::device::Device;
use engine_core::graph::{Graph, Output};
use engine_core::tensor::Tensor;

/// A graph's simulated step, divided as its nodes ask, and how many receives wait for something.
fn simulated(g: &Graph, fetch: Output, devices: &[Arc<Device>], delays_receives: bool) -> (Outcome, usize) {
    let (placement, pins) = (PlacementOptions::default(), Pins::default());
    let transfers = TransferOptions { delays_receives, ..TransferOptions::default() };
    let (unknown_dim, peaks) = (32, Default::default());
    let (placement, transfers, pins) = (&placement, &transfers, &pins);
    let context = PassContext {
        source: None,
        devices,
        dump: None,
        placement,
        transfers,
        pins,
        unknown_dim,
        peaks,
        relaxed: std::cell::RefCell::default(),
    };
    let signature = Signature { fetches: vec![fetch], ..Signature::default() };
    let mut graph = WorkGraph::pruned(&g.nodes(), &signature).unwrap();
    placement::place(&mut graph, &context).unwrap();
    let pairs = divide(&mut graph, &context).unwrap();
    crate::compile::passes::verify::verify(&graph, "partition").unwrap();
    let order = graph.order().unwrap();
    let costs = Costs::new(devices, None);
    let (simulation, _) = fixed_simulation(&graph, &order, &pairs, devices, &costs);
    let device = |id: &WorkId| graph.get(*id).unwrap().device;
    let outcome = simulation.run(&order.iter().map(device).collect::<Vec<_>>());
    assert_eq!(outcome.order.len(), order.len(), "no circle through the transfers");
    let waits = pairs.iter().filter(|pair| !graph.get(pair.recv).unwrap().control_inputs.is_empty());
    (outcome, waits.count())
}

/// A chain of matrix products on device 1, each with a matrix from device 0.
fn weights_elsewhere(n: usize) -> (Graph, Output) {
    let g = Graph::new();
    let (first, second) = (g.with_device("/cpu:0"), g.with_device("/cpu:1"));
    let matrix = || Tensor::from_vec([64, 64], vec![0.01f32; 64 * 64]).unwrap();
    let mut x = second.constant(matrix());
    for _ in 0..n {
        x = x.matmul_with(first.constant(matrix()), false, false);
    }
    let x = x.output();
    (g, x)
}

#[test]
fn delayed_receives_need_less_memory_and_no_more_time() {
    let (g, fetch) = weights_elsewhere(24);
    let devices = Device::cpus(2, usize::MAX);
    let (eager, none) = simulated(&g, fetch, &devices, false);
    let (delayed, some) = simulated(&g, fetch, &devices, true);
    assert_eq!(none, 0);
    assert!(some > 16, "{some} of 24 receives wait");
    assert!(delayed.makespan_ns <= eager.makespan_ns, "{} {}", delayed.makespan_ns, eager.makespan_ns);
    assert!(delayed.peak[1] * 4.0 < eager.peak[1], "{} {}", delayed.peak[1], eager.peak[1]);
}

proptest! {
    #[test]
    fn delays_never_lengthen_the_simulated_step(
        nodes in proptest::collection::vec((any::<usize>(), any::<usize>(), 0usize..3), 1..40),
    ) {
        let g = Graph::new();
        let mut made = vec![g.constant(Tensor::from_vec([32, 32], vec![0.1f32; 1024]).unwrap()).output()];
        for (a, b, device) in &nodes {
            let (a, b) = (made[a % made.len()], made[b % made.len()]);
            let on = g.with_device(&format!("/cpu:{device}"));
            let a = on.value(a);
            made.push(if device % 2 == 0 { a.matmul_with(b, false, true) } else { a + b }.output());
        }
        let (devices, fetch) = (Device::cpus(3, usize::MAX), *made.last().unwrap());
        let (eager, _) = simulated(&g, fetch, &devices, false);
        let (delayed, _) = simulated(&g, fetch, &devices, true);
        prop_assert!(delayed.makespan_ns <= eager.makespan_ns * (1.0 + 1e-9), "{} {}", delayed.makespan_ns, eager.makespan_ns);
    }
}
