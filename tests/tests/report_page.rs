//! The interactive page of `stepscope report --html`: its data are those that the other commands print, and a browser
//! draws them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use stepscope_tests::browser::Browser;
use stepscope_tests::{left_out, root, stepscope_binary};
use summaries::{HParam, SummaryWriter, WriterOptions};

const HOSTILE: &str = "</script><img src=x onerror=alert(1)> <!-- \u{2028} & \"";

fn output<S: AsRef<OsStr>>(binary: &Path, args: &[S]) -> Output {
    let output = Command::new(binary).args(args).env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").output();
    output.unwrap_or_else(|error| panic!("{}: {error}", binary.display()))
}

#[track_caller]
fn done<S: AsRef<OsStr>>(binary: &Path, args: &[S]) -> String {
    let output = output(binary, args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Rows that a command prints as one JSON object a line.
fn rows(printed: &str) -> Vec<Value> {
    printed.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect()
}

/// Makes a page and returns its data.
#[track_caller]
fn page(binary: &Path, of: &Path, file: &Path, options: &[&str]) -> Value {
    let mut args = vec!["report".as_ref(), of.as_os_str(), "--html".as_ref(), file.as_os_str()];
    args.extend(options.iter().map(OsStr::new));
    assert_eq!(done(binary, &args).trim(), file.display().to_string());
    let text = std::fs::read_to_string(file).expect("the page");
    let (_, rest) = text.split_once("type=\"application/json\">").expect("the data");
    let (json, _) = rest.split_once("</script>").expect("their end");
    serde_json::from_str(json).expect("JSON")
}

/// The numbers of a packed array.
fn numbers(packed: &Value) -> Vec<f64> {
    let bytes = STANDARD.decode(packed["d"].as_str().expect("base64")).expect("base64");
    fn each<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        let (chunks, rest) = bytes.as_chunks::<N>();
        assert!(rest.is_empty());
        chunks.iter().map(|chunk| number(*chunk)).collect()
    }
    match packed["t"].as_str() {
        Some("u1") => each(&bytes, |[b]| f64::from(b)),
        Some("u2") => each(&bytes, |b| f64::from(u16::from_le_bytes(b))),
        Some("u4") => each(&bytes, |b| f64::from(u32::from_le_bytes(b))),
        Some("i4") => each(&bytes, |b| f64::from(i32::from_le_bytes(b))),
        Some("f4") => each(&bytes, |b| f64::from(f32::from_le_bytes(b))),
        Some("f8") => each(&bytes, f64::from_le_bytes),
        other => panic!("type {other:?}"),
    }
}

/// Number and total duration, ns, by name.
type Totals = BTreeMap<String, (u64, i64)>;

/// The slices of the page as (track, name, begin, duration), and the totals that the page lists.
fn slices(trace: &Value) -> (Vec<(u64, String, i64, i64)>, Totals) {
    let names: Vec<&str> =
        trace["names"].as_array().expect("names").iter().map(|row| row[0].as_str().expect("a name")).collect();
    let mut slices = Vec::new();
    for (id, track) in (0..).zip(trace["tracks"].as_array().expect("tracks")) {
        let columns = &track["columns"];
        let (dur, name) = (numbers(&columns["dur"]), numbers(&columns["name"]));
        let mut row = 0;
        for lane in columns["begin"].as_array().expect("a column a lane") {
            let mut begin = 0.0;
            for delta in numbers(lane) {
                begin += delta;
                slices.push((id, names[name[row] as usize].to_owned(), begin as i64, dur[row] as i64));
                row += 1;
            }
        }
        assert_eq!(row, dur.len());
    }
    slices.sort();
    let (count, ns) = (numbers(&trace["totals"]["count"]), numbers(&trace["totals"]["ns"]));
    let mut totals = Totals::new();
    for (row, name) in names.iter().enumerate().filter(|(row, _)| count[*row] > 0.0) {
        let total = totals.entry((*name).to_owned()).or_default();
        *total = (total.0 + count[row] as u64, total.1 + ns[row] as i64);
    }
    (slices, totals)
}

fn fixtures() -> [PathBuf; 3] {
    ["nsys.sqlite", "packets.pftrace", "run_metadata.pb"]
        .map(|name| root().join("profiler/formats/tests/fixtures").join(name))
}

/// The slices that `export` prints, with times from the trace's start, and their totals.
fn exported(binary: &Path, trace: &Path) -> (Vec<(u64, String, i64, i64)>, Totals) {
    let args = ["export".as_ref(), trace.as_os_str(), "--format".as_ref(), "json".as_ref()];
    let rows = rows(&done(binary, &args));
    let json = done(binary, &["analyze".as_ref(), trace.as_os_str(), "--json".as_ref()]);
    let analysis: Value = serde_json::from_str(&json).expect("one object");
    let origin = analysis["range_ns"][0].as_i64().expect("a time");
    let mut totals = Totals::new();
    let mut slices = Vec::new();
    for row in &rows {
        let (name, ns) = (row["name"].as_str().expect("a name"), row["dur_ns"].as_i64().expect("a duration"));
        let begin = row["ts_ns"].as_i64().expect("a time") - origin;
        slices.push((row["track_id"].as_u64().expect("a track"), name.to_owned(), begin, ns));
        let total = totals.entry(name.to_owned()).or_default();
        *total = (total.0 + 1, total.1 + ns);
    }
    assert_eq!(analysis["slices"].as_u64(), Some(rows.len() as u64));
    slices.sort();
    (slices, totals)
}

#[test]
fn a_page_has_every_slice_that_export_prints() {
    let Some(binary) = stepscope_binary("the interactive page of a trace") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    for path in fixtures() {
        let data = page(&binary, &path, &dir.path().join("page.html"), &[]);
        let expected = exported(&binary, &path);
        assert!(!expected.0.is_empty());
        assert_eq!(slices(&data["traces"][0]), expected, "{}", path.display());
        assert_eq!(data["traces"][0]["notes"], Value::Array(Vec::new()), "nothing is left out");
    }
}

#[test]
fn merged_slices_are_counted_and_add_up() {
    let Some(binary) = stepscope_binary("merged slices of the interactive page") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    for path in fixtures() {
        let (all, totals) = exported(&binary, &path);
        let data = page(&binary, &path, &dir.path().join("page.html"), &["--max-slices", "10"]);
        let trace = &data["traces"][0];
        assert_eq!(slices(trace).1, totals, "the totals by name are those of all slices");
        let (mut n, mut busy) = (0.0, 0.0);
        for columns in trace["tracks"].as_array().expect("tracks").iter().map(|track| &track["columns"]) {
            let dur = numbers(&columns["dur"]);
            n += columns.get("count").map_or(dur.len() as f64, |count| numbers(count).iter().sum());
            busy += columns.get("busy").map_or_else(|| dur.iter().sum::<f64>(), |busy| numbers(busy).iter().sum());
        }
        assert_eq!((n as usize, busy as i64), (all.len(), all.iter().map(|slice| slice.3).sum()));
        let n_merged = all.len() - slices(trace).0.len();
        let notes = trace["notes"].as_array().expect("notes");
        let is_reported = notes.iter().filter_map(Value::as_str).any(|note| note.ends_with("are drawn merged"));
        assert_eq!(is_reported, n_merged > 0, "{notes:?}");
    }
}

/// Two runs with values that JSON does not have, and names that are HTML.
fn logdir(path: &Path) {
    for (run, rate) in [("seed1", 0.1), (HOSTILE.trim_start_matches("</script>"), 0.2)] {
        let run = run.replace('/', "_");
        let writer = SummaryWriter::create(&path.join(run), WriterOptions::default()).expect("a writer");
        writer.add_hparams(&[("rate".to_owned(), HParam::Number(rate))].into(), &["loss"]);
        for step in 0..500 {
            let value = match step {
                3 => f32::NAN,
                4 => f32::INFINITY,
                5 => -0.0,
                step => (step as f32).sin() / 3.0,
            };
            writer.add_scalar("loss", value, step);
            writer.add_scalar(HOSTILE, step as f32, step * 3_000_000_000);
        }
        writer.close().expect("all written");
    }
}

/// A point as a line. `serde_json` reads a number to within its last digit, so the times have five decimals, and the
/// values are the floats that were logged.
fn point(run: &Value, tag: &Value, step: i64, wall: f64, value: f64) -> String {
    format!("{run} {tag} {step} {wall:.5} {}", value as f32)
}

#[test]
fn a_page_has_every_point_that_export_prints() {
    let Some(binary) = stepscope_binary("the interactive page of a logdir") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    let logs = dir.path().join("logs");
    logdir(&logs);
    let data = page(&binary, &logs, &dir.path().join("page.html"), &[]);
    let logdir = &data["logdirs"][0];
    let mut points = Vec::new();
    for (tag, curve) in logdir["scalars"]
        .as_array()
        .expect("scalars")
        .iter()
        .flat_map(|item| item["curves"].as_array().expect("curves").iter().map(|curve| (&item["tag"], curve)))
    {
        let run = &logdir["runs"][curve["run"].as_u64().expect("a row") as usize];
        let [steps, walls, values] = ["step", "wall", "value"].map(|name| numbers(&curve[name]));
        assert!(steps.len() == walls.len() && steps.len() == values.len());
        let rows = steps.iter().zip(&walls).zip(&values);
        points.extend(rows.map(|((step, wall), value)| point(run, tag, *step as i64, *wall, *value)));
    }
    let args = ["export".as_ref(), logs.as_os_str(), "--format".as_ref(), "json".as_ref()];
    let number = |value: &Value| match value {
        Value::String(text) => text.parse().expect("NaN or an infinity"),
        value => value.as_f64().expect("a number"),
    };
    let line = |row: &Value| {
        let step = row["step"].as_i64().expect("a step");
        point(&row["run"], &row["tag"], step, number(&row["wall_time"]), number(&row["value"]))
    };
    let mut expected: Vec<String> = rows(&done(&binary, &args)).iter().map(line).collect();
    points.sort();
    expected.sort();
    assert_eq!(expected.len(), 2000);
    assert!(points == expected, "{:?}", points.iter().zip(&expected).find(|(a, b)| a != b));
    assert_eq!(logdir["hparams"]["rows"].as_array().map(Vec::len), Some(2));

    let thin = page(&binary, &logs, &dir.path().join("page.html"), &["--max-points", "1000"]);
    let curve = &thin["logdirs"][0]["scalars"][0]["curves"][0];
    assert_eq!((curve["n"].as_u64(), numbers(&curve["value"]).len() <= 250), (Some(500), true));
    assert_eq!(thin["logdirs"][0]["notes"].as_array().map(Vec::len), Some(1), "it is reported");
}

#[test]
fn foreign_files_stay_and_mistakes_are_one_line() {
    let Some(binary) = stepscope_binary("mistakes with the interactive page") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    let [path, ..] = fixtures();
    let (file, trace) = (dir.path().join("page.html"), path.display().to_string());
    page(&binary, &path, &file, &[]);
    page(&binary, &path, &file, &[]);
    std::fs::write(&file, "somebody's").expect("a file");
    let html = file.display().to_string();
    let folder = dir.path().display().to_string();
    for args in [&["report", &trace, "--html", &html][..], &["report", &trace, "--html", &folder], &["report", &trace]]
    {
        assert_eq!(output(&binary, args).status.code(), Some(2), "{args:?}");
    }
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), "somebody's");
    let nothing = output(&binary, &["report", &folder, "--html", &html]);
    let printed = String::from_utf8_lossy(&nothing.stderr).into_owned();
    assert_eq!((nothing.status.code(), printed.lines().count()), (Some(2), 1), "{printed}");
}

/// A Chromium on the PATH.
fn chromium(check: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found =
        std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name))).find(|path| path.is_file());
    if found.is_none() {
        left_out(format_args!("{check}: no chromium on the PATH"));
    }
    found
}

#[test]
fn a_browser_draws_the_page_without_errors_and_requests() {
    let Some(binary) = stepscope_binary("the interactive page in a browser") else { return };
    let Some(chromium) = chromium("the interactive page in a browser") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    let logs = dir.path().join("logs");
    logdir(&logs);
    let mut browser = Browser::start(&chromium, &dir.path().join("profile"));
    for (i, path) in fixtures().iter().chain([&logs]).enumerate() {
        let file = dir.path().join(format!("page{i}.html"));
        let data = page(&binary, path, &file, &[]);
        let dom = browser.ready_page(&file);
        assert!(browser.console.is_empty(), "{:?}", browser.console);
        let n_slices = data["traces"][0]["slices"].as_u64().unwrap_or(0);
        assert!(dom.contains(&format!("data-ready=\"{n_slices}\"")), "{}", dom.lines().take(4).collect::<String>());
        assert!(!dom.contains("<img src=\"x\""), "a name became HTML");
        // The policy forbids every request; a refused one would be among the errors.
        assert!(dom.contains("default-src 'none'"));
    }
}
