//! Writes the scheduling of a command and its descendants to tracks of a recording.

use crate::collect::{TrackNo, Tracks};
use events::meta::TrackKind;
use events::{Kind, SiteId};
use trace_model::scheduling::Comm;
use trace_model::scheduling::derive::Output;

/// The order of scheduling tracks, after the tracks that threads write themselves.
const ORDER: i32 = 1_000_000;

impl Output for Tracks {
    type Track = TrackNo;
    type Site = SiteId;

    fn process_of(&self, _: u32) -> Option<u32> {
        // Unknown threads belong to other programs: the command's threads are followed from their start, or from the
        // time of attaching.
        None
    }

    fn thread(&mut self, process: u32, thread: u32, name: Comm) -> TrackNo {
        self.add_track(TrackKind::Thread, process, thread, ORDER, &title(name, thread))
    }

    fn rename(&mut self, track: TrackNo, process: u32, thread: u32, name: Comm) {
        Tracks::rename(self, track, TrackKind::Thread, process, thread, ORDER, &title(name, thread));
    }

    fn process(&mut self, process: u32, name: Comm) {
        Tracks::name_process(self, process, &command(process, name));
    }

    fn cpu(&mut self, cpu: u32) -> TrackNo {
        let order = i32::try_from(cpu).unwrap_or(i32::MAX);
        self.add_track(TrackKind::Cpu, self.pid(), 0, order, &format!("CPU {cpu}"))
    }

    fn disk(&mut self, device: u32) -> TrackNo {
        let name = format!("disk {}:{}", device >> 20, device & 0xf_ffff);
        self.add_track(TrackKind::Async, self.pid(), 0, ORDER, &name)
    }

    fn site(&mut self, category: &'static str, name: &str) -> SiteId {
        Tracks::site(self, category, name)
    }

    fn slice(&mut self, track: TrackNo, begin: u64, end: u64, site: SiteId, correlation: u32, arg: u64) {
        Tracks::add_slice(self, track, begin, end, site, correlation, arg);
    }

    fn instant(&mut self, track: TrackNo, time: u64, site: SiteId, correlation: u32, arg: u64) {
        self.add_point(Kind::Instant, track, time, site, correlation, arg);
    }
}

fn title(name: Comm, thread: u32) -> String {
    format!("{} {thread}, scheduling", name.text())
}

/// Reads the command line of a process, up to 1,000 characters; returns `name` for a process that has ended.
fn command(process: u32, name: Comm) -> String {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words: Vec<String> = line.split(|b| *b == 0).map(|w| String::from_utf8_lossy(w).into_owned()).collect();
    let text = words.join(" ").trim_end().chars().take(1000).collect::<String>();
    if text.is_empty() { name.text() } else { text }
}
