//! The thread that runs [`analysis`](super::model::analysis), requested no more often than is due.

use super::model::{
    Findings, Question,
    analysis::{Request, answer},
};
use crate::data::ReadGuard;
use egui::Context;
use std::sync::Arc;
use trace_store::Store;
use ui::background::Refresher;

/// How often a growing trace is analysed anew, seconds.
const REFRESH_S: f64 = 0.25;

/// The findings about a trace.
pub type Analyser = Refresher<Question, Request, Findings>;

/// The latest findings, after a request for newer ones where that is due.
pub fn findings(
    analyser: &mut Analyser,
    ctx: &Context,
    store: &ReadGuard<Store>,
    question: Question,
) -> Option<Arc<Findings>> {
    let request = |question, before| Request { question, store: store.shared(), before };
    analyser.ask(ctx, ("timeline analysis", answer), REFRESH_S, question, request)
}
