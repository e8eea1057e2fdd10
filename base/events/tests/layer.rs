//! The tracing layer: spans become slices and events instants, as text.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod common;

use common::{one_at_a_time, start, the_ring};
use events::layer::EventsLayer;
use events::meta::{Entry, MetaReader};
use events::record::Decoder;
use events::ring::RingReader;
use std::fmt::Write;
use tracing::{info, info_span};
use tracing_subscriber::layer::SubscriberExt;

/// Runs `program` under the layer; one line per event, in order of the records: kind, depth, category/name.
fn check(program: impl FnOnce(), want: &str) {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let session = start(dir.path(), 1024);
    tracing::subscriber::with_default(tracing_subscriber::registry().with(EventsLayer::new()), program);
    let mut records = Vec::new();
    RingReader::open(&the_ring(dir.path())).unwrap().drain(&mut records);
    let trace = dir.path().to_owned();
    drop(session);
    let mut meta = Vec::new();
    MetaReader::open(&events::meta::path(&trace, std::process::id())).unwrap().poll(&mut meta).unwrap();
    let mut decoder = Decoder::default();
    let mut got = String::new();
    for record in records {
        let Some(event) = decoder.push(record) else { continue };
        let name = meta.iter().find_map(|e| match e {
            Entry::Site { id, category, name } if *id == event.site.get() => Some(format!("{category}/{name}")),
            _ => None,
        });
        let name = name.unwrap();
        // The name of an event holds its line; the file is enough here.
        let name = name.split(".rs:").next().unwrap();
        writeln!(got, "{:?} {} {name} {}", event.kind, event.depth, decoder.text()).unwrap();
    }
    let got: Vec<&str> = got.lines().map(str::trim).collect();
    assert_eq!(got.join("\n"), want.trim());
}

#[test]
fn spans_and_events() {
    check(
        || {
            let outer = info_span!(target: "app", "outer");
            for _ in 0..2 {
                let _outer = outer.enter();
                let _inner = info_span!(target: "app", "inner", field = 3).entered();
                info!(target: "log", n = 3, who = ?Some(2), "hello");
            }
        },
        "
Instant 2 log/event base/events/tests/layer hello n=3 who=Some(2)
Slice 1 app/inner
Slice 0 app/outer
Instant 2 log/event base/events/tests/layer hello n=3 who=Some(2)
Slice 1 app/inner
Slice 0 app/outer",
    );
}

#[test]
fn spans_left_in_the_wrong_order() {
    check(
        || {
            let (a, b) = (info_span!(target: "app", "a"), info_span!(target: "app", "b"));
            let (a, b) = (a.entered(), b.entered());
            drop(a);
            drop(b);
            let _c = info_span!(target: "app", "c").entered();
        },
        "
Slice 0 app/a
Slice 1 app/b
Slice 0 app/c",
    );
}

#[test]
fn many_call_sites_share_the_cache() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let _session = start(dir.path(), 1024);
    tracing::subscriber::with_default(tracing_subscriber::registry().with(EventsLayer::new()), || {
        // One call site, many threads: each has its own cache and its own ring.
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let dispatch = tracing::dispatcher::get_default(Clone::clone);
                scope.spawn(move || {
                    tracing::dispatcher::with_default(&dispatch, || drop(info_span!("shared").entered()));
                });
            }
        });
    });
    let sites: Vec<_> = common::rings(dir.path())
        .iter()
        .map(|path| {
            let mut records = Vec::new();
            RingReader::open(path).unwrap().drain(&mut records);
            assert_eq!(records.len(), 1);
            records[0].site_id()
        })
        .collect();
    assert_eq!(sites, vec![events::site("layer", "shared"); 4]);
}

/// More spans at once than are followed: the further ones are counted, the others are whole.
#[test]
fn too_many_spans_at_once() {
    let _one = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let session = start(dir.path(), 1024);
    tracing::subscriber::with_default(tracing_subscriber::registry().with(EventsLayer::new()), || {
        let spans: Vec<_> = (0..200).map(|_| info_span!("deep").entered()).collect();
        for span in spans.into_iter().rev() {
            drop(span);
        }
    });
    let mut reader = RingReader::open(&the_ring(dir.path())).unwrap();
    let mut records = Vec::new();
    reader.drain(&mut records);
    assert_eq!(records.len(), 128);
    while session.control().lost().events < 72 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}
