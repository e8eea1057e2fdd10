//! Other tools' logs as runs of a logdir: found, followed while they grow, converted to event files that give the same.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::Path,
};

use summaries::{ConvertError, DamageKind, Logdir, Run, Series, convert};

fn append(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    let mut file = OpenOptions::new().create(true).append(true).open(path).expect("the file");
    file.write_all(text.as_bytes()).expect("written");
}

/// The steps and values of a scalar.
fn points(run: &Run, tag: &str) -> Vec<(i64, f64)> {
    let Some(Series::Scalar(series)) = run.series.get(tag) else { panic!("{tag} is no scalar of {}", run.name) };
    series.points().map(|point| (point.step, point.value)).collect()
}

#[test]
fn a_growing_log_is_a_run_next_to_event_files() {
    let dir = tempfile::tempdir().unwrap();
    let csv = dir.path().join("lightning_logs/version_0/metrics.csv");
    append(&csv, "epoch,loss,step\n0,0.1,9\n");
    let writer = summaries::SummaryWriter::create(&dir.path().join("plain"), Default::default()).unwrap();
    writer.add_scalar("loss", 1.0, 0);
    writer.close().unwrap();
    let mut logdir = Logdir::open(&[dir.path().to_owned()]).unwrap();
    logdir.read_all();
    {
        let runs = logdir.runs();
        assert_eq!(runs.by_name.keys().collect::<Vec<_>>(), ["lightning_logs/version_0", "plain"]);
        // In 64 bits, as it is written.
        assert_eq!(points(&runs.by_name["lightning_logs/version_0"], "loss"), [(9, 0.1)]);
    }
    append(&csv, "0,0.2,19\n1,0.3");
    logdir.read_all();
    assert_eq!(points(&logdir.runs().by_name["lightning_logs/version_0"], "loss"), [(9, 0.1), (19, 0.2)]);
    append(&csv, ",29\n");
    logdir.read_all();
    let runs = logdir.runs();
    let run = &runs.by_name["lightning_logs/version_0"];
    assert_eq!(points(run, "loss"), [(9, 0.1), (19, 0.2), (29, 0.3)]);
    assert_eq!((run.n_damaged, run.files.len(), &*run.files[0].path), (0, 1, &*csv));
}

#[test]
fn what_cannot_be_read_is_counted_with_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("metrics.jsonl");
    append(&file, "{\"step\": 1, \"loss\": 0.5}\nnonsense\n{\"step\": 2, \"loss\": NaN}\n");
    let mut logdir = Logdir::open(&[dir.path().to_owned()]).unwrap();
    logdir.read_all();
    let runs = logdir.runs();
    let run = &runs.by_name["."];
    let Some(Series::Scalar(loss)) = run.series.get("loss") else { panic!("loss is a scalar") };
    assert!(loss.len() == 2 && loss.point(1).value.is_nan());
    assert_eq!(run.n_damaged, 1);
    assert!(matches!(run.damage[0].kind, DamageKind::Log(_)));
    assert!(run.damage[0].to_string().contains("metrics.jsonl: skipped "), "{}", run.damage[0]);
}

#[test]
fn a_converted_log_gives_the_same_points() {
    let dir = tempfile::tempdir().unwrap();
    let (logs, out) = (dir.path().join("logs"), dir.path().join("out"));
    for run in ["a", "b/c"] {
        let lines: String =
            (0..1000).map(|i| format!("{{\"step\": {i}, \"loss\": {}}}\n", 1.0 / f64::from(i + 3))).collect();
        append(&logs.join(run).join("metrics.jsonl"), &lines);
    }
    let mut n_reported = 0;
    let (converted, problems) = convert(&logs, &out, |_, _| n_reported += 1).unwrap();
    assert_eq!((converted.len(), n_reported, problems.len()), (2, 2, 0));
    assert!(converted.iter().all(|run| run.n_values == 1000 && run.damage.is_empty()));
    let read = |path: &Path| {
        let mut logdir = Logdir::open(&[path.to_owned()]).unwrap();
        logdir.read_all();
        let runs = logdir.runs();
        runs.by_name.iter().map(|(name, run)| (name.clone(), points(run, "loss"))).collect::<Vec<_>>()
    };
    assert_eq!(read(&logs), read(&out));
    assert!(matches!(convert(&logs, &out, |_, _| {}), Err(ConvertError::Exists(_))));
    assert!(matches!(convert(&out, &dir.path().join("other"), |_, _| {}), Err(ConvertError::NoLog(_))));
}
