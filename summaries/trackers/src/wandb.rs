//! Weights & Biases' `run-ID.wandb`, which a run writes online and offline: records of what was logged. Media are in
//! files next to it.

mod frames;
mod history;
mod media;
mod proto;
mod table;
mod value;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
};

use prost::Message as _;

use crate::{
    entry::{Entry, Param, Value},
    json,
    reader::{Batch, Problem, Reader},
};
use frames::{Frame, Frames};
use history::Row;
use media::Media;
use proto::{Item, Kind, Record};

/// Whether a file is such a log, by its first bytes.
pub(crate) fn is_wandb(path: &Path) -> bool {
    // A pipe would block when it is opened.
    let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut begin = Vec::new();
    let mut read = || File::open(path)?.take(frames::IDENT.len() as u64).read_to_end(&mut begin);
    is_file && read().is_ok() && begin == frames::IDENT
}

/// Opens a log.
pub(crate) fn open(path: &Path) -> Box<dyn Reader> {
    Box::new(RunLog {
        frames: Frames::new(path),
        media: Media::new(path),
        pending: VecDeque::new(),
        has_more: false,
        config: BTreeMap::new(),
        summary: BTreeMap::new(),
        known: BTreeSet::new(),
        start: None,
        last: None,
        has_ended: false,
        emitted: EmittedState::default(),
        replay: Replay::default(),
    })
}

/// Follows a run's log.
#[derive(Debug)]
struct RunLog {
    frames: Frames,
    media: Media,
    /// Records that were read, but were too many for one call.
    pending: VecDeque<Frame>,
    /// Whether the file has more than these.
    has_more: bool,
    config: BTreeMap<String, Param>,
    /// The numbers of the summary that the history does not have so far.
    summary: BTreeMap<String, f64>,
    /// The tags of the history, and those of the summary that were handed out.
    known: BTreeSet<String>,
    /// Unix seconds at which the run began.
    start: Option<f64>,
    /// Step and time of the last row of the history.
    last: Option<(i64, f64)>,
    /// Whether the record of the run's end was read.
    has_ended: bool,
    emitted: EmittedState,
    replay: Replay,
}

/// What was handed out in addition to the history.
#[derive(Debug, Default)]
struct EmittedState {
    n_alerts: usize,
    /// The time of the last system metrics.
    stats: Option<f64>,
}

/// What is left out of a log that is read again, as it was handed out before.
#[derive(Debug, Default)]
struct Replay {
    /// Up to this step.
    step: Option<i64>,
    n_alerts: usize,
    /// Up to this time.
    stats: Option<f64>,
}

impl Reader for RunLog {
    fn read(&mut self, allowance: u64, batch: &mut Batch) -> io::Result<()> {
        if self.pending.is_empty() {
            let read = self.frames.read(allowance, batch)?;
            if read.is_restarted {
                let step = self.last.map(|(step, _)| step);
                self.replay = Replay { step, n_alerts: self.emitted.n_alerts, stats: self.emitted.stats };
                self.has_ended = false;
            }
            self.pending = read.frames.into();
            self.has_more = read.has_more;
        }
        let mut n_bytes = 0;
        while n_bytes < allowance.max(1)
            && let Some(frame) = self.pending.pop_front()
        {
            let n_before = batch.entries.len();
            self.take(&frame, batch);
            let n_params: usize = batch.entries.iter().skip(n_before).map(n_params).sum();
            n_bytes += frame.record.len() as u64 + self.media.next_row();
            n_bytes += (n_params * size_of::<(String, Param)>()) as u64;
        }
        batch.has_more = self.has_more || !self.pending.is_empty();
        Ok(())
    }
}

impl RunLog {
    fn take(&mut self, frame: &Frame, batch: &mut Batch) {
        let Ok(record) = Record::decode(&*frame.record) else {
            let what = "a record that is not a protobuf message";
            batch.problems.push(Problem { what, bytes: frame.bytes.clone() });
            return;
        };
        match record.kind {
            Some(Kind::Run(run)) => {
                self.start = run.start_time.as_ref().map(proto::Timestamp::seconds).or(self.start);
                self.configure(&run.config.unwrap_or_default(), batch);
            }
            Some(Kind::Config(config)) => self.configure(&config, batch),
            Some(Kind::History(history)) => self.take_history(&history, frame, batch),
            Some(Kind::Summary(summary)) => {
                self.summarize(&summary);
                // Old releases write the summary after the end.
                if self.has_ended {
                    self.take_summary(batch);
                }
            }
            Some(Kind::Stats(stats)) => self.take_stats(&stats, batch),
            Some(Kind::Alert(alert)) => self.take_alert(&alert, batch),
            Some(Kind::Exit(_)) => {
                self.has_ended = true;
                self.take_summary(batch);
            }
            None => {}
        }
    }

    /// Changes the configuration, and hands it out if that makes a difference.
    fn configure(&mut self, change: &proto::Update, batch: &mut Batch) {
        let before = self.config.clone();
        for item in &change.remove {
            self.forget(&item.name());
        }
        for item in &change.update {
            let name = item.name();
            if name != "_wandb" && !name.starts_with("_wandb.") {
                self.forget(&name);
                self.set(name, item);
            }
        }
        if self.config != before {
            let wall = self.last.map(|(_, wall)| wall).or(self.start).unwrap_or(0.0);
            let value = Value::Params(self.config.clone());
            batch.entries.push(Entry { tag: String::new(), step: 0, wall, value });
        }
    }

    /// Removes a setting, or a dictionary of them.
    fn forget(&mut self, name: &str) {
        self.config.remove(name);
        // `/` follows `.`, so that this is all that begins with the name and `.`.
        let below = self.config.range(format!("{name}.")..format!("{name}/"));
        let below: Vec<String> = below.map(|(name, _)| name.clone()).collect();
        below.iter().for_each(|name| drop(self.config.remove(name)));
    }

    fn set(&mut self, name: String, item: &Item) {
        let mut values = Vec::new();
        match item.value() {
            Some(value) => drop(value::flatten(name, value, &mut values)),
            None => drop(self.config.insert(name, Param::Text(item.value_json.clone()))),
        }
        self.config.extend(values.into_iter().map(|(name, value)| (name, json::param(&value))));
    }

    fn take_history(&mut self, history: &proto::History, frame: &Frame, batch: &mut Batch) {
        let row = Row::new(&history.item);
        let step = row.step().or(history.step.as_ref().map(|step| step.num)).unwrap_or(0);
        let wall = row.wall().unwrap_or(0.0);
        if self.replay.step.is_some_and(|last| step <= last) {
            return;
        }
        let n_before = batch.entries.len();
        row.entries(step, wall, &mut self.media, frame, batch);
        let new = batch.entries.iter().skip(n_before).filter(|entry| !self.known.contains(&entry.tag));
        let new: Vec<String> = new.map(|entry| entry.tag.clone()).collect();
        self.known.extend(new);
        self.known.extend(row.objects().cloned());
        self.last = Some((step, wall));
    }

    fn take_stats(&mut self, stats: &proto::Stats, batch: &mut Batch) {
        let wall = stats.timestamp.as_ref().map_or(0.0, proto::Timestamp::seconds);
        if self.replay.stats.is_some_and(|last| wall <= last) {
            return;
        }
        self.emitted.stats = Some(wall);
        let step = (wall - self.start.unwrap_or(wall)).max(0.0) as i64;
        for item in &stats.item {
            if let Some(value) = item.value().as_ref().and_then(json::number) {
                let tag = format!("system/{}", item.name());
                batch.entries.push(Entry { tag, step, wall, value: Value::Scalar(value) });
            }
        }
    }

    fn take_alert(&mut self, alert: &proto::Alert, batch: &mut Batch) {
        if self.replay.n_alerts > 0 {
            self.replay.n_alerts -= 1;
            return;
        }
        self.emitted.n_alerts += 1;
        let (step, wall) = self.last.unwrap_or_default();
        let text = format!("**{}** ({})\n\n{}", alert.title, alert.level, alert.text);
        batch.entries.push(Entry { tag: "alerts".to_owned(), step, wall, value: Value::Text(text) });
    }

    fn summarize(&mut self, change: &proto::Update) {
        for item in &change.remove {
            self.summary.remove(&item.name());
        }
        let row = Row::new(&change.update);
        self.known.extend(row.objects().cloned());
        self.summary.extend(row.numbers().map(|(name, value)| (name.to_owned(), value)));
        self.summary.retain(|name, _| !is_known(&self.known, name));
    }

    /// Hands out the numbers that the program put into the summary only.
    fn take_summary(&mut self, batch: &mut Batch) {
        let (step, wall) = self.last.unwrap_or_default();
        for (tag, value) in std::mem::take(&mut self.summary) {
            if !is_known(&self.known, &tag) {
                self.known.insert(tag.clone());
                batch.entries.push(Entry { tag, step, wall, value: Value::Scalar(value) });
            }
        }
    }
}

fn n_params(entry: &Entry) -> usize {
    match &entry.value {
        Value::Params(params) => params.len(),
        _ => 0,
    }
}

/// Whether a number of the summary is one of these tags, or a part of what one stands for: `loss.min` of `loss`.
fn is_known(known: &BTreeSet<String>, name: &str) -> bool {
    known.contains(name) || name.match_indices('.').take(64).any(|(at, _)| known.contains(&name[..at]))
}
