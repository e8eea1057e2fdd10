//! The contents of the timeline, independent of view, zoom and pixels. No egui.

pub mod analysis;
pub mod cpu_runs;
pub mod durations;
pub mod facts;
pub mod find;
pub mod flame;
pub mod flows;
pub mod folding;
pub mod log;
pub mod rows;
pub mod steps;

pub use self::{
    analysis::{Findings, Question, RangeFacts},
    durations::DurationHistogram,
    facts::{Fact, Link, exact},
    find::{Matches, Query},
    flame::FlameBox,
    flows::Arrow,
    folding::Folding,
    rows::{Row, Rows},
    steps::ComparedStep,
};
