//! The real TensorBoard reads what we write, and we read what it reads: bit for bit.
//!
//! `STEPSCOPE_PYTHON` names a Python that has TensorBoard (`cargo xtask test` makes one); unset skips. Through
//! `tests/scripts/tensorboard_compare.py` the same logdir is read by TensorBoard's EventAccumulator, by its server with
//! the Python loader and by its server with the native one, and each answer is compared with our reader's.

// Clippy's exceptions for tests do not reach the helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::{
    collections::BTreeMap,
    fmt::Debug,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use formats::plugins::{Category, Layout};
use formats::profile::{DeviceStepStats, NodeExecStats, RunMetadata, StepStats};
use formats::proto::{AttrValue, DataType, GraphDef, NodeDef, attr_value};
use prost::Message as _;
use serde_json::Value;
use stepscope_tests::{data, data_folder, from_env, stepscope_binary};
use summaries::{Bucket, HParam, Logdir, MediaRow, Mesh, Pixels, Run, Sample, Series, SummaryWriter, WriterOptions};

/// A logdir with runs in it: numbers of every kind, histograms, a graph; and what the demo writes.
fn make_logdir(logdir: &Path) {
    for run in ["", "eval", "deep/er"] {
        let writer = SummaryWriter::create(&logdir.join(run), WriterOptions::default()).unwrap();
        writer.add_graph(&graph());
        for step in 0..200 {
            writer.add_scalar("loss", 2.3 / (1.0 + step as f32), step);
            writer.add_scalar("odd/values", odd_value(step), step);
        }
        for step in (0..200).step_by(10) {
            writer.add_histogram("layer1/weights", (0..500).map(|i| ((i * 7919 + step) as f32).sin() * 0.1), step);
            writer.add_histogram("empty", std::iter::empty::<f32>(), step);
            writer.add_histogram("constant", [0.0_f32; 10], step);
        }
        add_every_kind(&writer);
        writer.close().unwrap();
    }
    if let Some(binary) = stepscope_binary("the demo's own logdir in TensorBoard") {
        let mut demo = Command::new(binary);
        demo.args(["demo", "--headless", "--quiet", "--steps", "300", "--logdir"]).arg(logdir.join("demo"));
        assert!(demo.stdout(Stdio::null()).status().unwrap().success(), "the demo runs");
    }
    if let Some(binary) = stepscope_binary("what the workers of a run write in TensorBoard") {
        let mut train = Command::new(binary);
        train.args(["train", "mlp", "--workers", "2", "--quiet", "--steps", "20", "--trace", "off", "--logdir"]);
        assert!(
            train.arg(logdir.join("workers")).stdout(Stdio::null()).status().unwrap().success(),
            "two workers train"
        );
    }
}

/// One value of each kind that is no number.
fn add_every_kind(writer: &SummaryWriter) {
    let pixels: Vec<u8> = (0..8 * 6 * 3).collect();
    writer.add_image("kinds/image", Pixels { width: 8, height: 6, data: &pixels }, 3).unwrap();
    writer.add_audio("kinds/audio", &[0.0, 0.5, -0.5], 1, 8000, 3).unwrap();
    writer.add_text("kinds/text", "*ünïcode*", 3);
    writer.add_text_table("kinds/table", 2, &["a", "b", "c", "d"], 3).unwrap();
    writer.add_tensor("kinds/tensor", &[2, 2], &[1.0, 2.0, f32::INFINITY, -0.0], 3).unwrap();
    writer.add_pr_curve("kinds/pr", &[true, false, true], &[0.9, 0.2, 0.4], 11, 3);
    writer.add_hparams(
        &[("rate".to_owned(), HParam::Number(0.1)), ("big".to_owned(), HParam::Bool(true))].into(),
        &["loss"],
    );
    writer.end_session(true);
    writer.add_layout(&Layout { version: 0, category: vec![Category { title: "all".into(), ..Category::default() }] });
    let vertices = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.5]];
    writer.add_mesh("kinds/mesh", Mesh { vertices: &vertices, faces: &[[0, 1, 2]], colors: &[[255, 0, 1]; 3] }, 3);
    let stats = NodeExecStats { node_name: "loss".into(), all_start_micros: 5, ..NodeExecStats::default() };
    let device = DeviceStepStats { device: "/cpu:0".into(), node_stats: vec![stats], ..DeviceStepStats::default() };
    let metadata = RunMetadata { step_stats: Some(StepStats { dev_stats: vec![device] }) };
    writer.add_run_metadata("step 3", &metadata.encode_to_vec(), 3);
    writer.add_histogram_buckets("kinds/exact", &[Bucket { left: -1.0, right: 0.1, count: 2.0 }], 3);
}

fn odd_value(step: i64) -> f32 {
    match step % 6 {
        0 => f32::NAN,
        1 => f32::INFINITY,
        2 => f32::NEG_INFINITY,
        3 => f32::MIN_POSITIVE / 8.0,
        4 => -0.0,
        _ => f32::MAX,
    }
}

fn graph() -> GraphDef {
    let node = |name: &str, op: &str, input: &[&str]| NodeDef {
        name: name.into(),
        op: op.into(),
        input: input.iter().map(ToString::to_string).collect(),
        attr: [("T".to_owned(), AttrValue { value: Some(attr_value::Value::Type(DataType::DtFloat.into())) })].into(),
        ..NodeDef::default()
    };
    let nodes = [
        node("x", "Placeholder", &[]),
        node("layer1/weights", "VariableV2", &[]),
        node("layer1/MatMul", "MatMul", &["x", "layer1/weights"]),
        node("loss", "Mean", &["layer1/MatMul", "^x"]),
    ];
    GraphDef { node: nodes.into(), ..GraphDef::default() }
}

/// A Python with TensorBoard.
#[track_caller]
fn python() -> Option<String> {
    from_env("STEPSCOPE_PYTHON", "what TensorBoard reads").map(|python| python.display().to_string())
}

/// The runs that TensorBoard reads.
fn tensorboard(python: &str, args: &[&str], logdir: &Path) -> Runs {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/tensorboard_compare.py");
    let output = Command::new(python).arg(script).arg(args[0]).arg(logdir).args(&args[1..]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    let runs: BTreeMap<String, Value> = serde_json::from_slice(&output.stdout).unwrap();
    runs.iter().map(|(name, run)| (name.clone(), parse_run(run))).collect()
}

type Runs = BTreeMap<String, RunData>;
/// Points by tag: step, wall time and value, floats by their bits.
type Points<T> = BTreeMap<String, Vec<(i64, u64, T)>>;

#[derive(Debug, Default)]
struct RunData {
    scalars: Points<u64>,
    /// Rows of left edge, right edge and count.
    histograms: Points<Vec<[u64; 3]>>,
    /// Minimum, maximum, number, sum, sum of squares; of TensorFlow 1 histograms.
    stats: BTreeMap<String, Vec<[u64; 5]>>,
    /// Values of other kinds: strings in hex, numbers in bits.
    others: Points<Vec<String>>,
    /// What the plugins keep in the metadata of those, in hex.
    contents: BTreeMap<String, String>,
    run_metadata: Vec<String>,
    /// Name, op, inputs.
    graph: Vec<(String, String, Vec<String>)>,
}

fn parse_run(run: &Value) -> RunData {
    RunData {
        scalars: by_tag(&run["scalars"], |points| list(points, |p| (p[0].as_i64().unwrap(), bits(&p[1]), bits(&p[2])))),
        histograms: by_tag(&run["histograms"], |points| {
            list(points, |p| (p[0].as_i64().unwrap(), bits(&p[1]), list(&p[2], array)))
        }),
        stats: by_tag(&run["stats"], |points| list(points, array)),
        others: by_tag(&run["others"], |points| {
            list(points, |p| (p[0].as_i64().unwrap(), bits(&p[1]), list(&p[2], text)))
        }),
        contents: by_tag(&run["contents"], text),
        run_metadata: run["run_metadata"].as_array().map_or_else(Vec::new, |tags| tags.iter().map(text).collect()),
        graph: list(&run["graph"], |node| (text(&node[0]), text(&node[1]), list(&node[2], text))),
    }
}

fn by_tag<T>(tags: &Value, parse: impl Fn(&Value) -> T) -> BTreeMap<String, T> {
    tags.as_object().into_iter().flatten().map(|(tag, value)| (tag.clone(), parse(value))).collect()
}

fn list<T>(values: &Value, parse: impl Fn(&Value) -> T) -> Vec<T> {
    values.as_array().unwrap().iter().map(parse).collect()
}

fn array<const N: usize>(values: &Value) -> [u64; N] {
    list(values, bits).try_into().unwrap()
}

fn bits(hex: &Value) -> u64 {
    u64::from_str_radix(hex.as_str().unwrap(), 16).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// What our reader reads.
fn ours(logdir: &Path) -> Runs {
    let mut logdir = Logdir::open(&[logdir.to_owned()]).unwrap();
    logdir.read_all();
    logdir.runs().by_name.iter().map(|(name, run)| (name.clone(), our_run(run))).collect()
}

fn our_run(run: &Run) -> RunData {
    let mut data = RunData::default();
    for (tag, series) in &run.series {
        match series {
            Series::Scalar(s) => {
                let points = s.points().map(|p| (p.step, p.wall.to_bits(), p.value.to_bits()));
                data.scalars.insert(tag.clone(), points.collect());
            }
            Series::Histogram(s) => {
                let row = |b: &Bucket| [b.left, b.right, b.count].map(f64::to_bits);
                let all: Vec<_> = (0..s.len()).map(|row| s.histogram(row).unwrap()).collect();
                let rows = |i: usize| all[i].buckets.iter().map(row).collect();
                let points = (0..s.step.len()).map(|i| (s.step[i], s.wall[i].to_bits(), rows(i)));
                data.histograms.insert(tag.clone(), points.collect());
                let stats = all.iter().map(|h| [h.min, h.max, h.num, h.sum, h.sum_squares].map(f64::to_bits));
                data.stats.insert(tag.clone(), stats.collect());
            }
            Series::Media(s) => {
                let values =
                    |(row, at): (usize, &MediaRow)| (at.step, at.wall.to_bits(), strings(s.read(row).unwrap()));
                data.others.insert(tag.clone(), s.rows().iter().enumerate().map(values).collect());
                let content = s.metadata.plugin_data.as_ref().map_or(&[][..], |plugin| &plugin.content);
                data.contents.insert(tag.clone(), hex(content));
            }
        }
    }
    data.run_metadata = run.run_metadata.iter().map(|record| record.tag.clone()).collect();
    data.run_metadata.sort();
    if let Some(graph) = &run.graph {
        let graph = graph.decode().unwrap();
        data.graph = graph.node.iter().map(|n| (n.name.clone(), n.op.clone(), n.input.clone())).collect();
    }
    data
}

/// A value in the form of the script's.
fn strings(sample: Sample) -> Vec<String> {
    let numbers = |values: &[f64]| values.iter().map(|v| format!("{:016x}", v.to_bits())).collect();
    match sample {
        Sample::Images(images) => images.iter().map(|image| hex(&image.bytes)).collect(),
        Sample::Audio(sounds) => sounds.iter().map(|sound| hex(&sound.bytes)).collect(),
        Sample::Text(text) => text.values.iter().map(|value| hex(value.as_bytes())).collect(),
        Sample::Tensor(tensor) => numbers(&tensor.values),
        Sample::Mesh(part) => numbers(&part.values.values),
        Sample::PrCurve(c) => {
            let rows =
                [c.true_positives, c.false_positives, c.true_negatives, c.false_negatives, c.precision, c.recall];
            numbers(&rows.concat())
        }
        // The value of a session is a place for its metadata.
        Sample::HParams(_) => Vec::new(),
        Sample::Layout(layout) => vec![hex(&layout.encode_to_vec())],
        Sample::Blobs(blobs) => blobs.iter().map(|blob| hex(blob)).collect(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Values of other kinds. TensorFlow 2's images have their sizes in front, which are the images' own.
#[track_caller]
fn assert_same_others(run: &str, ours: &RunData, theirs: &RunData) {
    for (tag, points) in &theirs.others {
        let Some(mine) = ours.others.get(tag) else { panic!("{run} {tag} is missing") };
        assert_eq!(mine.len(), points.len(), "{run} {tag}");
        for (mine, theirs) in mine.iter().zip(points) {
            assert_eq!((mine.0, mine.1), (theirs.0, theirs.1), "{run} {tag}");
            let is_session = mine.2.is_empty() && theirs.2.len() == 1;
            assert!(is_session || theirs.2.ends_with(&mine.2), "{run} {tag}: {:?} and {:?}", mine.2, theirs.2);
        }
    }
    for (tag, content) in &theirs.contents {
        assert_eq!(Some(content), ours.contents.get(tag), "{run} {tag}");
    }
    assert_eq!(ours.run_metadata, theirs.run_metadata, "{run} run metadata");
}

/// Every point of TensorBoard's is ours, and the other way round.
#[track_caller]
fn assert_same<T: PartialEq + Debug>(what: &str, ours: &BTreeMap<String, T>, theirs: &BTreeMap<String, T>) {
    assert!(ours.keys().eq(theirs.keys()), "{what}: {:?} and TensorBoard's {:?}", ours.keys(), theirs.keys());
    for (tag, points) in ours {
        assert_eq!(points, &theirs[tag], "{what} {tag}");
    }
}

/// TensorBoard turns TensorFlow 1 histograms into 32-bit floats; ours are compared in the precision that theirs have.
#[track_caller]
fn assert_same_histograms(run: &str, ours: &Points<Vec<[u64; 3]>>, theirs: &Points<Vec<[u64; 3]>>) {
    let rounded = |bits: u64| f64::from(f64::from_bits(bits) as f32).to_bits();
    let mut comparable = ours.clone();
    for (tag, points) in &mut comparable {
        let cells = theirs.get(tag).into_iter().flatten().flat_map(|(_, _, rows)| rows.as_flattened());
        if cells.copied().all(|cell| cell == rounded(cell)) {
            for cell in points.iter_mut().flat_map(|(_, _, rows)| rows.as_flattened_mut()) {
                *cell = rounded(*cell);
            }
        }
    }
    assert_same(&format!("{run} histograms"), &comparable, theirs);
}

#[track_caller]
fn assert_same_runs(ours: &Runs, theirs: &Runs) {
    assert!(ours.keys().eq(theirs.keys()), "{:?} and TensorBoard's {:?}", ours.keys(), theirs.keys());
    for (name, run) in ours {
        assert_same(&format!("{name} scalars"), &run.scalars, &theirs[name].scalars);
        assert_same_histograms(name, &run.histograms, &theirs[name].histograms);
        assert_eq!(run.graph, theirs[name].graph, "{name} graph");
    }
}

#[test]
fn tensorboards_accumulator_reads_what_we_write() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    make_logdir(dir.path());
    let (ours, theirs) = (ours(dir.path()), tensorboard(&python, &["accumulator"], dir.path()));
    assert_eq!(ours["eval"].scalars["loss"].len(), 200);
    assert_eq!(ours["."].histograms["layer1/weights"].len(), 20);
    assert_same_runs(&ours, &theirs);
    assert!(theirs["."].others.len() >= 13, "{:?}", theirs["."].others.keys());
    for (name, run) in &theirs {
        assert_same_others(name, &ours[name], run);
        for (tag, stats) in &run.stats {
            // An empty histogram has no smallest value; the file says DBL_MAX.
            if tag != "empty" {
                assert_eq!(stats, &ours[name].stats[tag], "{name} {tag}");
            }
        }
    }
}

/// Kinds whose meaning no accumulator knows: what TensorBoard's plugins make of them.
#[test]
fn tensorboards_plugins_show_what_we_write() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let writer = SummaryWriter::create(dir.path(), WriterOptions::default()).unwrap();
    writer.add_scalar("loss", 0.25, 1);
    writer.add_embedding("words", 2, &[1.0, 2.0, 3.0, -4.5], &["a", "b"]).unwrap();
    add_every_kind(&writer);
    writer.close().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/tensorboard_compare.py");
    let output = Command::new(python).arg(script).arg("plugins").arg(dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ours = ours(dir.path());
    let blob = |tag: &str| ours["."].others[tag][0].2[0].clone();
    assert_eq!(shown["image"], blob("kinds/image"));
    assert_eq!(shown["image_step"], 3);
    assert_eq!(shown["audio"], blob("kinds/audio"));
    assert_eq!((&shown["text"][0]["text"], &shown["text"][0]["step"]), (&"<p><em>ünïcode</em></p>".into(), &3.into()));
    let cells: Vec<&str> = shown["table"][0]["text"].as_str().unwrap().split("<p>").skip(1).map(|s| &s[..1]).collect();
    assert_eq!(cells, ["a", "b", "c", "d"]);
    // Of 11 thresholds, those above 0.9 predict nothing; TensorBoard leaves them out.
    let pr = &shown["pr"]["."][0];
    assert_eq!(
        (pr["step"].as_i64(), pr["true_positives"][0].as_f64(), pr["recall"][0].as_f64()),
        (Some(3), Some(2.0), Some(1.0))
    );
    assert_eq!(shown["layout"]["category"][0]["title"], "all");
    let stats = text(&shown["run_metadata"]);
    assert!(stats.contains("device: \"/cpu:0\"") && stats.contains("node_name: \"loss\""), "{stats}");
    let names: Vec<_> = list(&shown["experiment"]["hparamInfos"], |info| text(&info["name"]));
    assert_eq!(names.iter().map(String::as_str).collect::<std::collections::BTreeSet<_>>(), ["big", "rate"].into());
    let session = &shown["groups"]["sessionGroups"][0];
    assert_eq!(session["hparams"], serde_json::json!({"big": true, "rate": 0.1}));
    assert_eq!(session["metricValues"][0]["value"], 0.25);
    let floats = |values: &[f32]| hex(&values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>());
    assert_eq!(shown["mesh"]["VERTEX"], floats(&[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.5]));
    assert_eq!(shown["mesh"]["FACE"], hex(&[0_i32, 1, 2].map(i32::to_le_bytes).concat()));
    assert_eq!(shown["mesh"]["COLOR"], hex(&[255, 0, 1].repeat(3)));
    let embedding = &shown["projector"]["embeddings"][0];
    assert_eq!((&embedding["tensorName"], &embedding["tensorShape"]), (&"words".into(), &serde_json::json!([2, 2])));
    assert_eq!(
        (&shown["embedding"], &shown["embedding_labels"]),
        (&floats(&[1.0, 2.0, 3.0, -4.5]).into(), &"a\nb\n".into())
    );
}

#[test]
fn tensorboards_server_shows_what_we_write() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    make_logdir(dir.path());
    let ours = ours(dir.path());
    for flag in ["--load_fast=false", "--load_fast=true"] {
        let mut theirs = tensorboard(&python, &["server", flag], dir.path());
        for points in theirs.values_mut().flat_map(|run| run.histograms.values_mut()) {
            points.iter_mut().for_each(|(_, _, rows)| drop_empty_ends(rows));
        }
        assert_same_runs(&ours, &theirs);
    }
}

/// TensorBoard's native loader, other than its Python one, keeps empty buckets at both ends when it turns a TensorFlow 1
/// histogram into rows, and gives the smallest and the largest value to those; moved to the first and last full bucket the
/// two agree.
fn drop_empty_ends(rows: &mut Vec<[u64; 3]>) {
    let (Some(&[min, ..]), Some(&[_, max, _])) = (rows.first(), rows.last()) else { return };
    let is_full = |row: &[u64; 3]| f64::from_bits(row[2]) > 0.0;
    rows.truncate(rows.iter().rposition(is_full).map_or(0, |last| last + 1));
    rows.drain(..rows.iter().position(is_full).unwrap_or(0));
    if let Some(first) = rows.first_mut() {
        first[0] = min;
    }
    if let Some(last) = rows.last_mut() {
        last[1] = max;
    }
}

/// Every plugin's kinds in every form, dtype and shape, written with TensorBoard's own classes.
#[test]
fn we_read_every_form_of_every_kind() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/tensorboard_write.py");
    let written = Command::new(&python).arg(script).arg(dir.path()).output().unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let (ours, theirs) = (ours(dir.path()), tensorboard(&python, &["accumulator"], dir.path()));
    assert_same_runs(&ours, &theirs);
    for (name, run) in &theirs {
        assert!(ours[name].others.keys().eq(run.others.keys()), "{name}: {:?}", run.others.keys());
        assert_same_others(name, &ours[name], run);
        for (tag, stats) in run.stats.iter().filter(|(tag, _)| !tag.ends_with("/empty")) {
            assert_eq!(stats, &ours[name].stats[tag], "{name} {tag}");
        }
    }
    let n_points = |run: &str| ours[run].scalars.values().map(Vec::len).sum::<usize>();
    assert_eq!(["tf2", "tf1", "mixed"].map(n_points), [8 * 300 + 6, 200, 7 * 6 + 100]);
    let n_histograms = |run: &str| ours[run].histograms.values().map(Vec::len).sum::<usize>();
    assert_eq!(["tf2", "tf1"].map(n_histograms), [3 * 40 + 3, 101]);
}

/// The healthy files of other writers: TensorFlow 1 and 2, torch, tensorboardX.
#[test]
fn we_read_what_tensorboards_accumulator_reads() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let n_files = copy_as_runs(&data_folder().join("events"), dir.path());
    assert!(n_files >= 7, "only {n_files} files");
    if let Some(torch) = data("events/torch_reducer") {
        let to = dir.path().join("torch");
        assert!(copy_as_runs(&torch, &to) >= 3, "{} lacks files", torch.display());
    }
    let (ours, theirs) = (ours(dir.path()), tensorboard(&python, &["accumulator"], dir.path()));
    for (name, run) in &theirs {
        assert_same(&format!("{name} scalars"), &ours[name].scalars, &run.scalars);
        assert_same_histograms(name, &ours[name].histograms, &run.histograms);
        assert_eq!(ours[name].graph, run.graph, "{name} graph");
        assert_same_others(name, &ours[name], run);
    }
}

/// Copies every event file below `from` into a run of its own, except the damaged ones, of which TensorBoard loses parts.
fn copy_as_runs(from: &Path, to: &Path) -> usize {
    let mut n_files = 0;
    let mut folders = vec![from.to_owned()];
    while let Some(folder) = folders.pop() {
        let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let is_damaged = ["odd_bad", "odd_huge", "odd_empty"].iter().any(|prefix| name.starts_with(prefix));
            if path.is_dir() {
                folders.push(path);
            } else if formats::is_event_file_name(&path) && !is_damaged {
                let run = to.join(format!("run{n_files}"));
                fs::create_dir_all(&run).unwrap();
                fs::copy(&path, run.join(name)).unwrap();
                n_files += 1;
            }
        }
    }
    n_files
}
