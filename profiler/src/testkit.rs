//! Stores from text, for the tests of the analyses.

use crate::batch::{Batch, Event, EventKind, NO_NODE, Name, TrackKey};
use crate::store::{Store, StoreOptions};
use std::collections::BTreeMap;

const PID: u32 = 1;

/// A store of one process with origin 0 from lines such as
///
/// ```text
/// step 7: 0..100              a step slice on the track `main`
/// step 8: on w0 0..100        the same on another track
/// w0 A 0..10                  an op slice of the node `A` on the track `w0`, in the step above
/// w0 B 12..28 by A queue 2    made ready by `A`, ready 2 ns before it started
/// w1 shard B 13..20
/// w1 idle 0..13
/// ```
///
/// A node's op type is its name's last part without digits. Indented by `>` a slice is nested that deep.
pub(crate) fn store(text: &str) -> Store {
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    store.apply(batch(text));
    store
}

pub(crate) fn batch(text: &str) -> Batch {
    let mut kit = Kit::default();
    kit.batch.set_origin(0);
    kit.batch.name(Name::Process { pid: PID, host: "h".into(), name: "p".into(), ns_per_tick: 1.0 });
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty()) {
        kit.line(line);
    }
    kit.batch
}

#[derive(Default)]
struct Kit {
    batch: Batch,
    tracks: BTreeMap<String, u32>,
    sites: BTreeMap<String, u32>,
    nodes: BTreeMap<String, u32>,
    step: u32,
}

impl Kit {
    fn line(&mut self, line: &str) {
        let depth = line.chars().take_while(|c| *c == '>').count() as u8;
        let words: Vec<&str> = line[depth as usize..].split_whitespace().collect();
        match words[..] {
            ["step", id, "on", track, range] => {
                self.step = id.trim_end_matches(':').parse().unwrap();
                let site = self.site("step", "init");
                self.push(track, depth, range, site, NO_NODE, self.step, 0);
            }
            ["step", id, range] => {
                self.step = id.trim_end_matches(':').parse().unwrap();
                let site = self.site("step", "train");
                self.push("main", depth, range, site, NO_NODE, self.step, u64::from(self.step) * 10);
            }
            [track, "idle", range] => {
                let site = self.site("wait", "idle");
                self.push(track, depth, range, site, NO_NODE, self.step, 0);
            }
            [track, "shard", node, range] => {
                let site = self.site("shard", &op_of(node));
                let node = self.node(node);
                self.push(track, depth, range, site, node, 0, u64::from(self.step) << 32 | 1);
            }
            [track, node, range, ref rest @ ..] => {
                let site = self.site("op", &op_of(node));
                let node = self.node(node);
                let (mut by, mut queue) = (NO_NODE, 0);
                for pair in rest.chunks(2) {
                    match pair {
                        ["by", other] => by = self.node(other),
                        ["queue", ns] => queue = ns.parse().unwrap(),
                        _ => panic!("{line}"),
                    }
                }
                self.push(track, depth, range, site, node, by, u64::from(self.step) << 32 | queue);
            }
            _ => panic!("{line}"),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of an event")]
    fn push(&mut self, track: &str, depth: u8, range: &str, site: u32, node: u32, correlation: u32, arg: u64) {
        let (start, end) = range.split_once("..").unwrap();
        let n = self.tracks.len() as u32;
        let ring = *self.tracks.entry(track.to_owned()).or_insert(n);
        let key = TrackKey { pid: PID, ring };
        if ring == n {
            self.batch.name(Name::Thread { key, name: track.to_owned(), tid: ring });
        }
        let (start, end) = (start.parse().unwrap(), end.parse().unwrap());
        self.batch.track(key).events.push(Event {
            kind: EventKind::Slice,
            depth,
            start,
            end,
            site,
            node,
            correlation,
            arg,
            args: crate::batch::NO_ARGS,
        });
    }

    fn site(&mut self, category: &str, name: &str) -> u32 {
        let id = self.sites.len() as u32;
        let key = format!("{category} {name}");
        if let Some(id) = self.sites.get(&key) {
            return *id;
        }
        self.sites.insert(key, id);
        self.batch.name(Name::Site { pid: PID, id, category: category.into(), name: name.into() });
        id
    }

    fn node(&mut self, name: &str) -> u32 {
        let id = self.nodes.len() as u32;
        if let Some(id) = self.nodes.get(name) {
            return *id;
        }
        self.nodes.insert(name.to_owned(), id);
        self.batch.name(Name::Node { pid: PID, id, name: name.into(), op: op_of(name), device: "cpu:0".into() });
        id
    }
}

fn op_of(node: &str) -> String {
    node.rsplit('/').next().unwrap_or(node).trim_end_matches(|c: char| c.is_ascii_digit()).to_owned()
}
