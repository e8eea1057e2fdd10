//! `stepscope analyze --json`, whose fields docs/formats/json.md documents.

use serde_json::{Map, Value, json};
use trace_analysis::breakdown::{Breakdown, DeviceBreakdown};
use trace_analysis::memory::DeviceMemory;
use trace_analysis::report::Analysis;
use trace_analysis::stalls::Stall;
use trace_analysis::stragglers::LateArrival;
use trace_model::Process;
use trace_store::{Store, Track};

use super::figures::{SCHEMA_VERSION, clocks, merged, named_parts, path_kinds, path_ns};
use super::objects::{on_track, process, slice};
use super::{communication, counters, roofline, torch};

/// The most stalls that are listed, the longest ones; the sums include all.
const MAX_STALLS: usize = 10_000;

pub(super) fn to_json(store: &Store, analysis: &Analysis) -> Value {
    let stats = store.stats();
    let kinds = path_kinds(&analysis.paths).into_iter().map(|(kind, ns)| json!({ "kind": kind, "ns": ns }));
    let causes = analysis.causes.iter().map(|c| json!({ "cause": c.cause.name(), "count": c.count, "ns": c.total_ns }));
    json!({
        "schema_version": SCHEMA_VERSION,
        "slices": stats.slices, "tracks": tracks(store), "processes": processes(store), "steps": store.steps().len(),
        "dropped_events": stats.dropped, "range_ns": [analysis.range.start, analysis.range.end],
        "stalls": analysis.stalls.iter().take(MAX_STALLS).map(|s| stall(store, s)).collect::<Vec<_>>(),
        "stalls_total": analysis.stalls.len(), "stalls_by_cause": causes.collect::<Vec<_>>(),
        "critical_path_ns": path_ns(&analysis.paths), "critical_path": kinds.collect::<Vec<_>>(),
        "breakdown": breakdown(&analysis.breakdown),
        "findings": findings(store, analysis), "warnings": store.warnings().iter().map(|w| &w.text).collect::<Vec<_>>(),
        "devices": devices(store, analysis),
        "ops": ops(analysis),
        "scopes": scopes(analysis),
        "kernels": torch::kernels_json(&analysis.kernels),
        "modules": torch::modules_json(&analysis.modules),
        "op_shapes": torch::shapes_json(&analysis.op_shapes),
        "counters": counters::totals_json(&analysis.counted),
        "rooflines": roofline::to_json(&analysis.rooflines),
        "memory": memory(analysis),
        "utilisation": utilisation(store, analysis),
        "clocks": clock_rows(store),
        "threads": threads(store, analysis),
        "stragglers": stragglers(store, analysis),
        "communication": communication::to_json(store, &analysis.communication),
    })
}

fn tracks(store: &Store) -> Vec<Value> {
    let row = |track: &Track| {
        let fields = json!({
            "kind": format!("{:?}", track.kind).to_lowercase(), "stream": track.stream, "tid": track.tid,
            "slices": track.n_slices(),
        });
        on_track(store, track.id.0, fields)
    };
    store.tracks().iter().map(row).collect()
}

fn processes(store: &Store) -> Vec<Value> {
    (0..store.processes().len() as u32).map(|row| process(store, row)).collect()
}

fn stall(store: &Store, stall: &Stall) -> Value {
    let culprit = stall.culprit.and_then(|id| store.slice(id));
    let fields = json!({
        "cause": stall.cause.name(), "ns": stall.dur(), "start_ns": stall.start, "gap_ns": [stall.gap.start, stall.gap.end],
        "step": stall.step_id,
        "culprit": culprit.map(|slice| store.slice_name(&slice).to_owned()),
        "culprit_slice": stall.culprit.map(|id| slice(store, id)),
        "blocked_slice": stall.blocked.map(|id| slice(store, id)),
        "text": stall.text(store),
    });
    on_track(store, stall.track.0, fields)
}

fn breakdown(times: &Breakdown) -> Value {
    let mut object = Map::new();
    object.insert("total_ns".to_owned(), times.total_ns().into());
    object.extend(named_parts(times).map(|(name, ns)| (format!("{name}_ns"), ns.into())));
    Value::Object(object)
}

fn ops(analysis: &Analysis) -> Vec<Value> {
    let row = |op: &trace_analysis::ops::OpRow| {
        let f = op.figures;
        json!({
            "name": op.name, "category": op.category, "device": op.device, "count": f.count, "total_ns": f.total_ns,
            "self_ns": f.self_ns, "mean_ns": f.mean_ns, "p50_ns": f.p50_ns, "p99_ns": f.p99_ns, "share": f.share,
            "critical_ns": op.critical_ns, "critical_share": op.critical_share,
            "counters": counters::values_json(&analysis.counted, &op.counts),
        })
    };
    analysis.ops.iter().map(row).collect()
}

fn scopes(analysis: &Analysis) -> Vec<Value> {
    let scopes = analysis.scopes.iter();
    scopes
        .map(|s| json!({ "scope": s.scope, "count": s.count, "self_ns": s.self_ns, "critical_ns": s.critical_ns }))
        .collect()
}

fn findings(store: &Store, analysis: &Analysis) -> Vec<Value> {
    let row = |f: &trace_analysis::findings::Finding| {
        let slices: Vec<Value> = f.slices.iter().map(|id| slice(store, *id)).collect();
        json!({ "title": f.title, "text": f.text, "saves_ns": f.saves_ns, "is_replayed": f.is_replayed, "share": f.share,
                "range_ns": [f.range.start, f.range.end], "slices": slices })
    };
    analysis.findings.iter().map(row).collect()
}

fn devices(store: &Store, analysis: &Analysis) -> Vec<Value> {
    let device = |d: &DeviceBreakdown| {
        let stream = |(track, busy, idle): &(trace_model::TrackId, i64, i64)| {
            on_track(store, track.0, json!({ "busy_ns": busy, "idle_ns": idle }))
        };
        let streams: Vec<Value> = d.streams.iter().map(stream).collect();
        let fields = json!({ "device": d.device, "breakdown": breakdown(&d.times), "streams": streams });
        merged(process(store, d.process), fields)
    };
    analysis.devices.iter().map(device).collect()
}

fn memory(analysis: &Analysis) -> Vec<Value> {
    let device = |m: &DeviceMemory| {
        let live: Vec<Value> =
            m.live_at_peak.iter().take(100).map(|(node, bytes)| json!({ "node": node, "bytes": bytes })).collect();
        json!({ "device": m.device, "peak_bytes": m.peak_bytes, "peak_time_ns": m.peak_time, "live_at_peak": live,
            "rest_at_peak_bytes": m.rest_at_peak })
    };
    analysis.memory.iter().map(device).collect()
}

fn utilisation(store: &Store, analysis: &Analysis) -> Vec<Value> {
    let row = |u: &trace_analysis::stats::TrackUse| {
        let fields = json!({ "busy_ns": u.busy_ns, "wait_ns": u.wait_ns, "utilisation": u.utilisation });
        on_track(store, u.track.0, fields)
    };
    analysis.track_use.iter().map(row).collect()
}

fn threads(store: &Store, analysis: &Analysis) -> Vec<Value> {
    let row = |t: &trace_analysis::threads::ThreadTimes| {
        let fields = json!({
            "running_ns": t.running_ns, "ready_ns": t.ready_ns, "sleeping_ns": t.sleeping_ns,
            "uninterruptible_ns": t.uninterruptible_ns, "other_ns": t.other_ns,
            "woken_by": t.woken_by.map(|(thread, ns)| json!({ "thread": thread, "ns": ns })),
        });
        on_track(store, t.track.0, fields)
    };
    analysis.threads.iter().map(row).collect()
}

fn clock_rows(store: &Store) -> Vec<Value> {
    let row = |(process, clock): (&Process, trace_model::ClockOffset)| {
        json!({ "host": process.host, "rank": process.rank(), "pid": process.pid, "process": process.name,
                "offset_ns": clock.offset_ns, "drift_ppb": clock.drift_ppb, "bound_ns": clock.bound_ns })
    };
    clocks(store).map(row).collect()
}

fn stragglers(store: &Store, analysis: &Analysis) -> Value {
    let late = |l: &LateArrival| {
        let fields = json!({ "slice": slice(store, l.slice), "late_ns": l.late_ns, "waited_ns": l.waited_ns });
        merged(process(store, l.process), fields)
    };
    let stragglers = &analysis.stragglers;
    let straggler = |p: &trace_analysis::stragglers::Straggler| {
        let fields = json!({ "times_last": p.times_last, "late_ns": p.late_ns, "waited_ns": p.waited_ns });
        merged(process(store, p.process), fields)
    };
    json!({
        "collectives": stragglers.collectives.iter().map(late).collect::<Vec<_>>(),
        "steps": stragglers.steps.iter().map(late).collect::<Vec<_>>(),
        "processes": stragglers.processes.iter().map(straggler).collect::<Vec<_>>(),
    })
}
