//! The analysis of a trace or of a range, repeated while the trace grows. Ops and Bottlenecks use it.

use crate::{
    Data,
    data::{Shared, TraceData},
};
use egui::Ui;
use std::{ops::Range, sync::Arc};
use trace_store::Store;
use ui::background::{Question, Refresher, Urgency};

/// The trace and range of an analysis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeQuestion {
    pub trace_idx: usize,
    /// The version of the trace's store.
    pub version: u64,
    /// The range; `None` for the entire trace.
    pub range: Option<Range<i64>>,
    /// Whether all steps are analysed, rather than the last ones.
    pub all_steps: bool,
}

impl Question for RangeQuestion {
    fn urgency(&self, asked: &Self) -> Urgency {
        let is_growth = Self { version: self.version, ..asked.clone() } == *self;
        if is_growth { Urgency::WhenCheap } else { Urgency::AtOnce }
    }
}

/// A question with the store to analyse.
pub struct Request {
    pub question: RangeQuestion,
    pub store: Shared<Store>,
}

/// The chosen trace and its latest results.
pub struct RangeAnalysis<T> {
    pub trace_idx: usize,
    pub refresher: Refresher<RangeQuestion, Request, T>,
}

impl<T> Default for RangeAnalysis<T> {
    fn default() -> Self {
        Self { trace_idx: 0, refresher: Refresher::default() }
    }
}

impl<T: Send + Sync + 'static> RangeAnalysis<T> {
    /// The chosen trace; `None` where none is open.
    pub fn trace<'d>(&mut self, data: &'d Data) -> Option<&'d TraceData> {
        self.trace_idx = self.trace_idx.min(data.traces.len().saturating_sub(1));
        data.traces.get(self.trace_idx)
    }

    /// Requests a new result where one is due; returns the latest. `work`: the thread's name, its function, and the
    /// least time in seconds between two runs while the trace grows.
    pub fn ask(
        &mut self,
        ui: &Ui,
        (name, answer, least_s): (&str, fn(Request) -> T, f64),
        trace: &TraceData,
        range: Option<Range<i64>>,
        all_steps: bool,
    ) -> Option<Arc<T>> {
        let question = RangeQuestion { trace_idx: self.trace_idx, version: trace.store.version(), range, all_steps };
        let request = |question, _| Request { question, store: trace.store.shared() };
        self.refresher.ask(ui.ctx(), (name, answer), least_s, question, request)
    }
}
