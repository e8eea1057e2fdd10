//! Pictures for distant viewers: what rows show in a range of time at a pixel width, taken from the store's pyramids.
//!
//! An answer has at most two spans a pixel for each lane and one point a pixel for each counter, however many events there are.

use crate::hub::Hub;
use crate::wire::far_server;
use crate::wire::{self, CounterPicture, DescribeRequest, Description, LanePicture, PictureReply, PictureRequest};
use parking_lot::RwLock;
use profiler::{Store, TraceReader, Track, lod};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tonic::{Request, Response, Status};

/// Between two looks at what came.
const POLL: Duration = Duration::from_millis(50);
/// Pixels of a picture, at most.
const MAX_PIXELS: u32 = 16_384;
/// Spans of one answer, about; a viewer asks for fewer rows then.
const MAX_SPANS: usize = 1 << 20;

/// Follows the gathered folder into the store until told to stop, and keeps what messages tell of clocks.
pub(crate) fn follow(hub: &Hub, store: &RwLock<Store>, stopping: &AtomicBool) {
    let mut reader: Option<TraceReader> = None;
    while !stopping.load(Ordering::Acquire) {
        if reader.is_none() {
            reader = TraceReader::open(hub.dir()).ok();
        }
        // What cannot be read is tried again: the next look may find it.
        let batch = reader.as_mut().and_then(|reader| reader.poll_staged().ok());
        let more = batch.as_ref().is_some_and(profiler::Batch::more);
        if let Some(batch) = batch {
            store.write().apply(batch);
        }
        if let Some(reader) = &mut reader {
            let facts = reader.take_clock_facts();
            // They are a help, and come again with the next messages.
            let _ = hub.learnt(&facts);
        }
        if !more {
            std::thread::park_timeout(POLL);
        }
    }
}

/// The service.
pub(crate) struct Far(pub(crate) Arc<RwLock<Store>>);

#[tonic::async_trait]
impl far_server::Far for Far {
    async fn describe(&self, _: Request<DescribeRequest>) -> Result<Response<Description>, Status> {
        let store = Arc::clone(&self.0);
        let described = tokio::task::spawn_blocking(move || describe(&store.read())).await;
        Ok(Response::new(described.map_err(|_| Status::internal("describing failed"))?))
    }

    async fn picture(&self, request: Request<PictureRequest>) -> Result<Response<PictureReply>, Status> {
        let request = request.into_inner();
        if request.start_ns >= request.end_ns || !(1..=MAX_PIXELS).contains(&request.pixels) {
            return Err(Status::invalid_argument("a picture needs a range of time and 1 to 16,384 pixels"));
        }
        let store = Arc::clone(&self.0);
        let drawn = tokio::task::spawn_blocking(move || picture(&store.read(), &request)).await;
        Ok(Response::new(drawn.map_err(|_| Status::internal("drawing failed"))??))
    }
}

fn describe(store: &Store) -> Description {
    let range = store.range();
    let processes = store.processes().iter().map(|process| wire::Process {
        host: process.host.clone(),
        pid: process.pid,
        name: process.name.clone(),
        clock: process.clock.map(|clock| wire::HostClock {
            offset_ns: clock.offset_ns,
            drift_ppb: clock.drift_ppb,
            bound_ns: clock.bound_ns,
        }),
    });
    let counters = store.counters().iter().enumerate().map(|(id, counter)| {
        let site = store.sites().get(counter.site as usize);
        let category = site.map(|s| s.category_name.clone()).unwrap_or_default();
        let name = store.counter_title(counter);
        wire::Counter { id: id as u32, process: counter.process, category, name }
    });
    let warnings = store.warnings().iter().map(|w| wire::Warning { text: w.text.clone(), count: w.count });
    Description {
        version: store.version(),
        origin_ns: store.origin_ns(),
        start_ns: range.start,
        end_ns: range.end,
        live: store.is_live(),
        processes: processes.collect(),
        tracks: store.tracks().iter().map(describe_track).collect(),
        counters: counters.collect(),
        warnings: warnings.collect(),
    }
}

fn describe_track(track: &Track) -> wire::Track {
    wire::Track {
        id: track.id.0,
        process: track.process,
        name: track.name.clone(),
        kind: track.kind.name().to_owned(),
        device: track.device.clone(),
        order: track.order,
        lanes: track.lanes.len() as u32,
        slices: track.n_slices() as u64,
        dropped: track.dropped,
    }
}

/// Names of an answer, each once.
#[derive(Default)]
struct Names {
    list: Vec<String>,
    by_name: HashMap<String, u32>,
}

impl Names {
    fn index(&mut self, name: &str) -> u32 {
        if let Some(index) = self.by_name.get(name) {
            return *index;
        }
        let index = self.list.len() as u32;
        self.list.push(name.to_owned());
        self.by_name.insert(name.to_owned(), index);
        index
    }
}

fn picture(store: &Store, request: &PictureRequest) -> Result<PictureReply, Status> {
    let view = request.start_ns..request.end_ns;
    let (mut names, mut lanes, mut n_spans) = (Names::default(), Vec::new(), 0);
    for id in &request.tracks {
        let track = store.tracks().get(*id as usize).ok_or_else(|| Status::not_found(format!("no track {id}")))?;
        for lane in 0..track.lanes.len() {
            let drawn = lane_picture(store, track, lane, &view, request.pixels, &mut names);
            n_spans += drawn.count.len();
            if !drawn.count.is_empty() {
                lanes.push(drawn);
            }
        }
        if n_spans > MAX_SPANS {
            return Err(Status::resource_exhausted(
                "the picture has over a million spans: ask for fewer tracks at once",
            ));
        }
    }
    let counters = request.counters.iter().map(|id| {
        let counter =
            store.counters().get(*id as usize).ok_or_else(|| Status::not_found(format!("no counter {id}")))?;
        Ok(counter_picture(counter, *id, &view, request.pixels))
    });
    let counters = counters.collect::<Result<_, Status>>()?;
    Ok(PictureReply { version: store.version(), lanes, counters, names: names.list })
}

fn lane_picture(
    store: &Store,
    track: &Track,
    index: usize,
    view: &Range<i64>,
    pixels: u32,
    names: &mut Names,
) -> LanePicture {
    let lane = &track.lanes[index];
    let mut spans = Vec::new();
    lod::spans(lane, view, pixels as usize, &mut spans);
    let mut drawn = LanePicture { track: track.id.0, lane: index as u32, ..LanePicture::default() };
    let mut before = view.start;
    for span in &spans {
        let slice = lane.slice(span.top);
        drawn.gap_ns.push(span.start - before);
        drawn.length_ns.push((span.end - span.start).unsigned_abs());
        drawn.count.push(span.count);
        drawn.busy_ns.push(span.busy_ns.unsigned_abs());
        drawn.name.push(names.index(slice.as_ref().map_or("?", |slice| store.slice_name(slice))));
        before = span.end;
    }
    drawn
}

/// Least and greatest value per pixel in which it changes.
fn counter_picture(counter: &profiler::Counter, id: u32, view: &Range<i64>, pixels: u32) -> CounterPicture {
    let from = counter.time.partition_point(|time| *time < view.start);
    let to = counter.time.partition_point(|time| *time < view.end);
    let before = from.checked_sub(1).and_then(|at| counter.value.get(at)).copied();
    let mut drawn = CounterPicture { counter: id, before, ..CounterPicture::default() };
    let length = i128::from(view.end) - i128::from(view.start);
    for (time, value) in counter.time.range(from..to).zip(counter.value.range(from..to)) {
        let away = i128::from(*time) - i128::from(view.start);
        // Less than `pixels`: the time is in the view.
        let pixel = (away * i128::from(pixels) / length) as u32;
        if drawn.pixel.last() == Some(&pixel) {
            let last = drawn.pixel.len() - 1;
            drawn.least[last] = drawn.least[last].min(*value);
            drawn.greatest[last] = drawn.greatest[last].max(*value);
        } else {
            drawn.pixel.push(pixel);
            drawn.least.push(*value);
            drawn.greatest.push(*value);
        }
    }
    drawn
}
