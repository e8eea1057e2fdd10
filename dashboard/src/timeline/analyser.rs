//! The thread that runs [`analysis`](super::model::analysis), asked no oftener than is due.

use super::{
    background::Background,
    model::analysis::{Findings, Question, Request, answer},
};
use crate::data::Held;
use egui::Context;
use profiler::Store;
use std::sync::Arc;

/// How often a growing trace is analysed anew, seconds.
const REFRESH_S: f64 = 0.25;

/// Asks the thread no oftener than is due, and keeps its latest answer.
#[derive(Default)]
pub struct Analyser {
    analysis: Option<Background<Request, Findings>>,
    asked: Option<(Question, f64)>,
}

impl Analyser {
    /// The latest findings, after asking for newer ones where that is due.
    pub fn findings(
        &mut self,
        ctx: &Context,
        store: &Held<Store>,
        question: Question,
        now: f64,
    ) -> Option<Arc<Findings>> {
        let analysis = self.analysis.get_or_insert_with(|| {
            let ctx = ctx.clone();
            Background::start("timeline analysis", answer, move || ctx.request_repaint())
        });
        let result = analysis.result();
        let is_short = self.asked.as_ref().is_none_or(|(asked, _)| is_moved(asked, &question, store.is_live()));
        let pause = if is_short { REFRESH_S } else { analysis.refresh_s(REFRESH_S) };
        let due = match &self.asked {
            None => true,
            Some((asked, _)) if *asked == question => false,
            // A live trace changes all the time; that alone does not hurry.
            Some((asked, at)) => {
                let hurried = Question { version: 0, view: 0..0, ..asked.clone() }
                    != Question { version: 0, view: 0..0, ..question.clone() };
                hurried || now - at >= pause
            }
        };
        if due && !analysis.is_busy() {
            let request = Request { question: question.clone(), store: store.shared(), before: result.clone() };
            analysis.request(request);
            self.asked = Some((question, now));
        } else if self.asked.as_ref().is_none_or(|(asked, _)| *asked != question) {
            ctx.request_repaint_after_secs(pause as f32);
        }
        result
    }
}

/// Whether somebody moved the view, who waits for what it shows, and it is not the trace that grew: then the view goes on
/// with its end, or holds all that it held. (Slices that come from the disk are another version of a trace too.)
fn is_moved(asked: &Question, now: &Question, is_live: bool) -> bool {
    let is_elsewhere = now.view.start > asked.view.start || now.view.end < asked.view.end;
    asked.version == now.version || is_elsewhere && !is_live
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;

    #[test]
    fn a_moved_view_is_not_one_that_grows() {
        let of = |version, view: Range<i64>| Question { version, view, ..Question::default() };
        let asked = of(1, 0..100);
        assert!(is_moved(&asked, &of(1, 40..60), true) && is_moved(&asked, &of(1, 0..200), false));
        assert!(is_moved(&asked, &of(2, 40..60), false), "closer, and slices came from the disk");
        assert!(!is_moved(&asked, &of(2, 40..140), true), "follows the end");
        assert!(!is_moved(&asked, &of(2, -1..120), false), "all of a trace that is read");
    }
}
