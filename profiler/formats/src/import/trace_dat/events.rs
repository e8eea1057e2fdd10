//! Stages the events of the kernel's trace pages.

use super::file::{Contents, Pages};
use crate::import::atrace;
use crate::import::problems::Problem;
use crate::import::sched::{Sched, SwitchThread};
use crate::import::stage::Stage;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};
use trace_model::ThreadState;
use trace_model::scheduling::format::{Field, Format};
use trace_model::scheduling::page::{Layout, Page};
use trace_model::scheduling::{Comm, SchedKind};

/// How a kind of event is staged, with the fields that are needed.
enum EventFormat {
    /// `prev_comm`, `prev_pid`, `prev_state`, `next_comm`, `next_pid`.
    Switch([Field; 5]),
    /// `pid`, `target_cpu`.
    Waking(Field, Option<Field>),
    /// The text of a mark.
    Mark(Field),
    /// `pid`, `comm`, `clone_flags`.
    NewTask([Field; 3]),
    /// `pid`, `newcomm`.
    Rename([Field; 2]),
    /// `pid`.
    Exit([Field; 1]),
    /// `dev`, `sector`, and if a request begins `bytes` and `rwbs`.
    Disk([Field; 2], Option<[Field; 2]>),
    Other,
}

struct KindOf {
    name: String,
    format: Format,
    means: EventFormat,
}

pub(super) struct Events {
    layout: Layout,
    kinds: FxHashMap<u16, KindOf>,
    common_pid: Option<Field>,
    names: FxHashMap<i64, String>,
    sched: Sched,
    tsc: Option<(u32, u32, u64)>,
    offset: i64,
    /// Whether times count ticks of an unknown rate.
    is_counter: bool,
}

fn means(name: &str, format: &Format) -> EventFormat {
    fn fields<const N: usize>(format: &Format, names: [&str; N]) -> Option<[Field; N]> {
        let fields: Option<Vec<Field>> = names.into_iter().map(|name| format.field(name)).collect();
        fields?.try_into().ok()
    }
    let found = match name {
        "sched_switch" => {
            fields(format, ["prev_comm", "prev_pid", "prev_state", "next_comm", "next_pid"]).map(EventFormat::Switch)
        }
        "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => {
            format.field("pid").map(|pid| EventFormat::Waking(pid, format.field("target_cpu")))
        }
        "print" => format.field("buf").map(EventFormat::Mark),
        "task_newtask" => fields(format, ["pid", "comm", "clone_flags"]).map(EventFormat::NewTask),
        "task_rename" => fields(format, ["pid", "newcomm"]).map(EventFormat::Rename),
        "sched_process_exit" => fields(format, ["pid"]).map(EventFormat::Exit),
        "block_rq_issue" => fields(format, ["dev", "sector"])
            .zip(fields(format, ["bytes", "rwbs"]))
            .map(|(place, issue)| EventFormat::Disk(place, Some(issue))),
        "block_rq_complete" => fields(format, ["dev", "sector"]).map(|place| EventFormat::Disk(place, None)),
        _ => None,
    };
    found.unwrap_or(EventFormat::Other)
}

impl Events {
    /// A reader of events; `None` if `header_page` is missing.
    pub(super) fn new(contents: &Contents) -> Option<Events> {
        let layout = Layout::parse(&contents.header_page)?;
        let mut kinds = FxHashMap::default();
        let mut common_pid = None;
        for text in &contents.formats {
            let name = text.lines().find_map(|line| line.strip_prefix("name:")).unwrap_or("").trim().to_owned();
            let Some(format) = Format::parse(text) else { continue };
            common_pid = common_pid.or(format.field("common_pid"));
            let means = means(&name, &format);
            kinds.insert(format.id, KindOf { name, format, means });
        }
        let names = contents.command_lines.lines().filter_map(|line| {
            let (pid, name) = line.trim().split_once(' ')?;
            Some((pid.parse().ok()?, name.to_owned()))
        });
        let is_counter = contents.tsc.is_none() && matches!(contents.clock.as_str(), "x86-tsc" | "counter");
        let (names, sched) = (names.collect(), Sched::default());
        let Contents { tsc, offset, .. } = *contents;
        Some(Events { layout, kinds, common_pid, names, sched, tsc, offset, is_counter })
    }

    fn time(&self, raw: u64) -> Option<i64> {
        let ns = match self.tsc {
            Some((multiplier, shift, offset)) => {
                let scaled = (u128::from(raw) * u128::from(multiplier)).checked_shr(shift).unwrap_or(0);
                scaled.checked_add(offset.into())?
            }
            None => raw.into(),
        };
        i64::try_from(ns).ok()?.checked_add(self.offset)
    }

    /// Stages the events of some pages of a CPU.
    pub(super) fn pages(&mut self, bytes: &[u8], pages: &Pages, stage: &mut Stage) {
        for page in bytes.chunks(pages.page_size) {
            let Some(page) = Page::new(page, self.layout) else {
                stage.problems.count_at(Problem::Damaged, pages.position());
                continue;
            };
            stage.problems.add(Problem::LostByRecorder, if page.lost == u64::MAX { 1 } else { page.lost }, None);
            for (raw, event) in page {
                match self.time(raw) {
                    Some(time) => self.event(time, pages.cpu, event, stage),
                    None => stage.problems.count(Problem::AbsurdTime),
                }
            }
        }
    }

    fn event(&mut self, time: i64, cpu: u32, event: &[u8], stage: &mut Stage) {
        let id = event.first_chunk().map(|id| u16::from_le_bytes(*id));
        let Some(kind) = id.and_then(|id| self.kinds.get(&id)) else {
            return stage.problems.count(Problem::UnknownEvent);
        };
        let current = self.common_pid.map_or(0, |f| f.number(event) as u32);
        let (tid, sched) = (i64::from(current), &mut self.sched);
        let number = |field: &Field| field.number(event) as u32;
        let side = |name: &Field, tid: &Field| SwitchThread::new(number(tid), name.text(event));
        match &kind.means {
            EventFormat::Switch([prev_name, prev, state, next_name, next]) => {
                let left = ThreadState::from_prev_state(state.number(event));
                // The code below would name the track of the previous thread, which exists already.
                return sched.switch(time, cpu, Some(side(prev_name, prev)), left, side(next_name, next));
            }
            EventFormat::Waking(thread, target) => {
                let target = target.as_ref().map_or(u32::MAX, number);
                sched.take(time, cpu, SchedKind::Waking { by: current, thread: number(thread), cpu: target });
            }
            EventFormat::Mark(text) => {
                let text = String::from_utf8_lossy(text.text_to_end(event)).into_owned();
                atrace::take(text.trim_end(), tid, time, sched, stage);
            }
            means => {
                if let EventFormat::NewTask([pid, name, flags]) = means {
                    sched.born(time, cpu, current, side(name, pid), flags.number(event));
                }
                let what = match means {
                    EventFormat::Rename([pid, name]) => {
                        Some(SchedKind::Renamed { thread: number(pid), name: Comm::new(name.text(event)) })
                    }
                    EventFormat::Exit([pid]) => Some(SchedKind::Exit { thread: number(pid) }),
                    EventFormat::Disk([device, sector], issue) => {
                        let (device, sector) = (number(device), sector.number(event));
                        let is_write = issue.as_ref().is_some_and(|[_, kind]| kind.text(event).contains(&b'W'));
                        let bytes = issue.as_ref().map_or(0, |[bytes, _]| number(bytes));
                        Some(SchedKind::Disk { device, sector, bytes, by: current, is_write, ends: issue.is_none() })
                    }
                    _ => None,
                };
                if let Some(what) = what {
                    sched.take(time, cpu, what);
                }
                let track = stage.thread_of_any(tid);
                let (args, site) = (stage.args.push(&fields(kind, event, cpu)), stage.site("ftrace", &kind.name));
                stage.instant(track, time, site, args);
            }
        }
        let track = stage.thread_of_any(tid);
        if let Some(name) = self.names.get(&tid).filter(|_| tid != 0) {
            stage.name_track(track, name);
        }
    }

    pub(super) fn finish(&mut self, stage: &mut Stage) {
        self.sched.finish(stage);
        if self.is_counter {
            stage.problems.count(Problem::TicksAsNs);
        }
    }
}

/// The fields of an event, without the common ones, as a JSON object.
fn fields(kind: &KindOf, event: &[u8], cpu: u32) -> String {
    let mut args = Map::new();
    for (name, field) in kind.format.specific_fields() {
        let value = if field.is_number() {
            field.signed_number(event).map_or_else(|| field.number(event).into(), Value::from)
        } else {
            String::from_utf8_lossy(field.text(event)).into_owned().into()
        };
        args.insert(name.to_owned(), value);
    }
    args.insert("cpu".to_owned(), cpu.into());
    Value::Object(args).to_string()
}
