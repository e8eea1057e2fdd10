//! Logdirs that grow, are damaged, and are real.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::Path,
};

use formats::{
    proto::{
        DataType, Event, HistogramProto, Summary, SummaryMetadata, TensorProto, TensorShapeProto, event::What, summary,
        summary_metadata::PluginData, tensor_shape_proto::Dim,
    },
    tfrecord::append_record,
};
use prost::Message;

use super::*;
use crate::{DamageKind, FileState, Series};

fn summary_record(value: summary::Value, step: i64) -> Vec<u8> {
    let event = Event {
        wall_time: 100.0 + step as f64,
        step,
        what: Some(What::Summary(Summary { value: vec![value] })),
        source_metadata: None,
    };
    let mut out = Vec::new();
    append_record(&mut out, &event.encode_to_vec());
    out
}

fn scalar(tag: &str, value: f32, step: i64) -> Vec<u8> {
    let value = Some(summary::value::Value::SimpleValue(value));
    summary_record(
        summary::Value { tag: tag.into(), node_name: format!("{tag}/node"), value, ..summary::Value::default() },
        step,
    )
}

fn tensor(tag: &str, plugin: Option<&str>, dims: &[i64], values: &[f32], step: i64) -> Vec<u8> {
    let dim = dims.iter().map(|&size| Dim { size, name: String::new() }).collect();
    let tensor = TensorProto {
        dtype: DataType::DtFloat.into(),
        tensor_shape: Some(TensorShapeProto { dim, unknown_rank: false }),
        tensor_content: values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        ..TensorProto::default()
    };
    let plugin_data = plugin.map(|name| PluginData { plugin_name: name.into(), content: Vec::new() });
    let metadata = plugin.map(|_| SummaryMetadata { plugin_data, ..SummaryMetadata::default() });
    let value = Some(summary::value::Value::Tensor(tensor));
    summary_record(summary::Value { tag: tag.into(), metadata, value, ..summary::Value::default() }, step)
}

fn append(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    OpenOptions::new().create(true).append(true).open(path).unwrap().write_all(bytes).unwrap();
}

/// What the runs hold, one line for each series, each damage and each file that is not just followed.
fn dump(runs: &Runs) -> String {
    let mut out = String::new();
    for (name, run) in &runs.by_name {
        for (tag, series) in &run.series {
            out += &match series {
                Series::Scalar(s) => format!(
                    "{name} {tag} scalar {:?} {:?} pieces {:?}\n",
                    s.points().map(|p| p.step).collect::<Vec<_>>(),
                    s.points().map(|p| p.value).collect::<Vec<_>>(),
                    s.pieces().collect::<Vec<_>>()
                ),
                Series::Histogram(s) => format!(
                    "{name} {tag} histogram {:?} {:?}\n",
                    s.step,
                    (0..s.len()).map(|row| s.histogram(row).unwrap().buckets.len()).collect::<Vec<_>>()
                ),
                Series::Media(s) => format!("{name} {tag} {} x{}\n", s.kind(), s.len()),
            };
        }
        for damage in &run.damage {
            out += &format!("{name} {:?} {:?}\n", damage.kind, damage.bytes);
        }
        for file in run.files.iter().filter(|f| f.state != FileState::Followed || f.n_waiting > 0) {
            out += &format!("{name} {:?} waiting {}\n", file.state, file.n_waiting);
        }
    }
    out
}

/// What a logdir with this one file holds.
#[track_caller]
fn check(content: &[u8], expected: &str) {
    let dir = tempfile::tempdir().unwrap();
    append(&dir.path().join("events.out.tfevents.1"), content);
    let mut logdir = Logdir::open(&[dir.path().to_owned()]).unwrap();
    logdir.read_all();
    assert_eq!(dump(&logdir.runs()), expected);
}

#[test]
fn both_generations_of_summaries() {
    let proto = HistogramProto {
        min: -0.5,
        max: 2.0,
        num: 3.0,
        sum: 2.0,
        sum_squares: 4.25,
        bucket_limit: vec![-1.0, 0.0, 1.0, f64::MAX],
        bucket: vec![0.0, 1.0, 0.0, 2.0],
    };
    let old = summary::Value {
        tag: "old".into(),
        value: Some(summary::value::Value::Histo(proto)),
        ..summary::Value::default()
    };
    let content = [
        scalar("loss", 0.5, 1),
        tensor("acc", Some("scalars"), &[], &[0.25], 1),
        // Only a tag's first value carries the metadata.
        tensor("acc", None, &[], &[0.75], 2),
        summary_record(old, 3),
        tensor("new", Some("histograms"), &[2, 3], &[0.0, 1.0, 5.0, 1.0, 2.0, 0.0], 4),
        tensor("curve", Some("pr_curves"), &[1], &[1.0], 5),
        tensor("plain", None, &[1], &[1.0], 5),
    ];
    check(
        &content.concat(),
        ". acc scalar [1, 2] [0.25, 0.75] pieces [0..2]\n\
         . curve pr_curves x1\n\
         . loss scalar [1] [0.5] pieces [0..1]\n\
         . new histogram [4] [2]\n\
         . old histogram [3] [3]\n\
         . plain tensor x1\n",
    );
}

#[test]
fn restarts_are_pieces() {
    let content: Vec<u8> = [0, 1, 2, 1, 2, 2, 0].iter().flat_map(|&step| scalar("x", step as f32, step)).collect();
    check(&content, ". x scalar [0, 1, 2, 1, 2, 2, 0] [0.0, 1.0, 2.0, 1.0, 2.0, 2.0, 0.0] pieces [0..3, 3..6, 6..7]\n");
}

#[test]
fn values_that_are_not_what_they_say() {
    let good = scalar("x", 1.0, 1);
    let n = good.len();
    let mut garbage = Vec::new();
    append_record(&mut garbage, b"\xff\xff\xff");
    let changed = tensor("y", Some("text"), &[1], &[1.0], 1);
    let bad_scalar = tensor("s", Some("scalars"), &[2], &[1.0, 2.0], 1);
    let content = [&good[..], &garbage, &good, &changed, &scalar("y", 1.0, 2), &bad_scalar, &good].concat();
    let at_changed = n + garbage.len() + n + changed.len();
    let expected = format!(
        ". x scalar [1, 1, 1] [1.0, 1.0, 1.0] pieces [0..3]\n\
         . y text x1\n\
         . Undecodable {n}..{}\n\
         . KindChanged {at_changed}..{}\n\
         . Undecodable {}..{}\n",
        n + garbage.len(),
        at_changed + n,
        at_changed + n,
        at_changed + n + bad_scalar.len(),
    );
    check(&content, &expected);
}

#[test]
fn tags_that_are_not_utf8_are_kept() {
    let mut record = scalar("AB", 1.0, 1);
    let data = &mut record[12..];
    let at = data.windows(2).position(|w| w == b"AB").unwrap();
    data[at] = 0xff;
    let length = data.len() - 4;
    let mut content = Vec::new();
    append_record(&mut content, &record[12..12 + length]);
    check(&content, ". \u{fffd}B scalar [1] [1.0] pieces [0..1]\n");
}

/// At whatever byte a write is torn, a poll reads all whole records, and the next one the rest.
#[test]
fn a_growing_file_split_at_every_byte() {
    let dir = tempfile::tempdir().unwrap();
    let content = [scalar("x", 1.0, 1), scalar("x", 2.0, 2)].concat();
    for at in 0..=content.len() {
        let folder = dir.path().join(at.to_string());
        let path = folder.join("a.tfevents");
        append(&path, &content[..at]);
        let mut logdir = Logdir::open(&[folder]).unwrap();
        logdir.read_all();
        append(&path, &content[at..]);
        logdir.read_all();
        assert_eq!(dump(&logdir.runs()), ". x scalar [1, 2] [1.0, 2.0] pieces [0..2]\n", "split at {at}");
    }
}

/// Polls until the folders were walked again: that happens within 20 times the last walk's duration.
fn poll_until(logdir: &mut Logdir, mut is_done: impl FnMut(&Runs) -> bool) {
    // A walk that lost its processor is followed by another one 20 times as long later.
    let begun = clock::mono_now();
    while clock::mono_now() - begun < 60_000_000_000 {
        logdir.poll();
        if is_done(&logdir.runs()) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("never came: {}", dump(&logdir.runs()));
}

#[test]
fn new_runs_files_and_deletions_are_followed() {
    let dir = tempfile::tempdir().unwrap();
    let first = dir.path().join("a/x.tfevents.1");
    append(&first, &scalar("x", 1.0, 1));
    let mut logdir = Logdir::open(&[dir.path().to_owned()]).unwrap();
    let changes = logdir.poll();
    assert_eq!((changes.runs, changes.n_points), (vec!["a".to_owned()], 1));
    assert!(logdir.poll().is_empty());

    append(&dir.path().join("a/x.tfevents.2"), &scalar("x", 2.0, 2));
    append(&dir.path().join("b/c/x.tfevents"), &scalar("y", 3.0, 3));
    poll_until(&mut logdir, |runs| runs.by_name.contains_key("b/c"));
    fs::remove_file(&first).unwrap();
    logdir.read_all();
    let expected =
        "a x scalar [1, 2] [1.0, 2.0] pieces [0..2]\na Deleted waiting 0\nb/c y scalar [3] [3.0] pieces [0..1]\n";
    assert_eq!(dump(&logdir.runs()), expected);
}

#[test]
fn a_file_that_shrinks_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tfevents");
    append(&path, &[scalar("x", 1.0, 1), scalar("x", 2.0, 2)].concat());
    let mut logdir = Logdir::open(&[dir.path().to_owned()]).unwrap();
    logdir.read_all();
    fs::write(&path, scalar("x", 3.0, 0)).unwrap();
    logdir.read_all();
    let runs = logdir.runs();
    assert_eq!(runs.by_name["."].damage[0].kind, DamageKind::Rewritten);
    assert!(dump(&runs).starts_with(". x scalar [1, 2, 0] [1.0, 2.0, 3.0] pieces [0..2, 2..3]\n"));
}

#[test]
fn several_roots_and_single_files_have_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<_> = ["one", "two/one", "three"].iter().map(|name| dir.path().join(name)).collect();
    for path in &paths {
        append(&path.join("run/x.tfevents"), &scalar("x", 1.0, 1));
    }
    let file = paths[2].join("run/x.tfevents");
    let mut logdir = Logdir::open(&[paths[0].clone(), paths[1].clone(), paths[2].clone(), file.clone()]).unwrap();
    logdir.read_all();
    let names: Vec<_> = logdir.runs().by_name.keys().cloned().collect();
    let full = |i: usize| format!("{}/run", paths[i].display());
    assert_eq!(names, [full(0), full(1), "three/run".to_owned(), "x.tfevents".to_owned()]);

    let mut single = Logdir::open(&[file]).unwrap();
    single.read_all();
    assert_eq!(dump(&single.runs()), "x.tfevents x scalar [1] [1.0] pieces [0..1]\n");
    let error = Logdir::open(&[dir.path().join("nothing")]).unwrap_err().to_string();
    assert!(error.contains("nothing: ") && error.lines().count() == 1, "{error}");
}

#[test]
fn large_logdirs_are_read_in_bounded_polls() {
    let dir = tempfile::tempdir().unwrap();
    let record = scalar("x", 1.0, 1);
    let n = poll_bytes() as usize / 2 / record.len();
    for run in ["a", "b", "c"] {
        append(&dir.path().join(run).join("x.tfevents"), &record.repeat(n));
    }
    let mut logdir = Logdir::open(&[dir.path().to_owned()]).unwrap();
    let first = logdir.poll();
    assert!(first.has_more && first.n_bytes < poll_bytes() + 2 * TURN_BYTES, "{first:?}");
    // Every run has had a turn.
    assert_eq!(first.runs, ["a", "b", "c"]);
    logdir.read_all();
    let runs = logdir.runs();
    assert!(runs.by_name.values().all(|run| run.series["x"].n_points() == n));
}

/// The metadata that says what a tag is may be in an early block while later ones are decoded at the same time.
#[test]
fn blocks_that_are_decoded_side_by_side_know_their_tags() {
    let dir = tempfile::tempdir().unwrap();
    let plain: Vec<u8> = (0..).map(|step| tensor("plain", None, &[], &[1.0], step)).take(20_000).flatten().collect();
    let first = tensor("late", Some("scalars"), &[], &[0.5], 0);
    let rest: Vec<u8> = (1..60_000).flat_map(|step| tensor("late", None, &[], &[step as f32], step)).collect();
    append(&dir.path().join("x.tfevents"), &[plain, first, rest].concat());
    let mut logdir = Logdir::open(&[dir.path().to_owned()]).unwrap();
    logdir.read_all();
    let runs = logdir.runs();
    let run = &runs.by_name["."];
    let Series::Scalar(late) = &run.series["late"] else { panic!("{}", run.series["late"].kind()) };
    assert!(late.points().skip(1).all(|p| p.value == p.step as f64));
    assert_eq!((late.len(), run.series["plain"].n_points(), run.n_damaged), (60_000, 20_000, 0));
}

#[test]
fn a_file_that_takes_anothers_place_is_read_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tfevents");
    append(&path, &scalar("x", 1.0, 1));
    let mut logdir = Logdir::open(&[dir.path().to_owned()]).unwrap();
    logdir.read_all();
    let other = dir.path().join("other");
    append(&other, &[scalar("x", 2.0, 2), scalar("x", 3.0, 3)].concat());
    fs::rename(&other, &path).unwrap();
    while logdir.runs().by_name["."].series["x"].n_points() < 3 {
        logdir.poll();
    }
    assert_eq!(logdir.runs().by_name["."].damage[0].kind, DamageKind::Rewritten);
}

/// A notification of the system wakes the loader, and one poll brings it in: a new point, a new file, a new run.
#[cfg(target_os = "linux")]
#[test]
fn the_system_tells_of_what_is_new() {
    let dir = tempfile::tempdir().unwrap();
    append(&dir.path().join("a/x.tfevents"), &scalar("x", 1.0, 1));
    let mut logdir = Logdir::open(&[dir.path().to_owned()]).unwrap();
    let (sender, woken) = std::sync::mpsc::channel();
    logdir.on_activity(move || sender.send(()).unwrap_or_default());
    logdir.read_all();
    while !logdir.is_watching() {
        woken.recv_timeout(std::time::Duration::from_secs(10)).expect("watching begins");
    }
    for (file, n) in [("a/x.tfevents", 2), ("a/y.tfevents", 3), ("b/c/x.tfevents", 4)] {
        append(&dir.path().join(file), &scalar("x", 1.0, 1));
        let n_points = |logdir: &Logdir| -> usize {
            logdir.runs().by_name.values().flat_map(|run| run.series.values()).map(Series::n_points).sum()
        };
        while n_points(&logdir) < n {
            woken.recv_timeout(std::time::Duration::from_secs(10)).expect("the system reports it");
            logdir.poll();
        }
    }
}

/// A logdir that is deleted and made anew is watched anew.
#[cfg(target_os = "linux")]
#[test]
fn a_root_that_comes_back_is_watched_again() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("runs");
    append(&root.join("a/x.tfevents"), &scalar("x", 1.0, 1));
    let mut logdir = Logdir::open(std::slice::from_ref(&root)).unwrap();
    let (sender, woken) = std::sync::mpsc::channel();
    logdir.on_activity(move || sender.send(()).unwrap_or_default());
    let until = |logdir: &mut Logdir, is_done: &dyn Fn(&Logdir) -> bool| {
        for _ in 0..1_000 {
            logdir.poll();
            if is_done(logdir) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("never came: {}", dump(&logdir.runs()));
    };
    until(&mut logdir, &Logdir::is_watching);
    fs::remove_dir_all(&root).unwrap();
    until(&mut logdir, &|logdir| !logdir.is_watching());
    append(&root.join("b/x.tfevents"), &scalar("x", 1.0, 1));
    until(&mut logdir, &|logdir| logdir.is_watching() && logdir.runs().by_name.contains_key("b"));
    woken.try_iter().for_each(drop);
    append(&root.join("c/x.tfevents"), &scalar("x", 1.0, 1));
    woken.recv_timeout(std::time::Duration::from_secs(10)).expect("the system reports it");
    until(&mut logdir, &|logdir| logdir.runs().by_name.contains_key("c"));
}

/// Runs are served in turn also where there are more of them than one poll reads.
#[test]
fn many_small_runs_are_all_read() {
    let dir = tempfile::tempdir().unwrap();
    let record = scalar("x", 1.0, 1);
    for i in 0..300 {
        append(&dir.path().join(format!("{i}/x.tfevents")), &record.repeat(1 + i));
    }
    let mut logdir = Logdir::open(&[dir.path().to_owned()]).unwrap();
    logdir.read_all();
    let runs = logdir.runs();
    assert_eq!(runs.by_name.len(), 300);
    assert!((0..300).all(|i| runs.by_name[&i.to_string()].series["x"].n_points() == 1 + i));
}
