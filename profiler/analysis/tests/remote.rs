//! A trace of another process is analysed as one of this process is.

// Clippy's exceptions for tests do not reach the helpers of an integration test.
#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use parking_lot::RwLock;
use std::sync::Arc;
use trace_analysis::stalls;
use trace_store::remote::{RemoteError, Server, Transport, Viewer};
use trace_store::{Residency, Store, StoreOptions, testkit};

struct InProcess(Server);

impl Transport for InProcess {
    fn request(&self, request: &[u8]) -> Result<Bytes, RemoteError> {
        Ok(self.0.respond(request).into())
    }

    fn location(&self) -> String {
        "in process".to_owned()
    }
}

#[test]
fn stalls_of_a_remote_trace() {
    let local = Arc::new(RwLock::new(testkit::store(
        "step 7: 0..100\n w0 A 0..10\n w0 B 12..28 by A queue 2\n w1 A 30..95\n flow 1 w0 10 -> w1 30\n\
         transfer 3 A w0 1 2 3 -> B w1 8 9\n w0 alloc cpu:0 A 12 1024",
    )));
    let mut viewer = Viewer::new(Arc::new(InProcess(Server::new(Arc::clone(&local)))));
    let mut remote = Store::with_options(StoreOptions::UNBOUNDED);
    remote.apply(viewer.poll().unwrap());
    while remote.residency(&remote.range()) != Residency::Resident {
        remote.pager().unwrap().load_requested();
    }
    let local = local.read();
    let expected = stalls(&local, local.range());
    assert!(!expected.is_empty());
    assert_eq!(stalls(&remote, remote.range()), expected);
}
