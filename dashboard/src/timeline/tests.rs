//! The panel driven as a user and an assistive tool do: keys and clicks in, the accessibility tree out.

use super::{TimelineView, testing::demo};
use crate::{
    Data, View, ViewKind,
    panel_test::{Panel, panel, wait_for},
};
use egui::{Key, Pos2, Rect, pos2, vec2};
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use std::time::Duration;
use ui::theme::metrics;

fn harness(store: trace_store::Store) -> Panel<TimelineView> {
    let mut harness = panel(TimelineView::default(), Data::default().with_trace("demo", store), [1200.0, 700.0]);
    harness.run_steps(3);
    harness
}

fn label(harness: &Panel<TimelineView>) -> String {
    harness.get_by_label_contains("Timeline: ").accesskit_node().label().unwrap_or_default()
}

fn press(harness: &mut Panel<TimelineView>, key: Key) {
    harness.key_press(key);
    harness.run_steps(3);
}

/// The screen place of a time in a lane, from where the panel drew it.
fn place(harness: &Panel<TimelineView>, time: i64, track: u32, lane: u32) -> Pos2 {
    let view = &harness.state().view;
    let area = harness.get_by_label_contains("Timeline: ").rect();
    point(area, view.state.as_ref().unwrap(), time, view.canvas.lane_middle(track, lane).unwrap())
}

/// The place of a time in a picture in `area`, `y` below the top of all rows.
fn point(area: Rect, state: &super::state::State, time: i64, y: f32) -> Pos2 {
    let body = super::layers::Areas::new(area).body;
    let scale = super::layout::viewport::Scale::new(state.eased.target(), body.left(), body.width());
    pos2(scale.x_from_time(time), body.top() - state.scroll + y)
}

fn click(harness: &mut Panel<TimelineView>, at: Pos2) {
    harness.hover_at(at);
    harness.run_steps(1);
    harness.drag_at(at);
    harness.run_steps(1);
    harness.drop_at(at);
    harness.run_steps(3);
}

#[test]
fn keys_zoom_and_move_the_view() {
    let mut harness = harness(demo(3));
    assert_eq!(label(&harness), "Timeline: 3 tracks, 21 slices, view 4 µs to 303 µs");
    press(&mut harness, Key::W);
    assert_eq!(label(&harness), "Timeline: 3 tracks, 21 slices, view 43.0 µs to 264.9 µs");
    press(&mut harness, Key::D);
    assert_eq!(label(&harness), "Timeline: 3 tracks, 21 slices, view 81.8 µs to 303.7 µs");
    press(&mut harness, Key::ArrowLeft);
    assert_eq!(label(&harness), "Timeline: 3 tracks, 21 slices, view 37.5 µs to 259.3 µs");
    press(&mut harness, Key::Num0);
    assert_eq!(label(&harness), "Timeline: 3 tracks, 21 slices, view 4 µs to 303 µs");
}

#[test]
fn a_click_selects_a_slice_and_the_details_are_exact() {
    let mut harness = harness(demo(3));
    let at = place(&harness, 172_500, 2, 0);
    click(&mut harness, at);
    for text in ["layer1/Add", "8.00 µs (8,000 ns)", "172 µs (172,000 ns)", "layer1/MatMul, 2.00 µs before"] {
        assert!(harness.query_all_by_label(text).next().is_some(), "{text}");
    }
    assert_eq!(harness.state().selection.node.get().map(|n| &**n), Some("layer1/Add"), "the graph learns of it");
    press(&mut harness, Key::Period);
    assert!(harness.query_all_by_label("272 µs (272,000 ns)").next().is_some(), "the next of this name");
    press(&mut harness, Key::F);
    assert_eq!(label(&harness), "Timeline: 3 tracks, 21 slices, view 271.20 µs to 280.80 µs");
    harness.get_by_label("layer1/MatMul, 2.00 µs before").click();
    harness.run_steps(3);
    assert!(harness.query_all_by_label("220 µs (220,000 ns)").next().is_some(), "went to the predecessor");
    press(&mut harness, Key::Escape);
    assert!(harness.query_all_by_label("220 µs (220,000 ns)").next().is_none());
}

#[test]
fn a_click_on_a_gap_says_why_nothing_ran() {
    let mut harness = harness(demo(3));
    let store = demo(3);
    let expected = trace_analysis::stalls(&store, 100_000..200_000);
    // Worker 2 idles from 120 µs until the sum at 172 µs.
    let gap = expected.iter().find(|s| s.track.0 == 2 && (s.start..s.end).contains(&150_000)).unwrap();
    wait_for(&mut harness, "Track worker 2, ");
    for _ in 0..6_000 {
        let at = place(&harness, 150_000, 2, 0);
        click(&mut harness, at);
        if harness.query_by_label(&gap.text(&store).replace('`', "")).is_some() {
            let exact = super::model::facts::exact(gap.dur());
            assert!(harness.query_all_by_label(&exact).next().is_some(), "{exact}");
            let culprit = store.slice(gap.culprit.unwrap()).unwrap();
            assert_eq!(store.slice_name(&culprit), "layer1/MatMul");
            harness.get_by_label("layer1/MatMul").click();
            harness.run_steps(4);
            assert!(harness.query_all_by_label("120 µs (120,000 ns)").next().is_some(), "went to the culprit");
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never shown: {}", gap.text(&store));
}

#[test]
fn links_lead_to_the_graph() {
    let mut harness = harness(demo(3));
    let at = place(&harness, 50_000, 1, 0);
    click(&mut harness, at);
    harness.get_by_label("graph").click();
    harness.run_steps(2);
    assert_eq!(harness.state_mut().selection.take_show(), Some(ViewKind::Graph));
    assert_eq!(harness.state().selection.node.get().map(|n| &**n), Some("layer1/MatMul"));
}

#[test]
fn a_range_gives_its_statistics() {
    let mut harness = harness(demo(5));
    let range = 100_000..300_000;
    let (from, to) = (place(&harness, range.start, 0, 0), place(&harness, range.end, 0, 0));
    let state = harness.state();
    let expected = {
        let store = &state.data.traces[0].store;
        let slices = store.tracks().iter().flat_map(|t| &t.lanes).flat_map(|l| l.slices(&(i64::MIN..i64::MAX)));
        let slices: Vec<_> = slices.filter(|s| s.start < range.end && s.end > range.start).collect();
        let ops: Vec<_> = slices.iter().filter(|s| store.category(s) == trace_model::Category::Op).collect();
        let total: i64 = ops.iter().map(|s| s.end.min(range.end) - s.start.max(range.start)).sum();
        (slices.len(), ops.len(), total)
    };
    assert_eq!(expected, (14, 6, 142_000));
    let y = harness.get_by_label_contains("Timeline: ").rect().top() + metrics::MINIMAP_H + metrics::PAD;
    let on_ruler = |at: Pos2| pos2(at.x, y);
    harness.hover_at(on_ruler(from));
    harness.run_steps(1);
    harness.drag_at(on_ruler(from));
    harness.run_steps(1);
    for at in [from + vec2(20.0, 0.0), to] {
        harness.hover_at(on_ruler(at));
        harness.run_steps(1);
    }
    harness.drop_at(on_ruler(to));
    harness.run_steps(3);
    wait_for(&mut harness, "14 slices, 6 ops taking 142 µs");
    let picked = harness.state().selection.time.get().unwrap().ns.clone();
    assert!((picked.start - range.start).abs() < 1_000 && (picked.end - range.end).abs() < 1_000, "{picked:?}");
}

#[test]
fn a_search_finds_and_walks() {
    let mut harness = harness(demo(3));
    press(&mut harness, Key::Slash);
    harness.get_by_label("Search slices").type_text("add");
    harness.run_steps(2);
    wait_for(&mut harness, "3 matches");
    press(&mut harness, Key::Enter);
    assert!(harness.query_all_by_label("72.0 µs (72,000 ns)").next().is_some());
    press(&mut harness, Key::Enter);
    assert!(harness.query_all_by_label("172 µs (172,000 ns)").next().is_some());
    assert_eq!(label(&harness), "Timeline: 3 tracks, 21 slices, view 4 µs to 303 µs", "keys typed are no shortcuts");
}

#[test]
fn what_the_graph_picks_is_shown() {
    let mut harness = harness(demo(3));
    press(&mut harness, Key::W);
    press(&mut harness, Key::W);
    harness.state_mut().selection.node.set(ViewKind::Graph, Some("layer2".into()));
    harness.run_steps(3);
    let query = {
        let s = harness.state();
        s.view.query(&s.selection)
    };
    assert_eq!(query.node.as_deref(), Some("layer2"));
    harness.state_mut().selection.slice.set(ViewKind::Ops, None);
    let store = demo(3);
    let id = super::model::find::first_of_node(&store, "layer1/MatMul", 200_000).unwrap().id;
    harness.state_mut().selection.slice.set(ViewKind::Ops, Some(crate::selection::SlicePick { trace_idx: 0, id }));
    harness.run_steps(3);
    assert!(harness.query_all_by_label("220 µs (220,000 ns)").next().is_some());
}

#[test]
fn tracks_fold_and_hidden_ones_are_counted() {
    let mut harness = harness(demo(3));
    harness.get_by_label_contains("Track worker 10").click();
    harness.run_steps(2);
    assert!(
        harness
            .query_by_label_contains("Track worker 10")
            .unwrap()
            .accesskit_node()
            .label()
            .unwrap()
            .ends_with(", folded")
    );
    harness.get_by_label_contains("Track main").click_secondary();
    harness.run_steps(2);
    harness.get_by_label("Hide track").click();
    harness.run_steps(4);
    harness.get_by_label("1 track hidden: show").click();
    harness.run_steps(4);
    assert!(harness.query_by_label_contains("Track main").is_some());
}

#[test]
fn empty_and_tiny_traces_say_so() {
    let empty = harness(trace_store::Store::new());
    assert!(empty.query_by_label("The trace is empty").is_some());
    let mut one = harness(super::testing::one_track(vec![super::testing::slice(0, 1, 1, 0, 0)]));
    assert_eq!(label(&one), "Timeline: 1 track, 1 slice, view -10 ns to 11 ns");
    for key in [Key::W, Key::W, Key::S, Key::S, Key::S, Key::F, Key::L, Key::Period] {
        press(&mut one, key);
    }
    assert!(label(&one).starts_with("Timeline: 1 track, 1 slice, view"));
}

#[test]
fn tracks_are_pinned_and_filtered() {
    let mut harness = harness(demo(3));
    let y = |harness: &Panel<TimelineView>, name: &str| harness.get_by_label_contains(name).rect().top();
    assert!(y(&harness, "Track main") < y(&harness, "Track worker 10"));
    harness.get_by_label_contains("Track worker 10").click_secondary();
    harness.run_steps(2);
    harness.get_by_label("Pin to the top").click();
    harness.run_steps(3);
    assert!(y(&harness, "Track worker 10") < y(&harness, "Track main"));
    harness.get_by_label("Filter tracks").focus();
    harness.run_steps(1);
    harness.get_by_label("Filter tracks").type_text("worker");
    harness.run_steps(3);
    assert!(harness.query_by_label("1 track filtered out").is_some());
    assert!(harness.query_by_label_contains("Track main").is_none());
    let params = harness.state().view.address(&harness.state().data);
    assert_eq!((params.get("pinned"), params.get("tracks")), (Some("1"), Some("worker")));
}

#[test]
fn the_critical_path_is_marked_on_demand() {
    let mut harness = harness(demo(3));
    press(&mut harness, Key::C);
    wait_for(&mut harness, "3 critical paths marked");
    press(&mut harness, Key::C);
    assert!(!label(&harness).contains("critical"));
}

#[test]
fn bookmarks_have_words_and_a_list() {
    let mut harness = harness(demo(3));
    press(&mut harness, Key::M);
    harness.get_by_label("Note").type_text("here it stalls");
    harness.run_steps(2);
    harness.get_by_label("Done").click();
    harness.run_steps(3);
    let path = harness.state().data.traces[0].path.clone();
    let notes = harness.state().selection.notes.get(&path).to_vec();
    assert_eq!((notes.len(), notes[0].text.as_str()), (1, "here it stalls"));
    harness.get_by_label("Bookmarks (1)").click();
    harness.run_steps(3);
    assert!(harness.query_by_label_contains("here it stalls").is_some());
}

#[test]
fn a_range_has_durations_tracks_and_flames() {
    let mut harness = harness(demo(5));
    let range = crate::selection::TimeRange { trace_idx: 0, ns: 100_000..300_000 };
    harness.state_mut().selection.time.set(ViewKind::Ops, Some(range));
    harness.run_steps(2);
    wait_for(&mut harness, "14 slices, 6 ops taking 142 µs");
    for (tab, shown) in [
        ("Durations", "Durations of "),
        ("Tracks", "Utilisation"),
        ("Flame graph", "Flame graph of slices"),
        ("Samples", "No call stacks were sampled here"),
    ] {
        harness.get_by_label(tab).click();
        harness.run_steps(3);
        wait_for(&mut harness, shown);
    }
}

#[test]
fn an_arrow_is_followed_there_and_back() {
    let mut harness = harness(demo(3));
    let at = place(&harness, 150_000, 1, 0);
    click(&mut harness, at);
    assert!(harness.query_all_by_label("120 µs (120,000 ns)").next().is_some(), "the product");
    press(&mut harness, Key::CloseBracket);
    assert!(harness.query_all_by_label("172 µs (172,000 ns)").next().is_some(), "what it made ready");
    press(&mut harness, Key::OpenBracket);
    assert!(harness.query_all_by_label("120 µs (120,000 ns)").next().is_some(), "and back");
}

#[test]
fn an_address_restores_the_view() {
    let mut first = harness(demo(3));
    press(&mut first, Key::W);
    let at = place(&first, 150_000, 1, 0);
    click(&mut first, at);
    let params = first.state().view.address(&first.state().data);
    let mut second = harness(demo(3));
    second.state_mut().view.go_to(&params);
    second.run_steps(3);
    assert_eq!(label(&second), label(&first));
    assert_eq!(second.state().view.address(&second.state().data), params);
    assert!(second.query_all_by_label("120 µs (120,000 ns)").next().is_some(), "the slice is selected");
}

#[test]
fn a_trace_without_messages_says_so() {
    let mut harness = harness(demo(1));
    press(&mut harness, Key::G);
    wait_for(&mut harness, "The trace has no log messages");
}

fn views(harness: &Panel<TimelineView>) -> Vec<String> {
    let all = harness.query_all_by_label_contains("Timeline: ");
    all.map(|n| n.accesskit_node().label().unwrap_or_default()).collect()
}

/// The names and starts of the compared steps.
fn compared_steps(harness: &Panel<TimelineView>) -> Vec<(String, i64)> {
    let compare = harness.state().view.compare.as_ref().unwrap();
    compare.steps.iter().flatten().map(|m| (m.name.clone(), m.range.start)).collect()
}

#[test]
fn a_step_is_compared_with_another_one() {
    let mut harness = harness(demo(5));
    harness.state_mut().view.next_commands = vec![super::command::Command::Show(100_000..200_000)];
    harness.run_steps(4);
    press(&mut harness, Key::V);
    harness.run_steps(3);
    let before = compared_steps(&harness);
    assert_eq!(before[0].1, 110_000, "{before:?}: the step in the middle of the view");
    assert_ne!(before[0], before[1]);
    wait_for(&mut harness, "Steps, B against A: same duration");
    assert_eq!(views(&harness).len(), 2);
    // The lower view is the upper one, shifted by the distance of the two steps' starts.
    press(&mut harness, Key::W);
    press(&mut harness, Key::D);
    harness.run_steps(4);
    let shift = before[1].1 - before[0].1;
    let view = &harness.state().view;
    let (above, below) = (view.state.as_ref().unwrap(), view.compare.as_ref().unwrap());
    assert_eq!(below.state.eased.target(), above.eased.target().shifted(shift));
    press(&mut harness, Key::K);
    assert!(compared_steps(&harness)[1].1 < before[1].1 || compared_steps(&harness)[1] == before[1]);
    press(&mut harness, Key::J);
    harness.get_by_label("Next step, A").click();
    harness.run_steps(4);
    assert_eq!(compared_steps(&harness)[0].1, 210_000);
    press(&mut harness, Key::V);
    assert_eq!(views(&harness).len(), 1);
}

#[test]
fn two_traces_are_compared_at_the_same_step_and_slices_are_picked_in_each() {
    let mut harness = harness(demo(3));
    let state = harness.state_mut();
    state.data = std::mem::take(&mut state.data).with_trace("other", demo(2));
    harness.run_steps(3);
    press(&mut harness, Key::V);
    harness.run_steps(3);
    let [above, below] = &compared_steps(&harness)[..] else { panic!("two steps") };
    assert_eq!(above, below, "the same step");
    assert_eq!(harness.state().view.compare.as_ref().unwrap().trace_idx, 1);
    let area = harness.query_all_by_label_contains("Timeline: ").last().unwrap().rect();
    let lower = harness.state().view.compare.as_ref().unwrap();
    let at = point(area, &lower.state, 150_000, lower.lane_middle(1, 0).unwrap());
    click(&mut harness, at);
    let pick = harness.state().selection.slice.get().copied().unwrap();
    assert_eq!(pick.trace_idx, 1, "a slice of the lower trace");
    assert!(harness.query_all_by_label("120 µs (120,000 ns)").next().is_some(), "and described");
    press(&mut harness, Key::Comma);
    assert!(harness.query_all_by_label("20.0 µs (20,000 ns)").next().is_some(), "keys walk in the lower trace");
    let params = harness.state().view.address(&harness.state().data);
    assert_eq!((params.get("below"), params.get("step")), (Some("other"), Some("110000")));
    let mut second = self::harness(demo(3));
    let state = second.state_mut();
    state.data = std::mem::take(&mut state.data).with_trace("other", demo(2));
    state.view.go_to(&params);
    second.run_steps(3);
    assert_eq!(compared_steps(&second), compared_steps(&harness));
}

#[test]
fn without_steps_and_another_trace_there_is_nothing_to_compare() {
    let mut one = harness(super::testing::one_track(vec![super::testing::slice(0, 1, 1, 0, 0)]));
    press(&mut one, Key::V);
    assert!(one.query_by_label_contains("open another one to compare it with").is_some());
}

#[test]
fn narrow_slices_are_pixels_on_the_screen_and_rectangles_in_a_picture_of_vectors() {
    // Four hundred steps: every slice is narrower than a pixel.
    let mut harness = harness(demo(400));
    let corners = |harness: &Panel<TimelineView>, is_pixels: bool| {
        let meshes = harness.output().shapes.iter().filter_map(|clipped| match &clipped.shape {
            egui::Shape::Mesh(mesh) if (mesh.texture_id != egui::TextureId::default()) == is_pixels => Some(mesh),
            _ => None,
        });
        meshes.map(|mesh| mesh.vertices.len()).sum::<usize>()
    };
    let (pixels, rects) = (corners(&harness, true), corners(&harness, false));
    assert!((4..100).contains(&pixels), "a quad for each strip: {pixels} corners");
    ui::export::request_shapes(&harness.ctx, true);
    harness.run_steps(1);
    assert_eq!(corners(&harness, true), 0);
    assert!(corners(&harness, false) > rects + 1_000, "{} corners after {rects}", corners(&harness, false));
}
