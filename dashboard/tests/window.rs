//! The window's contents driven through the accessibility tree, on logdirs that the real writer wrote.

#[path = "window/room.rs"]
mod room;
mod support;

use dashboard::{OpenRemote, Options, RemoteSource};
use egui_kittest::kittest::Queryable;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};
use summaries::{Bucket, Pixels};
use support::{Window, two_runs, writer};
use ui::theme::SystemFonts;

#[test]
fn curves_and_last_values_of_a_logdir() {
    let dir = two_runs();
    let mut window = Window::open(&[dir.path().to_owned()]);
    window.wait_for("loss: 2 runs, 200 points, last");
    assert!(window.shows("at step 99"));
    assert!(window.shows("metrics/accuracy: 2 runs, 200 points, last 0.5000 at step 99"));
    assert!(window.shows("0.01000") && window.shows("0.02000"), "last values in the card's title");
    window.click("Run eval");
    window.wait_for("loss: 1 run, 100 points, last 0.01000 at step 99");
}

#[test]
fn a_live_run_grows() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    writer.add_scalar("loss", 1.0, 0);
    writer.flush().unwrap();
    let mut window = Window::open(&[dir.path().to_owned()]);
    window.wait_for("loss: 1 run, 1 point, last 1 at step 0");
    writer.add_scalar("loss", 0.25, 1);
    writer.flush().unwrap();
    window.wait_for("loss: 1 run, 2 points, last 0.2500 at step 1");
    window.wait_for("live");
}

#[test]
fn tabs_switch_by_key_and_click() {
    let dir = two_runs();
    let mut window = Window::open(&[dir.path().to_owned()]);
    window.wait_for("loss: 2 runs");
    window.key(egui::Key::Num2);
    assert!(window.shows("No histograms yet"));
    window.key(egui::Key::Num3);
    assert!(window.shows("No graph yet"));
    window.click("Scalars");
    assert!(window.shows("loss: 2 runs"));
}

/// Bands of quantiles over steps; a histogram of nothing has none.
#[test]
fn distributions_of_a_logdir() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    let bucket = |left, right, count| Bucket { left, right, count };
    for step in 0..5 {
        let low = f64::from(step);
        let values = [bucket(low, low + 10.0, 30.0), bucket(low + 10.0, low + 20.0, 10.0)];
        writer.add_histogram_buckets("weights", &values, i64::from(step));
    }
    writer.add_histogram_buckets("nothing", &[], 0);
    writer.close().unwrap();
    let mut window = Window::open(&[dir.path().to_owned()]);
    window.wait_for("Histograms");
    window.wait();
    window.key(egui::Key::Num2);
    window.wait_for("weights: 5 histograms, last at step 4, from 4 to 24");
    assert!(!window.shows("half of the values"));
    window.click("Mode: Distribution");
    // 20 of 40 values are below two thirds of the first bucket's 30.
    window.wait_for("weights: 5 histograms, last at step 4, from 4 to 24, half of the values below 10.67");
    assert!(window.shows("nothing: 1 histogram"));
    assert!(!window.shows("NaN"));
}

/// Images and texts are read when they are shown; the newest first, older ones by the slider.
#[test]
fn media_of_a_logdir() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    for step in 0..3 {
        writer.add_text("note", &format!("said at {step}"), step);
    }
    writer.add_image("dot", Pixels { width: 2, height: 1, data: &[0, 255] }, 7).unwrap();
    writer.close().unwrap();
    let mut window = Window::open(&[dir.path().to_owned()]);
    window.wait_for("Media");
    window.harness.step();
    window.key(egui::Key::Num6);
    window.wait_for("said at 2");
    assert!(window.shows("text · step 2") && window.shows("images · step 7"));
    window.wait_for("Image dot: 2 x 1 pixels");
    window.harness.get_by_label("Step of note").focus();
    window.key(egui::Key::ArrowLeft);
    window.wait_for("said at 1");
}

/// 0 shows all of a graph: it is no panel's key.
#[test]
fn the_key_for_everything_leaves_the_panel() {
    let dir = tempfile::tempdir().unwrap();
    let node = formats::proto::NodeDef { name: "x".into(), op: "Placeholder".into(), ..Default::default() };
    let def = formats::proto::GraphDef { node: vec![node], ..Default::default() };
    let path = dir.path().join("graph.pb");
    std::fs::write(&path, prost::Message::encode_to_vec(&def)).unwrap();
    let mut window = Window::open(&[path]);
    window.wait_for("node x, Placeholder");
    for key in [egui::Key::Num0, egui::Key::F] {
        window.key(key);
        window.wait();
        assert!(window.shows("node x, Placeholder"), "{key:?}");
    }
    window.key(egui::Key::Num9);
    assert!(window.shows("No embeddings yet"));
}

#[test]
fn what_cannot_be_opened_is_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let foreign = dir.path().join("picture.png");
    std::fs::write(&foreign, b"\x89PNG\r\n\x1a\n0000000000000000").unwrap();
    let missing = dir.path().join("missing");
    let mut window = Window::open(&[foreign, missing]);
    window.wait_for("picture.png: not an event file, graph or trace (looks like");
    window.wait_for("missing: File not found");
    assert!(window.shows("Open a file or folder… (Ctrl+O)"), "the start screen stays");
}

/// A memory snapshot is recognised by its content, whatever its name. Half of one has what it has, with warnings.
#[test]
fn a_memory_snapshot_opens_in_its_panel() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../profiler/dumps/tests/fixtures/gpu_p4.pickle");
    let dir = tempfile::tempdir().unwrap();
    let [named, half, other] = ["snapshot", "half.pickle", "other.pickle"].map(|name| dir.path().join(name));
    std::fs::copy(&file, &named).unwrap();
    let mut window = Window::open(&[named]);
    window.wait_for("Memory over time: peak ");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&half, &bytes[..bytes.len() / 2]).unwrap();
    let mut window = Window::open(&[half]);
    window.wait_for("Memory over time: peak ");
    window.wait_for(" warning");
    std::fs::write(&other, b"\x80\x04\x8c\x08segments\x94.").unwrap();
    let mut window = Window::open(&[other]);
    window.wait_for("other.pickle: the file is no memory snapshot");
    assert!(window.shows("Open a file or folder… (Ctrl+O)"), "the start screen stays");
}

#[test]
fn damage_is_counted_in_the_badge_and_told_in_the_window() {
    let dir = two_runs();
    let run = dir.path().join("train");
    let file = std::fs::read_dir(&run).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&file, bytes).unwrap();
    let mut window = Window::open(&[dir.path().to_owned()]);
    window.wait_for("1 warning");
    window.harness.get_by_label("1 warning").click();
    window.wait_for("skipped bytes");
}

#[test]
fn shortcuts_and_open_dialog() {
    let mut window = Window::open(&[]);
    window.wait_for("Drop files or folders here");
    window.key(egui::Key::F1);
    window.wait_for("Switch between dark, light and the desktop's theme");
    window.key(egui::Key::Escape);
    assert!(!window.shows("Switch between dark, light and the desktop's theme"));
    window.harness.get_by_label("Open (Ctrl+O)").click();
    window.wait_for("Path to open");
}

/// A palette in which nothing is found goes by Escape.
fn palette_closes(window: &mut Window) {
    window.ctrl(egui::Modifiers::NONE, egui::Key::K);
    window.type_text("Command palette", "zzzz");
    window.wait_for("No matches");
    window.key(egui::Key::Escape);
    assert!(!window.shows("No matches"));
}

#[test]
fn the_palette_finds_commands_and_names() {
    let dir = two_runs();
    let mut window = Window::open(&[dir.path().to_owned()]);
    window.wait_for("loss: 2 runs");
    window.ctrl(egui::Modifiers::NONE, egui::Key::K);
    window.wait_for("Window: Go to Graph (3)");
    window.type_text("Command palette", "togr");
    window.wait_for("Window: Go to Graph");
    window.key(egui::Key::Enter);
    assert!(window.shows("No graph yet"));
    window.ctrl(egui::Modifiers::SHIFT, egui::Key::P);
    window.type_text("Command palette", "metacc");
    window.wait_for("tag: metrics/accuracy");
    window.key(egui::Key::Enter);
    window.wait_for("metrics/accuracy: 2 runs");
    palette_closes(&mut window);
}

/// The timeline behind takes Escape too, when nothing is before it.
#[test]
fn escape_closes_the_palette_over_the_timeline() {
    let run = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/runs/usual");
    let mut window = Window::open(&[run]);
    window.wait_for("Timeline");
    window.wait();
    window.key(egui::Key::Num4);
    window.wait_for("Timeline: ");
    palette_closes(&mut window);
}

#[test]
fn views_are_undone_and_linked() {
    let dir = two_runs();
    let paths = vec![dir.path().to_owned()];
    let mut window = Window::open(&paths);
    window.wait_for("loss: 2 runs");
    window.wait();
    window.type_text("Filter tags (regex)", "loss");
    window.wait();
    assert!(!window.shows("metrics/accuracy: 2 runs"));
    window.key(egui::Key::Escape);
    let link = window.copied_by(egui::Key::L).expect("a link");
    let at = link.split("--at ").nth(1).unwrap().trim_matches('\'').to_owned();
    assert_eq!(at, "scalars?filter=loss");
    window.click("Scalars");
    window.ctrl(egui::Modifiers::NONE, egui::Key::Z);
    window.wait_for("metrics/accuracy: 2 runs");
    window.wait();
    window.ctrl(egui::Modifiers::SHIFT, egui::Key::Z);
    window.wait();
    assert!(!window.shows("metrics/accuracy: 2 runs"));

    let mut linked = Window::with(move || Options {
        paths: paths.clone(),
        at: Some(at.parse().expect("a window wrote it")),
        ..Options::default()
    });
    linked.wait_for("loss: 2 runs");
    linked.wait();
    assert!(!linked.shows("metrics/accuracy: 2 runs"));
}

#[test]
fn settings_recent_paths_and_layouts_are_remembered() {
    let (dir, home) = (two_runs(), tempfile::tempdir().unwrap());
    let config = home.path().join("window.json");
    let path = dir.path().to_owned();
    let options = {
        let config = config.clone();
        move |paths: Vec<PathBuf>| Options { paths, config: Some(config.clone()), ..Options::default() }
    };
    let first = options.clone();
    let with_path = path.clone();
    let mut window = Window::with(move || first(vec![with_path.clone()]));
    window.wait_for("loss: 2 runs");
    window.key(egui::Key::Num5);
    window.ctrl(egui::Modifiers::NONE, egui::Key::Comma);
    window.click("Theme: Light");
    window.click("Density: Compact");
    drop(window);
    let written = std::fs::read_to_string(&config).expect("written when the window closes");
    assert!(written.contains("\"Light\"") && written.contains("\"Compact\""), "{written}");

    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let mut again = Window::with(move || options(Vec::new()));
    again.wait_for(&format!("Open {name}, summaries"));
    again.harness.get_by_label_contains(&format!("Open {name}, summaries")).click();
    again.wait_for("loss: 2 runs");
}

#[test]
fn panels_are_saved_as_tables_and_vectors() {
    let (dir, out) = (two_runs(), tempfile::tempdir().unwrap());
    let mut window = Window::open(&[dir.path().to_owned()]);
    window.wait_for("loss: 2 runs");
    for (command, file, begin) in
        [("save csv", "t.csv", "run,tag,step,wall_time,value\n"), ("save svg", "t.svg", "<svg xmlns")]
    {
        let path = out.path().join(file);
        window.ctrl(egui::Modifiers::NONE, egui::Key::K);
        window.type_text("Command palette", command);
        window.key(egui::Key::Enter);
        window.save_to(&path);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(begin), "{}", &text[..80]);
        if file == "t.csv" {
            assert_eq!(text.lines().count(), 1 + 2 * 2 * 100);
        }
    }
}

/// All words that the last frame painted.
fn painted(window: &Window) -> Vec<String> {
    fn texts(shape: &egui::Shape, out: &mut Vec<String>) {
        match shape {
            egui::Shape::Vec(all) => all.iter().for_each(|shape| texts(shape, out)),
            egui::Shape::Text(text) => out.push(text.galley.text().to_owned()),
            _ => {}
        }
    }
    let mut out = Vec::new();
    window.harness.output().shapes.iter().for_each(|shape| texts(&shape.shape, &mut out));
    out
}

#[test]
fn a_picture_has_the_panel_alone() {
    let (dir, out) = (two_runs(), tempfile::tempdir().unwrap());
    let mut window = Window::open(&[dir.path().to_owned()]);
    window.wait_for("loss: 2 runs");
    let chart = window.harness.get_by_label_contains("loss: 2 runs").rect();
    // In counted frames: after five seconds of them the notice is gone.
    assert!(window.copied_by(egui::Key::L).is_some());
    window.harness.key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::K);
    window.harness.run_steps(3);
    window.harness.get_by_label("Command palette").type_text("save png");
    window.harness.run_steps(3);
    window.harness.hover_at(chart.center());
    window.harness.key_press(egui::Key::Enter);
    let before = painted(&window);
    let asked = |window: &Window| {
        let commands = window.harness.output().viewport_output.values().flat_map(|viewport| &viewport.commands);
        let mut pictures = commands.filter_map(|command| match command {
            egui::ViewportCommand::Screenshot(callback) => Some(callback.clone()),
            _ => None,
        });
        pictures.next()
    };
    let mut picture = None;
    for _ in 0..20 {
        window.harness.step();
        picture = asked(&window);
        if picture.is_some() {
            break;
        }
    }
    let has = |texts: &[String], what: &str| texts.iter().any(|text| text.contains(what));
    let notice = "Copied: a command that opens this view";
    assert!(has(&before, notice), "the notice is there until then: {before:?}");
    let alone = painted(&window);
    assert!(
        has(&alone, "loss") && !has(&alone, notice) && !has(&alone, "Relative\n") && !has(&alone, "Save the panel"),
        "{alone:?}"
    );
    assert!(alone.len() < before.len());
    let size = [1280, 800];
    let image = egui::ColorImage::new(size, vec![egui::Color32::GOLD; size[0] * size[1]]);
    picture.expect("a picture is asked for").complete(Arc::new(image));
    let path = out.path().join("panel.png");
    window.save_to(&path);
    assert!(std::fs::read(&path).unwrap().starts_with(b"\x89PNG"));
}

/// Letters that the window's own fonts lack come from the system's; what these lack is a warning.
#[test]
fn what_no_font_has_is_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    for tag in ["∀", "日本"] {
        writer.add_scalar(tag, 1.0, 0);
    }
    writer.close().unwrap();
    let mut window = Window::open(&[dir.path().to_owned()]);
    window.harness.step();
    // Of the window's fonts the one with letters of one width has signs of logic, the other one has not.
    let hack = egui::FontData::clone(&egui::FontDefinitions::default().font_data["Hack"]);
    let system = move |request: &egui::FallbackRequest<'_>| {
        let found = request.cluster == "∀";
        found.then(|| egui::FontInsert::new("system:Hack", hack.clone(), Vec::new()))
    };
    let fonts = SystemFonts::install_from(&window.harness.ctx, move || Arc::new(system));
    window.harness.state_mut().as_mut().expect("after a frame").set_fonts(fonts);
    window.wait_for("日本: 1 run");
    window.wait_for("1 warning");
    window.harness.get_by_label("1 warning").click();
    window.wait_for("No font of this system has the letters U+65E5, U+672C: they are shown as boxes.");
    let body = egui::FontId::proportional(12.0);
    let has_sign = |window: &Window| window.harness.ctx.fonts_mut(|fonts| fonts.has_glyph(&body, '∀'));
    window.wait_until("a letter that a font of the system has", |window| has_sign(window));
}

#[test]
fn a_card_is_saved_by_keyboard() {
    let (dir, out) = (two_runs(), tempfile::tempdir().unwrap());
    let mut window = Window::open(&[dir.path().to_owned()]);
    window.wait_for("loss: 2 runs");
    for name in ["Save loss", "Save this card as SVG"] {
        window.wait_for(name);
        window.harness.get_by_label(name).focus();
        window.key(egui::Key::Enter);
    }
    let path = out.path().join("card.svg");
    window.save_to(&path);
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("<svg xmlns"));
}

#[test]
fn the_open_dialog_walks_folders() {
    let dir = two_runs();
    let mut window = Window::open(&[]);
    window.wait_for("Drop files or folders here");
    window.ctrl(egui::Modifiers::NONE, egui::Key::O);
    window.replace_text("Path to open", &format!("{}/", dir.path().display()));
    window.wait_for("train, logdir");
    window.harness.get_by_label("train, logdir").click();
    window.wait_for("events.out.tfevents");
    window.harness.get_by_label("Open").click();
    window.wait_for("loss: 1 run");
}

#[test]
fn what_appears_at_a_url_shows_without_opening_it_again() {
    let (dir, later) = (two_runs(), tempfile::tempdir().unwrap());
    let writer = writer(later.path());
    writer.add_scalar("late", 1.0, 0);
    writer.close().unwrap();
    let (first, second) = (dir.path().to_owned(), later.path().to_owned());
    let is_there = Arc::new(AtomicBool::new(false));
    let appeared = is_there.clone();
    let mut window = Window::with(move || {
        let (first, second, appeared) = (first.clone(), second.clone(), appeared.clone());
        let open_remote = move |url: &str| {
            let (sender, found) = mpsc::channel();
            sender.send((url.to_owned(), RemoteSource::Logdir(first.clone()))).expect("the other end is here");
            let (second, appeared, later) = (second.clone(), appeared.clone(), format!("{url}/later"));
            std::thread::spawn(move || {
                while !appeared.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                // The window may have closed.
                let _ = sender.send((later, RemoteSource::Logdir(second)));
            });
            Ok(found)
        };
        let open_remote: OpenRemote = Arc::new(open_remote);
        Options { paths: vec!["ssh://there/runs".into()], open_remote: Some(open_remote), ..Options::default() }
    });
    window.wait_for("loss: 2 runs");
    assert!(!window.shows("late: 1 run"));
    is_there.store(true, Ordering::Relaxed);
    window.wait_for("late: 1 run");
}

/// A folder with a graph before and after a pass, and one that is cut off: two to compare, and a warning.
#[test]
fn traces_of_a_folder_are_one() {
    let dir = tempfile::tempdir().unwrap();
    for rank in 0..2 {
        let slice = r#"{"ph":"X","pid":7,"tid":1,"ts":10,"dur":5,"name":"aten::mm"}"#;
        let text = format!(r#"{{"distributedInfo":{{"rank":{rank}}},"traceEvents":[{slice}]}}"#);
        std::fs::write(dir.path().join(format!("rank{rank}.pt.trace.json")), text).unwrap();
    }
    assert!(dashboard::loader::opens_whole(dir.path()));
    let mut window = Window::open(&[dir.path().to_owned()]);
    window.key(egui::Key::Num4);
    window.wait_for("Timeline: 2 tracks, 2 slices");
}

#[test]
fn what_profilers_leave_in_a_logdir_shows_beside_its_runs() {
    let dir = tempfile::tempdir().unwrap();
    writer(dir.path()).close().unwrap();
    let slice = r#"{"ph":"X","pid":7,"tid":1,"ts":10,"dur":5,"name":"aten::mm"}"#;
    let long_ago = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let settle = |path: &Path| std::fs::File::open(path).unwrap().set_modified(long_ago).unwrap();
    for (path, n) in [
        ("plugins/profile/2026_01_02/host.trace.json", 1),
        ("plugins/profile/2026_01_03/host.trace.json", 2),
        ("host_7.1621401187223005.pt.trace.json", 3),
        ("host_7.1621401190000000.pt.trace.json", 4),
    ] {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!(r#"{{"traceEvents":[{}]}}"#, vec![slice; n].join(","))).unwrap();
        settle(&path);
        settle(path.parent().unwrap());
    }
    let mut window = Window::open(&[dir.path().to_owned()]);
    window.key(egui::Key::Num4);
    // The choice of a trace is there once there are two.
    let choice = |window: &Window| window.harness.query_by_role_and_label(egui::Role::ComboBox, "Trace").is_some();
    window.wait_until("a choice of a trace", choice);
    window.harness.get_by_role_and_label(egui::Role::ComboBox, "Trace").click();
    for name in ["2026_01_02", "2026_01_03", "host_7.1621401187223005", "host_7.1621401190000000"] {
        window.wait_for(name);
    }
}

#[test]
fn graphs_of_a_folder_are_compared() {
    let dir = tempfile::tempdir().unwrap();
    let node = |name: &str, op: &str, input: &[&str]| formats::proto::NodeDef {
        name: name.into(),
        op: op.into(),
        input: input.iter().map(|i| (*i).to_owned()).collect(),
        ..formats::proto::NodeDef::default()
    };
    let before = vec![node("x", "Placeholder", &[]), node("mul", "Mul", &["x", "x"]), node("out", "Neg", &["mul"])];
    let after = vec![node("x", "Placeholder", &[]), node("mul", "Square", &["x"]), node("out", "Neg", &["mul"])];
    for (name, node) in [("step-00-built.pb", before), ("step-01-rewrite.pb", after)] {
        let def = formats::proto::GraphDef { node, ..formats::proto::GraphDef::default() };
        let bytes = prost::Message::encode_to_vec(&def);
        std::fs::write(dir.path().join(name), &bytes).unwrap();
        std::fs::write(dir.path().join("step-02-cut.pb"), &bytes[..bytes.len() - 3]).unwrap();
    }
    let (paths, at) = (vec![dir.path().to_owned()], "graph?graph=step-01-rewrite.pb&colour=Change;window?node=mul");
    let mut window = Window::with(move || Options { paths: paths.clone(), at: at.parse().ok(), ..Options::default() });
    window.wait_for("there: Mul");
    assert!(window.shows("here: Square") && window.shows("here: x") && window.shows("there: x, x"));
    assert!(window.shows("1 warning"), "the one that is cut off");
}
