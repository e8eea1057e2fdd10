//! Facts about a model's items that the graph file does not hold: from open traces and summaries, from another graph,
//! and from following edges.
//!
//! `times` sums up the traces of each node, with `health` (whether values are finite) and `devices` (where the node
//! ran); `over_steps` splits the time of one item by step; `summaries` finds the tags that record an item; `changes`
//! compares with another graph; `paths` follows edges.

mod changes;
mod devices;
mod health;
mod input;
mod over_steps;
mod paths;
mod summaries;
mod times;

pub(super) use changes::{ChangeCounts, Changes, GraphDiff};
pub(super) use health::Health;
pub(super) use input::Input;
pub(super) use over_steps::{StepCost, StepCosts, summary as step_summary};
pub(super) use paths::{downstream, nodes_between, upstream};
pub(super) use summaries::{Summaries, Tag};
pub(super) use times::{MAX_STEPS, Metric, NodeTime, Times};
