//! The thread that runs [`analysis`](super::model::analysis).

use super::model::{
    Findings, Question,
    analysis::{Request, answer},
};
use crate::data::ReadGuard;
use egui::Context;
use std::sync::Arc;
use trace_store::Store;
use ui::background::Refresher;

/// Least time between two analyses of a growing trace, seconds.
const REFRESH_S: f64 = 0.25;

/// Requests findings about a trace and stores the latest.
pub type Analyser = Refresher<Question, Request, Findings>;

/// Requests new findings where they are due; returns the latest.
pub fn findings(
    analyser: &mut Analyser,
    ctx: &Context,
    store: &ReadGuard<Store>,
    question: Question,
) -> Option<Arc<Findings>> {
    let request = |question, previous| Request { question, store: store.shared(), previous };
    analyser.ask(ctx, ("timeline analysis", answer), REFRESH_S, question, request)
}
