//! The white paper's placement (section 3.2.1): a simulated execution that puts each group of nodes, when its first member with
//! work is reached, on the device where that member ends soonest.
//!
//! Each device runs one node at a time; a value that is needed elsewhere arrives after its transfer. Nodes are reached in the
//! order in which they become ready, ties by number, so that equal graphs get equal placements. Nodes without work (constants,
//! variable handles, reads) wait for the first node with work that needs them and go there: placing them when they are
//! reached would scatter them blindly.
//!
//! Memory: what a device holds (variables of its groups, values until their last consumer ran, copies of values from
//! elsewhere) stays below its limit where any choice allows it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::device_set::DeviceSet;
use engine_core::device::Link;

/// A value or an order between two nodes.
#[derive(Debug, Clone, Copy)]
pub struct SimEdge {
    /// The node that it comes from.
    pub from: u32,
    /// Bytes of the value; 0 for a control edge.
    pub bytes: f64,
}

/// A node to place.
#[derive(Debug, Clone, Default)]
pub struct SimNode {
    /// Its colocation group.
    pub group: u32,
    /// Nanoseconds that it takes in a step, by device type.
    pub time_ns: Vec<f64>,
    /// Bytes of its outputs.
    pub bytes: f64,
    /// Bytes that stay on its device between steps.
    pub resident: f64,
    /// What it waits for, back edges of loops left out.
    pub inputs: Vec<SimEdge>,
}

/// A device to place on.
#[derive(Debug, Clone, Copy)]
pub struct SimDevice {
    /// Its type: an index into [`SimNode::time_ns`].
    pub kind: usize,
    /// Bytes that it can hold.
    pub memory: f64,
}

/// What is placed, and on what.
#[derive(Debug, Clone, Default)]
pub struct Simulation {
    /// In an order in which each comes after its inputs.
    pub nodes: Vec<SimNode>,
    /// What they can be on.
    pub devices: Vec<SimDevice>,
    /// `links[from][to]`.
    pub links: Vec<Vec<Link>>,
    /// The devices of each group; never empty.
    pub feasible: Vec<DeviceSet>,
}

/// A simulated execution.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The device of each group.
    pub device_of_group: Vec<u32>,
    /// When the last node ends.
    pub makespan_ns: f64,
    /// The most bytes that each device holds.
    pub peak: Vec<f64>,
    /// When each node ends.
    pub finish_ns: Vec<f64>,
    /// The nodes in an order in which they ran: each after its inputs, those of a device one after the other.
    pub order: Vec<u32>,
}

impl Outcome {
    /// Whether some device holds more than it can.
    pub fn exceeds(&self, devices: &[SimDevice]) -> bool {
        self.peak.iter().zip(devices).any(|(peak, device)| *peak > device.memory)
    }
}

impl Simulation {
    /// The better of the greedy placement and those on one device (with what must be elsewhere there): the one that respects the
    /// devices' memory, then the one that ends first.
    pub fn place(&self) -> Outcome {
        let mut best = self.greedy();
        // Where some group may be and need not be.
        let open: DeviceSet =
            self.feasible.iter().filter(|set| set.only().is_none()).flat_map(DeviceSet::iter).collect();
        for device in open.iter() {
            let on = |set: &DeviceSet| if set.has(device) { device } else { set.first() };
            let fixed: Vec<u32> = self.feasible.iter().map(on).collect();
            let other = self.run(&fixed);
            let key = |outcome: &Outcome| (outcome.exceeds(&self.devices), outcome.makespan_ns);
            let ((other_exceeds, other_ns), (best_exceeds, best_ns)) = (key(&other), key(&best));
            if (other_exceeds, other_ns) < (best_exceeds, best_ns) {
                best = other;
            }
        }
        best
    }

    /// The greedy placement. What it comes to is simulated again: its decisions are made before all places are known.
    pub fn greedy(&self) -> Outcome {
        let decided = Run::new(self, self.feasible.iter().map(|set| set.only().unwrap_or(OPEN)).collect()).run();
        self.run(&decided.device_of_group)
    }

    /// What a given placement of the groups comes to.
    pub fn run(&self, device_of_group: &[u32]) -> Outcome {
        Run::new(self, device_of_group.to_vec()).run()
    }

    /// Nanoseconds that a node takes on a device.
    pub fn time_ns(&self, node: usize, device: u32) -> f64 {
        self.nodes[node].time_ns[self.devices[device as usize].kind]
    }

    /// Nanoseconds that a value takes from one device to another.
    pub fn transfer(&self, from: u32, to: u32, bytes: f64) -> f64 {
        if from == to { 0.0 } else { self.links[from as usize][to as usize].transfer_ns(bytes) }
    }
}

/// Not decided yet.
const OPEN: u32 = u32::MAX;

/// A time that can be a key: all are finite and not negative.
#[derive(PartialEq)]
struct Time(f64);
impl Eq for Time {}
impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Time) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Time {
    fn cmp(&self, other: &Time) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

struct Run<'a> {
    sim: &'a Simulation,
    device_of_group: Vec<u32>,
    finish: Vec<f64>,
    /// Whether the node was reached; one whose group is open has no finish yet.
    is_reached: Vec<bool>,
    is_settled: Vec<bool>,
    free_at: Vec<f64>,
    /// Consumers that were not reached yet.
    uses_left: Vec<u32>,
    /// The devices that hold each node's outputs.
    holders: Vec<DeviceSet>,
    in_use: Vec<f64>,
    peak: Vec<f64>,
    resident_of_group: Vec<f64>,
    consumers: Vec<Vec<u32>>,
    order: Vec<u32>,
}

impl<'a> Run<'a> {
    fn new(sim: &'a Simulation, device_of_group: Vec<u32>) -> Run<'a> {
        let (n, n_devices) = (sim.nodes.len(), sim.devices.len());
        let mut consumers = vec![Vec::new(); n];
        let mut resident_of_group = vec![0.0; sim.feasible.len()];
        for (i, node) in sim.nodes.iter().enumerate() {
            node.inputs.iter().for_each(|edge| consumers[edge.from as usize].push(i as u32));
            resident_of_group[node.group as usize] += node.resident;
        }
        let mut run = Run {
            sim,
            device_of_group: vec![OPEN; device_of_group.len()],
            finish: vec![0.0; n],
            is_reached: vec![false; n],
            is_settled: vec![false; n],
            free_at: vec![0.0; n_devices],
            uses_left: consumers.iter().map(|c: &Vec<u32>| c.len() as u32).collect(),
            holders: vec![DeviceSet::default(); n],
            in_use: vec![0.0; n_devices],
            peak: vec![0.0; n_devices],
            resident_of_group,
            consumers,
            order: Vec::with_capacity(n),
        };
        for (group, device) in device_of_group.into_iter().enumerate().filter(|(_, device)| *device != OPEN) {
            run.decide(group as u32, device);
        }
        run
    }

    fn run(mut self) -> Outcome {
        let mut waits_for: Vec<u32> = self.sim.nodes.iter().map(|node| node.inputs.len() as u32).collect();
        let mut ready_at = vec![0.0f64; waits_for.len()];
        let mut ready: BinaryHeap<Reverse<(Time, u32)>> = BinaryHeap::new();
        let roots = (0..waits_for.len()).filter(|i| waits_for[*i] == 0);
        roots.for_each(|i| ready.push(Reverse((Time(0.0), i as u32))));
        while let Some(Reverse((Time(at), node))) = ready.pop() {
            self.reach(node, at);
            for i in 0..self.consumers[node as usize].len() {
                let consumer = self.consumers[node as usize][i] as usize;
                waits_for[consumer] -= 1;
                ready_at[consumer] = ready_at[consumer].max(self.finish[node as usize]);
                if waits_for[consumer] == 0 {
                    ready.push(Reverse((Time(ready_at[consumer]), consumer as u32)));
                }
            }
        }
        self.settle_the_rest();
        let makespan_ns = self.finish.iter().copied().fold(0.0, f64::max);
        Outcome {
            device_of_group: self.device_of_group,
            makespan_ns,
            peak: self.peak,
            finish_ns: self.finish,
            order: self.order,
        }
    }

    fn node(&self, id: u32) -> &'a SimNode {
        &self.sim.nodes[id as usize]
    }

    fn device(&self, id: u32) -> u32 {
        self.device_of_group[self.node(id).group as usize]
    }

    /// A node has all it waits for. `at` is a time at which that is so wherever it runs.
    fn reach(&mut self, id: u32, at: f64) {
        self.is_reached[id as usize] = true;
        let node = self.node(id);
        if self.device(id) == OPEN {
            if node.time_ns.iter().all(|t| *t == 0.0) {
                // Its place follows from a consumer's; a lower bound until then.
                self.finish[id as usize] = at;
                return;
            }
            let device = self.choose(id);
            self.decide(node.group, device);
        }
        self.execute(id);
    }

    /// The device where the node ends soonest among those with room; then the one free soonest, then the first.
    fn choose(&self, id: u32) -> u32 {
        let node = self.node(id);
        let mut best: Option<(f64, f64, f64, u32)> = None;
        for device in self.sim.feasible[node.group as usize].iter() {
            let d = device as usize;
            let begin = self.free_at[d].max(self.inputs_at(id, device));
            let finish = begin + node.time_ns[self.sim.devices[d].kind];
            let excess = (self.in_use[d] + self.need(id, device) - self.sim.devices[d].memory).max(0.0);
            let candidate = (excess, finish, self.free_at[d], device);
            if best.is_none_or(|best| candidate < best) {
                best = Some(candidate);
            }
        }
        best.map_or(0, |(.., device)| device)
    }

    /// Bytes that a device must have for a node of an open group.
    fn need(&self, id: u32, device: u32) -> f64 {
        let node = self.node(id);
        let copies = node.inputs.iter().filter(|edge| !self.holders[edge.from as usize].has(device));
        let resident = |edge: &SimEdge| {
            let group = self.node(edge.from).group as usize;
            if self.device_of_group[group] == OPEN { self.resident_of_group[group] } else { 0.0 }
        };
        let inputs: f64 = copies.map(|edge| edge.bytes + resident(edge)).sum();
        self.resident_of_group[node.group as usize] + node.bytes + inputs
    }

    /// When all inputs of a node are on a device. Open inputs would come along.
    fn inputs_at(&self, id: u32, device: u32) -> f64 {
        let arrival = |edge: &SimEdge| {
            let (from, finish) = (self.device(edge.from), self.finish[edge.from as usize]);
            match from {
                OPEN if self.sim.feasible[self.node(edge.from).group as usize].has(device) => {
                    self.open_at(edge.from, device, 0)
                }
                OPEN => finish + self.sim.links[0][device as usize].transfer_ns(edge.bytes),
                from => finish + self.sim.transfer(from, device, edge.bytes),
            }
        };
        self.node(id).inputs.iter().map(arrival).fold(0.0, f64::max)
    }

    /// When an open node would have its inputs on a device, a few nodes back.
    fn open_at(&self, id: u32, device: u32, depth: usize) -> f64 {
        const DEEPEST: usize = 4;
        let arrival = |edge: &SimEdge| match self.device(edge.from) {
            OPEN if depth < DEEPEST => self.open_at(edge.from, device, depth + 1),
            OPEN => self.finish[edge.from as usize],
            from => self.finish[edge.from as usize] + self.sim.transfer(from, device, edge.bytes),
        };
        self.node(id).inputs.iter().map(arrival).fold(0.0, f64::max)
    }

    /// Puts a group on a device.
    fn decide(&mut self, group: u32, device: u32) {
        self.device_of_group[group as usize] = device;
        let resident = self.resident_of_group[group as usize];
        self.take(device, resident);
    }

    fn take(&mut self, device: u32, bytes: f64) {
        let d = device as usize;
        self.in_use[d] += bytes;
        self.peak[d] = self.peak[d].max(self.in_use[d]);
    }

    /// Runs a node on its group's device, after the open nodes that it needs.
    fn execute(&mut self, id: u32) {
        let (sim, mut stack) = (self.sim, vec![id]);
        while let Some(&id) = stack.last() {
            let inputs = &self.node(id).inputs;
            let before = stack.len();
            stack.extend(inputs.iter().map(|edge| edge.from).filter(|from| !self.is_settled[*from as usize]));
            if stack.len() > before {
                let device = self.device(id);
                for &open in &stack[before..] {
                    let group = self.node(open).group;
                    if self.device_of_group[group as usize] == OPEN {
                        let set = &sim.feasible[group as usize];
                        self.decide(group, if set.has(device) { device } else { set.first() });
                    }
                }
                continue;
            }
            stack.pop();
            if !self.is_settled[id as usize] {
                self.settle(id);
            }
        }
    }

    /// Runs a node whose inputs have all run.
    fn settle(&mut self, id: u32) {
        let (node, device) = (self.node(id), self.device(id));
        let d = device as usize;
        for edge in &node.inputs {
            let from = edge.from as usize;
            if edge.bytes > 0.0 && !self.holders[from].has(device) {
                self.holders[from].insert(device);
                self.take(device, edge.bytes);
            }
        }
        let arrived = self.inputs_at(id, device);
        let time = node.time_ns[self.sim.devices[d].kind];
        // A node without work keeps no device busy.
        let begin = if time > 0.0 { arrived.max(self.free_at[d]) } else { arrived };
        self.finish[id as usize] = begin + time;
        self.free_at[d] = if time > 0.0 { begin + time } else { self.free_at[d] };
        self.holders[id as usize].insert(device);
        self.take(device, node.bytes);
        self.is_settled[id as usize] = true;
        self.order.push(id);
        for edge in &node.inputs {
            self.used(edge.from, edge.bytes);
        }
    }

    /// One consumer of a node ran: after the last one its outputs are gone.
    fn used(&mut self, id: u32, bytes: f64) {
        self.uses_left[id as usize] -= 1;
        if self.uses_left[id as usize] > 0 {
            return;
        }
        let (own, all) = (self.device(id), self.node(id).bytes);
        for device in self.holders[id as usize].iter() {
            let held = if device == own { all } else { bytes };
            let in_use = &mut self.in_use[device as usize];
            *in_use = (*in_use - held).max(0.0);
        }
    }

    /// Places the nodes without work that no node with work needs: with an input, or where the least is held.
    fn settle_the_rest(&mut self) {
        for id in 0..self.sim.nodes.len() as u32 {
            if self.is_settled[id as usize] {
                continue;
            }
            let group = self.node(id).group;
            if self.device_of_group[group as usize] == OPEN {
                let sim = self.sim;
                let set = &sim.feasible[group as usize];
                let near = self.node(id).inputs.iter().map(|edge| self.device(edge.from));
                let near = { near }.find(|device| *device != OPEN && set.has(*device));
                let least = || {
                    let held = |d: &u32| Time(self.in_use[*d as usize]);
                    set.iter().min_by_key(held).unwrap_or(0)
                };
                let device = near.unwrap_or_else(least);
                self.decide(group, device);
            }
            self.execute(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINK: Link = Link { bytes_per_ns: 1.0, latency_ns: 10.0 };

    fn simulation(n_devices: usize, memory: f64, nodes: Vec<SimNode>) -> Simulation {
        let feasible = vec![DeviceSet::all(n_devices); nodes.iter().map(|n| n.group + 1).max().unwrap_or(0) as usize];
        let devices = vec![SimDevice { kind: 0, memory }; n_devices];
        Simulation { nodes, devices, links: vec![vec![LINK; n_devices]; n_devices], feasible }
    }

    fn node(group: u32, time: f64, bytes: f64, inputs: &[(u32, f64)]) -> SimNode {
        let inputs = inputs.iter().map(|(from, bytes)| SimEdge { from: *from, bytes: *bytes }).collect();
        SimNode { group, time_ns: vec![time], bytes, resident: 0.0, inputs }
    }

    #[test]
    fn independent_work_is_spread_and_chains_stay_together() {
        // Two chains of 1000 ns nodes with values that are expensive to move.
        let chain = |first: u32| {
            let inner = |i: u32| if i == first { vec![] } else { vec![(i - 1, 5000.0)] };
            (first..first + 4).map(|i| node(i, 1000.0, 5000.0, &inner(i))).collect::<Vec<_>>()
        };
        let sim = simulation(2, f64::MAX, chain(0).into_iter().chain(chain(4)).collect());
        let outcome = sim.place();
        assert_eq!(outcome.device_of_group, [0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(outcome.makespan_ns, 4000.0);
        assert_eq!(sim.run(&[0; 8]).makespan_ns, 8000.0);
        // Round robin: three transfers one after the other, and at first two nodes on one device.
        assert_eq!(sim.run(&[0, 1, 0, 1, 0, 1, 0, 1]).makespan_ns, 5000.0 + 3.0 * 5010.0);
    }

    #[test]
    fn small_work_does_not_pay_for_its_transfer() {
        let nodes =
            vec![node(0, 100.0, 1000.0, &[]), node(1, 50.0, 0.0, &[(0, 1000.0)]), node(2, 50.0, 0.0, &[(0, 1000.0)])];
        let outcome = simulation(4, f64::MAX, nodes).place();
        assert_eq!((outcome.device_of_group, outcome.makespan_ns), (vec![0, 0, 0], 200.0));
    }

    #[test]
    fn nodes_without_work_go_with_their_consumers() {
        // handle -> read -> product, twice; the products run side by side.
        let mut nodes = Vec::new();
        for i in 0..2u32 {
            let first = 3 * i;
            nodes.push(SimNode { resident: 400.0, ..node(2 * i, 0.0, 0.0, &[]) });
            nodes.push(node(2 * i, 0.0, 400.0, &[(first, 0.0)]));
            nodes.push(node(2 * i + 1, 1000.0, 10.0, &[(first + 1, 400.0)]));
        }
        let outcome = simulation(2, f64::MAX, nodes).place();
        assert_eq!((outcome.device_of_group, outcome.makespan_ns), (vec![0, 0, 1, 1], 1000.0));
    }

    #[test]
    fn a_full_device_is_avoided() {
        let variable = |group| SimNode { resident: 600.0, ..node(group, 0.0, 0.0, &[]) };
        let nodes =
            vec![variable(0), node(0, 10.0, 0.0, &[(0, 0.0)]), variable(1), node(1, 10.0, 0.0, &[(2, 0.0), (1, 0.0)])];
        let roomy = simulation(2, 2000.0, nodes.clone()).place();
        assert_eq!(roomy.device_of_group, [0, 0]);
        let tight = simulation(2, 1000.0, nodes).place();
        assert_eq!(tight.device_of_group, [0, 1]);
        assert_eq!(tight.peak, [600.0, 600.0]);
    }

    prop_compose! {
        fn any_graph()(n in 1usize..40)(
            n_groups in 1..=n as u32,
            raw in proptest::collection::vec(
                (any::<u32>(), 0u32..2000, 0u32..5000, proptest::collection::vec(any::<u32>(), 0..3)), n)
        ) -> Vec<SimNode> {
            raw.iter().enumerate().map(|(i, (group, time, bytes, inputs))| {
                let inputs: Vec<(u32, f64)> = inputs.iter().filter(|_| i > 0)
                    .map(|from| (from % i as u32, f64::from(raw[(from % i as u32) as usize].2))).collect();
                let time = if time % 3 == 0 { 0 } else { *time };
                node(group % n_groups, f64::from(time), f64::from(*bytes), &inputs)
            }).collect()
        }
    }

    proptest! {
        #[test]
        fn it_is_never_worse_than_one_device_and_repeats_itself(nodes in any_graph(), n_devices in 1usize..5) {
            let sim = simulation(n_devices, f64::MAX, nodes);
            let outcome = sim.place();
            prop_assert!(outcome.makespan_ns <= sim.run(&vec![0; sim.feasible.len()]).makespan_ns);
            prop_assert_eq!(&sim.run(&outcome.device_of_group).makespan_ns, &outcome.makespan_ns);
            prop_assert_eq!(sim.place(), outcome.clone());
            // Nothing is faster than its longest path or the work over all devices.
            let total: f64 = sim.nodes.iter().map(|n| n.time_ns[0]).sum();
            prop_assert!(outcome.makespan_ns >= total / n_devices as f64 - 1e-6);
            for (i, node) in sim.nodes.iter().enumerate() {
                for edge in &node.inputs {
                    prop_assert!(outcome.finish_ns[edge.from as usize] + node.time_ns[0] <= outcome.finish_ns[i] + 1e-6);
                }
            }
        }
    }
}
