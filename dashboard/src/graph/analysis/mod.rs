//! Facts about a model's items that the graph file does not hold: what open traces and summaries say, what another
//! graph has, what depends on what.
//!
//! `times` sums up what traces record of each node, with `health` (are its values finite) and `devices` (where it ran);
//! `over_steps` splits the time of one item by step; `summaries` finds the tags that record an item; `changes` compares
//! with another graph; `paths` follows edges.

mod changes;
mod devices;
mod health;
mod input;
mod over_steps;
mod paths;
mod summaries;
mod times;

pub(super) use changes::{Changes, Counts, GraphDiff};
pub(super) use health::Health;
pub(super) use input::Input;
pub(super) use over_steps::{OverSteps, StepCost, summary as step_summary};
pub(super) use paths::{downstream, nodes_between, upstream};
pub(super) use summaries::{Summaries, Tag};
pub(super) use times::{MAX_STEPS, Metric, NodeTime, Times};
