//! The thread that runs [`analysis`](super::model::analysis), requested no more often than is due.

use super::model::{
    Findings, Question,
    analysis::{Request, answer},
};
use crate::data::ReadGuard;
use egui::Context;
use std::sync::Arc;
use trace_store::Store;
use ui::background::Background;

/// How often a growing trace is analysed anew, seconds.
const REFRESH_S: f64 = 0.25;

/// Sends requests to the thread no more often than is due, and holds the latest findings.
#[derive(Default)]
pub struct Analyser {
    analysis: Option<Background<Request, Findings>>,
    requested: Option<(Question, f64)>,
}

impl Analyser {
    /// The latest findings, after a request for newer ones where that is due.
    pub fn findings(
        &mut self,
        ctx: &Context,
        store: &ReadGuard<Store>,
        question: Question,
        now: f64,
    ) -> Option<Arc<Findings>> {
        let analysis = self.analysis.get_or_insert_with(|| {
            let ctx = ctx.clone();
            Background::start("timeline analysis", answer, move || ctx.request_repaint())
        });
        let result = analysis.result();
        let is_short =
            self.requested.as_ref().is_none_or(|(requested, _)| is_moved(requested, &question, store.is_live()));
        let pause = if is_short { REFRESH_S } else { analysis.refresh_s(REFRESH_S) };
        let due = match &self.requested {
            None => true,
            Some((requested, _)) if *requested == question => false,
            // A live trace changes all the time; that alone does not hurry.
            Some((requested, at)) => {
                let hurried = Question { version: 0, view: 0..0, ..requested.clone() }
                    != Question { version: 0, view: 0..0, ..question.clone() };
                hurried || now - at >= pause
            }
        };
        if due && !analysis.is_busy() {
            let request = Request { question: question.clone(), store: store.shared(), before: result.clone() };
            analysis.request(request);
            self.requested = Some((question, now));
        } else if self.requested.as_ref().is_none_or(|(requested, _)| *requested != question) {
            ctx.request_repaint_after_secs(pause as f32);
        }
        result
    }
}

/// Whether the user moved the view and waits for what it shows, and not the trace grew: then the view goes on with its end,
/// or still has all that it had. (Slices that come from the disk are another version of a trace too.)
fn is_moved(requested: &Question, now: &Question, is_live: bool) -> bool {
    let is_elsewhere = now.view.start > requested.view.start || now.view.end < requested.view.end;
    requested.version == now.version || is_elsewhere && !is_live
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;

    #[test]
    fn a_moved_view_is_not_one_that_grows() {
        let of = |version, view: Range<i64>| Question { version, view, ..Question::default() };
        let requested = of(1, 0..100);
        assert!(is_moved(&requested, &of(1, 40..60), true) && is_moved(&requested, &of(1, 0..200), false));
        assert!(is_moved(&requested, &of(2, 40..60), false), "closer, and slices came from the disk");
        assert!(!is_moved(&requested, &of(2, 40..140), true), "follows the end");
        assert!(!is_moved(&requested, &of(2, -1..120), false), "all of a trace that is read");
    }
}
