//! What emitting an event costs: ns per slice, against the bare time stamps that the slice needs.
//!
//! Blocks of slices; in each round every case runs one block, in alternating order, so that a busy machine disturbs all
//! alike. "above" is the median over the rounds of the difference to the same round's bare time stamps. Between the blocks
//! the ring is emptied, so that no record is dropped.

mod blocks;
#[cfg(feature = "peers")]
pub mod others;
#[cfg(feature = "peers")]
mod tracers;

use crate::report::{BenchError, Report};
use crate::stats::median;
use ::events::layer::EventsLayer;
use ::events::ring::RingReader;
use ::events::{NodeId, Session, SiteId, clock, emit_slice, site};
use blocks::{BLOCK, chained, guard, one_stamp, open_and_close, span, stamps_given, two_stamps};
use tracing_subscriber::layer::SubscriberExt;

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
