//! A remote store next to the one it comes from.

use super::{RemoteError, Server, Transport, Viewer};
use crate::follow::TraceReader;
use crate::seal;
use crate::store::{Lane, Residency, Store, StoreOptions, Update};
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use proptest::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use trace_model::layout::BLOCK;
use trace_model::lod::Span;
use trace_model::{Batch, Event, NO_ARGS, Name, SliceRef, TrackKey};

/// Asks a server of this process.
struct Here {
    server: Server,
    bytes: AtomicU64,
    is_cut: AtomicBool,
}

impl Transport for Here {
    fn request(&self, request: &[u8]) -> Result<Bytes, RemoteError> {
        if self.is_cut.load(Relaxed) {
            return Err(RemoteError::Connection("the cable is cut".to_owned()));
        }
        let answer = self.server.respond(request);
        self.bytes.fetch_add(answer.len() as u64, Relaxed);
        Ok(answer.into())
    }

    fn location(&self) -> String {
        "there".to_owned()
    }
}

struct Pair {
    local: Arc<RwLock<Store>>,
    transport: Arc<Here>,
    viewer: Viewer,
    remote: Store,
}

impl Pair {
    fn of(local: Store) -> Pair {
        let local = Arc::new(RwLock::new(local));
        let (bytes, is_cut) = Default::default();
        let transport = Arc::new(Here { server: Server::new(Arc::clone(&local)), bytes, is_cut });
        let viewer = Viewer::new(Arc::clone(&transport) as Arc<dyn Transport>);
        let mut pair = Pair { local, transport, viewer, remote: Store::with_options(StoreOptions::UNBOUNDED) };
        pair.poll();
        pair
    }

    fn poll(&mut self) -> bool {
        self.remote.apply(self.viewer.poll().unwrap())
    }

    /// Brings all that is requested.
    fn load(&self) {
        while self.remote.pager().is_some_and(|pages| pages.load_requested()) {}
    }

    /// The spans of a lane, once all that they need is here.
    fn spans(&self, track: usize, lane: usize, view: &Range<i64>, px: usize) -> Vec<Span> {
        let lane = &self.remote.tracks()[track].lanes[lane];
        let mut out = Vec::new();
        lane.spans(view.clone(), px, &mut out);
        self.load();
        out.clear();
        lane.spans(view.clone(), px, &mut out);
        assert!(!self.remote.pager().unwrap().has_requests(), "{view:?} on {px} pixels is still not whole");
        out
    }

    /// All slices that touch a range, once they are here.
    fn slices(&self, track: usize, lane: usize, range: &Range<i64>) -> Vec<SliceRef> {
        while self.remote.residency(range) == Residency::Loading {
            assert!(self.remote.pager().unwrap().load_requested());
        }
        self.remote.tracks()[track].lanes[lane].slices(range).collect()
    }
}

/// Appends slices with these gaps and durations from `at` on; gives where they end.
fn append(store: &mut Store, mut at: i64, parts: &[(i64, i64)]) -> i64 {
    for parts in parts.chunks(50_000) {
        let mut batch = Batch::new();
        batch.set_origin(0);
        batch.live = Some(true);
        for id in 0..4 {
            let category = if id == 3 { "wait" } else { "test" };
            batch.name(Name::Site { pid: 1, id, category: category.into(), name: format!("work {id}") });
        }
        for (gap, dur) in parts {
            let args = if dur % 3 == 0 { batch.args(&format!("{{\"n\":{dur}}}")) } else { NO_ARGS };
            let slice = Event::slice((gap % 4) as u32, at + gap, at + gap + dur);
            let event = Event { correlation: slice.site, arg: slice.start.unsigned_abs(), args, ..slice };
            at = event.end;
            batch.track(TrackKey { pid: 1, ring: 0 }).events.push(event);
        }
        store.apply(batch);
    }
    at
}

fn store_of(parts: &[(i64, i64)]) -> Store {
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    append(&mut store, 0, parts);
    store
}

/// Bursts, silence, and slices from nothing to very long.
fn parts(n: usize) -> Vec<(i64, i64)> {
    let part = |i: u64| {
        let x = i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        let gap = if i.is_multiple_of(977) { 3_000_000 } else { (x % 50) as i64 };
        (gap, if i.is_multiple_of(4001) { 7_000_000 } else { (x / 50 % 200) as i64 })
    };
    (0..n as u64).map(part).collect()
}

/// What the contract of [`lod`] says of a view, from the slices themselves.
fn check(pair: &Pair, local: &Lane, view: &Range<i64>, px: usize) {
    let spans = pair.spans(0, 0, view, px);
    let pixel = ((view.end - view.start) as u64).div_ceil(px as u64).max(1) as i64;
    assert!(spans.len() <= 2 * px + 2, "{} spans on {px} pixels", spans.len());
    let slices: Vec<SliceRef> = local.slices_at(0..local.len() as u32).collect();
    let touches = |s: &SliceRef| s.start < view.end && (s.end > view.start || s.start >= view.start);
    let mut shown = vec![false; slices.len()];
    for span in &spans {
        let of_span = &slices[span.first as usize..(span.first + span.count) as usize];
        assert_eq!((span.start, span.end), (of_span[0].start, of_span[of_span.len() - 1].end));
        crate::lod_tests::check_span(&pair.local.read(), local, span);
        assert!(span.count == 1 || span.end - span.start <= pixel);
        shown[span.first as usize..(span.first + span.count) as usize].fill(true);
    }
    assert!(spans.windows(2).all(|two| two[0].first + two[0].count == two[1].first));
    let missing = slices.iter().zip(&shown).find(|(slice, shown)| touches(slice) && !**shown);
    assert_eq!(missing, None, "a slice that touches {view:?} is not shown");
}

#[test]
fn a_distant_lane_shows_what_the_near_one_has() {
    let parts = parts(100_000);
    let pair = Pair::of(store_of(&parts));
    let local = pair.local.read();
    let (lane, all) = (&local.tracks()[0].lanes[0], local.range());
    for (view, px) in [
        (all.clone(), 1920),
        (all.clone(), 1),
        (all.start - 1_000_000..all.end + 5_000_000, 700),
        (all.end / 3..all.end / 3 + 100_000, 1920),
        (all.end / 2..all.end / 2 + 5_000, 1920),
        (all.end / 2..all.end / 2 + 1, 100),
        (all.end - 1..all.end, 100),
        (all.end..all.end + 10, 100),
    ] {
        check(&pair, lane, &view, px);
    }
}

#[test]
fn what_comes_is_a_fraction_of_the_trace() {
    let pair = Pair::of(store_of(&parts(1_000_000)));
    let opened = pair.transport.bytes.load(Relaxed);
    assert!(opened < 40_000, "{opened} bytes to open a million slices");
    let all = pair.local.read().range();
    let spans = pair.spans(0, 0, &all, 1920);
    let drawn = pair.transport.bytes.load(Relaxed) - opened;
    assert!(drawn < 40 * spans.len() as u64 * 2, "{drawn} bytes for {} spans", spans.len());
    // Deep inside, where each span is a slice, nothing more is asked for.
    let few = all.end / 2..all.end / 2 + 60_000;
    assert!(pair.spans(0, 0, &few, 1920).iter().all(|span| span.count == 1));
    let before = pair.transport.bytes.load(Relaxed);
    pair.spans(0, 0, &(few.start + 20_000..few.start + 30_000), 1920);
    assert_eq!(pair.transport.bytes.load(Relaxed), before);
}

#[test]
fn before_anything_came_a_lane_is_one_span_and_pans_show_larger_tiles() {
    let parts = parts(50_000);
    let pair = Pair::of(store_of(&parts));
    let lane = &pair.remote.tracks()[0].lanes[0];
    let all = pair.remote.range();
    let mut out = Vec::new();
    lane.spans(all.clone(), 1000, &mut out);
    let busy: i64 = parts.iter().map(|(_, dur)| dur).sum();
    assert_eq!((out.len(), out[0].count, out[0].busy_ns + out[0].wait_ns), (1, 50_000, busy));
    pair.load();
    // A part of it, before its own tiles are here: the tiles of the whole.
    out.clear();
    lane.spans(all.end / 2..all.end / 2 + all.end / 10, 1000, &mut out);
    assert!(out.len() > 5, "{} spans", out.len());
    assert!(pair.remote.pager().unwrap().has_requests());
}

#[test]
fn rows_are_those_of_the_near_store() {
    let pair = Pair::of(store_of(&parts(30_000)));
    let local = pair.local.read();
    let lane = &local.tracks()[0].lanes[0];
    for range in [0..1, 0..i64::MAX, 500_000..600_000, 1_000_000..1_000_001, -5..0] {
        let expected: Vec<SliceRef> = lane.slices(&range).collect();
        let found = pair.slices(0, 0, &range);
        let plain = |s: &SliceRef| (s.id, s.start, s.end, s.site, s.node, s.correlation, s.arg);
        assert_eq!(found.iter().map(plain).collect::<Vec<_>>(), expected.iter().map(plain).collect::<Vec<_>>());
        for (remote, local_slice) in found.iter().zip(&expected) {
            assert_eq!(pair.remote.args().get(remote.args), local.args().get(local_slice.args));
        }
    }
}

#[test]
fn too_many_slices_are_not_fetched() {
    let pair = Pair::of(store_of(&vec![(1, 1); 3 << 20]));
    assert_eq!(pair.remote.residency(&(0..i64::MAX)), Residency::TooLarge);
    assert!(!pair.remote.pager().unwrap().has_requests());
    assert_eq!(pair.remote.residency(&(0..1000)), Residency::Loading);
    pair.load();
    assert_eq!(pair.remote.residency(&(0..1000)), Residency::Resident);
    assert_eq!(pair.local.read().residency(&(0..i64::MAX)), Residency::Resident);
}

#[test]
fn a_trace_that_grows_is_followed() {
    let mut pair = Pair::of(Store::with_options(StoreOptions { slices_per_lane: 20_000, ..StoreOptions::UNBOUNDED }));
    assert!(pair.remote.tracks().is_empty());
    let (mut at, parts) = (0, parts(90_000));
    for some in parts.chunks(7_001) {
        at = append(&mut pair.local.write(), at, some);
        assert!(pair.poll());
        let local = pair.local.read();
        let (lane, remote) = (&local.tracks()[0].lanes[0], &pair.remote.tracks()[0].lanes[0]);
        assert_eq!((remote.len(), remote.evicted(), remote.range()), (lane.len(), lane.evicted(), lane.range()));
        for view in [at - 20_000..at, lane.range().unwrap()] {
            let (mut expected, found) = (Vec::new(), pair.spans(0, 0, &view, 800));
            lane.spans(view.clone(), 800, &mut expected);
            let sum = |spans: &[Span]| spans.iter().map(|s| u64::from(s.count)).sum::<u64>();
            // At the left edge a piece may bring slices that end before it.
            let more = sum(&found) as i64 - sum(&expected) as i64;
            assert!((0..500).contains(&more), "{more} of {} in {view:?}", sum(&expected));
            assert_eq!(found.last().map(|s| s.end), expected.last().map(|s| s.end));
        }
        let last = pair.slices(0, 0, &(at - 1000..at));
        let times = |slices: &[SliceRef]| slices.iter().map(|s| (s.start, s.end)).collect::<Vec<_>>();
        assert_eq!(times(&last), times(&lane.slices(&(at - 1000..at)).collect::<Vec<_>>()));
    }
    assert!(pair.local.read().tracks()[0].lanes[0].evicted() > BLOCK);
    // The tables may follow the last slices a moment later; then there is nothing more.
    assert!((0..5).any(|_| !pair.poll()), "nothing changes any more");
    assert!(pair.remote.is_live());
}

#[test]
fn sealed_traces_and_everything_other_than_slices() {
    let folder = tempfile::tempdir().unwrap();
    let local = crate::testkit::store(
        "step 7: 0..100\n w0 A 0..10\n w0 B 12..28 by A queue 2\n w1 A 30..95\n flow 1 w0 10 -> w1 30\n\
         transfer 3 A w0 1 2 3 -> B w1 8 9\n w0 alloc cpu:0 A 12 1024",
    );
    let to = folder.path().join("sealed");
    seal::write(&local, &to).unwrap();
    let mut sealed = Store::with_options(StoreOptions::UNBOUNDED);
    TraceReader::open(&to).unwrap().read_all(&mut sealed).unwrap();
    let pair = Pair::of(sealed);
    let (local, remote) = (pair.local.read(), &pair.remote);
    for track in 0..local.tracks().len() {
        for lane in 0..local.tracks()[track].lanes.len() {
            let expected: Vec<SliceRef> = local.tracks()[track].lanes[lane].slices(&(0..200)).collect();
            assert_eq!(pair.slices(track, lane, &(0..200)), expected);
        }
    }
    assert_eq!((remote.origin_ns(), remote.range()), (local.origin_ns(), local.range()));
    assert_eq!((remote.steps(), remote.nodes(), remote.sites()), (local.steps(), local.nodes(), local.sites()));
    assert_eq!(remote.processes(), local.processes());
    assert_eq!(remote.flows().collect::<Vec<_>>(), local.flows().collect::<Vec<_>>());
    assert_eq!((remote.transfers(), remote.memory()), (local.transfers(), local.memory()));
    assert!(!remote.is_live());
}

#[test]
fn a_store_that_is_replaced_is_asked_for_anew() {
    let mut pair = Pair::of(store_of(&parts(10_000)));
    pair.spans(0, 0, &(0..i64::MAX / 4), 100);
    let other = store_of(&[(5, 5), (3, 1)]);
    pair.local.write().apply(Update { replacement: Some(Box::new(other)), ..Update::default() });
    let lane = &pair.remote.tracks()[0].lanes[0];
    let mut out = Vec::new();
    lane.spans(pair.remote.range(), 1000, &mut out);
    // Rows of the old one are not mixed with those of the new one.
    pair.load();
    assert!(pair.remote.pager().unwrap().damage().unwrap().text.contains("read anew"));
    assert!(pair.poll());
    let spans = pair.spans(0, 0, &(0..100), 100);
    assert_eq!(spans.iter().map(|s| (s.start, s.end)).collect::<Vec<_>>(), [(5, 10), (13, 14)]);
}

#[test]
fn a_connection_that_breaks_is_reported_and_comes_back() {
    let mut pair = Pair::of(store_of(&parts(10_000)));
    pair.transport.is_cut.store(true, Relaxed);
    assert!(pair.viewer.poll().is_err());
    let mut out = Vec::new();
    pair.remote.tracks()[0].lanes[0].spans(10_000_000..10_100_000, 1000, &mut out);
    assert_eq!(out.len(), 1);
    assert!(pair.remote.pager().unwrap().load_requested(), "the window has to say it");
    pair.remote.apply(Batch::new());
    assert!(pair.remote.warnings().iter().any(|w| w.text.contains("the cable is cut")), "{:?}", pair.remote.warnings());
    pair.transport.is_cut.store(false, Relaxed);
    assert!(pair.spans(0, 0, &(10_000_000..10_100_000), 1000).len() > 100);
    assert!(pair.poll());
    assert!(pair.remote.warnings().is_empty(), "{:?}", pair.remote.warnings());
}

/// Answers every request with the same bytes.
struct FixedReply(Mutex<Vec<u8>>);

impl Transport for FixedReply {
    fn request(&self, _: &[u8]) -> Result<Bytes, RemoteError> {
        Ok(self.0.lock().clone().into())
    }

    fn location(&self) -> String {
        "a liar".to_owned()
    }
}

/// Records the answers of a server.
struct Recorder(Server, Mutex<Vec<Vec<u8>>>);

impl Transport for Recorder {
    fn request(&self, request: &[u8]) -> Result<Bytes, RemoteError> {
        let answer = self.0.respond(request);
        self.1.lock().push(answer.clone());
        Ok(answer.into())
    }

    fn location(&self) -> String {
        "there".to_owned()
    }
}

/// The answers to what a window asks of a small trace.
fn answers() -> Vec<Vec<u8>> {
    let local = Arc::new(RwLock::new(store_of(&parts(3_000))));
    let transport = Arc::new(Recorder(Server::new(local), Mutex::default()));
    let mut viewer = Viewer::new(Arc::clone(&transport) as Arc<dyn Transport>);
    let mut remote = Store::with_options(StoreOptions::UNBOUNDED);
    remote.apply(viewer.poll().unwrap());
    remote.tracks()[0].lanes[0].spans(remote.range(), 300, &mut Vec::new());
    assert_eq!(remote.residency(&remote.range()), Residency::Loading);
    assert!(remote.pager().unwrap().load_requested());
    let answers = transport.1.lock().clone();
    assert_eq!(answers.len(), 3);
    answers
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn answers_that_make_no_sense_do_no_harm(which in 0_usize..3, at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let good = answers();
        let mut bad = good.clone();
        let i = at.index(bad[which].len());
        if cut { bad[which].truncate(i) } else { bad[which][i] = byte }
        let reply = Arc::new(FixedReply(Mutex::new(bad[0].clone())));
        let mut viewer = Viewer::new(Arc::clone(&reply) as Arc<dyn Transport>);
        let mut remote = Store::with_options(StoreOptions::UNBOUNDED);
        if let Ok(batch) = viewer.poll() {
            remote.apply(batch);
        }
        let mut out = Vec::new();
        for answer in &bad[1..] {
            *reply.0.lock() = answer.clone();
            for lane in remote.tracks().iter().flat_map(|track| &track.lanes) {
                lane.spans(remote.range(), 300, &mut out);
                lane.slices(&remote.range()).for_each(drop);
            }
            if let Some(pages) = remote.pager() {
                pages.load_requested();
            }
        }
        for lane in remote.tracks().iter().flat_map(|track| &track.lanes) {
            lane.spans(remote.range(), 300, &mut out);
            lane.slices(&remote.range()).for_each(drop);
        }
    }

    #[test]
    fn questions_that_make_no_sense_get_an_answer(request in prop::collection::vec(any::<u8>(), 0..80)) {
        let server = Server::new(Arc::new(RwLock::new(store_of(&[(1, 1)]))));
        prop_assert!(!server.respond(&request).is_empty());
    }

    #[test]
    fn any_view_at_any_width(from in -1000_i64..60_000, width in 1_i64..60_000, px in 1_usize..3000) {
        let parts: Vec<(i64, i64)> = parts(400).into_iter().map(|(gap, dur)| (gap % 300, dur % 2000)).collect();
        let pair = Pair::of(store_of(&parts));
        let local = pair.local.read();
        check(&pair, &local.tracks()[0].lanes[0], &(from..from + width), px);
    }
}
