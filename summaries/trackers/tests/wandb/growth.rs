//! Logs that grow while they are read, and logs that are replaced.

use std::{fs, io::Write as _, path::Path};

use super::{
    fixture,
    made::Log,
    read::{copy, open, rest, scalars, shown, whole},
};

/// Whether a log gives the same when its first `n` bytes are read before the rest, for each `n`.
fn check_cuts(name: &str, cuts: impl Iterator<Item = usize>) {
    let folder = tempfile::tempdir().unwrap();
    copy(fixture(name).parent().unwrap(), folder.path());
    let log = folder.path().join(fixture(name).file_name().unwrap());
    let bytes = fs::read(&log).unwrap();
    let expected = whole(&log);
    for n in cuts {
        fs::write(&log, &bytes[..n]).unwrap();
        let mut reader = open(&log);
        let mut batch = rest(&mut *reader, u64::MAX);
        fs::OpenOptions::new().append(true).open(&log).unwrap().write_all(&bytes[n..]).unwrap();
        let second = rest(&mut *reader, u64::MAX);
        batch.entries.extend(second.entries);
        batch.problems.extend(second.problems);
        assert_eq!(batch.problems, expected.problems, "{n}");
        assert!(shown(&batch) == shown(&expected), "{n}");
    }
}

#[test]
fn a_log_that_grows_by_a_piece() {
    let len = fs::metadata(fixture("typed")).unwrap().len() as usize;
    check_cuts("typed", 0..=len);
    // The end of the first block lies in a record.
    check_cuts("legacy", (32_768 - 150)..(32_768 + 150));
    check_cuts("core", (32_768 - 20)..(32_768 + 20));
}

#[test]
fn a_log_that_grows_byte_by_byte() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("run-x.wandb");
    let bytes = fs::read(fixture("typed")).unwrap();
    let expected = whole(&fixture("typed"));
    let mut file = fs::File::create(&log).unwrap();
    let mut reader = open(&log);
    let mut found = Vec::new();
    for byte in bytes {
        file.write_all(&[byte]).unwrap();
        let batch = rest(&mut *reader, 1);
        assert!(batch.problems.is_empty());
        found.extend(shown(&batch));
    }
    assert_eq!(found, shown(&expected));
}

#[test]
fn small_allowances_give_the_same() {
    for name in ["core", "legacy"] {
        let expected = whole(&fixture(name));
        for allowance in [0, 1, 1000, 40_000] {
            let batch = rest(&mut *open(&fixture(name)), allowance);
            assert_eq!(shown(&batch), shown(&expected), "{name}, {allowance}");
        }
    }
}

#[test]
fn a_call_takes_no_more_than_its_allowance() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run-x.wandb");
    let media = folder.path().join("files");
    fs::create_dir(&media).unwrap();
    fs::write(media.join("large.html"), vec![b'x'; 1 << 20]).unwrap();
    let html = r#"{"_type": "html-file", "path": "large.html"}"#;
    (0..20).fold(Log::new(), |log, step| log.row(step, &[("page", html)])).write(&path);
    let mut reader = open(&path);
    for _ in 0..10 {
        let mut batch = trackers::Batch::default();
        reader.read(2 << 20, &mut batch).unwrap();
        assert_eq!(batch.entries.len(), 2, "files of 1 MiB each");
    }
    assert!(rest(&mut *reader, u64::MAX).entries.is_empty());
}

fn log_of(steps: std::ops::Range<i64>, path: &Path) {
    let log = steps.fold(Log::new(), |log, step| log.row(step, &[("x", &step.to_string())]));
    log.alert("first").write(path);
}

#[test]
fn of_a_log_that_was_replaced_only_later_steps_are_new() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run-x.wandb");
    log_of(0..10, &path);
    let mut reader = open(&path);
    assert_eq!(scalars(&rest(&mut *reader, u64::MAX), "x").len(), 10);
    // Shorter than what was read, by the same file.
    log_of(8..12, &path);
    let batch = rest(&mut *reader, u64::MAX);
    assert_eq!(scalars(&batch, "x"), [(10, 10.0), (11, 11.0)]);
    assert!(batch.entries.iter().all(|entry| entry.tag != "alerts"));
    // Longer, by another file.
    #[cfg(unix)]
    {
        let other = folder.path().join("other");
        log_of(0..20, &other);
        fs::rename(&other, &path).unwrap();
        assert_eq!(scalars(&rest(&mut *reader, u64::MAX), "x").first(), Some(&(12, 12.0)));
    }
}

#[test]
fn a_log_that_is_gone_is_an_error_until_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run-x.wandb");
    log_of(0..3, &path);
    let mut reader = open(&path);
    fs::remove_file(&path).unwrap();
    assert!(reader.read(u64::MAX, &mut trackers::Batch::default()).is_err());
    log_of(0..3, &path);
    assert_eq!(scalars(&rest(&mut *reader, u64::MAX), "x").len(), 3);
}

#[cfg(unix)]
#[test]
fn a_log_that_was_copied_over_itself_has_nothing_new() {
    for name in ["core", "legacy"] {
        let folder = tempfile::tempdir().unwrap();
        copy(fixture(name).parent().unwrap(), folder.path());
        let path = folder.path().join(fixture(name).file_name().unwrap());
        let mut reader = open(&path);
        rest(&mut *reader, u64::MAX);
        let other = folder.path().join("other");
        fs::copy(&path, &other).unwrap();
        fs::rename(&other, &path).unwrap();
        let batch = rest(&mut *reader, u64::MAX);
        assert!(batch.n_bytes > 0);
        // The hyperparameters may change once more to what they are.
        assert!(batch.entries.iter().all(|entry| entry.tag.is_empty()), "{name}");
        let params = |batch: &trackers::Batch| {
            let of_params = batch.entries.iter().rfind(|entry| entry.tag.is_empty());
            of_params.map(|entry| entry.value.clone())
        };
        let is_same = params(&batch).is_none_or(|found| Some(found) == params(&whole(&path)));
        assert!(is_same, "{name}");
    }
}
