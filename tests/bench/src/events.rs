//! What emitting an event costs: ns per slice, against the bare time stamps that the slice needs.
//!
//! Blocks of slices; in each round every case runs one block, in alternating order, so that a busy machine disturbs all
//! alike. "above" is the median over the rounds of the difference to the same round's bare time stamps. Between the blocks
//! the ring is emptied, so that no record is dropped.

#[cfg(feature = "peers")]
pub mod others;
#[cfg(feature = "peers")]
mod tracers;

use crate::report::{BenchError, Report};
use ::events::layer::EventsLayer;
use ::events::ring::RingReader;
use ::events::{NodeId, Session, SiteId, clock, emit_close, emit_slice, now, open, site, slice};
use std::hint::black_box;
use tracing_subscriber::layer::SubscriberExt;

/// Slices per block: a tenth of a millisecond, and a sixteenth of a ring.
const BLOCK: u64 = 4096;
const ROUNDS: usize = 1501;

struct Case {
    name: &'static str,
    /// The case with the same time stamps and nothing else.
    bare: Option<usize>,
    on: bool,
    block: fn(SiteId),
}

const TWO_STAMPS: usize = 0;
const ONE_STAMP: usize = 1;

const CASES: &[Case] = &[
    Case { name: "two bare stamps", bare: None, on: true, block: two_stamps },
    Case { name: "one bare stamp", bare: None, on: true, block: one_stamp },
    Case { name: "slice, stamps given", bare: Some(TWO_STAMPS), on: true, block: stamps_given },
    Case { name: "slice, open and close", bare: Some(TWO_STAMPS), on: true, block: open_and_close },
    Case { name: "slice, guard", bare: Some(TWO_STAMPS), on: true, block: guard },
    Case { name: "slice, chained stamp", bare: Some(ONE_STAMP), on: true, block: chained },
    Case { name: "tracing span, made and entered", bare: Some(TWO_STAMPS), on: true, block: span },
    Case { name: "off: slice, guard", bare: None, on: false, block: guard },
    Case { name: "off: tracing span", bare: None, on: false, block: span },
];

fn two_stamps(_: SiteId) {
    for _ in 0..BLOCK {
        black_box((now(), now()));
    }
}

fn one_stamp(_: SiteId) {
    for _ in 0..BLOCK {
        black_box(now());
    }
}

fn stamps_given(site: SiteId) {
    for i in 0..BLOCK {
        let (begin, end) = (now(), now());
        emit_slice(begin, end, site, NodeId::new(7), 3, i);
    }
}

fn open_and_close(site: SiteId) {
    for i in 0..BLOCK {
        let running = open(now(), site, NodeId::new(7));
        emit_close(running, now(), 3, i);
    }
}

fn guard(site: SiteId) {
    for _ in 0..BLOCK {
        let _running = slice(black_box(site));
    }
}

fn chained(site: SiteId) {
    let mut begin = now();
    for i in 0..BLOCK {
        let end = now();
        emit_slice(begin, end, site, NodeId::new(7), 3, i);
        begin = end;
    }
}

fn span(_: SiteId) {
    for _ in 0..BLOCK {
        let _running = tracing::info_span!("bench").entered();
    }
}

/// Runs the benchmark.
pub fn run(report: &mut Report) -> Result<(), BenchError> {
    let dir = tempfile::tempdir()?;
    let session = ::events::start(dir.path(), ::events::Options::default())?;
    // As a program does it; recording is off again when the session ends, and the layer silent.
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(EventsLayer::new()))?;
    let site = site("bench", "slice");
    emit_slice(0, 0, site, NodeId::NONE, 0, 0);
    let mut ring = RingReader::open(&::events::ring::path(dir.path(), std::process::id(), 0))?;
    let mut rounds = Vec::with_capacity(ROUNDS);
    for i in 0..ROUNDS {
        rounds.push(round(&session, &mut ring, site, i % 2 == 1));
    }
    if ring.dropped() > 0 {
        return Err(format!("{} records were dropped: the figures are of a full ring", ring.dropped()).into());
    }
    for (i, case) in CASES.iter().enumerate() {
        report.add(format!("{}, median", case.name), median(rounds.iter().map(|r| r[i])), "ns");
        report.add(format!("{}, min", case.name), rounds.iter().map(|r| r[i]).fold(f64::MAX, f64::min), "ns");
        if let Some(bare) = case.bare {
            report.add(format!("{}, above", case.name), median(rounds.iter().map(|r| r[i] - r[bare])), "ns");
        }
    }
    drop(session);
    #[cfg(feature = "peers")]
    others::run(report)?;
    #[cfg(not(feature = "peers"))]
    report.add("other tracers are not measured: built without the feature peers", 0.0, "");
    Ok(())
}

/// ns per slice of every case.
fn round(session: &Session, ring: &mut RingReader, site: SiteId, backwards: bool) -> Vec<f64> {
    let mut ns = vec![0.0; CASES.len()];
    for i in 0..CASES.len() {
        let i = if backwards { CASES.len() - 1 - i } else { i };
        let case = &CASES[i];
        session.switch(case.on);
        ring.consume_to(u64::MAX);
        let begin = clock::mono_now();
        (case.block)(site);
        ns[i] = (clock::mono_now() - begin) as f64 / BLOCK as f64;
    }
    ns
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    quantile(values, 0.5)
}

/// The value below which this share lies.
fn quantile(values: impl Iterator<Item = f64>, share: f64) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[(values.len() as f64 * share) as usize]
}
