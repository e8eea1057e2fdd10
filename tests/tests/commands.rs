//! `run`, `params`, `compare` and `train NAME` as a user calls them: answers against TensorFlow's, one clear line and exit
//! code 2 for whatever does not fit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use formats::npy::{Array, ElementType, Kind, decode_npz};
use serde_json::Value;
use stepscope_tests::{data_folder, stepscope_binary, times};

fn stepscope(binary: &Path, args: &[&str]) -> Output {
    let output = Command::new(binary).args(args).env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").output();
    output.unwrap_or_else(|error| panic!("{}: {error}", binary.display()))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// Exit code 2 and one line that says all of these.
#[track_caller]
fn check_refused(output: &Output, says: &[&str]) {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "one line: {stderr}");
    for part in says {
        assert!(stderr.contains(part), "says '{part}': {stderr}");
    }
}

const GRAPH: &str = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 2 } dim { size: 3 } } } } }
node { name: "two" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 2 } } } }
node { name: "y" op: "Mul" input: "x" input: "two" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shared_name" value { s: "v" } }
  attr { key: "shape" value { shape { dim { size: 4 } dim { size: 5 } } } } }
node { name: "shape" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 4 int_val: 5 } } } }
node { name: "random" op: "RandomUniform" input: "shape" attr { key: "T" value { type: DT_INT32 } } attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "init" op: "AssignVariableOp" input: "v" input: "random" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "read" op: "ReadVariableOp" input: "v" attr { key: "dtype" value { type: DT_FLOAT } } }
"#;

struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new() -> Files {
        Files { folder: tempfile::tempdir().expect("a scratch folder") }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn write(&self, name: &str, bytes: &[u8]) -> String {
        fs::write(self.folder.path().join(name), bytes).expect("the scratch folder is writable");
        self.path(name)
    }

    fn floats(&self, name: &str, shape: &[usize], values: &[f32]) -> String {
        let data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let array = Array { element: ElementType::new(Kind::Float, 4), shape: shape.to_vec(), data };
        self.write(name, &array.encode())
    }
}

fn floats(array: &Array) -> Vec<f32> {
    array.data.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

fn archive(path: &str) -> Vec<(String, Array)> {
    decode_npz(&fs::read(path).expect("the archive was written")).expect("an archive")
}

#[test]
fn run_computes_and_writes() {
    let Some(binary) = stepscope_binary("the command run") else { return };
    let files = Files::new();
    let graph = files.write("graph.pbtxt", GRAPH.as_bytes());
    let x = files.floats("x.npy", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let (feed, out) = (format!("x={x}"), files.path("out.npz"));
    let args = ["run", &graph, "--feed", &feed, "--fetch", "y", "--fetch", "x:0", "--out", &out];
    let output = stepscope(&binary, &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("float[2,3]"), "{}", text(&output.stdout));
    let arrays = archive(&out);
    assert_eq!(arrays[0].0, "y");
    assert_eq!(floats(&arrays[0].1), [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    assert_eq!(arrays[1].0, "x:0");
    // Nobody's file is overwritten.
    check_refused(&stepscope(&binary, &args), &["out.npz", "exists"]);
}

#[test]
fn run_repeats_with_a_seed() {
    let Some(binary) = stepscope_binary("seeds of the command run") else { return };
    let files = Files::new();
    let graph = files.write("graph.pbtxt", GRAPH.as_bytes());
    let values = |name: &str, seed: &str| {
        let out = files.path(name);
        let args = ["run", &graph, "--init", "init", "--fetch", "read", "--seed", seed, "--out", &out];
        let output = stepscope(&binary, &args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        floats(&archive(&out)[0].1)
    };
    assert_eq!(values("a.npz", "7"), values("b.npz", "7"));
    assert_ne!(values("c.npz", "7"), values("d.npz", "8"));
}

#[test]
fn run_refuses_what_does_not_fit() {
    let Some(binary) = stepscope_binary("bad input of the command run") else { return };
    let files = Files::new();
    let graph = files.write("graph.pbtxt", GRAPH.as_bytes());
    let x = format!("x={}", files.floats("x.npy", &[2, 3], &[0.0; 6]));
    let wrong_shape = format!("x={}", files.floats("w.npy", &[3], &[0.0; 3]));
    let bytes = Array { element: ElementType::new(Kind::UInt, 1), shape: vec![2, 3], data: vec![0; 6] };
    let wrong_type = format!("x={}", files.write("u.npy", &bytes.encode()));
    let no_array = format!("x={}", files.write("n.npy", b"no array"));
    let unknown_op = files.write("op.pbtxt", b"node { name: \"a\" op: \"NoSuchOp\" }");
    let cycle = GRAPH.replace("input: \"x\" input: \"two\"", "input: \"y\" input: \"two\"");
    let cycle = files.write("cycle.pbtxt", cycle.as_bytes());
    let missing = files.write("missing.pbtxt", GRAPH.replace("input: \"two\"", "input: \"three\"").as_bytes());
    let hostile = files.write("hostile.pb", &[0x0a, 0xff, 0xff, 0xff, 0xff, 0x07, 1, 2, 3]);
    let absent = files.path("absent.pb");
    let run = |args: &[&str]| stepscope(&binary, &[&["run"], args].concat());
    check_refused(&run(&[&graph, "--fetch", "y"]), &["x", "must be fed"]);
    check_refused(&run(&[&graph, "--feed", &x, "--fetch", "z"]), &["z"]);
    check_refused(&run(&[&graph, "--feed", &x, "--fetch", "y:3"]), &["y:3"]);
    check_refused(&run(&[&graph, "--feed", &wrong_shape, "--fetch", "y"]), &["x", "float[2,3]", "float[3]"]);
    check_refused(&run(&[&graph, "--feed", &wrong_type, "--fetch", "y"]), &["x", "float", "uint8"]);
    check_refused(&run(&[&graph, "--feed", &no_array, "--fetch", "y"]), &["n.npy", "not a NumPy array"]);
    check_refused(&run(&[&graph, "--fetch", "read"]), &["read", "not initialised"]);
    check_refused(&run(&[&unknown_op, "--fetch", "a"]), &["op.pbtxt", "NoSuchOp"]);
    check_refused(&run(&[&cycle, "--fetch", "y"]), &["cycle.pbtxt", "y"]);
    check_refused(&run(&[&missing, "--fetch", "y"]), &["missing.pbtxt", "three"]);
    check_refused(&run(&[&hostile, "--fetch", "y"]), &["hostile.pb"]);
    check_refused(&run(&[&absent, "--fetch", "y"]), &["absent.pb"]);
    check_refused(&run(&[&graph]), &["--fetch"]);
}

/// TensorFlow checks placement before it optimises; its sessions place hard, TensorFlow 2 softly.
#[test]
fn requests_for_devices_hold_or_give_way() {
    let Some(binary) = stepscope_binary("soft placement of the command run") else { return };
    let files = Files::new();
    let graph = files.write("graph.pbtxt", GRAPH.as_bytes());
    let exp = "node { name: \"e\" op: \"Exp\" input: \"two\" attr { key: \"T\" value { type: DT_FLOAT } } }";
    let const_on_gpu = GRAPH.replace("name: \"two\"", "name: \"two\" device: \"/device:GPU:9\"");
    let folded = files.write("folded.pbtxt", format!("{const_on_gpu} {exp}").as_bytes());
    let exp_on_gpu = exp.replace("name: \"e\"", "name: \"e\" device: \"/device:GPU:9\"");
    let unused = files.write("unused.pbtxt", format!("{GRAPH} {exp_on_gpu}").as_bytes());
    let run = |args: &[&str]| stepscope(&binary, &[&["run"], args].concat());
    for devices in ["1", "2"] {
        let refused = run(&[&folded, "--fetch", "e", "--device-count", devices]);
        check_refused(&refused, &["two", "/device:GPU:9", "/job:localhost/device:cpu:0", "--soft-placement"]);
        let soft = run(&[&folded, "--fetch", "e", "--device-count", devices, "--soft-placement"]);
        assert!(soft.status.success(), "{}", text(&soft.stderr));
        assert!(text(&soft.stdout).contains("7.389"), "{}", text(&soft.stdout));
        let note = "note: node two (op Const) asks for /device:GPU:9, runs on /job:localhost/device:cpu:";
        assert!(text(&soft.stderr).contains(note), "{}", text(&soft.stderr));
    }
    // Graphs are placed as a whole, what a step does not need too.
    let x = format!("x={}", files.floats("x.npy", &[2, 3], &[0.0; 6]));
    check_refused(&run(&[&unused, "--feed", &x, "--fetch", "y"]), &["node e", "/device:GPU:9", "--soft-placement"]);
    assert!(run(&[&unused, "--feed", &x, "--fetch", "y", "--soft-placement"]).status.success());
    assert!(run(&[&graph, "--feed", &x, "--fetch", "y", "--soft-placement"]).stderr.is_empty());
}

/// Nested loops, conditionals in loops, arrays in loops, and gradients, made by TensorFlow.
#[test]
fn run_gives_tensorflows_answers() {
    let Some(binary) = stepscope_binary("TensorFlow's graphs in the command run") else { return };
    let mut n = 0;
    for entry in fs::read_dir(data_folder().join("graphdef_cases")).expect("the cases").flatten() {
        let case: PathBuf = entry.path();
        let meta: Value = serde_json::from_slice(&fs::read(case.join("meta.json")).unwrap()).unwrap();
        let name = |key: &str| meta[key].as_str().map(str::to_owned);
        let (Some(feed), Some(fetch)) = (name("feed"), name("fetch")) else { panic!("{meta}") };
        let io = archive(&case.join("io.npz").display().to_string());
        let array = |name: &str| &io.iter().find(|(n, _)| n == name).expect(name).1;
        let (xs, ys) = (array("x"), array("y"));
        let files = Files::new();
        let (x_len, y_len) = (xs.data.len() / xs.shape[0], ys.data.len() / ys.shape[0]);
        for i in 0..xs.shape[0] {
            let x = Array {
                shape: xs.shape[1..].to_vec(),
                data: xs.data[i * x_len..(i + 1) * x_len].to_vec(),
                ..xs.clone()
            };
            let feed = format!("{feed}={}", files.write("x.npy", &x.encode()));
            let out = files.path(&format!("{i}.npz"));
            let graph = case.join("graph.pb").display().to_string();
            let output = stepscope(&binary, &["run", &graph, "--feed", &feed, "--fetch", &fetch, "--out", &out]);
            assert!(output.status.success(), "{}: {}", case.display(), text(&output.stderr));
            let (got, want) = (floats(&archive(&out)[0].1), &ys.data[i * y_len..(i + 1) * y_len]);
            let want: Vec<f32> = want.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            assert_eq!(got.len(), want.len());
            for (got, want) in got.iter().zip(&want) {
                assert!((got - want).abs() <= 1e-5 * want.abs().max(1.0), "{}: {got} {want}", case.display());
            }
            n += 1;
        }
    }
    eprintln!("{n} answers of TensorFlow's");
    assert!(n >= 15);
}

#[test]
fn parameters_are_counted() {
    let Some(binary) = stepscope_binary("the command params") else { return };
    let files = Files::new();
    let graph = files.write("graph.pbtxt", GRAPH.as_bytes());
    let counted = json(&stepscope(&binary, &["params", &graph, "--json"]));
    assert_eq!((counted["trained"].as_u64(), counted["bytes"].as_u64()), (Some(20), Some(80)));
    let shown = text(&stepscope(&binary, &["params", &graph]).stdout);
    assert!(shown.contains("float [4, 5]"), "{shown}");
}

#[test]
fn differences_are_told() {
    let Some(binary) = stepscope_binary("the command compare") else { return };
    let files = Files::new();
    let a = files.write("a.pbtxt", GRAPH.as_bytes());
    let b = files.write("b.pbtxt", GRAPH.replace("float_val: 2", "float_val: 3").as_bytes());
    let feed = format!("x={}", files.floats("x.npy", &[2, 3], &[1.0; 6]));
    let same = json(&stepscope(
        &binary,
        &["compare", &a, &a, "--feed", &feed, "--fetch", "y", "--json", "--device-count", "2"],
    ));
    assert_eq!(same["outputs"][0]["equal"], true);
    let named = ["compare", &a, &a, "--feed", &feed, "--fetch", "y", "--json", "--device", "cpu:1"];
    assert_eq!(json(&stepscope(&binary, &named))["outputs"][0]["equal"], true);
    let wanted = ["run", &a, "--feed", &feed, "--fetch", "y", "--device", "gpu:99"];
    check_refused(&stepscope(&binary, &wanted), &["/device:GPU:99", "stepscope doctor"]);
    let output = stepscope(&binary, &["compare", &a, &b, "--feed", &feed, "--fetch", "y", "--every-node", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let printed: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(printed["first_difference"], "two:0");
    let y = printed["outputs"].as_array().unwrap().iter().find(|o| o["name"] == "y:0").unwrap();
    assert_eq!((y["largest"].as_f64(), y["relative"].as_f64()), (Some(1.0), Some(0.5)));
}

/// Every model reaches the quality that it states; in CI those that take seconds, and a few steps of the others.
#[test]
fn models_train_to_their_goals() {
    let Some(binary) = stepscope_binary("training the models") else { return };
    let files = Files::new();
    for (name, is_quick) in
        [("embeddings", true), ("convnet", false), ("lstm", false), ("lstm-while", false), ("inception", false)]
    {
        let whole = is_quick || times(0, 1) == 1;
        let logdir = files.path(name);
        let mut args = vec!["train", name, "--json", "--logdir", &logdir];
        if !whole {
            args.extend(["--steps", "3"]);
        }
        let trained = json(&stepscope(&binary, &args));
        eprintln!("{name}: {}", trained["quality"]);
        assert!(trained["final_loss"].as_f64().is_some_and(f64::is_finite), "{trained}");
        if whole {
            assert_eq!(trained["quality"]["reached"], true, "{name}: {trained}");
        }
    }
}

#[test]
fn nothing_is_learned_at_rate_0() {
    let Some(binary) = stepscope_binary("training at rate 0") else { return };
    let files = Files::new();
    let train = |run: &str, rate: &str| {
        let logdir = files.path(run);
        let args =
            ["train", "mlp", "--steps", "30", "--learning-rate", rate, "--trace", "off", "--json", "--logdir", &logdir];
        let trained = json(&stepscope(&binary, &args));
        (trained["final_loss"].as_f64(), trained["test_accuracy"].as_f64())
    };
    let (first, again, learned) = (train("first", "0"), train("again", "0"), train("learned", "0.05"));
    assert_eq!(first, again);
    assert!(learned.0 < first.0 && learned.1 > first.1, "{learned:?} after {first:?}");
    let refused = stepscope(&binary, &["train", "mlp", "--learning-rate", "-1"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn devices_train_together() {
    let Some(binary) = stepscope_binary("training on several devices") else { return };
    let files = Files::new();
    for mode in ["--sync", "--async"] {
        let logdir = files.path(&mode[2..]);
        let args = ["train", "mlp", "--devices", "2", mode, "--steps", "400", "--json", "--logdir", &logdir];
        let trained = json(&stepscope(&binary, &args));
        assert!(trained["test_accuracy"].as_f64().is_some_and(|a| a > 0.9), "{mode}: {trained}");
    }
}

/// By name: the CPU is there; what is not is said before anything is begun.
#[test]
fn devices_are_chosen_by_name() {
    let Some(binary) = stepscope_binary("devices by name") else { return };
    let files = Files::new();
    let train = |run: &str, options: &[&str]| {
        let logdir = files.path(run);
        let mut args = vec!["train", "mlp", "--steps", "60", "--threads", "1", "--json", "--logdir", &logdir];
        args.extend(options);
        stepscope(&binary, &args)
    };
    let losses = ["first", "alone", "two", "both"].map(|run| {
        let options: &[&str] = match run {
            "first" => &[],
            "alone" => &["--device", "cpu:0"],
            "two" => &["--devices", "2"],
            _ => &["--device", "cpu:0,cpu:1"],
        };
        json(&train(run, options))["final_loss"].as_f64().expect("a loss")
    });
    assert_eq!((losses[0], losses[2]), (losses[1], losses[3]), "{losses:?}");
    check_refused(&train("number", &["--device", "tpu:0"]), &["TPU", "types: CPU, GPU"]);
    check_refused(&train("gpu", &["--device", "gpu:99"]), &["/device:GPU:99", "stepscope doctor"]);
    let other = [
        ("name", ["--device", "/job:w/cpu:0", "--async"], "cpu:0 or gpu:1"),
        ("how", ["--device=cpu:0", "--devices", "2"], "--devices"),
    ];
    for (run, options, says) in other {
        let output = train(run, &options);
        assert_eq!(output.status.code(), Some(2), "{run}");
        assert!(text(&output.stderr).contains(says), "{run}: {}", text(&output.stderr));
    }
    for refused in ["number", "name", "how", "gpu"] {
        assert!(!Path::new(&files.path(refused)).exists(), "{refused}: nothing is begun");
    }
}

/// What each pass made of the graph, in a folder of its own.
#[test]
fn graphs_are_dumped_into_an_empty_folder() {
    let Some(binary) = stepscope_binary("dumped graphs") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    let path = |name: &str| dir.path().join(name).display().to_string();
    let train = |logdir: &str| {
        let args = ["train", "mlp", "--steps", "2", "--logdir", &path(logdir), "--dump-graphs", &path("passes")];
        stepscope(&binary, &args)
    };
    let output = train("first");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let files: Vec<_> =
        fs::read_dir(path("passes")).expect("the folder").map(|entry| entry.expect("a file").path()).collect();
    // Of all plans together.
    let n_nodes = |pass: &str| -> usize {
        let of_pass = files.iter().filter(|file| file.to_string_lossy().ends_with(pass));
        of_pass.map(|file| formats::graph_file::read(file).expect("a graph").node.len()).sum()
    };
    let (before, after) = (n_nodes("-00-prune.pb"), n_nodes("-fuse.pb"));
    assert!(0 < after && after < before, "{after} of {before}: {files:?}");
    check_refused(&train("second"), &["passes", "not empty"]);
    assert!(!Path::new(&path("second")).exists(), "nothing is begun");
}

/// What `pip install stepscope[sql]` brings.
#[test]
fn a_program_with_sql_runs_in_place_of_one_without() {
    let Some(binary) = stepscope_binary("a program with SQL next to one without") else { return };
    if stepscope_tests::has_sql(&binary) {
        return;
    }
    let files = Files::new();
    let folder = files.folder.path();
    // Written by another process: a child that another test starts meanwhile would keep a file of this one open for writing,
    // and what is open for writing does not run.
    let install = |mode: &str, from: &Path, to: &Path| {
        let status = Command::new("install").args(["-m", mode]).args([from, to]).status().expect("install");
        assert!(status.success(), "{}", to.display());
    };
    let alone = folder.join("stepscope");
    install("755", &binary, &alone);
    let query = ["query", "runs", "select 'a b'"];
    check_refused(&stepscope(&alone, &query), &["pip install 'stepscope[sql]'"]);
    let with_sql = folder.join("stepscope-sql");
    let script = files.write("script", b"#!/bin/sh\nfor arg in \"$@\"; do echo \"<$arg>\"; done\nexit 7\n");
    install("644", script.as_ref(), &with_sql);
    let without_permission = stepscope(&alone, &["ops", "--json"]);
    assert!(without_permission.status.success() && text(&without_permission.stderr).contains("runs without SQL"));
    install("755", script.as_ref(), &with_sql);
    let output = stepscope(&alone, &query);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(7), "<query>\n<runs>\n<select 'a b'>\n".to_owned()));
}
