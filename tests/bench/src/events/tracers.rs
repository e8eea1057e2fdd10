//! The tracers that are compared, each used as its documentation says, in the cheapest way that keeps every slice.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::events::layer::EventsLayer;
use ::events::ring::{self, RingReader};
use ::events::{Options, Session, SiteId, site};
use fastrace::collector::{Config, Reporter, SpanContext, SpanRecord};
use fastrace::local::LocalSpan;
use puffin::GlobalProfiler;
use trace_record::{Collector, CollectorOptions};
use tracing_chrome::{ChromeLayerBuilder, FlushGuard};
use tracing_subscriber::layer::SubscriberExt;

use super::blocks::{self, BLOCK};
use crate::report::BenchError;

/// A tracer in use.
pub trait Tracer: Send + Sync {
    /// Emits [`BLOCK`] slices on this thread.
    fn block(&self);

    /// Between visits, untimed: makes room for the next.
    ///
    /// # Errors
    /// What was emitted cannot be taken away.
    fn drain(&self) -> Result<(), BenchError> {
        Ok(())
    }

    /// # Errors
    /// Not all of the slices are there.
    fn finish(&self, _emitted: u64) -> Result<(), BenchError> {
        Ok(())
    }
}

/// Starts one in this process; what it writes goes into the folder.
pub type Start = fn(&Path) -> Result<Box<dyn Tracer>, BenchError>;

/// Their names, and what is on. "no consumer": somebody empties the buffers between the visits.
pub const TRACERS: &[(&str, Start)] = &[
    ("two bare time stamps", |_| Ok(Box::new(Bare))),
    ("stepscope, guard", |dir| Ours::start(dir, blocks::guard)),
    ("stepscope, time stamps given", |dir| Ours::start(dir, blocks::stamps_given)),
    ("stepscope, chained time stamp", |dir| Ours::start(dir, blocks::chained)),
    ("stepscope, guard, collector on", Collected::start),
    ("stepscope, tracing span", |dir| {
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(EventsLayer::new()))?;
        Ours::start(dir, blocks::span)
    }),
    ("tracing-chrome, tracing span, its writer on", Chrome::start),
    ("puffin, scope, no consumer", |_| Puffin::start()),
    ("fastrace, local span, its collector on", |_| Fastrace::start()),
    ("tracy, zone, no viewer", |_| Tracy::start(false)),
    ("tracy, zone, viewer connected", |_| Tracy::start(true)),
];

struct Bare;

impl Tracer for Bare {
    fn block(&self) {
        blocks::two_stamps(SiteId::OTHER);
    }
}

/// Ours without a collector.
struct Ours {
    dir: PathBuf,
    rings: Mutex<Vec<RingReader>>,
    block: fn(SiteId),
    site: SiteId,
    _session: Session,
}

impl Ours {
    fn start(dir: &Path, block: fn(SiteId)) -> Result<Box<dyn Tracer>, BenchError> {
        let session = ::events::start(dir, Options::default())?;
        let (rings, site) = (Mutex::default(), site("bench", "slice"));
        Ok(Box::new(Ours { dir: dir.to_owned(), rings, block, site, _session: session }))
    }
}

impl Tracer for Ours {
    fn block(&self) {
        (self.block)(self.site);
    }

    fn drain(&self) -> Result<(), BenchError> {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let path = ring::path(&self.dir, std::process::id(), rings.len() as u32);
            if !path.exists() {
                break;
            }
            rings.push(RingReader::open(&path)?);
        }
        for ring in rings.iter_mut() {
            ring.consume_to(u64::MAX);
        }
        Ok(())
    }

    fn finish(&self, emitted: u64) -> Result<(), BenchError> {
        let rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        let (published, dropped) = rings.iter().fold((0, 0), |(p, d), r| (p + r.published(), d + r.dropped()));
        complete(published.saturating_sub(dropped), emitted)
    }
}

/// Not fewer than were emitted; names and scopes around come on top.
fn complete(arrived: u64, emitted: u64) -> Result<(), BenchError> {
    if arrived < emitted { Err(format!("{arrived} of {emitted} slices arrived").into()) } else { Ok(()) }
}

/// Ours, drained every 20 ms.
struct Collected {
    collector: Mutex<Option<Collector>>,
    site: SiteId,
    _session: Session,
}

impl Collected {
    fn start(dir: &Path) -> Result<Box<dyn Tracer>, BenchError> {
        let session = ::events::start(dir, Options::default())?;
        let collector = Mutex::new(Some(Collector::start(dir, CollectorOptions::default())?));
        Ok(Box::new(Collected { collector, site: site("bench", "slice"), _session: session }))
    }
}

impl Tracer for Collected {
    fn block(&self) {
        blocks::guard(self.site);
    }

    fn finish(&self, emitted: u64) -> Result<(), BenchError> {
        let collector = self.collector.lock().unwrap_or_else(PoisonError::into_inner).take();
        collector.map_or(Ok(()), |collector| complete(collector.stop().slices, emitted))
    }
}

/// Its layer sends each event to its writing thread, here into a sink: there is no way without.
struct Chrome {
    guard: Mutex<FlushGuard>,
    written: Arc<Written>,
}

#[derive(Default)]
struct Written {
    lines: AtomicU64,
    flushes: AtomicU64,
}

struct Sink(Arc<Written>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let lines = bytes.iter().filter(|b| **b == b'\n').count();
        self.0.lines.fetch_add(lines as u64, Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flushes.fetch_add(1, Ordering::Release);
        Ok(())
    }
}

impl Chrome {
    fn start(_: &Path) -> Result<Box<dyn Tracer>, BenchError> {
        let written = Arc::new(Written::default());
        let builder = ChromeLayerBuilder::new().writer(Sink(written.clone())).include_locations(false);
        let (layer, guard) = builder.include_args(false).build();
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))?;
        Ok(Box::new(Chrome { guard: Mutex::new(guard), written }))
    }
}

impl Tracer for Chrome {
    fn block(&self) {
        blocks::span(SiteId::OTHER);
    }

    /// Its queue has no bound: waits until all before is written.
    fn drain(&self) -> Result<(), BenchError> {
        let before = self.written.flushes.load(Ordering::Acquire);
        self.guard.lock().unwrap_or_else(PoisonError::into_inner).flush();
        while self.written.flushes.load(Ordering::Acquire) == before {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// A begin and an end per span, a line each.
    fn finish(&self, emitted: u64) -> Result<(), BenchError> {
        complete(self.written.lines.load(Ordering::Relaxed) / 2, emitted)
    }
}

/// A frame per visit; the scopes of a block lie in one around them, so that they are handed over once.
struct Puffin {
    scopes: Arc<AtomicU64>,
}

impl Puffin {
    fn start() -> Result<Box<dyn Tracer>, BenchError> {
        puffin::set_scopes_on(true);
        let scopes = Arc::new(AtomicU64::new(0));
        let seen = scopes.clone();
        GlobalProfiler::lock().add_sink(Box::new(move |frame| {
            seen.fetch_add(frame.meta().num_scopes as u64, Ordering::Relaxed);
        }));
        Ok(Box::new(Puffin { scopes }))
    }
}

impl Tracer for Puffin {
    fn block(&self) {
        puffin::profile_scope!("block");
        for _ in 0..BLOCK {
            puffin::profile_scope!("bench");
        }
    }

    fn drain(&self) -> Result<(), BenchError> {
        GlobalProfiler::lock().new_frame();
        Ok(())
    }

    fn finish(&self, emitted: u64) -> Result<(), BenchError> {
        complete(self.scopes.load(Ordering::Relaxed), emitted)
    }
}

/// A trace per block, of local spans: below the 10,240 that a thread's buffer takes.
struct Fastrace {
    spans: Arc<AtomicU64>,
}

struct Counts(Arc<AtomicU64>);

impl Reporter for Counts {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        self.0.fetch_add(spans.len() as u64, Ordering::Relaxed);
    }
}

impl Fastrace {
    fn start() -> Result<Box<dyn Tracer>, BenchError> {
        let spans = Arc::new(AtomicU64::new(0));
        fastrace::set_reporter(Counts(spans.clone()), Config::default());
        Ok(Box::new(Fastrace { spans }))
    }
}

impl Tracer for Fastrace {
    fn block(&self) {
        let root = fastrace::Span::root("block", SpanContext::random());
        let _parent = root.set_local_parent();
        for _ in 0..BLOCK {
            let _span = LocalSpan::enter_with_local_parent("bench");
        }
    }

    fn drain(&self) -> Result<(), BenchError> {
        fastrace::flush();
        Ok(())
    }

    fn finish(&self, emitted: u64) -> Result<(), BenchError> {
        complete(self.spans.load(Ordering::Relaxed), emitted)
    }
}

/// Without a viewer it keeps everything in memory; with one, its thread compresses and sends.
struct Tracy {
    client: tracy_client::Client,
}

impl Tracy {
    fn start(is_viewed: bool) -> Result<Box<dyn Tracer>, BenchError> {
        let client = tracy_client::Client::start();
        if is_viewed {
            connect_viewer()?;
        }
        Ok(Box::new(Tracy { client }))
    }
}

/// A viewer that reads what comes and asks for nothing, as long as the process lives.
fn connect_viewer() -> Result<(), BenchError> {
    // The protocol of the client that the workspace's Cargo.lock names; it refuses any other.
    const PROTOCOL: u32 = 82;
    const WELCOME: u8 = 1;
    let port: u16 = std::env::var("TRACY_PORT").unwrap_or_default().parse().unwrap_or(8086);
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(b"TracyPrf")?;
    stream.write_all(&PROTOCOL.to_le_bytes())?;
    let mut status = [0];
    stream.read_exact(&mut status)?;
    if status[0] != WELCOME {
        return Err(format!("Tracy refuses a viewer of protocol {PROTOCOL} (status {})", status[0]).into());
    }
    std::thread::spawn(move || io::copy(&mut stream, &mut io::sink()));
    Ok(())
}

impl Tracer for Tracy {
    fn block(&self) {
        let location = tracy_client::span_location!("bench");
        for _ in 0..BLOCK {
            let _zone = self.client.clone().span(location, 0);
        }
    }
}
