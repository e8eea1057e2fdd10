//! The facts about one slice, as text. No egui.

use super::{cpu_runs, find, flows::Arrow};
use std::{borrow::Cow, sync::Arc};
use trace_model::{Category, SliceRef, TrackId, TrackKind};
use trace_store::Store;
use ui::format;

/// The target of a click on a fact.
#[derive(Clone, Debug, PartialEq)]
pub enum Link {
    /// The node in the graph and in the summaries.
    Node(Arc<str>),
    Slice(SliceRef),
    Step(std::ops::Range<i64>),
}

/// One line of the details.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// The name of the fact: `Duration`.
    pub name: Cow<'static, str>,
    /// The fact as text: `1,234 ns`.
    pub value: String,
    pub link: Option<Link>,
}

const MADE_READY: &str = "Made ready by";
/// Arguments that are shown, at most.
const MAX_ARGS: usize = 64;
/// Bytes of an argument that are shown, at most.
const MAX_ARG_LEN: usize = 400;
/// CPUs of a slice that are listed, at most.
const MAX_CPUS: usize = 4;

/// A fact without a link.
fn fact(name: impl Into<Cow<'static, str>>, value: impl Into<String>) -> Fact {
    Fact { name: name.into(), value: value.into(), link: None }
}

fn fact_with_link(name: &'static str, value: String, link: Link) -> Fact {
    Fact { name: name.into(), value, link: Some(link) }
}

/// The slice that made this one ready, if the facts name one.
pub fn predecessor_of(facts: &[Fact]) -> Option<SliceRef> {
    facts.iter().filter(|f| f.name == MADE_READY).find_map(|f| match &f.link {
        Some(Link::Slice(slice)) => Some(*slice),
        _ => None,
    })
}

/// A duration rounded and exact: `1.23 ms (1,234,567 ns)`.
pub fn exact(ns: i64) -> String {
    let (short, long) = (format::duration_ns(ns), format::exact_ns(ns));
    if short == long { long } else { format!("{short} ({long})") }
}

/// The slice's facts, the most important first.
pub fn facts(store: &Store, slice: &SliceRef, arrows: &[Arrow]) -> Vec<Fact> {
    let category = store.category(slice);
    let site = store.sites().get(slice.site as usize);
    let mut out = Vec::new();
    if let Some(node) = store.node_of(slice) {
        out.push(fact_with_link("Node", node.name.clone(), Link::Node(node.name.as_str().into())));
    }
    if let Some(site) = site {
        out.push(fact(kind_label(category), &site.name));
    }
    out.push(fact("Duration", exact(slice.dur())));
    let self_ns = find::self_ns(store, slice);
    if self_ns != slice.dur() {
        out.push(fact("Self time", exact(self_ns)));
    }
    out.push(fact("Start", exact(slice.start)));
    if category == Category::Op {
        out.push(fact("Waited in queue", exact(store.queue_wait_ns(slice))));
        out.push(predecessor_fact(store, slice));
    }
    if category == Category::Shard {
        out.push(fact("Rows of work", format::count(u64::from(slice.arg as u32))));
    }
    if category == Category::Copy && slice.arg > 0 {
        out.push(fact("Bytes", format::bytes(slice.arg)));
    }
    if let Some(step) = store.step_id_of(slice) {
        out.push(step_fact(store, slice, step));
    }
    out.extend(place_facts(store, slice));
    out.extend(cpus_fact(store, slice));
    if let (Category::Other, Some(site)) = (category, site) {
        out.push(fact("Category", &site.category_name));
    }
    out.extend(arrows.iter().map(|arrow| arrow_fact(store, arrow)));
    out.extend(argument_facts(store, slice));
    out
}

/// The label of a slice's site name.
fn kind_label(category: Category) -> &'static str {
    match category {
        Category::Op => "Op",
        Category::Shard => "Part of op",
        Category::Launch => "Launch",
        Category::Kernel => "Kernel",
        Category::Copy => "Copy",
        Category::Collective => "Collective",
        Category::Sync => "Waits for",
        Category::Running => "Ran",
        Category::OffCpu => "Did not run",
        _ => "Name",
    }
}

/// The CPUs that the slice's thread ran on during the slice, where scheduling was recorded.
fn cpus_fact(store: &Store, slice: &SliceRef) -> Option<Fact> {
    let cpus = cpu_runs::shares(store, slice)?;
    let share = |ns: i64| format::percent(ns as f64 / slice.dur().max(1) as f64);
    let mut parts: Vec<String> =
        cpus.iter().take(MAX_CPUS).map(|(cpu, ns)| format!("CPU {cpu} ({})", share(*ns))).collect();
    if cpus.len() > MAX_CPUS {
        parts.push(format!("{} more", cpus.len() - MAX_CPUS));
    }
    let off_cpu_ns = slice.dur() - cpus.iter().map(|(_, ns)| ns).sum::<i64>();
    if off_cpu_ns > 0 {
        parts.push(format!("no CPU ({})", share(off_cpu_ns)));
    }
    Some(fact("Ran on", parts.join(", ")))
}

/// A fact such as `Led to`: the slice at the arrow's other end and the time between the two.
fn arrow_fact(store: &Store, arrow: &Arrow) -> Fact {
    let distance_ns = arrow.other_end.time - arrow.this_end.time;
    let order = if distance_ns < 0 { "before" } else { "after" };
    let distance = match arrow.error_ns {
        0 => format::duration_ns(distance_ns.abs()),
        error => format!("{} ± {}", format::duration_ns(distance_ns.abs()), format::duration_ns(error)),
    };
    let other_name = arrow.other_slice.map_or_else(
        || store.track(arrow.other_end.track).map_or_else(String::new, |t| t.name.clone()),
        |s| store.slice_name(&s).to_owned(),
    );
    let name = if arrow.leaves { "Led to" } else { "Came from" };
    Fact {
        name: name.into(),
        value: format!("{other_name}, {distance} {order} ({})", arrow.name),
        link: arrow.other_slice.map(Link::Slice),
    }
}

/// The slice's arguments, as the trace's source wrote them.
fn argument_facts(store: &Store, slice: &SliceRef) -> Vec<Fact> {
    let Some(text) = store.args().get(slice.args).filter(|t| !t.is_empty()) else { return Vec::new() };
    let Ok(serde_json::Value::Object(arguments)) = serde_json::from_str(&text) else {
        return vec![fact("Arguments", shorten(&text))];
    };
    let n_more = arguments.len().saturating_sub(MAX_ARGS);
    let mut out: Vec<Fact> = arguments
        .into_iter()
        .take(MAX_ARGS)
        .map(|(name, value)| match value {
            serde_json::Value::String(text) => fact(name, shorten(&text)),
            other => fact(name, shorten(&other.to_string())),
        })
        .collect();
    if n_more > 0 {
        out.push(fact("Arguments", format!("and {n_more} more")));
    }
    out
}

fn shorten(text: &str) -> String {
    format::shortened(text, MAX_ARG_LEN).into_owned()
}

/// The slice or node that made an op ready.
fn predecessor_fact(store: &Store, slice: &SliceRef) -> Fact {
    if slice.correlation == u32::MAX {
        return fact(MADE_READY, "the start of the step");
    }
    match find::predecessor(store, slice) {
        Some(before) => {
            let gap = slice.start - before.end;
            let value = format!("{}, {} before", store.slice_name(&before), format::duration_ns(gap));
            fact_with_link(MADE_READY, value, Link::Slice(before))
        }
        None => {
            let name = store.nodes().get(slice.correlation as usize).map_or("?", |n| &n.name);
            fact(MADE_READY, format!("{name} (its slice is not in the trace)"))
        }
    }
}

fn step_fact(store: &Store, slice: &SliceRef, id: u32) -> Fact {
    match store.step(id, slice.start) {
        Some(step) => {
            let label = store.sites().get(step.site as usize).map_or("step", |s| &s.name);
            let value = format!("{} (execution {id})", format::step_name(label, step.summary_step));
            fact_with_link("Step", value, Link::Step(step.start..step.end))
        }
        None => fact("Step", format!("execution {id}")),
    }
}

/// The device and the thread, stream or track that a slice ran on.
fn place_facts(store: &Store, slice: &SliceRef) -> Vec<Fact> {
    let mut out = Vec::new();
    if let Some(node) = store.node_of(slice).filter(|n| !n.device.is_empty()) {
        out.push(fact("Device", &node.device));
    }
    if let Some(track) = store.track(TrackId(slice.id.track)) {
        let label = match track.kind {
            TrackKind::Thread | TrackKind::Worker => "Thread",
            TrackKind::Stream => "Stream",
            _ => "Track",
        };
        let name = if track.tid > 0 { format!("{} ({})", track.name, track.tid) } else { track.name.clone() };
        out.push(fact(label, name));
        if !track.device.is_empty() {
            out.push(fact("Device", &track.device));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::{
        model::flows::arrows_of,
        testing::{demo, slice, store_of},
    };
    use std::fmt::Write as _;
    use trace_model::{Batch, Event, EventKind, NO_NODE, Name, TrackKey};

    fn check(name: &str) -> String {
        let store = demo(2);
        let slice = find::first_of_node(&store, name, 100_000).unwrap();
        facts(&store, &slice, &[]).iter().fold(String::new(), |mut out, f| {
            let link = if f.link.is_some() { " ->" } else { "" };
            writeln!(out, "{}: {}{link}", f.name, f.value).unwrap();
            out
        })
    }

    #[test]
    fn a_slice_has_its_cpus() {
        let store = cpu_runs::tests::two_cpus();
        let op = store.tracks().iter().find(|t| t.name == "worker").unwrap().lanes[0].slice(0).unwrap();
        let fact = cpus_fact(&store, &op).unwrap();
        assert_eq!((&*fact.name, &*fact.value), ("Ran on", "CPU 0 (40.0 %), CPU 1 (40.0 %), no CPU (20.0 %)"));
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

    #[test]
    fn an_arrow_between_hosts_has_the_error_of_their_clocks() {
        let mut batch = Batch::new();
        batch.set_origin(0);
        for (pid, host, bound_ns) in [(1, "a", 300), (2, "b", 1_200), (3, "a", 300)] {
            batch.name(Name::Process { pid, host: host.into(), name: "p".into(), ns_per_tick: 1.0 });
            let clock = Some(trace_model::ClockOffset { bound_ns, ..trace_model::ClockOffset::default() });
            batch.name(Name::Clock { pid, clock });
            batch.name(Name::Site { pid, id: 0, category: "op".into(), name: "Send".into() });
            batch.name(Name::Site { pid, id: 1, category: "edge".into(), name: "grpc".into() });
            let end = |kind, at, correlation| Event { kind, correlation, ..slice(at, at, 1, NO_NODE, 0) };
            let events = &mut batch.track(TrackKey { pid, ring: 0 }).events;
            events.push(slice(0, 9_000, 0, NO_NODE, 0));
            match pid {
                1 => events.extend([end(EventKind::FlowOut, 10, 7), end(EventKind::FlowOut, 20, 8)]),
                2 => events.push(end(EventKind::FlowIn, 5_000, 7)),
                _ => events.push(end(EventKind::FlowIn, 6_000, 8)),
            }
        }
        let store = store_of(batch);
        let send = store.tracks()[0].lanes[0].slice(0).unwrap();
        let mut errors: Vec<(i64, i64)> =
            arrows_of(&store, &send).iter().map(|arrow| (arrow.other_end.time, arrow.error_ns)).collect();
        errors.sort_unstable();
        assert_eq!(errors, [(5_000, 1_500), (6_000, 0)], "one host has one clock");
        let facts = facts(&store, &send, &arrows_of(&store, &send));
        assert!(facts.iter().any(|f| f.value == "Send, 4.99 µs ± 1.50 µs after (grpc)"), "{facts:?}");
    }
}
