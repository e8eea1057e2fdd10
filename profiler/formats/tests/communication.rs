//! Collectives of real ranks over NCCL, compared with what AMD's TraceLens and Meta's HTA say of the same files
//! (`fixtures/communication/make.py` asked them).

#![allow(clippy::unwrap_used, reason = "helpers of a test")]

use flate2::read::GzDecoder;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use trace_analysis::communication::{CollectiveRow, Communication, ExchangeRow};
use trace_analysis::report::{Analysis, analyse};
use trace_store::{Store, StoreOptions};

const JOBS: [&str; 3] = ["ddp", "fsdp", "collectives"];
const RANKS: usize = 2;

fn rank_file(job: &str, rank: usize) -> PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/h200");
    data.join(format!("{job}_rank{rank}.trace.json.gz"))
}

fn analysed(files: &[PathBuf]) -> (Store, Analysis) {
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    trace_formats::import::open(files).unwrap().read_all(&mut store).unwrap();
    let analysis = analyse(&store, store.range());
    (store, analysis)
}

fn job(name: &str) -> (Store, Analysis) {
    analysed(&[rank_file(name, 0), rank_file(name, 1)])
}

fn judges(job: &str) -> Value {
    let all: Value = serde_json::from_str(include_str!("fixtures/communication/judges.json")).unwrap();
    all[job].clone()
}

fn rank_of(store: &Store, process: u32) -> usize {
    store.processes()[process as usize].rank().unwrap() as usize
}

/// TraceLens' name of a kind.
fn kind(name: &str) -> &'static str {
    match name {
        "allreduce" => "all_reduce",
        "_allgather_base" => "all_gather",
        "_reduce_scatter_base" => "reduce_scatter",
        "all_to_allv" => "all_to_all",
        "broadcast" => "broadcast",
        "send" => "send",
        "recv" => "recv",
        "barrier" => "barrier",
        other => panic!("{other}"),
    }
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} of {row}"))
}

/// Times of a file are whole nanoseconds, which TraceLens has as microseconds.
fn is_same_us(ns: f64, us: f64) -> bool {
    (ns / 1e3 - us).abs() < 0.002
}

/// The message, as TraceLens and nccl-tests have it; of a barrier and transfers TraceLens has no size.
fn message_bytes(row: &Value) -> Option<u64> {
    let key = match kind(row["Collective name"].as_str()?) {
        "all_gather" => "Out msg nelems",
        "barrier" => return None,
        _ => "In msg nelems",
    };
    let element = match row["dtype"].as_str()? {
        "Float" => 4.0,
        "BFloat16" => 2.0,
        other => panic!("{other}"),
    };
    Some((number(row, key) * element) as u64)
}

#[test]
fn the_calls_of_each_rank_are_those_of_tracelens() {
    for name in JOBS {
        let judged = judges(name);
        for rank in 0..RANKS {
            // One rank's file has its calls alone.
            let (_, analysis) = analysed(&[rank_file(name, rank)]);
            let mut ours: BTreeMap<(String, Option<u64>), &CollectiveRow> = BTreeMap::new();
            for row in analysis.communication.collectives.iter().filter(|row| row.group.is_some()) {
                assert!(ours.insert((row.name.clone(), row.bytes), row).is_none(), "{row:?} is there twice");
            }
            let rows = judged["tracelens"]["calls"].as_array().unwrap();
            for row in rows.iter().filter(|row| row["rank"] == rank) {
                let key = (kind(row["Collective name"].as_str().unwrap()).to_owned(), message_bytes(row));
                let found = ours.remove(&key).unwrap_or_else(|| panic!("{name} {rank}: {key:?} is missing"));
                assert_eq!(found.count, row["operation_count"].as_u64().unwrap(), "{key:?}");
                assert_eq!(found.dtype, row["dtype"].as_str().unwrap());
                assert!(is_same_us(found.total_ns as f64, number(row, "dur_sum")), "{found:?}, not {row}");
                assert!(is_same_us(found.mean_ns, number(row, "dur_mean")), "{found:?}, not {row}");
                assert!(is_same_us(found.max_ns as f64, number(row, "dur_max")), "{found:?}, not {row}");
                assert!(found.exchanges == 0 && found.waiting_ns == 0, "{found:?}");
            }
            assert!(ours.is_empty(), "TraceLens does not have {ours:?}");
        }
    }
}

/// TraceLens has kinds in which ranks wait for each other, and calls that say what they are.
fn compared(communication: &Communication) -> impl Iterator<Item = (&CollectiveRow, &ExchangeRow)> {
    let rows =
        communication.exchanges.iter().map(|exchange| (&communication.collectives[exchange.collective], exchange));
    rows.filter(|(row, exchange)| {
        exchange.synchronises && row.group.is_some() && !matches!(row.name.as_str(), "all_to_all" | "barrier")
    })
}

#[test]
fn waits_and_bandwidths_of_exchanges_are_those_of_tracelens() {
    let mut n_compared = 0;
    for name in JOBS {
        let (store, analysis) = job(name);
        let judged = judges(name);
        let theirs = judged["tracelens"]["exchanges"].as_array().unwrap();
        let ours: Vec<_> = compared(&analysis.communication).collect();
        assert_eq!(ours.len(), theirs.len(), "{name}");
        for ((row, exchange), judged) in ours.iter().zip(theirs) {
            assert_eq!(
                (row.name.as_str(), row.bytes),
                (kind(judged["Collective name"].as_str().unwrap()), message_bytes(judged))
            );
            let first = exchange.participants.first().unwrap();
            assert_eq!(rank_of(&store, first.process) as u64, judged["earliest arrival rank"].as_u64().unwrap());
            assert!(
                is_same_us(exchange.shortest_ns() as f64, number(judged, "comm_latency")),
                "{exchange:?}, not {judged}"
            );
            assert!(
                is_same_us(exchange.late_ns() as f64, number(judged, "skew in start time")),
                "{exchange:?}, not {judged}"
            );
            for participant in &exchange.participants {
                let rank = rank_of(&store, participant.process);
                // It goes on counting when a rank has left already, which only clocks that disagree can show.
                let theirs = number(judged, &format!("rank_{rank}_wait_time"));
                assert!(is_same_us(participant.wait_ns as f64, theirs), "{exchange:?}, not {judged}");
                let dur = number(judged, &format!("rank_{rank}_dur"));
                assert!(is_same_us((participant.wait_ns + participant.transfer_ns()) as f64, dur));
            }
            // Its GB are 1024^3 bytes.
            let gib = |rate: f64| rate / f64::from(1 << 30);
            let rate = row.bytes.unwrap() as f64 * 1e9 / exchange.shortest_ns() as f64;
            assert!((gib(rate) / number(judged, "algo bw (GB/s)") - 1.0).abs() < 1e-4, "{rate}, not {judged}");
            n_compared += 1;
        }
        check_rows(&analysis.communication, theirs);
    }
    assert_eq!(n_compared, 16 + 16 + 9);
}

/// The bandwidths of the table, from TraceLens' of each exchange: each weighs as much as its time.
fn check_rows(communication: &Communication, theirs: &[Value]) {
    for row in communication.collectives.iter().filter(|row| row.group.is_some()) {
        let of_row = |judged: &&Value| {
            (row.name.as_str(), row.bytes) == (kind(judged["Collective name"].as_str().unwrap()), message_bytes(judged))
        };
        let judged: Vec<&Value> = theirs.iter().filter(of_row).collect();
        if judged.is_empty() {
            continue;
        }
        for (ours, key) in [(row.algorithm_bytes_per_s, "algo bw (GB/s)"), (row.bus_bytes_per_s, "bus bw (GB/s)")] {
            let weighed: f64 = judged.iter().map(|row| number(row, key) * number(row, "comm_latency")).sum();
            let time: f64 = judged.iter().map(|row| number(row, "comm_latency")).sum();
            let expected = weighed / time * f64::from(1 << 30);
            assert!((ours.unwrap() / expected - 1.0).abs() < 1e-4, "{key} of {row:?}, not {expected}");
        }
    }
}

#[test]
fn who_comes_last_and_who_waits_is_what_tracelens_says() {
    for name in JOBS {
        let (store, analysis) = job(name);
        let judged = judges(name);
        let (mut times_last, mut waits) = ([0; RANKS], [0; RANKS]);
        for (_, exchange) in compared(&analysis.communication) {
            times_last[rank_of(&store, exchange.participants.last().unwrap().process)] += 1;
            for participant in &exchange.participants {
                waits[rank_of(&store, participant.process)] += participant.wait_ns;
            }
        }
        for row in judged["tracelens"]["ranks"].as_array().unwrap() {
            let rank = row["rank"].as_u64().unwrap() as usize;
            assert_eq!(times_last[rank], row["times_arrived_last"].as_u64().unwrap(), "{name} {row}");
            // It rounds to tenths.
            let us = waits[rank] as f64 / 1e3;
            assert!((us - number(row, "total_wait_time_us")).abs() < 0.06, "{name}: {us}, not {row}");
        }
    }
}

#[test]
fn overlap_with_compute_is_that_of_hta() {
    for name in JOBS {
        let judged = judges(name);
        for row in judged["hta"]["overlap"].as_array().unwrap() {
            let (_, analysis) = analysed(&[rank_file(name, row["rank"].as_u64().unwrap() as usize)]);
            // HTA leaves out what was launched before the first recorded step, whose kernels have no arguments.
            let rows = analysis.communication.collectives.iter().filter(|row| row.group.is_some());
            let (total, exposed) = rows.fold((0, 0), |sum, row| (sum.0 + row.total_ns, sum.1 + row.exposed_ns));
            let percent = (total - exposed) as f64 * 100.0 / total as f64;
            assert!((percent - number(row, "comp_comm_overlap_pctg")).abs() <= 0.005_1, "{name}: {percent}, not {row}");
        }
    }
}

#[test]
fn the_rank_that_sleeps_is_found_with_what_it_does() {
    let (store, analysis) = job("ddp");
    // Rank 1 sleeps 10 ms before each of the two steps, after it has reset the gradients.
    let rank = analysis.communication.ranks.iter().find(|row| rank_of(&store, row.process) == 1).unwrap();
    let unlike = &rank.unlike_others[0];
    assert!(unlike.text.starts_with("code without slices after `Optimizer.zero_grad"), "{unlike:?}");
    assert!(unlike.ns > 20_000_000 && unlike.other_ns < 1_000_000, "{unlike:?}");
    let other = analysis.communication.ranks.iter().find(|row| rank_of(&store, row.process) == 0).unwrap();
    assert!(other.unlike_others.is_empty() && other.own_late_ns < rank.own_late_ns / 100, "{other:?}");
    let finding = analysis.findings.iter().find(|finding| finding.title == "straggler").unwrap();
    for part in ["Rank 1, python3", "all_reduce` of 2.00 MiB in `default_pg`", "a step", "after `Optimizer.zero_grad"] {
        assert!(finding.text.contains(part), "{part} is not in {}", finding.text);
    }
}

/// Starts of a rank's transfers, ns, by the elements that they have.
fn transfer_starts(rank: usize) -> BTreeMap<u64, f64> {
    let trace: Value =
        serde_json::from_reader(GzDecoder::new(std::fs::File::open(rank_file("collectives", rank)).unwrap())).unwrap();
    let is_transfer = |event: &&Value| {
        is_collective(event) && ["send", "recv"].contains(&event["args"]["Collective name"].as_str().unwrap_or(""))
    };
    let transfers = trace["traceEvents"].as_array().unwrap().iter().filter(is_transfer);
    transfers
        .map(|event| (event["args"]["In msg nelems"].as_u64().unwrap(), event["ts"].as_f64().unwrap() * 1e3))
        .collect()
}

#[test]
fn a_receiver_waits_for_its_sender() {
    let (store, analysis) = job("collectives");
    let (sends, receives) = (transfer_starts(0), transfer_starts(1));
    let rows = &analysis.communication.collectives;
    let transfers =
        analysis.communication.exchanges.iter().filter(|e| matches!(rows[e.collective].name.as_str(), "send" | "recv"));
    let mut n_compared = 0;
    for exchange in transfers {
        let wait_of = |rank| exchange.participants.iter().find(|p| rank_of(&store, p.process) == rank).unwrap().wait_ns;
        let elements = rows[exchange.collective].bytes.unwrap() / 4;
        let expected = (sends[&elements] - receives[&elements]).max(0.0);
        // Rank 0 sends; doubles hold microseconds of years to about a nanosecond.
        assert!((wait_of(1) as f64 - expected).abs() < 2_000.0 && wait_of(0) == 0, "{exchange:?}, not {expected}");
        n_compared += 1;
    }
    assert_eq!((n_compared, sends.len()), (3, 3));
}

/// A job's files, each with its events changed.
fn changed(job: &str, folder: &Path, change: impl Fn(&mut Value, usize) -> bool) -> Vec<PathBuf> {
    let rank = |rank: usize| {
        let mut text = String::new();
        GzDecoder::new(std::fs::File::open(rank_file(job, rank)).unwrap()).read_to_string(&mut text).unwrap();
        // Numbers as they are written: a double has no nanoseconds of a year.
        let mut trace: Value = serde_json::from_str(&text).unwrap();
        trace["traceEvents"].as_array_mut().unwrap().retain_mut(|event| change(event, rank));
        let file = folder.join(format!("rank{rank}.json"));
        std::fs::write(&file, trace.to_string()).unwrap();
        file
    };
    (0..RANKS).map(rank).collect()
}

fn is_collective(event: &Value) -> bool {
    event["cat"] == "kernel" && event["name"].as_str().is_some_and(|name| name.starts_with("nccl"))
}

fn summary(communication: &Communication) -> Vec<(String, Option<u64>, u64, u64, i64)> {
    let rows = communication.collectives.iter();
    rows.map(|row| (row.name.clone(), row.bytes, row.count, row.exchanges, row.waiting_ns / 1_000_000)).collect()
}

#[test]
fn arguments_of_the_hosts_calls_serve_where_kernels_have_none() {
    let folder = tempfile::tempdir().unwrap();
    let keep = ["External id", "device", "context", "stream", "correlation"];
    let files = changed("collectives", folder.path(), |event, _| {
        if is_collective(event) {
            event["args"].as_object_mut().unwrap().retain(|key, _| keep.contains(&key.as_str()));
        }
        true
    });
    let (_, without) = analysed(&files);
    let (_, with) = job("collectives");
    // The host's calls do not say whom a transfer is with.
    let comparable = |analysis: &Analysis| -> Vec<_> {
        let rows = summary(&analysis.communication).into_iter();
        rows.filter(|(name, ..)| !matches!(name.as_str(), "send" | "recv")).collect()
    };
    assert_eq!(comparable(&without), comparable(&with));
}

#[test]
fn traces_without_arguments_have_kind_and_time_and_no_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let files = changed("fsdp", folder.path(), |event, _| {
        if is_collective(event) {
            event["args"]
                .as_object_mut()
                .unwrap()
                .retain(|key, _| ["device", "stream", "correlation"].contains(&key.as_str()));
        }
        event["name"] != "record_param_comms"
    });
    let (_, analysis) = analysed(&files);
    let rows = &analysis.communication.collectives;
    assert_eq!(rows.iter().map(|row| row.kind.name()).collect::<Vec<_>>(), ["all_gather", "reduce_scatter"]);
    assert_eq!(rows[0].name, "ncclDevKernel_AllGather_RING_LL");
    for row in rows {
        assert!(
            row.bytes.is_none() && row.group.is_none() && row.bus_bytes_per_s.is_none() && row.total_ns > 0,
            "{row:?}"
        );
        assert!(row.exchanges > 0 && row.waiting_ns > 0, "{row:?}");
    }
}

#[test]
fn a_rank_whose_recording_began_later_is_matched_by_what_overlaps() {
    let folder = tempfile::tempdir().unwrap();
    let first_ts = |event: &Value| event["ts"].as_f64().unwrap_or(0.0) % 1e8;
    // Without rank 1's first three collectives of the step.
    let files = changed("ddp", folder.path(), |event, rank| {
        !(rank == 1 && is_collective(event) && first_ts(event) < 36_430_000.0)
    });
    let (_, cut) = analysed(&files);
    let (_, whole) = job("ddp");
    let named = |analysis: &Analysis| compared(&analysis.communication).count();
    assert_eq!((named(&whole), named(&cut)), (16, 13));
    for (_, exchange) in compared(&cut.communication) {
        // A wrong partner's start is at least a collective away.
        assert!(exchange.late_ns() < 8_000_000, "{exchange:?}");
    }
}
