//! The real window, driven as a user would: the demo trains, the curves come, every tab is clicked, the timeline is
//! zoomed, a scope of the graph is expanded; what is shown is read from the accessibility tree.
//!
//! With `STEPSCOPE_SHOTS=FOLDER` each tab is also photographed (`cargo xtask shots`).

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use stepscope_tests::atspi::{Node, Tree};
use stepscope_tests::desktop::Desktop;
use stepscope_tests::{TERMINATED, has_sql, left_out, stepscope_binary};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_secs(20);
const TABS: [&str; 10] = [
    "Scalars",
    "Histograms",
    "Graph",
    "Timeline",
    "Ops",
    "Media",
    "Bottlenecks",
    "Hyperparameters",
    "Embeddings",
    "SQL",
];

/// A running demo, killed when the test ends, however it ends.
struct Demo(Child);

impl Drop for Demo {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The window under test.
struct Window {
    desktop: Desktop,
    tree: Tree,
    shots: Option<PathBuf>,
    theme: &'static str,
    has_sql: bool,
    demo: Demo,
}

fn open(binary: &Path, theme: &'static str, width: u32, height: u32) -> Window {
    let desktop = Desktop::start(width, height);
    let tree = Tree::connect(desktop.bus_address()).expect("the accessibility bus");
    let logdir = desktop.scratch().join("run");
    let mut command = desktop.command(binary);
    command.args(["demo", "--steps", "1000000", "--theme", theme, "--logdir"]).arg(&logdir);
    let demo = Demo(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("the demo starts"));
    let shots = std::env::var_os("STEPSCOPE_SHOTS").map(PathBuf::from);
    if let Some(folder) = &shots {
        std::fs::create_dir_all(folder).expect("the folder for screenshots");
    }
    Window { desktop, tree, shots, theme, has_sql: has_sql(binary), demo }
}

impl Window {
    fn wait(&self, what: &str, wanted: impl Fn(&Node) -> bool) -> Node {
        self.tree.wait(what, SHORT, wanted)
    }

    /// Whether there is such a node within a few seconds.
    fn soon(&self, wanted: impl Fn(&Node) -> bool) -> bool {
        (0..20).any(|_| {
            std::thread::sleep(Duration::from_millis(200));
            self.tree.nodes().iter().any(&wanted)
        })
    }

    /// Whether a node of this name stays for a few seconds.
    fn stays(&self, name: &str) -> bool {
        (0..20).all(|_| {
            std::thread::sleep(Duration::from_millis(200));
            self.tree.nodes().iter().any(|node| node.name == name)
        })
    }

    /// Clicks in the middle of a node, as a user does.
    fn click(&self, node: &Node) {
        let (x, y, width, height) = self.tree.extents(node).expect("the node has a place");
        self.desktop.click(x + width / 2, y + height / 2);
    }

    fn show_tab(&self, title: &str) {
        let tab = self.wait(title, |node| is_tab(node, title));
        self.click(&tab);
    }

    fn key(&self, key: &str) {
        self.desktop.xdotool(&["key", key]);
        std::thread::sleep(Duration::from_millis(300));
    }

    fn shot(&self, name: &str) {
        if let Some(folder) = &self.shots {
            std::thread::sleep(Duration::from_millis(800));
            self.desktop.screenshot(&folder.join(format!("{name}-{}.png", self.theme)));
        }
    }
}

/// Whether a node is the tab of a panel.
fn is_tab(node: &Node, title: &str) -> bool {
    node.name == title && (node.role == "page tab" || node.role == "toggle button")
}

/// The number before `word` in a text like "loss: 1 run, 1,234 points".
fn count_before(text: &str, word: &str) -> Option<u64> {
    let before = text.split(word).next().filter(|before| before.len() < text.len())?;
    let digits = before.split_whitespace().last()?.replace(',', "");
    digits.parse().ok()
}

#[test]
fn counts_are_read() {
    assert_eq!(count_before("loss: 1 run, 1,234 points, last 0.1", "points"), Some(1234));
    assert_eq!(count_before("no data", "points"), None);
}

#[test]
fn the_demo_is_shown_live_in_every_tab() {
    if test_support::variable("STEPSCOPE_WINDOW", "the window test").is_none() {
        return;
    }
    let binary = stepscope_binary("the window test").expect("STEPSCOPE_WINDOW needs STEPSCOPE_BIN");
    for theme in ["dark", "light"] {
        let mut window = open(&binary, theme, 1480, 960);
        curves_grow(&window);
        histograms_are_there(&window);
        a_scope_expands(&window);
        the_timeline_zooms(&window);
        ops_are_listed(&window);
        other_panels_say_what_they_have(&window);
        windows_open_by_key(&window);
        every_tab_by_key(&window);
        a_signal_ends_it(&mut window.demo);
    }
}

/// As the desktop's entry starts the window on a double click.
#[test]
fn what_cannot_be_opened_is_said_in_the_window() {
    if test_support::variable("STEPSCOPE_WINDOW", "the window test").is_none() {
        return;
    }
    let binary = stepscope_binary("the window test").expect("STEPSCOPE_WINDOW needs STEPSCOPE_BIN");
    let desktop = Desktop::start(1280, 720);
    let tree = Tree::connect(desktop.bus_address()).expect("the accessibility bus");
    let text = desktop.scratch().join("text.json");
    std::fs::write(&text, "no trace").expect("a file");
    let mut command = desktop.command(&binary);
    command.args(["view", "--errors-in-window", "--theme", "dark"]).arg(&text).arg(desktop.scratch().join("missing"));
    let _view = Demo(command.stdin(Stdio::null()).spawn().expect("the window starts"));
    for (path, error) in [("text.json: ", "not"), ("missing: ", "File not found")] {
        let says = |node: &Node| node.name.split_once(path).is_some_and(|(_, rest)| rest.contains(error));
        tree.wait(&format!("what is wrong with {path}"), LONG, says);
    }
    if let Some(folder) = std::env::var_os("STEPSCOPE_SHOTS") {
        desktop.screenshot(&PathBuf::from(folder).join("refused-dark.png"));
    }
}

fn curves_grow(window: &Window) {
    let is_loss = |node: &Node| node.name.starts_with("loss:") && count_before(&node.name, "point").is_some();
    window.tree.wait("the window", LONG, |node| is_tab(node, "Scalars"));
    window.show_tab("Scalars");
    let first = window.tree.wait("a loss curve with points", LONG, is_loss);
    let points = count_before(&first.name, "point").expect("just seen");
    window.wait("more points on the loss curve", |node| {
        is_loss(node) && count_before(&node.name, "point").is_some_and(|now| now > points)
    });
    window.wait("the test accuracy", |node| node.name.starts_with("test/accuracy"));
    window.shot("scalars");
}

fn histograms_are_there(window: &Window) {
    window.show_tab("Histograms");
    window.wait("the histogram of the first weights", |node| node.name.starts_with("layer1/weights:"));
    window.shot("histograms");
}

fn a_scope_expands(window: &Window) {
    window.show_tab("Graph");
    let scope = window.wait("the collapsed scope layer1", |node| {
        node.name.starts_with("scope layer1,") && node.name.contains("collapsed")
    });
    window.shot("graph");
    // On a busy machine the two clicks may come too far apart to be one double click: then a user clicks again.
    let is_expanded = |node: &Node| node.name.starts_with("scope layer1,") && node.name.contains("expanded");
    let mut place = window.tree.extents(&scope).expect("the scope has a place");
    for _ in 0..4 {
        let (x, y, width, height) = place;
        window.desktop.xdotool(&["mousemove", &(x + width / 2).to_string(), &(y + height / 2).to_string()]);
        window.desktop.xdotool(&["click", "--repeat", "2", "--delay", "80", "1"]);
        if window.soon(is_expanded) {
            break;
        }
        let collapsed = window.wait("the scope layer1", |node| node.name.starts_with("scope layer1,"));
        place = window.tree.extents(&collapsed).unwrap_or(place);
    }
    window.wait("the scope as expanded", is_expanded);
    window.wait("the op MatMul inside layer1", |node| node.name.contains("MatMul"));
    window.shot("graph-expanded");
}

fn the_timeline_zooms(window: &Window) {
    window.show_tab("Timeline");
    let is_summary = |node: &Node| node.name.starts_with("Timeline:") && node.name.contains("slices");
    let before = window.wait("the timeline's summary with slices", |node| {
        is_summary(node) && count_before(&node.name, "slices").is_some_and(|n| n > 1000)
    });
    let (x, y, width, height) = window.tree.extents(&before).expect("the timeline has a place");
    window.desktop.click(x + width / 2, y + height / 4);
    // The scope that was picked in the graph dims everything else.
    window.key("Escape");
    window.shot("timeline");
    for _ in 0..6 {
        window.key("w");
    }
    let view = |name: &str| name.split("view").nth(1).map(str::to_owned);
    window.wait("another view after zooming in", |node| is_summary(node) && view(&node.name) != view(&before.name));
    window.desktop.click(x + width / 2, y + height / 4);
    window.shot("timeline-zoomed");
}

fn ops_are_listed(window: &Window) {
    window.show_tab("Ops");
    window.wait("MatMul in the table of ops", |node| node.name == "MatMul");
    window.shot("ops");
}

/// Bottlenecks are found, the run's command is a session, and where there is nothing a panel says what is missing.
fn other_panels_say_what_they_have(window: &Window) {
    for (title, sign) in [
        ("Bottlenecks", "Step times: "),
        ("Media", ""),
        ("Hyperparameters", "1 of 1 session"),
        ("Embeddings", "No embeddings yet"),
        ("SQL", "SQL query"),
    ] {
        if title == "SQL" && !window.has_sql {
            left_out(format_args!("the panel of SQL: STEPSCOPE_BIN was built without it"));
            continue;
        }
        window.show_tab(title);
        let is_sign = |node: &Node| match title {
            "Media" => node.name.starts_with("Image ") || node.name == "No images or texts yet",
            _ => node.name.starts_with(sign),
        };
        window.wait(&format!("{title}: {sign}"), is_sign);
        window.shot(&title.to_lowercase());
    }
}

fn windows_open_by_key(window: &Window) {
    for (key, sign, shot) in [
        ("ctrl+k", "Command palette", "palette"),
        ("ctrl+comma", "Density: Compact", "settings"),
        ("F1", "Switch between dark, light and the desktop's theme", "shortcuts"),
    ] {
        window.key(key);
        window.wait(sign, |node| node.name == sign);
        window.shot(shot);
        window.key("Escape");
        assert!(!window.stays(sign), "{sign} is closed by Escape");
    }
}

fn every_tab_by_key(window: &Window) {
    // SQL, the tenth, has no key.
    for (number, title) in (1..=9).zip(TABS) {
        window.key(&number.to_string());
        window.wait(title, |node| is_tab(node, title));
    }
}

/// SIGTERM closes the window and the run ends as after its last step.
fn a_signal_ends_it(demo: &mut Demo) {
    let sent = Command::new("kill").args(["-TERM", &demo.0.id().to_string()]).status().expect("kill starts");
    assert!(sent.success(), "kill -TERM");
    for _ in 0..200 {
        if let Some(status) = demo.0.try_wait().expect("the demo is our child") {
            assert_eq!(status.code(), Some(TERMINATED), "the demo ends well: {status}");
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("the demo still runs 20 s after SIGTERM");
}
