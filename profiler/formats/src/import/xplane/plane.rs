//! Stages a plane: its lines as tracks, its events as slices.

use super::super::flows::{FlowKey, FlowPart};
use super::super::ids::{NodeIdx, ProcessIdx, SiteIdx, TrackIdx};
use super::super::problems::Problem;
use super::super::stage::{Stage, TrackOf};
use super::category::{self, LineContent, Owner};
use super::programs::Programs;
use super::runs::{RunKey, Runs};
use super::stats::{self, StatIds, StatName, Stats};
use formats::hlo::node_name;
use formats::profile::{XEvent, XLine, XPlane, x_event};
use rustc_hash::FxHashMap;
use trace_analysis::roofline::is_peak;
use trace_model::{Event, EventKind, NO_ARGS, NO_NODE, NO_STEP, TrackKind};

/// What the planes of a file share.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) programs: Programs,
    pub(super) runs: Runs,
    /// Tracks with the steps of devices.
    pub(super) device_steps: Vec<TrackIdx>,
    pub(super) has_host_steps: bool,
}

/// A plane that is being staged.
struct PlaneReader<'a> {
    plane: &'a XPlane,
    number: i64,
    owner: Owner,
    process: ProcessIdx,
    ids: &'a StatIds,
    /// Arguments of events without statistics of their own, by their description.
    args: FxHashMap<i64, u32>,
    /// Nodes of instructions, by row in the programs.
    nodes: FxHashMap<u32, NodeIdx>,
    /// Nodes of instructions that the event's description describes, by its id.
    described: FxHashMap<i64, NodeIdx>,
    json: String,
    shared: &'a mut Shared,
}

/// An event with what is known of it.
#[derive(Clone, Copy)]
struct Occurrence<'a> {
    event: &'a XEvent,
    /// The name that is shown.
    name: &'a str,
    /// The name that identifies the event: an op's with its type, an instruction in full.
    full_name: &'a str,
    stats: Stats<'a>,
    start: i64,
    end: i64,
}

/// Stages the plane that is the file's `number`th.
pub(super) fn stage_plane(plane: &XPlane, number: i64, shared: &mut Shared, stage: &mut Stage) {
    let machine = stage.text_id("machine");
    let process = stage.process(machine);
    stage.name_process(process, "XLA");
    let ids = StatIds::new(plane);
    let mut reader = PlaneReader {
        plane,
        number,
        owner: Owner::of_plane(&plane.name),
        process,
        ids: &ids,
        args: FxHashMap::default(),
        nodes: FxHashMap::default(),
        described: FxHashMap::default(),
        json: String::new(),
        shared,
    };
    for line in plane.lines.iter().filter(|line| !line.events.is_empty()) {
        let content = LineContent::of(&reader.owner, &line.name);
        if content == LineContent::Counters {
            reader.counters(line, stage);
            continue;
        }
        let track = reader.track(line, content, stage);
        for event in &line.events {
            if let Some(event) = reader.occurrence(event, line.timestamp_ns, stage) {
                reader.slice(event, content, track, stage);
            }
        }
    }
    reader.limits(stage);
}

impl<'a> PlaneReader<'a> {
    fn track(&mut self, line: &XLine, content: LineContent, stage: &mut Stage) -> TrackIdx {
        let id = if line.display_id != 0 { line.display_id } else { line.id };
        let name = if line.display_name.is_empty() { &line.name } else { &line.display_name };
        let Owner::Device(device) = &self.owner else {
            // Threads with the same id in several planes of the host are different.
            let of =
                if self.plane.name.ends_with("CPU") { TrackOf::Thread(id) } else { TrackOf::Stream(self.number, id) };
            let track = stage.track(self.process, of);
            let t = &mut stage.tracks[track as usize];
            (t.kind, t.name) = (TrackKind::Thread, name.clone());
            return track;
        };
        let track = stage.track(self.process, TrackOf::Stream(self.number, id));
        let t = &mut stage.tracks[track as usize];
        t.name = if name.is_empty() { format!("{device} line {id}") } else { format!("{device} {name}") };
        t.device.clone_from(device);
        t.kind = if content == LineContent::Work { TrackKind::Stream } else { TrackKind::Async };
        t.stream = if line.name.starts_with("Stream") { u64::try_from(id).ok() } else { None };
        t.order = 1_000 * i32::try_from(self.number + 1).unwrap_or(0) + i32::try_from(id).unwrap_or(999).clamp(0, 999);
        match content {
            LineContent::Work => self.shared.runs.add_work(self.number, track),
            LineContent::Steps => self.shared.device_steps.push(track),
            _ => {}
        }
        track
    }

    fn occurrence(&self, event: &'a XEvent, line_ns: i64, stage: &mut Stage) -> Option<Occurrence<'a>> {
        let kind = self.plane.event_metadata.get(&event.metadata_id);
        let (start, end) = times(event, line_ns, stage)?;
        if kind.is_none() {
            stage.problems.count(Problem::MissingName);
        }
        let name = kind.map_or("?", |m| if m.display_name.is_empty() { &m.name } else { &m.display_name });
        let full_name = kind.map_or("?", |m| &m.name);
        Some(Occurrence {
            event,
            name,
            full_name,
            stats: Stats::new(self.plane, self.ids, &event.stats, kind),
            start,
            end,
        })
    }

    fn slice(&mut self, of: Occurrence<'a>, content: LineContent, track: TrackIdx, stage: &mut Stage) {
        let Occurrence { name, stats, start, end, .. } = of;
        let framework_op = if content == LineContent::Thread { category::framework_op(of.full_name) } else { None };
        let category = category::category(content, name, stats, framework_op.is_some());
        let framework_op = framework_op.filter(|_| category == "op");
        let site = stage.site(category, framework_op.map_or(name, |(_, op)| op));
        let mut slice = site.slice(start, end);
        let instruction = match category {
            "op" | "kernel" | "copy" | "collective" => self.instruction(of),
            _ => None,
        };
        match category {
            "step" => {
                let step = || stats.integer(StatName::StepNum).or(stats.integer(StatName::GroupId)).map(|n| n as u32);
                let step = name.parse().ok().or_else(step).unwrap_or(0);
                (slice.correlation, slice.arg) = (step, u64::from(step));
                self.shared.has_host_steps |= content == LineContent::Thread;
            }
            "op" => (slice.correlation, slice.arg) = (NO_NODE, u64::from(NO_STEP) << 32),
            _ => slice.correlation = stats.integer(StatName::CorrelationId).unwrap_or(0) as u32,
        }
        if category == "copy" {
            slice.arg = copied_bytes(stats).unwrap_or(0);
        }
        slice.node = match (framework_op, instruction) {
            (Some((node, op)), _) => stage.node(node, op, ""),
            (None, Some(row)) => self.node_of_row(row, stage),
            (None, None) => self.described_node(of, category, stage),
        };
        slice.args = self.args(of, instruction, stage);
        stage.slice(track, slice);
        self.memory(of, track, stage);
        self.join(of, content, category, track, site, stage);
    }

    /// The instruction that an event names, by row in the programs.
    fn instruction(&self, of: Occurrence<'_>) -> Option<u32> {
        let program = of.stats.integer(StatName::ProgramId)?;
        // Computations that were inlined stand before the instruction: `call::fusion.3`.
        let instruction = of.stats.text(StatName::HloOp)?.rsplit("::").next()?;
        self.shared.programs.find(program, instruction, of.name)
    }

    fn device(&self) -> &str {
        match &self.owner {
            Owner::Device(device) => device,
            Owner::Host => "",
        }
    }

    fn node_of_row(&mut self, row: u32, stage: &mut Stage) -> NodeIdx {
        if let Some(node) = self.nodes.get(&row) {
            return *node;
        }
        let instruction = self.shared.programs.get(row);
        let node = stage.node(&instruction.node, &instruction.category, self.device());
        self.nodes.insert(row, node);
        node
    }

    /// The node of an instruction of a TPU, whose description has the category and the framework's op.
    fn described_node(&mut self, of: Occurrence<'_>, category: &str, stage: &mut Stage) -> NodeIdx {
        let is_work = matches!(category, "kernel" | "copy" | "collective");
        let (Some(op), true) = (of.stats.text(StatName::HloCategory), is_work) else { return NO_NODE };
        if let Some(node) = self.described.get(&of.event.metadata_id) {
            return *node;
        }
        let framework_op = of.stats.text(StatName::TfOp).unwrap_or_default();
        let instruction = of.name.split(" = ").next().unwrap_or(of.name);
        let node = stage.node(&node_name("", framework_op, instruction), op, self.device());
        self.described.insert(of.event.metadata_id, node);
        node
    }

    fn args(&mut self, of: Occurrence<'_>, instruction: Option<u32>, stage: &mut Stage) -> u32 {
        let is_shared = of.event.stats.is_empty() && instruction.is_none();
        if let (true, Some(args)) = (is_shared, self.args.get(&of.event.metadata_id)) {
            return *args;
        }
        self.json.clear();
        of.stats.write_members(&mut self.json);
        if let Some(row) = instruction {
            let instruction = self.shared.programs.get(row);
            stats::write_member(&mut self.json, "hlo_category", &instruction.category);
            for (key, value) in [("op_name", &instruction.op_name), ("source", &instruction.source)] {
                if !value.is_empty() {
                    stats::write_member(&mut self.json, key, value);
                }
            }
        }
        let args = if self.json.is_empty() { NO_ARGS } else { stage.args.push(&format!("{{{}}}", self.json)) };
        if is_shared {
            self.args.insert(of.event.metadata_id, args);
        }
        args
    }

    /// Adds the event of an allocator to the memory of its device.
    fn memory(&self, of: Occurrence<'_>, track: TrackIdx, stage: &mut Stage) {
        let kind = match of.name {
            "MemoryAllocation" => EventKind::Alloc,
            "MemoryDeallocation" => EventKind::Free,
            _ => return,
        };
        let (bytes, allocator) = (of.stats.integer(StatName::AllocationBytes), of.stats.text(StatName::AllocatorName));
        if let (Some(bytes), Some(allocator)) = (bytes, allocator) {
            let event = stage.site("alloc", allocator).at(kind, of.start);
            stage.point(track, Event { arg: bytes, ..event });
        }
    }

    /// Joins the event with others: by the arrows of its context, and by the run that it launches, is or ends.
    fn join(
        &mut self,
        of: Occurrence<'_>,
        content: LineContent,
        category: &str,
        track: TrackIdx,
        site: SiteIdx,
        stage: &mut Stage,
    ) {
        use StatName::{ConsumerId, ConsumerType, ProducerId, ProducerType};
        for (kind, id, part) in
            [(ProducerType, ProducerId, FlowPart::Start), (ConsumerType, ConsumerId, FlowPart::Finish)]
        {
            if let Some(id) = of.stats.integer(id) {
                let space = of.stats.integer(kind).unwrap_or(0);
                stage.flows.point(FlowKey { space, id }, part, track, of.start, site);
            }
        }
        if content == LineContent::Modules {
            let key = self.owner.tensor_core().and_then(|device| RunKey::of(Some(device), of.stats));
            if let Some(key) = key {
                self.shared.runs.add_run(key, self.number, (of.start, of.end));
            }
        } else if let (LineContent::Thread, Some(key)) = (content, RunKey::of(None, of.stats)) {
            if category::is_callback(of.name) {
                self.shared.runs.add_callback(key, track, of.start, site);
            } else if category == "launch" {
                self.shared.runs.add_launch(key, track, stage);
            }
        }
    }

    /// Stages a line of values as counters.
    fn counters(&self, line: &XLine, stage: &mut Stage) {
        for event in &line.events {
            let Some(of) = self.occurrence(event, line.timestamp_ns, stage) else { continue };
            match of.stats.number(StatName::CounterValue) {
                Some(value) => {
                    let site = stage.site("device", &format!("{} {}", self.device(), of.name));
                    stage.counter(self.process, of.start, site, value);
                }
                None => stage.problems.count(Problem::UnknownEvent),
            }
        }
    }

    /// Stages the peak rates of a device as counters that do not change.
    fn limits(&self, stage: &mut Stage) {
        let Owner::Device(device) = &self.owner else { return };
        let lines = self.plane.lines.iter().filter(|line| !line.events.is_empty());
        let Some(time) = lines.map(|line| line.timestamp_ns).min() else { return };
        let stats = Stats::new(self.plane, self.ids, &self.plane.stats, None);
        for (name, stat) in stats.named().filter(|(name, _)| is_peak(name)) {
            if let Some(value) = stats::number(stat) {
                let site = stage.site("device", &format!("{device} {name}"));
                stage.counter(self.process, time, site, value);
            }
        }
    }
}

/// Start and end of an event, ns; counts events without a time, or with an absurd one.
fn times(event: &XEvent, line_ns: i64, stage: &mut Stage) -> Option<(i64, i64)> {
    let Some(x_event::Data::OffsetPs(offset)) = event.data.or(Some(x_event::Data::OffsetPs(0))) else {
        // An event that aggregates many executions has no time.
        stage.problems.count(Problem::UnknownEvent);
        return None;
    };
    let begin = i128::from(line_ns) * 1_000 + i128::from(offset);
    let ns = |ps: i128| i64::try_from((ps + 500).div_euclid(1_000)).ok().filter(|ns| ns.unsigned_abs() < 1 << 62);
    let (Some(start), Some(end)) = (ns(begin), ns(begin + i128::from(event.duration_ps.max(0)))) else {
        stage.problems.count(Problem::AbsurdTime);
        return None;
    };
    if event.duration_ps < 0 {
        stage.problems.count(Problem::NegativeDuration);
    }
    Some((start, end))
}

/// The bytes in `kind_src:device kind_dst:pageable size:512 dest:0 async:1`.
fn copied_bytes(stats: Stats<'_>) -> Option<u64> {
    let details = stats.text(StatName::MemcpyDetails).or_else(|| stats.text(StatName::MemsetDetails))?;
    let sizes = details.split_whitespace().filter_map(|word| word.split_once(':'));
    sizes.filter(|(key, _)| matches!(*key, "size" | "num_bytes")).find_map(|(_, size)| size.parse().ok())
}
