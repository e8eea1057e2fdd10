//! What there is to say about one slice, in words. No egui.

use super::find;
use crate::format;
use profiler::{Category, SliceRef, Store, TrackId};
use std::sync::Arc;

/// Where a fact leads when clicked.
#[derive(Clone, Debug, PartialEq)]
pub enum Link {
    /// The node in the graph and in the summaries.
    Node(Arc<str>),
    /// Another slice.
    Slice(SliceRef),
    /// The range of a step.
    Step(std::ops::Range<i64>),
}

/// One line of the details.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// What it is about: `Duration`.
    pub name: &'static str,
    /// `1,234 ns`.
    pub value: String,
    /// Where it leads.
    pub link: Option<Link>,
}

fn fact(name: &'static str, value: impl Into<String>) -> Fact {
    Fact { name, value: value.into(), link: None }
}

/// The slice that made this one ready, where the facts name one.
pub fn predecessor_of(facts: &[Fact]) -> Option<SliceRef> {
    facts.iter().find_map(|f| match &f.link {
        Some(Link::Slice(slice)) => Some(*slice),
        _ => None,
    })
}

/// A time as people read it and exactly: `1.23 ms (1,234,567 ns)`.
pub fn exact(ns: i64) -> String {
    let (short, long) = (format::duration_ns(ns), format::exact_ns(ns));
    if short == long { long } else { format!("{short} ({long})") }
}

/// The slice's facts, most asked for first.
pub fn facts(store: &Store, slice: &SliceRef) -> Vec<Fact> {
    let category = store.category(slice);
    let site = store.sites().get(slice.site as usize);
    let mut out = Vec::new();
    if let Some(node) = store.node_of(slice) {
        let link = Some(Link::Node(node.name.as_str().into()));
        out.push(Fact { name: "Node", value: node.name.clone(), link });
    }
    if let Some(site) = site {
        let what = match category {
            Category::Op => "Op",
            Category::Shard => "Part of op",
            _ => "Name",
        };
        out.push(fact(what, &site.name));
    }
    out.push(fact("Duration", exact(slice.dur())));
    let self_ns = find::self_ns(store, slice);
    if self_ns != slice.dur() {
        out.push(fact("Self time", exact(self_ns)));
    }
    out.push(fact("Start", exact(slice.start)));
    if category == Category::Op {
        out.push(fact("Waited in queue", exact(store.queue_wait_ns(slice))));
        out.push(predecessor(store, slice));
    }
    if category == Category::Shard {
        out.push(fact("Rows of work", format::count(u64::from(slice.arg as u32))));
    }
    if let Some(step) = store.step_id_of(slice) {
        out.push(step_fact(store, slice, step));
    }
    out.extend(place(store, slice));
    if let (Category::Other, Some(site)) = (category, site) {
        out.push(fact("Category", &site.category_name));
    }
    out
}

fn predecessor(store: &Store, slice: &SliceRef) -> Fact {
    if slice.correlation == u32::MAX {
        return fact("Made ready by", "the start of the step");
    }
    match find::predecessor(store, slice) {
        Some(before) => {
            let gap = slice.start - before.end;
            let value = format!("{}, {} before", store.slice_name(&before), format::duration_ns(gap));
            Fact { name: "Made ready by", value, link: Some(Link::Slice(before)) }
        }
        None => {
            let name = store.nodes().get(slice.correlation as usize).map_or("?", |n| &n.name);
            fact("Made ready by", format!("{name} (its slice is not in the trace)"))
        }
    }
}

fn step_fact(store: &Store, slice: &SliceRef, id: u32) -> Fact {
    match store.step(id, slice.start) {
        Some(step) => {
            let label = store.sites().get(step.site as usize).map_or("step", |s| &s.name);
            let value = format!("{label} {} (execution {id})", format::step(step.summary_step));
            Fact { name: "Step", value, link: Some(Link::Step(step.start..step.end)) }
        }
        None => fact("Step", format!("execution {id}")),
    }
}

fn place(store: &Store, slice: &SliceRef) -> Vec<Fact> {
    let mut out = Vec::new();
    if let Some(node) = store.node_of(slice).filter(|n| !n.device.is_empty()) {
        out.push(fact("Device", &node.device));
    }
    if let Some(track) = store.track(TrackId(slice.id.track)) {
        out.push(fact("Thread", format!("{} ({})", track.name, track.tid)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::testing::demo;
    use std::fmt::Write as _;

    fn check(name: &str) -> String {
        let store = demo(2);
        let slice = find::first_of_node(&store, name, 100_000).unwrap();
        facts(&store, &slice).iter().fold(String::new(), |mut out, f| {
            let link = if f.link.is_some() { " ->" } else { "" };
            writeln!(out, "{}: {}{link}", f.name, f.value).unwrap();
            out
        })
    }

    #[test]
    fn an_op_says_all_it_knows() {
        assert_eq!(
            check("layer1/Add"),
            "Node: layer1/Add ->\nOp: Add\nDuration: 8.00 µs (8,000 ns)\nStart: 172 µs (172,000 ns)\n\
             Waited in queue: 2.00 µs (2,000 ns)\nMade ready by: layer1/MatMul, 2.00 µs before ->\n\
             Step: train 10 (execution 1) ->\nDevice: cpu:0\nThread: worker 2 (102)\n"
        );
        let product = check("layer1/MatMul");
        assert!(product.contains("Self time: 40.0 µs (40,000 ns)\n"), "{product}");
        assert!(product.contains("Made ready by: the start of the step\n"), "{product}");
    }
}
