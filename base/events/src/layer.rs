//! A `tracing_subscriber` layer: a program's spans become slices and its events become instants, in the same rings.
//!
//! Each entry into a span becomes a slice on the thread that enters it, with the span's target as category and the
//! span's name. An event becomes an instant with its message and fields as text. A span's fields are not recorded.
//! After a thread's first span and first event the layer allocates no memory.
//!
//! ```
//! use tracing_subscriber::layer::SubscriberExt;
//! let subscriber = tracing_subscriber::registry().with(events::layer::EventsLayer::new());
//! tracing::subscriber::with_default(subscriber, || {
//!     let _span = tracing::info_span!("load").entered();
//!     tracing::info!("half way");
//! });
//! ```

use crate::emit::{self, SliceGuard};
use crate::local::count_lost;
use crate::names::{self, NodeId, SiteId};
use crate::record::MAX_TEXT;
use std::cell::{Cell, RefCell};
use std::fmt::Write;
use tracing::field::{Field, Visit};
use tracing::span::Id;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

/// The number of spans that a thread may be in at once; further ones are counted as lost.
const MAX_ENTERED: usize = 128;

/// A layer for a `tracing_subscriber` registry, which records while the process records ([`crate::start`]).
#[derive(Clone, Copy, Debug, Default)]
pub struct EventsLayer(());

impl EventsLayer {
    /// Creates the layer.
    #[must_use]
    pub fn new() -> Self {
        Self(())
    }
}

/// A thread's cache of site ids, by the address of the call site's metadata.
struct SiteCache([Cell<(usize, SiteId)>; 256]);

impl SiteCache {
    /// Returns the id of a call site; takes no lock where the id is cached.
    #[inline]
    fn site(&self, metadata: &'static Metadata<'static>) -> SiteId {
        let key = std::ptr::from_ref(metadata).addr();
        // Fibonacci hashing: metadata are statics of over 100 bytes, so the low bits of their addresses vary little.
        let entry = &self.0[((key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize];
        let (cached_key, site) = entry.get();
        if cached_key == key {
            return site;
        }
        let site = names::site(metadata.target(), metadata.name());
        entry.set((key, site));
        site
    }
}

thread_local! {
    static SITES: SiteCache = const { SiteCache([const { Cell::new((0, SiteId::OTHER)) }; 256]) };
    /// The buffer for the text of the event that is being logged.
    static TEXT: RefCell<Text> = const { RefCell::new(Text(String::new())) };
    /// The spans that the thread is in, innermost last: id and slice.
    static ENTERED: RefCell<Vec<(u64, SliceGuard)>> = const { RefCell::new(Vec::new()) };
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for EventsLayer {
    fn on_enter(&self, id: &Id, ctx: Context<'_, S>) {
        if !emit::is_on() {
            return;
        }
        let Some(metadata) = ctx.metadata(id) else {
            return;
        };
        // Access to a thread-local fails only while the thread ends.
        let Ok(site) = SITES.try_with(|sites| sites.site(metadata)) else {
            return;
        };
        let _ = ENTERED.try_with(|entered| {
            let mut entered = entered.borrow_mut();
            if entered.len() < MAX_ENTERED {
                entered.push((id.into_u64(), emit::slice_for_node(site, NodeId::NONE)));
            } else {
                count_lost();
            }
        });
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        let _ = ENTERED.try_with(|entered| {
            let mut entered = entered.borrow_mut();
            // Searched from the end: spans may be left in any order, but usually the innermost is left first.
            if let Some(idx) = entered.iter().rposition(|(span, _)| *span == id.into_u64()) {
                drop(entered.remove(idx));
            }
        });
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if !emit::is_on() {
            return;
        }
        let Ok(site) = SITES.try_with(|sites| sites.site(event.metadata())) else { return };
        let is_logged = TEXT.try_with(|text| {
            // Fails where formatting a field logs an event itself: that inner event is logged without its text.
            let Ok(mut text) = text.try_borrow_mut() else { return false };
            text.0.clear();
            event.record(&mut *text);
            emit::log(site, &text.0);
            true
        });
        if is_logged != Ok(true) {
            emit::instant(site, 0);
        }
    }
}

/// An event's message and its fields: `message key=value`.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if self.0.len() < MAX_TEXT {
            let space = if self.0.is_empty() { "" } else { " " };
            // Writing to a string fails only where the value's own formatting does; then the text lacks this field.
            let _ = match field.name() {
                "message" => write!(self.0, "{space}{value:?}"),
                name => write!(self.0, "{space}{name}={value:?}"),
            };
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        // Cut before it is formatted, which bounds the time for a long value.
        let value = &value[..value.floor_char_boundary(MAX_TEXT)];
        match field.name() {
            "message" => self.record_debug(field, &format_args!("{value}")),
            _ => self.record_debug(field, &value),
        }
    }
}
