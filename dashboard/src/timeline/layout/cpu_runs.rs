//! Intervals in which threads ran on CPUs, at the resolution of the screen. Where several threads share a pixel of a
//! CPU, the pixel belongs to the thread that ran longest in it.

use super::frame::Frame;
use crate::timeline::model::cpu_runs::{cpu_number, cpu_tracks, host_of};
use rustc_hash::FxHashMap;
use trace_store::Store;

/// An interval in which a thread ran on a CPU, in x of the screen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuRun {
    pub x0: f32,
    pub x1: f32,
    pub cpu: usize,
}

/// A thread by host and thread id, which is unique on the host.
type ThreadKey<'a> = (&'a str, u32);

/// The intervals of all threads in a view.
pub struct CpuRuns<'a> {
    store: &'a Store,
    runs: FxHashMap<ThreadKey<'a>, Vec<CpuRun>>,
}

impl<'a> CpuRuns<'a> {
    /// Collects the intervals in a frame's view.
    pub fn new(store: &'a Store, frame: &Frame) -> Self {
        let mut runs: FxHashMap<ThreadKey<'a>, Vec<CpuRun>> = FxHashMap::default();
        let mut spans = Vec::new();
        for track in cpu_tracks(store) {
            let cpu = cpu_number(track);
            for lane in &track.lanes {
                spans.clear();
                lane.spans(frame.view.range(), frame.width_px(), &mut spans);
                for span in &spans {
                    let Some(top) = lane.slice_in_memory(span.top) else { continue };
                    let (x0, x1) = frame.edges(span.start, span.end);
                    runs.entry((host_of(store, track), top.correlation)).or_default().push(CpuRun { x0, x1, cpu });
                }
            }
        }
        runs.values_mut().for_each(|thread_runs| thread_runs.sort_by(|a, b| a.x0.total_cmp(&b.x0)));
        Self { store, runs }
    }

    /// The intervals of a track's thread that overlap `x0..x1`, clipped to that range.
    pub fn overlapping(&self, track: u32, x0: f32, x1: f32) -> impl Iterator<Item = CpuRun> + '_ {
        let thread = self.store.tracks().get(track as usize).filter(|t| t.tid > 0);
        let runs = thread.and_then(|t| self.runs.get(&(host_of(self.store, t), t.tid))).map_or(&[][..], Vec::as_slice);
        // A thread runs on one CPU at a time, so ends are sorted as starts are. As edges are rounded to pixels, the
        // search goes back by one.
        let first = runs.partition_point(|run| run.x1 <= x0).saturating_sub(1);
        let touching = runs[first..].iter().take_while(move |run| run.x0 < x1).filter(move |run| run.x1 > x0);
        touching.map(move |run| CpuRun { x0: run.x0.max(x0), x1: run.x1.min(x1), cpu: run.cpu })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::{model::cpu_runs::tests::two_cpus, testing::frame};

    #[test]
    fn runs_of_a_thread_on_the_screen() {
        let store = two_cpus();
        let runs = CpuRuns::new(&store, &frame(0, 100_000, 100.0));
        let thread = store.tracks().iter().find(|t| t.name == "worker").unwrap().id.0;
        let got: Vec<CpuRun> = runs.overlapping(thread, 10.0, 80.0).collect();
        let want = [CpuRun { x0: 10.0, x1: 40.0, cpu: 0 }, CpuRun { x0: 60.0, x1: 80.0, cpu: 1 }];
        assert_eq!(got, want);
        assert_eq!(runs.overlapping(thread, 41.0, 59.0).count(), 0, "it ran nowhere");
    }
}
