//! What the window does with little room: 1280 x 720 pixels at 300 % are 427 x 240 points.

use crate::support::{Window, two_runs};
use dashboard::Options;
use egui::{Rect, pos2, vec2};
use egui_kittest::kittest::Queryable;
use std::path::PathBuf;

const SMALL: [f32; 2] = [427.0, 240.0];

fn small(paths: Vec<PathBuf>, at: &'static str) -> Window {
    sized(SMALL, paths, at)
}

fn sized(size: [f32; 2], paths: Vec<PathBuf>, at: &'static str) -> Window {
    let at = (!at.is_empty()).then(|| at.parse().expect("an address"));
    Window::sized(size, move || Options { paths: paths.clone(), at: at.clone(), ..Options::default() })
}

fn run() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/runs/usual")
}

impl Window {
    /// Where what is called so is.
    fn rect(&self, label: &str) -> Rect {
        let mut found = self.harness.query_all_by_label_contains(label);
        found.next().unwrap_or_else(|| panic!("nothing is called {label:?}")).rect()
    }

    /// Whether all of what is called so is in the window.
    fn is_inside(&self, label: &str) -> bool {
        let screen = Rect::from_min_size(pos2(0.0, 0.0), self.harness.ctx.content_rect().size());
        screen.expand(0.5).contains_rect(self.rect(label))
    }
}

#[test]
fn dialogs_fit() {
    let mut window = small(vec![run()], "scalars");
    window.wait_for(": 1 run, ");
    let ctrl = egui::Modifiers::COMMAND;
    let none = egui::Modifiers::NONE;
    for (modifiers, key, parts) in [
        (none, egui::Key::F1, &["Close Shortcuts", "Everywhere"][..]),
        (ctrl, egui::Key::Comma, &["Close Settings", "Theme: System", "Density: Comfortable"]),
        (ctrl, egui::Key::K, &["Command palette", "Compare the runs over a range"]),
        (ctrl, egui::Key::O, &["Close Open a file", "Path to open", "Up"]),
    ] {
        window.harness.key_press_modifiers(modifiers, key);
        window.wait();
        for part in parts {
            assert!(window.is_inside(part), "{part}: {:?}", window.rect(part));
        }
        window.key(egui::Key::Escape);
        window.wait();
        assert!(!window.shows(parts[0]), "{} is still open", parts[0]);
    }
    // What does not fit is a scroll away.
    window.key(egui::Key::F1);
    window.wait();
    assert!(!window.is_inside("Commands without keys are in the palette"));
    window.harness.get_by_label_contains("Commands without keys are in the palette").scroll_to_me();
    window.wait();
    window.wait();
    assert!(window.is_inside("Commands without keys are in the palette"));
}

#[test]
fn figures_of_the_top_bar_leave_the_buttons_alone() {
    let dir = two_runs();
    for width in [427.0, 300.0, 640.0, 1280.0] {
        let mut window = sized([width, 240.0], vec![dir.path().to_owned()], "");
        window.wait_for("loss: 2 runs");
        window.wait();
        let first = window.rect("Find anything (Ctrl+K)");
        let is_in_bar = |rect: &Rect| rect.center().y < first.bottom();
        let all = window.harness.get_all(egui_kittest::kittest::By::new().role(egui::accesskit::Role::Label));
        let labels: Vec<Rect> = all.map(|node| node.rect()).filter(is_in_bar).collect();
        assert!(!labels.is_empty());
        for rect in labels {
            assert!(rect.right() <= first.left() + 0.5, "at {width}: {rect:?} reaches into {first:?}");
        }
    }
}

#[test]
fn controls_leave_the_panel_its_room() {
    let mut window = small(vec![run()], "scalars");
    window.wait_for(": 1 run, ");
    window.wait();
    assert!(window.rect("Ungrouped").bottom() < 0.6 * SMALL[1], "no card is seen");
    assert!(!window.is_inside("Group runs by (regex)") || window.rect("Group runs by (regex)").top() > SMALL[1]);
    window.harness.get_by_label("More controls").click();
    window.wait();
    assert!(window.is_inside("Smoothing") && window.is_inside("Fewer controls"));
    window.harness.get_by_label("Fewer controls").click();
    window.wait();
    window.wait_for("More controls");
    for (key, sign) in [(egui::Key::Num4, "Timeline: "), (egui::Key::Num3, "Fit")] {
        window.key(key);
        window.wait_for(sign);
        window.wait();
    }
    window.key(egui::Key::Num4);
    window.wait_for("Timeline: ");
    window.wait();
    let canvas = window.rect("Timeline: ");
    assert!(canvas.height() > 0.4 * SMALL[1] && canvas.right() <= SMALL[0] + 0.5, "{canvas:?}");
    window.harness.get_by_label("More controls").click();
    window.wait();
    for control in ["Log", "Filter tracks", "Search slices"] {
        assert!(window.is_inside(control), "{control}: {:?}", window.rect(control));
    }
}

#[test]
fn sides_leave_the_table_its_room() {
    let mut window = small(vec![run()], "ops");
    window.wait_for("Sort by Self");
    window.wait();
    let border = window.rect("Border of ops side");
    assert!(border.left() > 0.5 * SMALL[0], "{border:?}");
    assert!(window.rect("Tracks").left() >= border.left());
}

/// No figure is cut: what has no room is a scroll away.
#[test]
fn columns_are_as_wide_as_their_figures() {
    for width in [427.0, 800.0, 1280.0] {
        let mut window = sized([width, 400.0], vec![run()], "ops");
        window.wait_for("Sort by Self");
        window.wait();
        let headings = ["Count", "Total", "Self", "Mean", "p50", "p99", "Max", "Share"];
        let places = headings.map(|name| window.rect(&format!("Sort by {name}")));
        for (pair, names) in places.windows(2).zip(headings.windows(2)) {
            assert!(pair[0].right() <= pair[1].left(), "{names:?} at {width}: {pair:?}");
        }
        assert!(places.iter().all(|place| place.width() > 20.0), "{places:?}");
        if width > 1200.0 {
            // Where there is room the last column ends with it.
            let (end, border) = (places[7].right(), window.rect("Border of ops side").left());
            assert!(end <= border, "{end} of {border}");
        }
    }
}

#[test]
fn nothing_behind_a_dialog_answers_the_pointer() {
    let dir = two_runs();
    let mut window = Window::open(&[dir.path().to_owned()]);
    window.wait_for("loss: 2 runs");
    window.wait();
    let chart = window.rect("loss: 2 runs").center();
    window.harness.hover_at(chart);
    window.wait_for("Smoothed");
    for (key, name) in [(egui::Key::Comma, "Close Settings"), (egui::Key::K, "Command palette")] {
        window.ctrl(egui::Modifiers::NONE, key);
        window.wait_for(name);
        window.wait();
        assert!(!window.shows("Smoothed"), "{name}");
        window.harness.hover_at(chart + vec2(3.0, 3.0));
        window.wait();
        assert!(!window.shows("Smoothed"), "{name}, after a move");
        window.key(egui::Key::Escape);
        window.wait_for("Smoothed");
    }
}

#[test]
fn a_border_is_taken_hold_of_and_where_it_was_left_is_remembered() {
    let (dir, home) = (two_runs(), tempfile::tempdir().unwrap());
    let (path, config) = (dir.path().to_owned(), home.path().join("window.json"));
    let options = move || Options { paths: vec![path.clone()], config: Some(config.clone()), ..Options::default() };
    let mut window = Window::with(options.clone());
    window.wait_for("loss: 2 runs");
    window.wait();
    let border = window.rect("Border of scalar runs");
    assert!(border.width() >= 8.0);
    // Anywhere on it.
    for (from, to) in [(border.left() + 1.0, 300.0), (296.0 + 7.0, 340.0)] {
        let y = border.center().y;
        for (x, is_pressed) in [(from, false), (from, true), ((from + to) / 2.0, false), (to, false)] {
            let at = pos2(x, y);
            if is_pressed {
                window.harness.drag_at(at);
            } else {
                window.harness.hover_at(at);
            }
            window.harness.step();
        }
        window.harness.drop_at(pos2(to, y));
        window.wait();
        let now = window.rect("Border of scalar runs");
        assert!((now.center().x - to).abs() <= 1.0, "{now:?} after a drag to {to}");
    }
    drop(window);
    let mut again = Window::with(options);
    again.wait_for("loss: 2 runs");
    again.wait();
    assert!((again.rect("Border of scalar runs").center().x - 340.0).abs() <= 1.0);
    // In a narrow window it leaves the cards their room, and is what it was where there is room again.
    again.harness.set_size(vec2(400.0, 400.0));
    again.wait();
    assert!(again.rect("Border of scalar runs").right() <= 0.75 * 400.0 + 1.0);
    again.harness.set_size(vec2(1280.0, 800.0));
    again.wait();
    assert!((again.rect("Border of scalar runs").center().x - 340.0).abs() <= 1.0);
    again.harness.get_by_label("Border of scalar runs").focus();
    again.harness.step();
    again.key(egui::Key::ArrowLeft);
    again.wait();
    assert!((again.rect("Border of scalar runs").center().x - 324.0).abs() <= 1.0);
}
