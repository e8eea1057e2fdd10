//! `import` and `export` as a user calls them: nothing is lost on the way through any format.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use stepscope_tests::{root, stepscope_binary};

struct Program {
    binary: PathBuf,
    folder: tempfile::TempDir,
}

impl Program {
    fn find(what: &str) -> Option<Program> {
        let binary = stepscope_binary(what)?;
        Some(Program { binary, folder: tempfile::tempdir().expect("a scratch folder") })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, args: &[&Path]) -> Output {
        let output = Command::new(&self.binary).args(args).output();
        output.unwrap_or_else(|error| panic!("{}: {error}", self.binary.display()))
    }

    #[track_caller]
    fn done(&self, args: &[&Path]) -> Vec<u8> {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// Imports into a folder of this name; gives the slices.
    #[track_caller]
    fn import(&self, from: &Path, to: &str) -> u64 {
        let output = self.done(&["import".as_ref(), from, "-o".as_ref(), &self.path(to), "--json".as_ref()]);
        let printed: Value = serde_json::from_slice(&output).expect("one JSON object");
        printed["slices"].as_u64().expect("a count")
    }
}

fn fixture(name: &str) -> (PathBuf, u64) {
    let path = root().join("profiler/formats/tests/fixtures").join(name);
    let expected = std::fs::read(path.with_file_name(format!("{name}.expected.json"))).expect("a fixture");
    let expected: Value = serde_json::from_slice(&expected).expect("JSON");
    (path, expected["slices"].as_u64().expect("a count"))
}

#[test]
fn a_trace_goes_through_every_format() {
    let Some(program) = Program::find("import and export") else { return };
    for name in ["nsys.sqlite", "packets.pftrace", "run_metadata.pb"] {
        let (path, slices) = fixture(name);
        let trace = program.path(name);
        assert_eq!(program.import(&path, name), slices, "{name}");
        for to in ["t.json", "t.json.gz", "t.pftrace", "t.firefox.json"] {
            let file = program.path(&format!("{name}-{to}"));
            program.done(&["export".as_ref(), &trace, "-o".as_ref(), &file]);
            if !to.contains("firefox") {
                assert_eq!(program.import(&file, &format!("{name}-{to}-back")), slices, "{name} as {to}");
            }
        }
        let tables = program.path(&format!("{name}-tables"));
        program.done(&["export".as_ref(), &trace, "--format".as_ref(), "parquet".as_ref(), "-o".as_ref(), &tables]);
        assert_eq!(program.import(&tables, &format!("{name}-tables-back")), slices, "{name} as Parquet");
        let printed = program.done(&["analyze".as_ref(), &trace, "--json".as_ref()]);
        let printed: Value = serde_json::from_slice(&printed).expect("one JSON object");
        assert_eq!(printed["slices"].as_u64(), Some(slices), "{name}, analysed");
    }
}

#[test]
fn a_folder_of_other_tools_traces_is_one_trace() {
    let Some(program) = Program::find("analyze of a folder") else { return };
    let (job, sessions) = (program.path("job"), program.path("logdir/plugins/profile"));
    let slice = r#"{"ph":"X","pid":7,"tid":1,"ts":10,"dur":5,"name":"aten::mm"}"#;
    let text = format!(r#"{{"traceEvents":[{slice},{slice}]}}"#);
    for path in [job.join("rank0.json"), job.join("rank1.json"), sessions.join("1/a.json"), sessions.join("2/a.json")] {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a scratch folder");
        std::fs::write(path, &text).expect("a scratch folder");
    }
    let printed = program.done(&["analyze".as_ref(), &job, "--json".as_ref()]);
    let printed: Value = serde_json::from_slice(&printed).expect("one JSON object");
    assert_eq!(printed["slices"].as_u64(), Some(4));
    let output = program.run(&["analyze".as_ref(), &program.path("logdir")]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("name one of them") && stderr.contains("profile/2"), "{stderr}");
    program.done(&["analyze".as_ref(), &sessions.join("2")]);
}

/// Every object that names a track says whose it is, and its id leads to the track.
#[test]
fn tracks_of_ranks_are_told_apart() {
    let Some(program) = Program::find("analyze --json of ranks") else { return };
    let job = program.path("job");
    std::fs::create_dir_all(&job).expect("a scratch folder");
    for rank in 0..2 {
        let mut events = vec![r#"{"ph":"M","pid":7,"tid":1,"name":"thread_name","args":{"name":"main"}}"#.to_owned()];
        for i in 0..4 {
            let (at, call) = (i * 1_000, i + 1);
            let event = |cat: &str, name: &str, tid: u32, ts: u32, dur: u32| {
                format!(
                    r#"{{"ph":"X","cat":"{cat}","name":"{name}","pid":7,"tid":{tid},"ts":{ts},"dur":{dur},
                       "args":{{"correlation":{call},"stream":7,"device":0}}}}"#
                )
            };
            events.push(event("cuda_runtime", "cudaLaunchKernel", 1, at, 10));
            events.push(event("kernel", "gemm", 7, at + 400 + 100 * rank, 300));
        }
        let info = format!(r#""distributedInfo":{{"rank":{rank}}}"#);
        let text = format!(r#"{{"deviceProperties":[],{info},"traceEvents":[{}]}}"#, events.join(","));
        std::fs::write(job.join(format!("rank{rank}.json")), text).expect("a scratch folder");
    }
    let printed = program.done(&["analyze".as_ref(), &job, "--json".as_ref()]);
    let printed: Value = serde_json::from_slice(&printed).expect("one JSON object");
    assert_eq!(printed["schema_version"], 1);
    let (mut n, mut ranks) = (0, std::collections::BTreeSet::new());
    check_tracks(&printed, &printed["tracks"], &mut |object| {
        n += 1;
        ranks.insert(object["rank"].as_u64().expect("a rank"));
    });
    assert!(n > 10 && ranks.len() == 2, "{n} objects of {ranks:?}");
    assert!(printed["stalls"].as_array().is_some_and(|stalls| !stalls.is_empty()));
    let diff = program.done(&["diff".as_ref(), &job, &job, "--json".as_ref()]);
    let diff: Value = serde_json::from_slice(&diff).expect("one JSON object");
    assert_eq!(diff["schema_version"], 1);
}

/// Looks at each object, however deep, that names a track.
fn check_tracks(value: &Value, tracks: &Value, seen: &mut impl FnMut(&Value)) {
    match value {
        Value::Array(all) => all.iter().for_each(|one| check_tracks(one, tracks, seen)),
        Value::Object(object) => {
            if object.contains_key("track") || object.contains_key("track_id") {
                let id = object.get("track_id").and_then(Value::as_u64).expect("an id");
                let track = &tracks[id as usize];
                for field in ["track_id", "track", "process_id", "process", "pid", "host", "rank", "device"] {
                    assert!(object.contains_key(field), "{field} of {value}");
                    assert_eq!(object[field], track[field], "{field} of {value}");
                }
                seen(value);
            }
            object.values().for_each(|one| check_tracks(one, tracks, seen));
        }
        _ => {}
    }
}

#[test]
fn nothing_is_written_over_unasked() {
    let Some(program) = Program::find("import over something") else { return };
    let (path, _) = fixture("packets.pftrace");
    let check = |to: &str, force: bool, code: i32, says: &str| {
        let trace = program.path(to);
        let mut args: Vec<&Path> = vec!["import".as_ref(), &path, "-o".as_ref(), &trace];
        args.extend(force.then_some(Path::new("--force")));
        let output = program.run(&args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{to}: {stderr}");
        assert!(stderr.contains(says), "{to}: {stderr}");
    };
    check("t", false, 0, "slices");
    check("t", false, 2, "--force writes over it");
    check("t", true, 0, "slices");
    std::fs::create_dir(program.path("home")).expect("a folder");
    std::fs::write(program.path("home/letter.txt"), "dear").expect("a file");
    check("home", true, 2, "give another folder");
    assert_eq!(std::fs::read(program.path("home/letter.txt")).expect("still there"), b"dear");
}
