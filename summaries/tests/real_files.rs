//! Event files that other programs wrote, and damaged ones: what is in each was counted with TensorFlow's own classes,
//! record by record, beforehand.

// Clippy's exceptions for tests do not reach the helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use summaries::{DamageKind, Logdir, Run, Series};

/// One line per tag: `tag kind points`, and one per damage and waiting tail.
fn dump(run: &Run) -> Vec<String> {
    let tags = run.series.iter().map(|(tag, series)| format!("{tag} {} {}", series.kind(), series.n_points()));
    let damage = run.damage.iter().map(|d| format!("{:?} {:?}", d.kind, d.bytes));
    let tails = run.files.iter().filter(|f| f.n_waiting > 0).map(|f| format!("waiting {}", f.n_waiting));
    tags.chain(damage).chain(tails).collect()
}

#[track_caller]
fn check(path: &str, expected: &[&str]) {
    let Some(path) = test_support::data(&format!("events/{path}")) else { return };
    let mut logdir = Logdir::open(&[path]).unwrap();
    logdir.read_all();
    let runs = logdir.runs();
    assert_eq!(runs.by_name.len(), 1);
    assert_eq!(dump(runs.by_name.values().next().unwrap()), expected);
}

/// The tags of `tf2_all_plugins` with all that is in it, one point of `loss` left out, and what was reported about it.
fn all_plugins_but_one_loss<'a>(printed: &[&'a str]) -> Vec<&'a str> {
    let tags = [
        "_hparams_/session_start_info hparams 1",
        "img images 3",
        "loss scalars 59",
        "note text 3",
        "tone audio 3",
        "w histograms 60",
    ];
    tags.iter().chain(printed).copied().collect()
}

#[test]
fn tensorflow_2() {
    let mut expected = all_plugins_but_one_loss(&[]);
    expected[2] = "loss scalars 60";
    check("tf2_all_plugins.tfevents.v2", &expected);
}

#[test]
fn tensorflow_1() {
    check("tf1_filewriter_runmetadata.tfevents", &["h histograms 40", "im/image/0 images 40", "loss scalars 40"]);
}

#[test]
fn torch() {
    check("torch_reducer/strict_events.out.tfevents.1622543341.janoshs-mbp.lan.86862.0", &["strict/foo scalars 100"]);
    check(
        "torch_reducer/duplicate_steps_events.out.tfevents.1622966509.janoshs-mbp.lan.86059.0",
        &["dup_steps/bar scalars 210", "dup_steps/foo scalars 210"],
    );
    check(
        "torch_reducer/lax_events.out.tfevents.1622543341.janoshs-mbp.lan.86862.5",
        &["lax/bar_3 scalars 130", "lax/bar_4 scalars 130", "lax/foo scalars 130"],
    );
}

#[test]
fn tensorboardx() {
    let Some(path) = test_support::data("events/tensorboardX_summaries") else { return };
    let mut logdir = Logdir::open(&[path]).unwrap();
    logdir.read_all();
    let runs = logdir.runs();
    let all: Vec<_> = runs
        .by_name
        .iter()
        .flat_map(|(name, run)| dump(run).into_iter().map(move |line| format!("{name} {line}")))
        .collect();
    let expected = [
        ". custom_scalars__config__ custom_scalars 1",
        ". img images 6",
        ". pr pr_curves 1",
        ". t/text_summary text 6",
        ". train/loss scalars 60",
        ". train/nan scalars 2",
        ". w histograms 6",
        "1795216781.795355 _hparams_/experiment hparams 1",
        "1795216781.795355 _hparams_/session_end_info hparams 1",
        "1795216781.795355 _hparams_/session_start_info hparams 1",
        "1795216781.795355 hp/acc scalars 1",
        "both/a both scalars 60",
        "both/b both scalars 60",
    ];
    assert_eq!(all, expected);
}

/// TensorBoard's data server reads 8 of the 60 points of `loss` here, and ends its process on the second file.
#[test]
fn what_is_intact_in_damaged_files_is_read() {
    check("odd_bad_data_crc_record20.tfevents", &all_plugins_but_one_loss(&["BadData 17596..17672"]));
    check("odd_huge_length_valid_crc_record20.tfevents", &all_plugins_but_one_loss(&["BadLength 17596..17672"]));
    check(
        "odd_truncated_in_payload.tfevents",
        &["img images 1", "loss scalars 18", "note text 1", "tone audio 1", "w histograms 18", "waiting 42"],
    );
    check("odd_empty.tfevents", &[]);
}

#[test]
fn odd_values_and_restarts_are_kept() {
    check("odd_nan_inf_values.tfevents", &["loss scalars 12"]);
    check("odd_restart_nonmonotonic_steps.tfevents", &["loss scalars 22"]);
    let Some(path) = test_support::data("events/odd_restart_nonmonotonic_steps.tfevents") else { return };
    let mut logdir = Logdir::open(&[path]).unwrap();
    logdir.read_all();
    let runs = logdir.runs();
    let Some(Series::Scalar(loss)) = runs.by_name.values().next().unwrap().series.get("loss") else {
        panic!("no loss")
    };
    let pieces: Vec<_> = loss.pieces().map(|rows| rows.map(|row| loss.step(row)).collect::<Vec<_>>()).collect();
    assert_eq!(pieces, [(0..10).collect::<Vec<_>>(), (5..15).collect(), vec![2, 3]]);
}

/// A graph in a gzipped event file, as part of a logdir.
#[test]
fn gzipped_event_files() {
    let Some(path) = test_support::data("graphs/tf_lstm_8x20_adam.tfevents.gz") else { return };
    let mut logdir = Logdir::open(&[path]).unwrap();
    logdir.read_all();
    let runs = logdir.runs();
    let run = runs.by_name.values().next().unwrap();
    assert_eq!(run.graph.as_ref().unwrap().decode().unwrap().node.len(), 11_764);
    assert!(run.damage.is_empty());
}

#[test]
fn damage_reads_as_one_line() {
    let Some(path) = test_support::data("events/odd_bad_data_crc_record20.tfevents") else { return };
    let mut logdir = Logdir::open(std::slice::from_ref(&path)).unwrap();
    logdir.read_all();
    let runs = logdir.runs();
    let damage = &runs.by_name.values().next().unwrap().damage[0];
    assert_eq!(damage.kind, DamageKind::BadData);
    assert_eq!(damage.to_string(), format!("{}: bad checksum, skipped bytes 17596..17672", path.display()));
}
