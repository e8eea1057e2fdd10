//! Ranges and marks of NVTX.
//!
//! A range of a thread (push, pop) or of the process (start, end) is two markers with one id; a mark is one marker.
//! Colour, category and payload come in a record of their own, before or after the marker, or not at all.

use super::open_ranges::{MarkerAttrs, OpenRange};
use super::tracks::TrackKey;
use super::{Translator, slice};
use crate::library::Library;
use crate::record::{Object, Payload, Record, Span};
use crate::words;
use events::track::TrackSlice;
use events::{Kind, NodeId, clock};
use serde_json::{Map, Value};

/// Flags of a marker (`CUpti_ActivityFlag`): a mark, the begin of a range, the end of a range.
const MARK: u32 = 1;
const BEGIN: u32 = 2;
const END: u32 = 4;

impl Translator {
    pub(super) fn write_marker(&mut self, record: &Record, library: &dyn Library) {
        let Record::Marker { flags, time, id, object, name, domain } = *record else { return };
        if time == 0 {
            self.report.without_time += 1;
            return;
        }
        let thread = if let Object::Thread { thread, .. } = object { Some(thread) } else { None };
        if flags & (MARK | BEGIN) != 0 {
            let name = library.text(name).unwrap_or_default();
            let depth = thread.map_or(0, |thread| {
                let depth = self.ranges.depth.entry(thread).or_default();
                let outer_depth = *depth;
                *depth += u32::from(flags & BEGIN != 0);
                outer_depth
            });
            let range = OpenRange { time, name, domain: library.text(domain), thread, depth };
            if flags & BEGIN != 0 {
                self.ranges.open.entry(id, || range);
            } else {
                self.write_mark(id, &range);
            }
        } else if flags & END != 0
            && let Some(range) = self.ranges.open.take(id)
        {
            self.write_range(id, &range, time);
        }
    }

    fn args(&mut self, id: u32, range: &OpenRange) -> String {
        let MarkerAttrs { color, category, payload } = self.ranges.data.take(id).unwrap_or_default();
        let mut args = Map::new();
        if let Some(domain) = &range.domain {
            args.insert("domain".to_owned(), domain.as_str().into());
        }
        if category != 0 {
            args.insert("category".to_owned(), category.into());
        }
        if let Some(argb) = color {
            args.insert("colour".to_owned(), format!("#{:06x}", argb & 0xff_ffff).into());
        }
        let payload = match payload {
            Payload::Double(x) => serde_json::Number::from_f64(x).map(Value::Number),
            Payload::Unsigned(n) => (n != 0).then(|| n.into()),
            Payload::Signed(n) => Some(n.into()),
            Payload::None => None,
        };
        args.extend(payload.map(|value| ("payload".to_owned(), value)));
        if args.is_empty() { String::new() } else { Value::Object(args).to_string() }
    }

    fn write_mark(&mut self, id: u32, mark: &OpenRange) {
        let (args, site) = (self.args(id, mark), self.site("nvtx", &mark.name));
        let write = |track: &mut events::Track| track.point(Kind::Instant, mark.time, site, NodeId::NONE, 0, &args);
        self.tracks.write(TrackKey::Ranges(mark.thread), write);
        self.report.ranges += 1;
    }

    fn write_range(&mut self, id: u32, range: &OpenRange, end: u64) {
        if let Some(depth) = range.thread.and_then(|thread| self.ranges.depth.get_mut(&thread)) {
            *depth = depth.saturating_sub(1);
        }
        let step = words::step_number(&range.name);
        let args = self.args(id, range);
        let site = self.site(if step.is_some() { "step" } else { "nvtx" }, &range.name);
        let (span, number) = (Span { start: range.time, end }, step.unwrap_or(0));
        let slice = TrackSlice { depth: range.depth, arg: number.into(), ..slice(span, site, number, &args) };
        self.tracks.write(TrackKey::Ranges(range.thread), |track| track.slice(slice));
        self.report.ranges += 1;
    }

    /// Ends the open ranges at the current time, and counts them.
    pub(super) fn close_ranges(&mut self) {
        let now = clock::now();
        let open: Vec<_> = self.ranges.open.drain().collect();
        self.report.unended += open.len() as u64;
        for (id, range) in open {
            self.write_range(id, &range, now);
        }
    }
}
