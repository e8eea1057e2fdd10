//! Panels of summaries driven through the accessibility tree, on logdirs that the real writer wrote: what is pinned,
//! compared, filtered, laid out.
#![allow(clippy::unwrap_used)] // a test file

mod support;

use dashboard::{Options, ViewKind};
use egui_kittest::kittest::Queryable;
use formats::plugins::{
    Category, Chart, Layout, MarginChartContent, MultilineChartContent, chart::Content, margin_chart_content,
};
use std::{collections::BTreeMap, path::Path};
use summaries::{HParam, Mesh};
use support::{Window, two_runs, writer};

fn at(dir: &Path, address: &str) -> Window {
    let (path, address) = (dir.to_owned(), address.to_owned());
    Window::with(move || Options {
        paths: vec![path.clone()],
        at: Some(address.parse().unwrap()),
        ..Options::default()
    })
}

#[test]
fn a_pinned_card_comes_first_is_linked_and_is_remembered() {
    let (dir, home) = (two_runs(), tempfile::tempdir().unwrap());
    let (path, config) = (dir.path().to_owned(), home.path().join("window.json"));
    let options = move || Options { paths: vec![path.clone()], config: Some(config.clone()), ..Options::default() };
    let mut window = Window::with(options.clone());
    window.wait_for("loss: 2 runs");
    window.wait();
    window.click("Pin metrics/accuracy");
    window.wait_for("Pinned  (1 tag)");
    window.wait_for("Unpin metrics/accuracy");
    let link = window.copied_by(egui::Key::L).expect("a link");
    assert!(link.contains("pin=metrics/accuracy"), "{link}");
    window.wait();
    window.ctrl(egui::Modifiers::NONE, egui::Key::Z);
    window.wait();
    assert!(!window.shows("Pinned"), "undone");
    drop(window);
    let mut again = Window::with(options);
    again.wait_for("Pinned  (1 tag)");
}

#[test]
fn a_range_of_steps_is_a_table_that_sorts_and_copies() {
    let dir = two_runs();
    let mut window = at(dir.path(), "scalars?filter=loss&range=9..49");
    window.wait_for("Steps 9 to 49: 2 rows");
    // 1 / 10 to 1 / 50: -80 %.
    window.wait_for("-80.00 %");
    assert!(window.shows("0.1000") && window.shows("0.02000") && window.shows("0.2000"));
    window.click("Sort by Start");
    window.wait_for("Sort by Start, sorted, highest first");
    window.harness.get_by_label("Copy as CSV").click();
    window.harness.step();
    let copied = window.copied().expect("a table");
    let lines: Vec<&str> = copied.lines().collect();
    assert_eq!(lines[0], "tag,run,first_step,last_step,start,end,change,min,max,mean,points");
    assert!(lines[1].starts_with("loss,eval,9,49,0.2") && lines[2].starts_with("loss,train,9,49,0.1"), "{copied}");
    assert!(lines[1].ends_with(",41"));
}

#[test]
fn another_tag_as_axis_and_groups_as_bands() {
    let dir = tempfile::tempdir().unwrap();
    for (seed, factor) in [(1, 1.0_f32), (2, 3.0)] {
        let writer = writer(&dir.path().join(format!("mlp-{seed}")));
        for step in 0..50_i64 {
            writer.add_scalar("loss", factor, step);
            writer.add_scalar("rate", 0.1 / (1.0 + step as f32), step);
        }
        writer.close().unwrap();
    }
    let mut window = at(dir.path(), "scalars?filter=loss&xtag=rate&group=(mlp)&smoothing=0");
    window.wait_for("loss against rate: 2 runs, 100 points");
    window.wait_for("group mlp: 2 runs, mean at the end 2");
    window.harness.get_by_label("x axis: rate");
    // The axis that is lit already, unless a tag is the axis.
    window.click("x axis: Step");
    window.wait_for("loss: 2 runs, 100 points");
}

#[test]
fn custom_layouts_with_several_tags_and_margins() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    for step in 0..10_i64 {
        for (tag, value) in [("loss/train", 1.0), ("loss/test", 2.0), ("low", 0.5), ("high", 1.5)] {
            writer.add_scalar(tag, value, step);
        }
    }
    let lines = MultilineChartContent { tag: vec!["loss/.*".into()] };
    let margin = margin_chart_content::Series { value: "loss/train".into(), lower: "low".into(), upper: "high".into() };
    let charts =
        [("Both", Content::Multiline(lines)), ("Margin", Content::Margin(MarginChartContent { series: vec![margin] }))];
    let chart = charts.map(|(title, content)| Chart { title: title.into(), content: Some(content) }).to_vec();
    writer
        .add_layout(&Layout { version: 0, category: vec![Category { title: "Losses".into(), chart, closed: false }] });
    writer.close().unwrap();
    let mut window = Window::open(&[dir.path().to_owned()]);
    window.wait_for("loss/train: 1 run");
    window.wait_for("Custom layout");
    window.click("Custom layout");
    window.wait_for("Losses  (2 tags)");
    window.wait_for("Both: 2 runs, 20 points");
    window.wait_for("Margin: 1 run, 10 points");
    assert!(!window.shows("loss/test: 1 run"));
}

fn three_sessions() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (i, (rate, optimizer)) in [(0.1, "sgd"), (0.01, "adam"), (0.001, "adam")].into_iter().enumerate() {
        let writer = writer(&dir.path().join(format!("run{i}")));
        let hparams = BTreeMap::from([
            ("rate".to_owned(), HParam::Number(rate)),
            ("optimizer".to_owned(), HParam::Text(optimizer.into())),
        ]);
        writer.add_hparams(&hparams, &["accuracy"]);
        for step in 0..5_i64 {
            writer.add_scalar("accuracy", (i as f32 + 1.0) / 10.0 * step as f32, step);
        }
        writer.end_session(true);
        writer.close().unwrap();
    }
    dir
}

#[test]
fn sessions_are_filtered_sorted_and_picked() {
    let dir = three_sessions();
    let mut window = at(dir.path(), "hparams?sort=m:accuracy&descending=1");
    window.wait_for("3 of 3 sessions");
    assert!(window.shows("0.8") && window.shows("success"), "the newest accuracy of run1");
    window.wait_for("Sort by accuracy, sorted, highest first");
    window.click("optimizer is sgd");
    window.wait_for("2 of 3 sessions");
    window.click("Metrics: Min");
    window.wait();
    assert!(!window.shows("0.8"));
    let link = window.copied_by(egui::Key::L).expect("a link");
    assert!(link.contains("without=") && link.contains("metric=Min"), "{link}");
    window.click("Show only these runs");
    window.key(egui::Key::Num1);
    window.wait_for("accuracy: 2 runs");
}

#[test]
fn sessions_as_parallel_coordinates_and_points() {
    let dir = three_sessions();
    let mut window = at(dir.path(), "hparams?mode=parallel&color=m:accuracy");
    window.wait_for("Parallel coordinates: 3 sessions on 3 axes");
    window.click("Scale of rate: log");
    window.wait_for("Scale of rate: quantile");
    window.click("Show: Scatter plot");
    window.wait_for("accuracy against optimizer: 3 sessions");
    window.wait_for("Colours of accuracy: 0.");
    window.click("Show: Scatter matrix");
    window.wait_for("rate against accuracy: 3 sessions");
    // A filter of an address is in force.
    let mut narrow = at(dir.path(), "hparams?mode=scatter&x=h:rate&y=m:accuracy&range=%5B%22h:rate%22,0,0.05%5D");
    narrow.wait_for("accuracy against rate: 2 sessions");
}

#[test]
fn precision_and_recall_of_all_runs_on_one_card() {
    let dir = tempfile::tempdir().unwrap();
    for run in ["a", "b"] {
        let writer = writer(&dir.path().join(run));
        let (labels, predictions) = ([true, true, false, false], [0.9, 0.6, 0.4, 0.1]);
        for step in 0..3 {
            writer.add_pr_curve("quality", &labels, &predictions, 11, step);
        }
        writer.close().unwrap();
    }
    let mut window = at(dir.path(), "media");
    window.wait_for("Precision over recall of quality: 2 runs, a area ");
    assert!(window.shows("pr_curves · step 2"));
    window.harness.get_by_label("Step of quality").focus();
    window.key(egui::Key::ArrowLeft);
    window.wait_for("pr_curves · step 1");
}

#[test]
fn steps_of_all_cards_are_linked() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    for step in 0..3 {
        writer.add_text("a", &format!("first {step}"), step);
        writer.add_text("b", &format!("second {step}"), step);
    }
    writer.close().unwrap();
    let mut window = at(dir.path(), "media?linked=1");
    window.wait_for("second 2");
    window.harness.get_by_label("Step of a").focus();
    window.harness.run_ok();
    window.key(egui::Key::ArrowLeft);
    window.key(egui::Key::ArrowLeft);
    window.wait_for("first 0");
    window.wait_for("second 0");
}

#[test]
fn texts_are_markdown_and_tables_are_tables() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    writer.add_text("note", "# Title\n\nsome *light* and `code`\n\n| a | b |\n|---|---|\n| 1 | 2 |", 0);
    writer.add_text_table("table", 2, &["**left**", "right", "below", "end"], 0).unwrap();
    writer.close().unwrap();
    let mut window = at(dir.path(), "media");
    window.wait_for("Title");
    window.wait_for("left");
    assert!(window.shows("right") && window.shows("below"));
    assert!(!window.shows("# Title") && !window.shows("**left**") && !window.shows("|---|"));
}

/// Headings have sizes, bold words are painted twice, code is copied; and nothing of it is a box, whatever letters are used.
#[test]
fn texts_look_as_they_are_meant_to() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    let text = "# Title\n\n## Less\n\nplain **strong** [here](http://x/y)\n\n- one\n- [x] two\n\n> said\n\n```\nlet x = 1;\n```\n\n---";
    writer.add_text("note", text, 0);
    writer.close().unwrap();
    let mut window = at(dir.path(), "media");
    window.wait_for("plain strong here");
    window.harness.ctx.set_missing_glyph_policy(egui::epaint::text::MissingGlyphPolicy::Panic);
    window.wait();
    let height = |label: &str| window.harness.get_by_label(label).rect().height();
    let body = height("plain strong here");
    assert!(height("Title") > 1.15 * height("Less") && height("Less") > 1.25 * body && body > 10.0);
    let shapes = &window.harness.output().shapes;
    let painted = |what: &str| {
        let is_it = |shape: &&egui::epaint::ClippedShape| match &shape.shape {
            egui::Shape::Text(text) => text.galley.text() == what,
            _ => false,
        };
        shapes.iter().filter(is_it).count()
    };
    assert_eq!((painted("plain strong here"), painted("Title"), painted("said")), (2, 2, 1));
    assert!(window.shows("[x] two") && window.shows("said"));
    window.harness.get_by_label("Copy").click();
    let mut copied = None;
    for _ in 0..4 {
        window.harness.step();
        copied = copied.or(window.copied());
    }
    assert_eq!(copied.as_deref(), Some("let x = 1;"));
    assert!(window.shows("Copied"));
}

#[test]
fn sounds_have_a_curve_and_are_saved() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    let samples: Vec<f32> = (0..8000).map(|i| (i as f32 * 0.05).sin()).collect();
    writer.add_audio("tone", &samples, 1, 8000, 0).unwrap();
    writer.close().unwrap();
    let mut window = at(dir.path(), "media");
    window.wait_for("Sound tone: 1.00 s");
    assert!(window.shows("8,000 Hz · 1 channel"));
    window.click("Save");
    let path = dir.path().join("out.wav");
    window.save_to(&path);
    assert!(std::fs::read(&path).unwrap().starts_with(b"RIFF"));
}

#[test]
fn meshes_are_one_card_of_their_parts() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    let vertices = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    let faces = [[0, 1, 2], [0, 2, 3]];
    writer.add_mesh("shape", Mesh { vertices: &vertices, faces: &faces, colors: &[[255, 0, 0]; 4] }, 3);
    writer.close().unwrap();
    let mut window = at(dir.path(), "media");
    window.wait_for("Mesh shape: 4 vertices, 2 faces");
    assert!(!window.shows("shape_FACE") && !window.shows("shape_COLOR"));
}

/// What `tests/scripts/mesh_fixtures.py` wrote.
#[test]
fn meshes_of_every_writer_have_all_their_parts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/meshes");
    let nothing = "nothing to draw: the run has no vertices of this mesh at this step";
    for (run, expected) in [
        (
            "by_tensorboardx",
            ["Mesh solid: 4 vertices, 4 faces, 4 colours", "Mesh cloud: 4 vertices, 0 faces, 4 colours"],
        ),
        ("by_tensorboard_2", ["Mesh solid: 4 vertices, 4 faces, 4 colours", "mesh · step 4"]),
        (
            "by_tensorboard_1",
            ["Mesh solid: 4 vertices, 4 faces, 4 colours", "Mesh cloud: 4 vertices, 0 faces, 4 colours"],
        ),
        ("without_vertices", ["Mesh solid: 0 vertices, 0 faces", nothing]),
    ] {
        let mut window = at(&root.join(run), "media");
        for label in expected {
            window.wait_for(label);
        }
        assert!(!window.shows("(2 tags)") && !window.shows("(3 tags)"), "{run}: a part has a card of its own");
    }
    // A part that the filter leaves out belongs to its mesh all the same; who wrote it stands next to the name.
    let mut window = at(&root, "media?filter=FACE|COLOR|_3");
    window.wait_for("Mesh solid · by_tensorboardx: 4 vertices, 4 faces, 4 colours");
    window.wait_for("Mesh solid · by_tensorboard_2: 4 vertices, 4 faces, 4 colours");
}

/// What `tests/scripts/graph_summary_fixtures.py` wrote; `summaries/tests/graphs.rs` compares the graphs with TensorBoard's.
#[test]
fn graphs_and_profiles_of_keras_and_tensorflow_2_are_shown() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../summaries/tests/fixtures/graphs");
    let mut window = at(&root.join("models/branches"), "graph");
    window.wait_for("6 nodes, 6 edges");
    window.wait_for("node branches/joined, Concatenate");
    let mut window = at(&root.join("functions"), "graph?graph=functions · two");
    window.wait_for("Graph: functions · two");
    window.wait_for("scope graph_1");
    window.click(ViewKind::Timeline.title());
    window.wait_for("TensorFlow");
    window.click(ViewKind::Media.title());
    window.wait_for("No images or texts yet");
}

#[test]
fn an_embedding_is_laid_out_searched_and_has_neighbours() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    let labels: Vec<String> = (0..60).map(|i| format!("{}{i}", ["cat", "dog", "owl"][i % 3])).collect();
    let vectors: Vec<f32> = (0..60)
        .flat_map(|i| (0..5).map(move |d| if d == i % 3 { 10.0 } else { (i * (d + 1) % 7) as f32 / 7.0 }))
        .collect();
    let texts: Vec<&str> = labels.iter().map(String::as_str).collect();
    writer.add_embedding("animals", 5, &vectors, &texts).unwrap();
    writer.add_scalar("loss", 1.0, 0);
    writer.close().unwrap();
    let mut window = at(dir.path(), "embeddings?picked=3");
    window.wait_for("Embedding by PCA: 60 vectors, picked cat3");
    window.wait_for("Variance explained: ");
    window.wait_for("Nearest to cat3");
    assert!(window.shows("Vector cat") && !window.shows("Vector dog"), "its neighbours are its kind");
    for (method, name) in [("t-SNE", "Method: t-SNE"), ("UMAP", "Method: UMAP")] {
        window.click(name);
        window.wait_for(&format!("Embedding by {method}: 60 vectors"));
    }
    window.click("Method: PCA");
    // What it says of itself moves the field below.
    window.wait_for("Embedding by PCA: 60 vectors");
    window.wait_for("Variance explained: ");
    window.type_text("Find vectors (regex)", "owl5");
    window.wait_for("5 vectors");
    window.wait_for("Vector owl59");
}

#[test]
fn embeddings_along_axes_between_words_and_as_images() {
    let dir = tempfile::tempdir().unwrap();
    let vectors: Vec<f32> = (0..8).flat_map(|i| [i as f32, (i % 2) as f32, 0.5]).collect();
    let labels = ["low a", "low b", "low a", "low b", "high a", "high b", "high a", "high b"];
    let writer = writer(dir.path());
    writer.add_embedding("words", 3, &vectors, &labels).unwrap();
    writer.close().unwrap();
    // Four images of 2 x 2 pixels in a row, for eight vectors: half of them have none.
    let mut sheet = Vec::new();
    let mut encoder = png::Encoder::new(&mut sheet, 8, 2);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.write_header().unwrap().write_image_data(&[128; 16]).unwrap();
    std::fs::write(dir.path().join("words/sheet.png"), sheet).unwrap();
    let config = dir.path().join("projector_config.pbtxt");
    let text = std::fs::read_to_string(&config).unwrap();
    let sprite = " sprite { image_path: \"words/sheet.png\" single_image_dim: 2 single_image_dim: 2 }";
    let (inside, end) = text.split_at(text.rfind('}').unwrap());
    std::fs::write(&config, format!("{inside}{sprite}{end}")).unwrap();

    let mut window = at(dir.path(), "embeddings");
    window.wait_for("Embedding by PCA: 8 vectors, 4 of them as images");
    window.click("Images");
    window.wait();
    assert!(!window.shows("as images"));
    window.click("Method: Axes");
    for (end, words) in [("left", "^low"), ("right", "^high"), ("below", "a$"), ("above", "b$")] {
        window.type_text(&format!("Vectors {end}"), words);
    }
    window.wait_for("Embedding by Axes: 8 vectors");
    window.wait();
    let link = window.copied_by(egui::Key::L).expect("a link");
    assert!(link.contains("method=axes") && link.matches("end=").count() == 4, "{link}");
}

#[test]
fn images_are_brighter_and_closer() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    let pixels = summaries::Pixels { width: 64, height: 32, data: &[9; 2048] };
    writer.add_image("grey", pixels, 0).unwrap();
    writer.close().unwrap();
    let mut window = at(dir.path(), "media?brightness=250&contrast=50");
    let label = "Image grey: 64 x 32 pixels";
    window.wait_for(label);
    let at = window.harness.get_by_label(label).rect().center();
    window.harness.event(egui::Event::PointerMoved(at));
    window.wait_for("x 32, y 16: 9");
    window.harness.event(egui::Event::Zoom(2.0));
    window.wait_for("times as large");
    window.click("Reset");
    let link = window.copied_by(egui::Key::L).expect("a link");
    assert!(!link.contains("brightness"), "{link}");
}

#[test]
fn panels_without_data_say_what_is_missing() {
    let dir = two_runs();
    let mut window = Window::open(&[dir.path().to_owned()]);
    window.wait_for("loss: 2 runs");
    for (kind, text) in [(ViewKind::HParams, "No hyperparameters yet"), (ViewKind::Embeddings, "No embeddings yet")] {
        window.click(kind.title());
        window.wait_for(text);
    }
}
