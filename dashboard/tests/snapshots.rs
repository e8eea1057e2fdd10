//! Every panel in both themes, compared with the pictures in `tests/snapshots`: three real runs (`tests/fixtures`), and
//! digits as vectors. What panels do is tested through the accessibility tree; this reports when they look otherwise.
//!
//! `STEPSCOPE_UPDATE_SNAPSHOTS=1 cargo test -p dashboard --test snapshots` takes the pictures anew: look at each that changed.
#![allow(clippy::unwrap_used)] // a test file

mod support;

use dashboard::{
    Options, Theme,
    sql::engine::{Engine, RowSet, Table, Tables},
};
use egui::{Rect, vec2};
use egui_kittest::kittest::Queryable;
use std::{
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};
use summaries::Pixels;
use support::{Window, picture, writer};
use ui::address::Choice as _;

const SIZE: [f32; 2] = [1120.0, 680.0];

/// The SQL panel with a query.
const SQL: &str = "sql?query=select name, count(*) as n from slices group by name";

/// What says how long something took: that is left out.
const TAKES_TIME: &str = "rows in ";
/// The greatest width of that, points.
const TIME_W: f32 = 200.0;

/// A picture to be taken.
struct Shot {
    name: &'static str,
    paths: Vec<PathBuf>,
    at: &'static str,
    /// What is waited for.
    sign: &'static str,
    act: fn(&mut Window),
}

fn fixtures(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A file of another member's tests.
fn of_member(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn with(shot: Shot, act: fn(&mut Window)) -> Shot {
    Shot { act, ..shot }
}

fn shots(digits: &Path) -> Vec<Shot> {
    let runs = || vec![fixtures("runs")];
    let usual = || vec![fixtures("runs/usual")];
    let nothing: fn(&mut Window) = |_| {};
    let shot = |name: &'static str, paths: Vec<PathBuf>, at: &'static str, sign: &'static str| Shot {
        name,
        paths,
        at,
        sign,
        act: nothing,
    };
    let snapshot =
        |name, at| shot(name, vec![of_member("profiler/dumps/tests/fixtures/gpu_p4.pickle")], at, "reserved in ");
    vec![
        shot("start", Vec::new(), "", "Open usual, run"),
        shot("scalars", runs(), "scalars", "loss: 3 runs"),
        shot("scalars-log", runs(), "scalars?logx=1&log=1&filter=loss", "loss: 3 runs"),
        shot("histograms", usual(), "histograms", "layer1/weights: "),
        shot("distributions", usual(), "histograms?mode=distribution", "layer1/weights: "),
        shot("media", vec![digits.to_owned()], "media", "Image "),
        shot("hyperparameters", runs(), "hparams", "3 of 3 sessions"),
        shot("parallel", runs(), "hparams?mode=parallel", "Parallel coordinates: 3 sessions"),
        shot("embeddings", vec![digits.to_owned()], "embeddings?picked=3", "Nearest to "),
        shot("graph", usual(), "graph", "scope layer1, "),
        shot("graph-health", vec![fixtures("runs/fast")], "graph?colour=Health", "scope layer1, "),
        shot("timeline", usual(), "timeline", "Timeline: "),
        with(shot("range", usual(), "timeline?range=20000000..90000000", "Timeline: "), |window| {
            window.wait_for("MatMul");
        }),
        with(shot("compare", usual(), "timeline", "Timeline: "), |window| window.key(egui::Key::V)),
        shot("ops", usual(), "ops", "MatMul"),
        shot("bottlenecks", usual(), "bottlenecks", "Step times: "),
        shot(
            "modules",
            vec![of_member("profiler/formats/tests/fixtures/torch/step.trace.json.gz")],
            "modules?module=Net_0/Block_2",
            "Fold Net_0/Block_2",
        ),
        shot("memory", usual(), "memory", "Memory of "),
        with(snapshot("memory-snapshot", "memory"), |window| window.wait_for("Memory over time")),
        snapshot("memory-segments", "memory?show=segments"),
        with(shot("sql", usual(), SQL, "SQL query"), |window| {
            window.harness.get_by_label("Run").click();
            window.wait_for("MatMul");
        }),
        with(
            shot("sources", vec![fixtures("runs/usual"), "/nowhere/a-run".into()], "scalars", "/nowhere/a-run: "),
            |window| {
                // The summaries at the top and in the list, and the trace, which is found after them.
                window.wait_for_several("finished", 3);
            },
        ),
        with(shot("settings", usual(), "scalars", "loss: 1 run"), |window| {
            window.ctrl(egui::Modifiers::NONE, egui::Key::Comma);
            window.wait_for("Density: Compact");
        }),
        with(shot("palette", usual(), "scalars", "loss: 1 run"), |window| {
            window.ctrl(egui::Modifiers::NONE, egui::Key::K);
            window.type_text("Command palette", "layer1");
        }),
        with(shot("shortcuts", usual(), "scalars", "loss: 1 run"), |window| window.key(egui::Key::F1)),
    ]
}

/// What the real engine says of the run's slices, as one that is always there.
struct Counted;

impl Engine for Counted {
    fn open(&self, _path: &Path) -> Result<Box<dyn Tables>, String> {
        Ok(Box::new(Self))
    }
}

impl Tables for Counted {
    fn list(&self) -> Vec<Table> {
        let column = |name: &str, kind: &str, unit: &str| [name, kind, unit].map(str::to_owned);
        let columns =
            vec![column("ts_ns", "bigint", "ns"), column("dur_ns", "bigint", "ns"), column("name", "varchar", "")];
        vec![Table { name: "slices".into(), about: "what ran".into(), columns }]
    }

    fn query(&self, _sql: &str, _max_rows: usize) -> Result<RowSet, String> {
        let rows = [("MatMul", "300"), ("Relu", "120"), ("train", "60")].map(|(name, n)| vec![name.into(), n.into()]);
        let (columns, are_numbers) = (vec!["name".into(), "n".into()], vec![false, true]);
        Ok(RowSet { columns, are_numbers, rows: rows.into(), has_more: false })
    }

    fn canceller(&self) -> Arc<dyn Fn() + Send + Sync> {
        Arc::new(|| {})
    }

    fn take_warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// 150 of the 1,797 handwritten digits as vectors, and some of them as images, in a logdir `digits` of a folder that goes away.
fn digits() -> tempfile::TempDir {
    let file = std::fs::File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/../engine/data/digits.csv.gz")).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let (mut vectors, mut labels) = (Vec::new(), Vec::new());
    for line in text.lines().take(150) {
        let (pixels, label) = line.rsplit_once(',').unwrap();
        vectors.extend(pixels.split(',').map(|pixel| pixel.parse::<f32>().unwrap()));
        labels.push(label);
    }
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(&dir.path().join("digits"));
    writer.add_embedding("digits", 64, &vectors, &labels).unwrap();
    for (step, digit) in (0..).zip(vectors.chunks(64).take(3)) {
        let bytes: Vec<u8> = digit.iter().map(|pixel| (pixel * 15.0) as u8).collect();
        writer.add_image("digit", Pixels { width: 8, height: 8, data: &bytes }, step).unwrap();
        writer.add_text(
            "label",
            &format!("The digit is **{}**.\n\n| step | label |\n|---|---|\n| {step} | {0} |", labels[step as usize]),
            step,
        );
    }
    writer.add_pr_curve("quality", &[true, true, false, false], &[0.9, 0.6, 0.65, 0.1], 21, 2);
    writer.close().unwrap();
    dir
}

/// Compares the window at rest with the picture of this name.
fn look(window: &mut Window, name: &str) -> Result<(), String> {
    let mut picture = window.settled();
    for label in window.harness.query_all_by_label_contains(TAKES_TIME) {
        // As wide as any of them: numbers have other widths each time.
        let rect = Rect::from_min_size(label.rect().min, vec2(TIME_W, label.rect().height()));
        let background = picture.rgb[rect.top() as usize * picture.width + rect.left() as usize - 1];
        picture.fill(rect, background);
    }
    picture::check(name, &picture)
}

fn look_the_same(theme: Theme) {
    let (digits, home) = (digits(), tempfile::tempdir().unwrap());
    let recent = r#"{"recent": [{"path": "/data/runs/usual", "kind": "run"}, {"path": "/data/trace.json.gz", "kind": "trace"}]}"#;
    let mut changed = Vec::new();
    for Shot { name, paths, at, sign, act } in shots(&digits.path().join("digits")) {
        let config = home.path().join(format!("{name}.json"));
        std::fs::write(&config, recent).unwrap();
        let has_runs = paths.first().is_some_and(|path| path.starts_with(fixtures("runs")));
        let mut window = Window::sized(SIZE, move || Options {
            paths: paths.clone(),
            at: (!at.is_empty()).then(|| at.parse().unwrap()),
            theme: Some(theme),
            sql: Some(Arc::new(Counted)),
            config: Some(config.clone()),
            ..Options::default()
        });
        window.wait_for(sign);
        if has_runs {
            window.wait_for("finished");
        }
        act(&mut window);
        let name = format!("{name}-{}", theme.title().to_lowercase());
        // What a thread in the background has still to find looks like rest until it gets a processor.
        let begun = events::clock::mono_now();
        let mut change = look(&mut window, &name);
        while change.is_err() && events::clock::mono_now() - begun < 10_000_000_000 {
            change = look(&mut window, &name);
        }
        changed.extend(change.err());
    }
    assert!(changed.is_empty(), "\n{}", changed.join("\n"));
}

#[test]
fn panels_look_the_same_in_the_dark() {
    look_the_same(Theme::Dark);
}

#[test]
fn panels_look_the_same_in_the_light() {
    look_the_same(Theme::Light);
}
