//! `runs` and `export` on logdirs, as a user calls them.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use stepscope_tests::{data, from_env, stepscope_binary};
use summaries::{HParam, SummaryWriter, WriterOptions};

fn stepscope(binary: &Path, args: &[&str]) -> Output {
    let output = Command::new(binary).args(args).env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").output();
    output.unwrap_or_else(|error| panic!("{}: {error}", binary.display()))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Two runs, one of them damaged in one record.
fn logdir() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a scratch folder");
    for run in ["seed1", "seed,2"] {
        let writer = SummaryWriter::create(&dir.path().join(run), WriterOptions::default()).expect("a writer");
        writer.add_hparams(&[("rate".to_owned(), HParam::Number(0.1))].into(), &["loss"]);
        for step in 0..10 {
            writer.add_scalar("loss", if step == 3 { f32::NAN } else { step as f32 / 8.0 }, step);
        }
        writer.add_scalar("acc", 0.5, 9);
        writer.add_text("note", "hello", 1);
        let path = writer.path().to_owned();
        writer.close().expect("all written");
        if run == "seed1" {
            let mut bytes = std::fs::read(&path).expect("the event file");
            let n = bytes.len();
            bytes[n - 1] ^= 1;
            std::fs::write(&path, bytes).expect("the event file");
        }
    }
    dir
}

#[test]
fn runs_tells_what_there_is_and_what_is_damaged() {
    let Some(binary) = stepscope_binary("runs of a logdir") else { return };
    let dir = logdir();
    let at = dir.path().display().to_string();
    let output = stepscope(&binary, &["runs", &at, "--json"]);
    assert!(output.status.success());
    let runs: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect();
    let names: Vec<_> = runs.iter().map(|run| (run["run"].as_str(), run["damaged"].as_u64())).collect();
    assert_eq!(names, [(Some("seed,2"), Some(0)), (Some("seed1"), Some(1))]);
    let loss = &runs[0]["tags"]["loss"];
    assert_eq!((&loss["kind"], &loss["points"], &loss["last_step"]), (&"scalars".into(), &10.into(), &9.into()));
    assert_eq!((&loss["last_value"], &runs[0]["hparams"]["rate"]), (&1.125.into(), &0.1.into()));
    assert_eq!(runs[0]["tags"]["note"]["kind"], "text");
    assert!(runs[1]["tags"].get("note").is_none(), "its only record is the damaged one");
    let warnings = text(&output.stderr);
    assert!(warnings.lines().count() == 1 && warnings.contains("bad checksum, skipped bytes"), "{warnings}");

    let table = text(&stepscope(&binary, &["runs", &at]).stdout);
    assert!(table.lines().any(|line| line.starts_with("seed1: 4 tags, 13 points, ") && line.ends_with(", 1 damaged")));
    let loss = |line: &&str| line.trim_start().starts_with("loss ");
    assert!(table.lines().filter(loss).all(|line| line.ends_with("step 9         1.125")), "{table}");
    let nothing = stepscope(&binary, &["runs", "/nowhere"]);
    assert_eq!((nothing.status.code(), text(&nothing.stderr).lines().count()), (Some(2), 1));
}

/// pandas and TensorBoard agree with what is written, in every format: points of all writers' real files, and odd ones.
#[test]
fn pandas_reads_the_rows_that_tensorboard_has() {
    let Some(binary) = stepscope_binary("export of a logdir, read by pandas") else { return };
    let Some(python) = from_env("STEPSCOPE_PYTHON", "export of a logdir, read by pandas") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    let logs = dir.path().join("logs");
    for run in ["a", "b, \"c\""] {
        let writer = SummaryWriter::create(&logs.join(run), WriterOptions::default()).expect("a writer");
        for step in 0..500 {
            writer.add_scalar("loss/π", odd_value(step), step);
            writer.add_scalar("a,b\"c", step as f32 / 3.0, -step);
        }
        writer.add_histogram("no scalar", [1.0_f32], 0);
        writer.close().expect("all written");
    }
    let mut n_rows = 2 * 2 * 500;
    for (run, file, n) in [
        ("torch", "torch_reducer/strict_events.out.tfevents.1622543341.janoshs-mbp.lan.86862.0", 100),
        ("tf2", "tf2_all_plugins.tfevents.v2", 60),
        ("tf1", "tf1_filewriter_runmetadata.tfevents", 40),
        ("nan", "odd_nan_inf_values.tfevents", 12),
        ("restart", "odd_restart_nonmonotonic_steps.tfevents", 22),
    ] {
        let Some(file) = data(&format!("events/{file}")) else { continue };
        std::fs::create_dir(logs.join(run)).expect("a folder");
        std::fs::copy(file, logs.join(run).join("x.tfevents")).expect("a copy");
        n_rows += n;
    }
    let mut compare = Command::new(python);
    compare.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/export_compare.py")).arg(&logs);
    for name in ["rows.csv", "rows.jsonl", "rows.parquet"] {
        let out = dir.path().join(name);
        let exported = stepscope(&binary, &["export", &logs.display().to_string(), "-o", &out.display().to_string()]);
        assert!(exported.status.success(), "{}", text(&exported.stderr));
        compare.arg(out);
    }
    let compared = compare.output().expect("python starts");
    assert!(compared.status.success(), "{}", text(&compared.stderr));
    assert_eq!(text(&compared.stdout).trim(), n_rows.to_string());
}

fn odd_value(step: i64) -> f32 {
    match step % 7 {
        0 => f32::NAN,
        1 => f32::INFINITY,
        2 => f32::NEG_INFINITY,
        3 => f32::MIN_POSITIVE / 8.0,
        4 => -0.0,
        5 => f32::MAX,
        _ => (step as f32).sin(),
    }
}

/// Runs of two rates and two seeds: by hyperparameter and by name, and as curves with bands.
#[test]
fn groups_of_runs() {
    let Some(binary) = stepscope_binary("groups of runs") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    for (model, rate) in [("small", 0.1), ("large", 0.2)] {
        for seed in 0..2_i16 {
            let folder = dir.path().join(format!("logs/{model}/seed{seed}"));
            let writer = SummaryWriter::create(&folder, WriterOptions::default()).expect("a writer");
            writer.add_hparams(&[("rate".to_owned(), HParam::Number(rate))].into(), &["loss"]);
            for step in 0..20 {
                writer.add_scalar("loss", (rate * 10.0) as f32 + f32::from(seed), step);
                writer.add_histogram("weights", (0..50).map(|i| (i * step) as f32), step);
            }
            writer.close().expect("all written");
        }
    }
    let at = dir.path().join("logs").display().to_string();
    let groups = |args: &[&str]| -> Vec<Value> {
        let output = stepscope(&binary, &[&["runs", &at, "--json"], args].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect()
    };
    let span = |n: f64| serde_json::json!({"runs": 2, "mean": n + 0.5, "min": n, "max": n + 1.0});
    let rates = groups(&["--group-hparam", "rate"]);
    assert_eq!((&rates[0]["group"], &rates[1]["group"], rates.len()), (&"0.1".into(), &"0.2".into(), 2));
    assert_eq!(rates[0]["runs"], serde_json::json!(["small/seed0", "small/seed1"]));
    assert_eq!((&rates[0]["last_values"]["loss"], &rates[1]["last_values"]["loss"]), (&span(1.0), &span(2.0)));
    let models = groups(&["--group", "^(.*)/seed"]);
    assert_eq!((&models[0]["group"], &models[0]["last_values"]["loss"]), (&"large".into(), &span(2.0)));
    assert!(groups(&["--group-hparam", "nothing"]).is_empty());
    let table = text(&stepscope(&binary, &["runs", &at, "--group", "large|small"]).stdout);
    assert!(
        table.contains("large: 2 runs\n") && table.contains("from 2.000000 ") && table.contains(" of 2"),
        "{table}"
    );

    let out = dir.path().join("report").display().to_string();
    let report = || stepscope(&binary, &["report", &at, "--group", "^(.*)/seed", "-o", &out]);
    assert!(report().status.success() && report().status.success(), "its own files are replaced");
    let page = std::fs::read_to_string(dir.path().join("report/index.html")).expect("the page");
    assert!(page.contains("large (2)") && page.contains("weights of small/seed1: ridges"), "{page}");
    for name in ["01-loss-light", "01-loss-dark", "02-weights-large-seed0-ridges-light"] {
        let file = |ending: &str| dir.path().join(format!("report/{name}.{ending}"));
        assert!(std::fs::read(file("png")).expect("a picture").starts_with(b"\x89PNG\r\n"));
        assert!(std::fs::read_to_string(file("svg")).expect("a drawing").contains("<polygon"), "a band or a ridge");
    }
    std::fs::write(dir.path().join("report/01-loss-dark.png"), b"somebody's").expect("a file");
    assert_eq!(report().status.code(), Some(2), "a foreign file stays");
}

#[test]
fn a_bucket_that_this_build_or_machine_cannot_read_is_one_line() {
    let Some(binary) = stepscope_binary("buckets that cannot be read") else { return };
    for command in [&["runs", "s3://nowhere/logs"][..], &["export", "s3://nowhere/logs"]] {
        let output = Command::new(&binary).args(command).env_remove("AWS_ACCESS_KEY_ID").output().expect("it starts");
        let printed = text(&output.stderr);
        assert_eq!((output.status.code(), printed.lines().count()), (Some(2), 1), "{printed}");
        assert!(printed.contains("s3://nowhere/logs: "), "{printed}");
    }
}

#[test]
fn export_writes_every_point() {
    let Some(binary) = stepscope_binary("export of a logdir") else { return };
    let dir = logdir();
    let at = dir.path().display().to_string();
    let csv = text(&stepscope(&binary, &["export", &at, "--tag", "^loss$"]).stdout);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!((lines[0], lines.len()), ("run,tag,step,wall_time,value", 21));
    assert!(lines[1].starts_with("\"seed,2\",loss,0,") && lines[4].ends_with(",NaN"), "{csv}");
    assert!(lines[20].starts_with("seed1,loss,9,") && lines[20].ends_with(",1.125"), "{csv}");

    let out = dir.path().join("rows.jsonl");
    let args = ["export", &at, "--format", "json", "--run", "seed1", "-o", &out.display().to_string()];
    assert!(stepscope(&binary, &args).status.success());
    let rows = std::fs::read_to_string(&out).expect("the file");
    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect();
    assert_eq!((rows.len(), &rows[0]["tag"], &rows[4]["value"]), (11, &"acc".into(), &"NaN".into()));

    for wrong in [
        &["export", &at, "--tag", "["][..],
        &["export", &at, "--format", "parquet"],
        &["export", &at, "--format", "chrome", "--run", "a"],
        &["export", &at, "-o", &out.display().to_string()],
    ] {
        let refused = stepscope(&binary, wrong);
        assert_eq!((refused.status.code(), text(&refused.stderr).lines().count()), (Some(2), 1), "{wrong:?}");
    }
}
