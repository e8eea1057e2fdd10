//! Recordings of collectives, compared with what `torch.distributed.flight_recorder` says of them
//! (tests/scripts/make_recordings.py).

#![allow(clippy::unwrap_used, reason = "a test")]

use std::{fs, path::PathBuf};

use serde_json::Value;
use torch_dumps::{Cell, Collective, Group, MismatchKind, Recording, State, groups, rank_of_file, read_recording};

fn fixture(name: &str) -> Vec<u8> {
    fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)).unwrap()
}

fn json(name: &str) -> Value {
    serde_json::from_slice(&fixture(name)).unwrap()
}

fn recordings(kind: &str, suffix: &str) -> Vec<Recording> {
    let read = |rank: u32| {
        let name = format!("{kind}_{rank}{suffix}");
        let recording = read_recording(fixture(&name).as_slice(), rank_of_file(&name).unwrap()).unwrap();
        assert!(recording.warnings.is_empty() && recording.rank == rank, "{:?}", recording.warnings);
        recording
    };
    (0..3).map(read).collect()
}

/// The collective that a line of theirs is about.
fn find<'a>(groups: &'a [Group], said: &Value) -> (&'a Group, &'a Collective) {
    let name = said["group"].as_str().unwrap().split(':').next().unwrap();
    let group = groups.iter().find(|group| group.name == name).unwrap();
    let seq = said["seq"].as_u64();
    (group, group.collectives.iter().find(|one| Some(one.seq) == seq && one.part == 0).unwrap())
}

fn absent(group: &Group, collective: &Collective) -> Vec<u32> {
    let cells = group.ranks.iter().zip(&collective.cells);
    cells.filter(|(_, cell)| **cell == Cell::Absent).map(|(rank, _)| *rank).collect()
}

fn kind(name: &str) -> Option<MismatchKind> {
    match name {
        "COLLECTIVE_TYPE_MISMATCH" => Some(MismatchKind::Operation),
        "SIZE_OR_SYNTAX_MISMATCH" => Some(MismatchKind::Sizes),
        "COLLECTIVE_DTYPE_MISMATCH" => Some(MismatchKind::Dtypes),
        // That states differ is in the cells.
        "COLLECTIVE_STATE_MISMATCH" => None,
        other => panic!("{other}"),
    }
}

/// Compares a collective with theirs.
fn compare(groups: &[Group], said: &Value) {
    let (group, own) = find(groups, said);
    assert!(said["name"].as_str().unwrap().ends_with(&format!(":{}", own.operation)), "{said} {own:?}");
    assert_eq!(serde_json::json!(absent(group, own)), said["missing"], "{said} {own:?}");
    if said["numel"][0].is_u64() {
        assert_eq!((own.mismatches.len(), own.mismatches[0].rank), (1, None), "{said} {own:?}");
        assert_eq!(own.mismatches[0].expected, format!("{} elements", said["numel"][0]));
        return;
    }
    let wrong = said["wrong"].as_object().unwrap();
    for (rank, name) in wrong {
        let rank: u32 = rank.parse().unwrap();
        match kind(name.as_str().unwrap()) {
            Some(kind) => {
                let is_there = own.mismatches.iter().any(|one| one.rank == Some(rank) && one.kind == kind);
                assert!(is_there, "{said} {own:?}");
            }
            None => {
                let at = group.ranks.iter().position(|own| *own == rank).unwrap();
                assert_ne!(own.cells[at], own.cells[0], "{said}");
                assert!(own.mismatches.is_empty());
            }
        }
    }
    // Where all ranks are wrong they take the first one as right.
    let all = own.mismatches.iter().filter(|one| one.rank != group.ranks.first().copied()).count();
    assert!(wrong.is_empty() == own.mismatches.is_empty() || all == 0, "{said} {own:?}");
    assert!(all <= wrong.len(), "{said} {own:?}");
}

#[test]
fn dumps_of_gloo_are_judged_as_fr_trace_judges_them() {
    let expected = json("recordings.json");
    for name in ["healthy", "skipped", "other"] {
        let recordings = recordings(name, "");
        let groups = groups(&recordings);
        let shapes: Vec<_> =
            groups.iter().map(|group| (group.name.as_str(), group.ranks.clone(), group.is_inferred)).collect();
        assert_eq!(shapes, [("0", vec![0, 1, 2], true), ("1", vec![0, 1], true)]);
        assert!(groups.iter().all(|group| group.missing.is_empty()));
        for said in expected[name].as_array().unwrap() {
            compare(&groups, said);
        }
        let n: usize = groups.iter().map(|group| group.collectives.len()).sum();
        assert_eq!(n, expected[name].as_array().unwrap().len(), "{name}");
    }
}

/// Two ranks over NCCL on an H200: one job goes on, of the other rank 1 never calls the last collectives.
#[test]
fn dumps_of_nccl_are_judged_as_fr_trace_judges_them() {
    let expected = json("h200_recordings.json");
    for (name, n_missing) in [("flight_rank", 0), ("hang_rank", 2)] {
        let read = |rank: u32| {
            let file = format!("{}/../../tests/data/h200/{name}_{rank}", env!("CARGO_MANIFEST_DIR"));
            let recording = read_recording(fs::read(&file).unwrap().as_slice(), rank_of_file(&file).unwrap()).unwrap();
            assert!(recording.warnings.is_empty() && recording.rank == rank, "{:?}", recording.warnings);
            recording
        };
        let groups = groups(&[read(0), read(1)]);
        // Sends and receives are lists of their own here.
        let is_collective = |said: &&Value| !said["name"].as_str().unwrap().contains(":send");
        let collectives: Vec<&Value> = expected[name].as_array().unwrap().iter().filter(is_collective).collect();
        assert!(collectives.len() > 120);
        collectives.iter().for_each(|said| compare(&groups, said));
        let missing = collectives.iter().filter(|said| said["missing"] == serde_json::json!([1])).count();
        assert_eq!(missing, n_missing, "{name}");
        let n: usize = groups.iter().map(|group| group.collectives.len()).sum();
        assert_eq!(n, collectives.len(), "{name}");
    }
}

#[test]
fn a_healthy_job_hangs_nowhere() {
    let groups = groups(&recordings("healthy", ""));
    let is_complete = |cell: &Cell| matches!(cell, Cell::Recorded { state: State::Completed, .. });
    assert!(groups.iter().all(|group| group.stall.is_none()));
    assert!(groups.iter().flat_map(|group| &group.collectives).flat_map(|one| &one.cells).all(is_complete));
}

#[test]
fn who_has_not_joined_is_named_with_its_stack() {
    let recordings = recordings("skipped", "");
    let groups = groups(&recordings);
    let stall = groups[0].stall.as_ref().unwrap();
    let collective = &groups[0].collectives[stall.collective];
    assert_eq!((collective.seq, collective.operation.as_str()), (4, "all_reduce"));
    let waiting: Vec<u32> = stall.waiting.iter().map(|one| one.rank).collect();
    assert_eq!((waiting, stall.absent.len(), stall.absent[0].rank), (vec![0, 1], 1, 2));
    let function = |rank: usize, entry: Option<u32>| {
        let stacks = &recordings[rank].stacks;
        let frame = stacks.user_frame(recordings[rank].entries[entry.unwrap() as usize].stack).unwrap();
        let frames = stacks.frames(recordings[rank].entries[entry.unwrap() as usize].stack);
        (stacks.frame(frames[0]).function, stacks.frame(frame).file.rsplit('/').next().unwrap())
    };
    assert_eq!(function(2, stall.absent[0].entry), ("barrier", "make_recordings.py"));
    assert_eq!(function(0, stall.waiting[0].entry), ("all_reduce", "make_recordings.py"));
    assert!(groups[1].stall.is_none());
}

#[test]
fn json_has_the_same_but_for_stacks() {
    for (pickle, json) in recordings("healthy", "").iter().zip(recordings("json", ".json")) {
        assert_eq!((&pickle.version, &pickle.groups, &pickle.status), (&json.version, &json.groups, &json.status));
        let shown = |recording: &Recording| {
            let text = |id| recording.stacks.text(id).to_owned();
            let entry = |entry: &torch_dumps::Entry| {
                let names = (text(entry.group), text(entry.description), text(entry.profiling_name));
                (
                    names,
                    entry.collective_seq_id,
                    entry.op_id,
                    entry.inputs.clone(),
                    entry.state,
                    entry.created_ns,
                    entry.timeout_ms,
                )
            };
            recording.entries.iter().map(entry).collect::<Vec<_>>()
        };
        assert_eq!(shown(pickle), shown(&json));
        assert_eq!(pickle.entries[0].inputs.sizes, [[3, 4]]);
        // Gloo records no sends and receives.
        assert!(pickle.entries.iter().all(|entry| !entry.is_p2p));
    }
}

#[test]
fn faults_are_found_as_fr_trace_finds_them() {
    for job in json("random.json").as_array().unwrap() {
        let read = |(rank, dump): (&String, &Value)| {
            let recording = read_recording(dump.to_string().as_bytes(), rank.parse().unwrap()).unwrap();
            assert!(recording.warnings.is_empty(), "{:?}", recording.warnings);
            recording
        };
        let recordings: Vec<Recording> = job["dumps"].as_object().unwrap().iter().map(read).collect();
        let groups = groups(&recordings);
        let fault = job["fault"].as_str().unwrap();
        for said in job["said"].as_array().unwrap() {
            compare(&groups, said);
        }
        let n_mismatches: usize =
            groups.iter().flat_map(|group| &group.collectives).map(|one| one.mismatches.len()).sum();
        let is_mismatch = ["operation", "sizes", "dtype", "gathered", "uneven"].contains(&fault);
        assert_eq!(n_mismatches > 0, is_mismatch, "{fault}");
        assert_eq!(groups.iter().any(|group| group.stall.is_some()), fault != "none", "{fault}");
        let missing: Vec<u32> = groups.iter().flat_map(|group| group.missing.clone()).collect();
        assert_eq!(!missing.is_empty(), fault == "no_dump", "{fault}");
    }
}

#[test]
fn ranks_of_names() {
    let names = ["nccl_trace_rank_12", "fr_3.json", "healthy_0", "trace"];
    assert_eq!(names.map(rank_of_file), [Some(12), Some(3), Some(0), None]);
}

/// A recording of rank `rank` in a group of ranks 4, 6 and 8, of entries as name, whether P2P, number and state.
fn made(rank: u32, entries: &[(&str, bool, u64, &str)]) -> Recording {
    let entry = |(at, (name, is_p2p, seq, state)): (usize, &(&str, bool, u64, &str))| {
        let (collective, p2p) = if *is_p2p { (0, *seq) } else { (*seq, 0) };
        serde_json::json!({
            "record_id": at, "pg_id": 3, "process_group": ["pp", "pipeline"], "collective_seq_id": collective,
            "p2p_seq_id": p2p, "op_id": at, "profiling_name": name, "state": state, "is_p2p": is_p2p, "retired": false,
            "input_sizes": [[2]], "input_dtypes": ["Float"], "output_sizes": [[2]], "output_dtypes": ["Float"],
        })
    };
    let entries: Vec<Value> = entries.iter().enumerate().map(entry).collect();
    let config = serde_json::json!({"pp": {"name": "pp", "desc": "pipeline", "ranks": "[4, 6, 8]"}});
    let dump = serde_json::json!({"version": "2.10", "pg_config": config, "pg_status": {}, "entries": entries});
    read_recording(dump.to_string().as_bytes(), rank).unwrap()
}

#[test]
fn open_sends_and_receives_are_paired() {
    let recordings = [
        made(4, &[("nccl:send 0->1", true, 1, "completed"), ("nccl:send 0->1", true, 2, "started")]),
        // Coalesced: the last one has the state of all.
        made(
            6,
            &[
                ("nccl:recv 1<-0", true, 1, "scheduled"),
                ("nccl:send 1->2", true, 1, "scheduled"),
                ("nccl:coalesced", true, 1, "completed"),
                ("nccl:recv 1<-0", true, 2, "started"),
                ("nccl:recv 1<-2", true, 3, "scheduled"),
                ("gloo:recv 1<-?", true, 4, "scheduled"),
            ],
        ),
    ];
    let groups = groups(&recordings);
    assert_eq!((groups.len(), &groups[0].missing), (1, &vec![8]));
    let open: Vec<_> =
        groups[0].transfers.iter().map(|one| (one.rank, one.entry, one.peer, one.has_counterpart)).collect();
    let expected = [(4, 1, Some(6), true), (6, 3, Some(4), true), (6, 4, Some(8), false), (6, 5, None, false)];
    assert_eq!(open, expected);
}

#[test]
fn a_coalesced_collective_has_the_state_of_its_end() {
    let entries = |end| {
        [
            ("nccl:_all_gather_base", false, 1, "scheduled"),
            ("nccl:_all_gather_base", false, 1, "scheduled"),
            ("nccl:ALLGATHER_coalesced", false, 1, end),
        ]
    };
    let recordings = [4, 6, 8].map(|rank| made(rank, &entries(if rank == 8 { "started" } else { "completed" })));
    let group = &groups(&recordings)[0];
    let parts: Vec<_> = group.collectives.iter().map(|one| (one.seq, one.part)).collect();
    assert_eq!(parts, [(1, 0), (1, 1), (1, 2)]);
    let waiting: Vec<u32> = group.stall.iter().flat_map(|stall| &stall.waiting).map(|one| one.rank).collect();
    assert_eq!(waiting, [8]);
}

#[test]
fn what_was_overwritten_is_not_absent() {
    let recordings = [
        made(4, &[("nccl:barrier", false, 1, "completed"), ("nccl:barrier", false, 2, "completed")]),
        made(6, &[("nccl:barrier", false, 2, "completed")]),
        made(8, &[("nccl:barrier", false, 1, "completed")]),
    ];
    let group = &groups(&recordings)[0];
    assert_eq!(group.collectives[0].cells[1], Cell::NotRecorded);
    assert_eq!(group.collectives[1].cells[2], Cell::Absent);
    let stall = group.stall.as_ref().unwrap();
    assert_eq!((stall.collective, stall.absent.len(), stall.waiting.len()), (1, 1, 0));
}
