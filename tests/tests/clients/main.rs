//! What other programs' loggers write, read here and by TensorBoard's plugins: the same contents, bit for bit.
//!
//! `tests/scripts/clients_record.py` trains tiny models with torch, tensorboardX, Keras, TensorFlow 1 and 2, and flax, which log
//! every kind of summary that they have a call for; `clients_expect.py` asks TensorBoard's plugins what is in the logdirs. Both
//! answers are in `fixtures/clients`. `cargo xtask soak` names a Python with all of these in `STEPSCOPE_CLIENTS`: then they train
//! anew.

// Clippy's exceptions for tests do not reach the helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod reading;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    path::{Path, PathBuf},
    process::Command,
};

use flate2::read::GzDecoder;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stepscope_tests::{from_env, left_out, stepscope_binary};
use trace_store::{Store, StoreOptions};

use reading::{Kinds, Tags};

/// Every kind that a client writes, with the number of its tags in all runs (of hyperparameters: of what is said of them).
const ROWS: &[(&str, &[(&str, usize)])] = &[
    (
        "torch",
        &[
            ("audio", 1),
            ("custom_scalars", 2),
            ("distributions", 4),
            ("graph", 2),
            ("histograms", 4),
            ("hparams", 3),
            ("images", 5),
            ("meshes", 2),
            ("pr_curves", 2),
            ("projector", 3),
            ("run_metadata", 1),
            ("scalars", 9),
            ("tensors", 1),
            ("text", 2),
        ],
    ),
    (
        "tensorboardX",
        &[
            ("audio", 1),
            ("custom_scalars", 2),
            ("distributions", 3),
            ("graph", 1),
            ("histograms", 3),
            ("hparams", 3),
            ("images", 5),
            ("meshes", 2),
            ("pr_curves", 2),
            ("projector", 3),
            ("scalars", 8),
            ("text", 2),
        ],
    ),
    ("tensorboardX_graph", &[("graph", 1), ("run_metadata", 1)]),
    (
        "keras",
        &[("distributions", 8), ("histograms", 8), ("hparams", 3), ("images", 8), ("keras_models", 3), ("scalars", 20)],
    ),
    (
        "tf_summary",
        &[
            ("audio", 1),
            ("custom_scalars", 1),
            ("distributions", 3),
            ("function_graphs", 1),
            ("graph", 1),
            ("histograms", 3),
            ("images", 3),
            ("meshes", 2),
            ("pr_curves", 1),
            ("projector", 1),
            ("scalars", 3),
            ("tensors", 1),
            ("text", 3),
        ],
    ),
    (
        "tf1_summary",
        &[
            ("audio", 2),
            ("distributions", 1),
            ("graph", 1),
            ("histograms", 1),
            ("images", 2),
            ("run_metadata", 1),
            ("scalars", 1),
            ("text", 2),
        ],
    ),
    (
        "flax",
        &[
            ("audio", 1),
            ("distributions", 2),
            ("histograms", 2),
            ("hparams", 1),
            ("images", 2),
            ("scalars", 1),
            ("tensors", 1),
            ("text", 1),
        ],
    ),
];

/// What TensorBoard shows and we do not yet. What is mended must leave the list.
const NOT_READ: &[(&str, &str, &str)] =
    // The vectors are in a checkpoint.
    &[("tf_summary", "projector", "embedding/.ATTRIBUTES/VARIABLE_VALUE")];

/// How many files a profiler writes.
const PROFILERS: &[(&str, usize)] =
    &[("torch_profiler", 1), ("jax_profiler", 3), ("keras_profiler", 1), ("tf_profiler", 1)];

/// What is counted in each file of a profile.
type Files = BTreeMap<String, Value>;

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(name)
}

/// What TensorBoard gave of a recorded logdir.
fn recorded<T: DeserializeOwned>(client: &str) -> (PathBuf, T) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/clients");
    let expected = GzDecoder::new(File::open(folder.join(format!("{client}.json.gz"))).unwrap());
    (folder.join(client), serde_json::from_reader(expected).unwrap())
}

/// As many values of each kind as the table says: nothing is left out in silence.
#[track_caller]
fn assert_rows(client: &str, expected: &Kinds) {
    let n_tags = |runs: &BTreeMap<String, Tags>| runs.values().map(Tags::len).sum::<usize>();
    let rows: Vec<_> = expected.iter().map(|(kind, runs)| (kind.as_str(), n_tags(runs))).collect();
    let (_, wanted) = ROWS.iter().find(|(name, _)| *name == client).unwrap_or_else(|| panic!("{client}: {rows:?}"));
    assert_eq!(rows, *wanted, "{client}");
}

/// Every tag of every kind that differs, with the place where it does.
fn differences(client: &str, logdir: &Path, expected: &Kinds) -> Vec<String> {
    let ours = reading::kinds(logdir, expected);
    let names = |kinds: &Kinds| -> BTreeSet<(String, String, String)> {
        let runs = kinds.iter().flat_map(|(kind, runs)| runs.iter().map(move |(run, tags)| (kind, run, tags)));
        runs.flat_map(|(kind, run, tags)| tags.keys().map(|tag| (kind.clone(), run.clone(), tag.clone()))).collect()
    };
    let mut differences = Vec::new();
    for (kind, run, tag) in names(&ours).union(&names(expected)) {
        let of = |kinds: &Kinds| kinds.get(kind).and_then(|runs| runs.get(run)?.get(tag).cloned());
        let is_known = NOT_READ.contains(&(client, kind, tag));
        let place = difference(&json!(of(&ours)), &json!(of(expected)));
        if is_known && place.is_none() {
            differences.push(format!("{client}: {kind} {tag} is read now: take it off the list"));
        } else if let Some(place) = place.filter(|_| !is_known) {
            differences.push(format!("{client}: {kind} of run {run:?}, tag {tag:?}: {place}"));
        }
    }
    differences
}

/// Where two values differ first, and in what.
fn difference(ours: &Value, theirs: &Value) -> Option<String> {
    let inside = |at: String, (ours, theirs)| difference(ours, theirs).map(|place| format!("{at}{place}"));
    match (ours, theirs) {
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().find_map(|(i, pair)| inside(format!("[{i}]"), pair))
        }
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            a.iter().zip(b.values()).find_map(|((key, a), b)| inside(format!(".{key}"), (a, b)))
        }
        _ => (ours != theirs).then(|| format!(" {ours:.300} and {theirs:.300}")),
    }
}

#[test]
fn recordings_hold_what_tensorboard_says() {
    let mut different = Vec::new();
    for (client, _) in ROWS {
        let (logdir, expected) = recorded(client);
        assert_rows(client, &expected);
        different.extend(differences(client, &logdir, &expected));
    }
    assert!(different.is_empty(), "ours and TensorBoard's\n{}", different.join("\n"));
}

/// `stepscope runs` counts the points that TensorBoard has.
#[test]
fn the_program_lists_every_tag() {
    let Some(binary) = stepscope_binary("runs of what clients write") else { return };
    for (client, _) in ROWS {
        let (logdir, expected): (_, Kinds) = recorded(client);
        let output = Command::new(&binary).arg("runs").arg(&logdir).arg("--json").output().unwrap();
        assert!(output.status.success(), "{client}: {}", String::from_utf8_lossy(&output.stderr));
        let lines = String::from_utf8(output.stdout).unwrap();
        let runs: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(runs.iter().all(|run| run["damaged"] == 0), "{client}: {lines}");
        let run_of =
            |name: &str| runs.iter().find(|run| run["run"] == name).unwrap_or_else(|| panic!("{client}: {name}"));
        for kind in ["scalars", "histograms", "images", "audio", "text", "pr_curves"] {
            for (run, tags) in expected.get(kind).into_iter().flatten() {
                for (tag, points) in tags {
                    let printed = &run_of(run)["tags"][tag];
                    let n_points = points.as_array().unwrap().len();
                    // Of TensorFlow 1's images and sounds each is a tag of its own.
                    assert_eq!(
                        (&printed["kind"], &printed["points"]),
                        (&kind.into(), &n_points.into()),
                        "{client} {run} {tag}"
                    );
                }
            }
        }
        for session in expected.get("hparams").into_iter().flat_map(|runs| runs[""]["sessions"].as_object()).flatten() {
            let printed = run_of(session.0)["hparams"].as_object().unwrap();
            let values: serde_json::Map<_, _> = printed.iter().map(|(k, v)| (k.clone(), reading::bits_of(v))).collect();
            assert_eq!(Some(&values), session.1["hparams"].as_object(), "{client} {}", session.0);
        }
    }
}

/// Number of slices of each line, number and length of those of each name.
fn counted(client: &str, file: &Path) -> Value {
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    trace_formats::import::open(&[file.to_owned()]).unwrap().read_all(&mut store).unwrap();
    let (mut lines, mut names) = (Vec::new(), BTreeMap::<&str, (u64, i64)>::new());
    for track in store.tracks() {
        let slices: Vec<_> = track.lanes.iter().flat_map(|lane| lane.slices(&(i64::MIN..i64::MAX))).collect();
        for slice in &slices {
            let name = store.slice_name(slice);
            let own = match store.node_of(slice) {
                // TensorFlow's viewer names an op by its type, XLA's an instruction without the framework's scopes.
                Some(_) if client.starts_with("jax") => name.rsplit('/').next().unwrap_or(name),
                Some(_) => store.sites().get(slice.site as usize).map_or(name, |site| &site.name),
                None => name,
            };
            let sums = names.entry(own).or_default();
            *sums = (sums.0 + 1, sums.1 + slice.dur());
        }
        if !slices.is_empty() {
            lines.push((track.name.clone(), slices.len()));
        }
    }
    lines.sort();
    json!({"lines": lines, "names": names})
}

#[track_caller]
fn assert_same_slices(client: &str, folder: &Path, files: &Files) {
    let (_, n_files) = PROFILERS.iter().find(|(name, _)| *name == client).unwrap();
    assert_eq!(files.len(), *n_files, "{client}: {:?}", files.keys());
    for (file, expected) in files {
        let mut ours = counted(client, &folder.join(file));
        assert_eq!(ours["lines"], expected["lines"], "{client} {file}");
        for (name, sums) in expected["names"].as_object().unwrap() {
            // Not a whole number of nanoseconds: only counted.
            if sums[1].is_null() {
                ours["names"][name][1] = Value::Null;
            }
        }
        assert_eq!(ours["names"], expected["names"], "{client} {file}");
    }
}

#[test]
fn recorded_profiles_have_every_slice() {
    for (client, _) in PROFILERS {
        let (folder, files) = recorded(client);
        assert_same_slices(client, &folder, &files);
    }
}

/// The programs themselves, today.
#[test]
fn clients_train_and_both_read_the_same() {
    let Some(python) = from_env("STEPSCOPE_CLIENTS", "training with torch, tensorboardX, Keras, TensorFlow and flax")
    else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let clients: Vec<&str> = ROWS.iter().map(|row| row.0).chain(PROFILERS.iter().map(|row| row.0)).collect();
    let recording = ran(Command::new(&python).arg(script("clients_record.py")).arg(dir.path()).args(&clients));
    let said: Value = serde_json::from_slice(&recording).unwrap();
    println!("{said:#}");
    let mut different = Vec::new();
    for client in clients {
        if let Some(why) = said["left_out"].get(client) {
            left_out(format_args!("{client}: {why}"));
            continue;
        }
        let folder = dir.path().join(client);
        let is_profile = PROFILERS.iter().any(|(name, _)| *name == client);
        let flag = is_profile.then_some("--profiles");
        let answer = ran(Command::new(&python).arg(script("clients_expect.py")).args(flag).arg(&folder));
        if is_profile {
            assert_same_slices(client, &folder, &serde_json::from_slice(&answer).unwrap());
        } else {
            let expected = serde_json::from_slice(&answer).unwrap();
            assert_rows(client, &expected);
            different.extend(differences(client, &folder, &expected));
        }
    }
    assert!(different.is_empty(), "ours and TensorBoard's\n{}", different.join("\n"));
}

/// What a command that succeeds writes.
#[track_caller]
fn ran(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}
