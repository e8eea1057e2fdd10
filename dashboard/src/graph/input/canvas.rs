//! One frame of the picture: moves the camera, paints, lists the accessible boxes, and turns input into commands.

use super::commands;
use crate::graph::{
    layout::BoxLayout,
    model::{ItemId, Kind, Model, output_shape},
    paint::{self, ColorBy, Colors, Export, Scene, legend_rect},
    state::GraphView,
};
use egui::{Key, Rect, Response, RichText, Role, Sense, Ui, Vec2, vec2};
use std::sync::Arc;
use ui::{
    format,
    theme::{metrics, palette},
    widgets::{describe, is_keyboard_free, named, pointer},
};

/// Boxes in view that the accessibility tree lists; outer and larger ones first.
const MAX_ACCESSIBLE: usize = 400;

/// An action of the pointer on the picture.
#[derive(Clone, Copy)]
enum Command {
    Select(Option<ItemId>),
    Toggle(ItemId),
    Center(Vec2),
}

/// Shows the picture in the remaining space.
pub(crate) fn show(graph: &mut GraphView, ui: &mut Ui, model: &Arc<Model>) {
    let view = ui.available_rect_before_wrap();
    let canvas = ui.allocate_rect(view, Sense::click_and_drag());
    let now = ui.input(|i| i.time);
    // The picture stays where it is when the details open or close: a double click hits one box twice.
    if let Some(before) = graph.view.replace(view) {
        graph.camera.center += (view.center() - before.center()) / graph.camera.zoom;
        graph.needs_fit |= graph.is_fitted && graph.selected.is_none() && before.size() != view.size();
    }
    let picture = Arc::clone(&graph.picture);
    describe(&canvas, || format!("Graph: {} boxes shown, {} edges", picture.boxes.len(), picture.edges.len()));
    move_camera(graph, ui, &canvas, model, now);
    handle_keys(graph, ui, model, view);
    let p = palette(ui);
    let painter = ui.painter().with_clip_rect(view);
    painter.rect_filled(view, 0, p.canvas);
    let progress = graph.transition.as_ref().map_or(1.0, |t| t.progress(now));
    if progress >= 1.0 {
        graph.transition = None;
    } else {
        ui.ctx().request_repaint();
    }
    let transition = graph.transition.as_ref();
    let rect_of = |b: &BoxLayout| transition.map_or(b.rect, |t| t.rect_of(model, &picture, b, progress));
    let colors = Colors {
        by: graph.color_by,
        palette: p,
        model,
        times: &graph.times,
        changes: &graph.changes,
        structures: &graph.structure_colors,
        heat_max: 0.0,
    }
    .scaled();
    let scene = Scene {
        model,
        picture: &picture,
        colors: &colors,
        camera: graph.camera,
        view,
        selected: graph.selected.and_then(|i| picture.innermost_box(model, i)).map(|b| b.item),
        hovered: graph.hovered,
        traced: graph.traced.as_ref(),
        fade: progress,
        rect_of: &rect_of,
    };
    let visible = paint::paint(&painter, &scene);
    let mut command = boxes_ui(ui, &scene, &visible, &canvas);
    let hovered = canvas.hover_pos().or_else(|| pointer(ui).filter(|at| view.contains(*at)));
    let hovered = hovered.and_then(|at| picture.box_at(scene.camera.to_picture(view, at))).map(|b| b.item);
    let legend_size = paint::legend_ui(ui, &scene);
    if let Some(format) = graph.export.take() {
        ui.ctx().copy_text(match format {
            Export::Svg => paint::svg(model, &picture, p, |b| colors.fill(b.item)),
            Export::Dot => paint::dot(model, &picture),
        });
    }
    if let Some(center) = paint::minimap_ui(ui, &scene) {
        command = Some(Command::Center(center));
    }
    if graph.hovered != hovered {
        graph.hovered = hovered;
        ui.ctx().request_repaint();
    }
    if graph.legend_size != legend_size {
        // A picture that was fitted around a legend of another size is fitted again.
        graph.legend_size = legend_size;
        graph.needs_fit |= graph.is_fitted;
        ui.ctx().request_repaint();
    }
    if let Some(command) = command {
        apply(graph, model, command);
    }
}

fn apply(graph: &mut GraphView, model: &Arc<Model>, command: Command) {
    match command {
        Command::Select(item) => graph.select(item),
        Command::Toggle(item) => {
            graph.select(Some(item));
            graph.toggle(model, item);
        }
        Command::Center(center) => {
            graph.camera.center = center;
            (graph.flight, graph.is_fitted) = (None, false);
        }
    }
}

fn move_camera(graph: &mut GraphView, ui: &Ui, canvas: &Response, model: &Model, now: f64) {
    let view = canvas.rect;
    if graph.needs_fit && !graph.is_busy() && !graph.picture.boxes.is_empty() {
        graph.needs_fit = false;
        graph.is_fitted = true;
        graph.flight = None;
        let [w, h] = graph.picture.size;
        let picture = Arc::clone(&graph.picture);
        let boxes = || picture.boxes.iter().filter(|b| !b.is_open).map(|b| b.rect).collect();
        let corner = legend_rect(view, graph.legend_size).expand(metrics::GAP);
        graph.camera.fit_around(view, corner, [0.0, 0.0, w, h], boxes);
    }
    if !graph.is_busy()
        && let Some(item) = graph.center_on.take()
        && let Some(rect) = graph.picture.innermost_box(model, item).map(|b| b.rect)
    {
        graph.fly_to(view, rect, now);
    }
    if let Some(flight) = &graph.flight {
        graph.is_fitted = false;
        let (camera, arrived) = flight.camera_at(now);
        graph.camera = camera;
        if arrived { graph.flight = None } else { ui.ctx().request_repaint() }
    }
    if canvas.dragged() {
        (graph.flight, graph.is_fitted) = (None, false);
        graph.camera.pan(canvas.drag_delta());
    }
    if let Some(at) = pointer(ui).filter(|at| view.contains(*at) && ui.rect_contains_pointer(view)) {
        let (scroll, pinch) = ui.input(|i| (i.smooth_scroll_delta(), i.zoom_delta()));
        let factor = (scroll.y / 240.0).exp() * pinch;
        if factor != 1.0 {
            (graph.flight, graph.is_fitted) = (None, false);
            graph.camera.zoom_at(view, at, factor);
        }
        if scroll.x != 0.0 {
            graph.is_fitted = false;
            graph.camera.pan(vec2(scroll.x, 0.0));
        }
    }
}

fn handle_keys(graph: &mut GraphView, ui: &Ui, model: &Arc<Model>, view: Rect) {
    let is_pointer_elsewhere =
        ui.input(|i| i.pointer.latest_pos()).is_some_and(|at| !ui.max_rect().union(view).contains(at));
    if !is_keyboard_free(ui) || is_pointer_elsewhere {
        return;
    }
    let pressed = |key| ui.input(|i| i.key_pressed(key) && i.modifiers.is_none());
    const KEYS: [(Key, &str); 9] = [
        (Key::F, "fit"),
        (Key::Num0, "fit"),
        (Key::Slash, "search"),
        (Key::E, "open level"),
        (Key::C, "close"),
        (Key::T, "inputs"),
        (Key::O, "consumers"),
        (Key::P, "path"),
        (Key::M, "children"),
    ];
    for (_, id) in KEYS.into_iter().filter(|(key, _)| pressed(*key)) {
        commands::run(graph, model, id);
        ui.ctx().request_repaint();
    }
    if pressed(Key::Escape) {
        graph.select(None);
    }
    if pressed(Key::Enter)
        && let Some(item) = graph.selected
    {
        graph.toggle(model, item);
    }
    for (key, direction) in [
        (Key::ArrowLeft, (1.0, 0.0)),
        (Key::ArrowRight, (-1.0, 0.0)),
        (Key::ArrowUp, (0.0, 1.0)),
        (Key::ArrowDown, (0.0, -1.0)),
    ] {
        if pressed(key) {
            graph.is_fitted = false;
            graph.camera.pan(vec2(direction.0, direction.1) * 60.0);
        }
    }
}

/// Makes the boxes in view clickable one by one, for the pointer and for assistive technology; other clicks are
/// resolved by position.
fn boxes_ui(ui: &mut Ui, scene: &Scene<'_>, visible: &[(usize, Rect)], canvas: &Response) -> Option<Command> {
    let mut command = None;
    if canvas.clicked() || canvas.double_clicked() {
        let hit =
            canvas.interact_pointer_pos().and_then(|at| scene.picture.box_at(scene.camera.to_picture(scene.view, at)));
        command = Some(match hit {
            Some(b) if canvas.double_clicked() && !scene.model.is_op(b.item) => Command::Toggle(b.item),
            hit => Command::Select(hit.map(|b| b.item)),
        });
    }
    let shown: Vec<&(usize, Rect)> =
        visible.iter().filter(|(_, rect)| rect.width() >= 4.0).take(MAX_ACCESSIBLE).collect();
    for (idx, rect) in shown {
        let b = &scene.picture.boxes[*idx];
        let visible_rect = rect.intersect(scene.view);
        if !visible_rect.is_positive() {
            continue;
        }
        let response = ui.interact(visible_rect, ui.scope_id().with(("box", b.item.0)), Sense::click());
        let role = if scene.model.is_op(b.item) { Role::ListItem } else { Role::TreeItem };
        response.widget_info(|| {
            let health = scene.colors.times.get(b.item).health;
            // Assistive technology reports problems in every mode, and "finite" only where the colours show health.
            let has_health = scene.colors.by == ColorBy::Health || health.n_nan + health.n_inf > 0;
            let health = health.text(scene.model.is_op(b.item)).filter(|_| has_health);
            let health = health.map_or_else(String::new, |text| format!(", {text}"));
            let text = format!("{}{health}", accessible_text(scene.model, b));
            egui::WidgetInfo::selected(role, true, scene.selected == Some(b.item), text)
        });
        if response.double_clicked() && !scene.model.is_op(b.item) {
            command = Some(Command::Toggle(b.item));
        } else if response.clicked() {
            command = Some(Command::Select(Some(b.item)));
        }
        tooltip_ui(&response, scene, b);
        if !scene.model.is_op(b.item) {
            let button_rect = paint::button_rect(scene, b, *rect).intersect(scene.view);
            if button_rect.is_positive() {
                let button = ui.interact(button_rect, ui.scope_id().with(("button", b.item.0)), Sense::click());
                let verb = if b.is_open { "Collapse" } else { "Expand" };
                named(&button, Role::Button, &format!("{verb} {}", scene.model.name(b.item)));
                if button.clicked() {
                    command = Some(Command::Toggle(b.item));
                }
            }
        }
    }
    command
}

/// Returns the text of a box for assistive technology: `scope layer1, 12 nodes, collapsed`.
fn accessible_text(model: &Model, b: &BoxLayout) -> String {
    let name = model.name(b.item);
    let kind = match model.kind(b.item) {
        Kind::Op => return format!("node {name}, {}", model.op(b.item)),
        Kind::Series => "series",
        Kind::Function => "function",
        _ => "scope",
    };
    let nodes = format::count_of(u64::from(model.n_nodes(b.item)), "node");
    let control = model.control(b.item).map_or_else(String::new, |control| format!(", {}", control.name()));
    format!("{kind} {name}{control}, {nodes}, {}", if b.is_open { "expanded" } else { "collapsed" })
}

fn tooltip_ui(response: &Response, scene: &Scene<'_>, b: &BoxLayout) {
    if b.is_open || !response.hovered() {
        return;
    }
    response.clone().on_hover_ui_at_pointer(|ui| {
        let (model, weak) = (scene.model, palette(ui).text_weak);
        ui.label(RichText::new(model.name(b.item)).strong());
        if model.is_op(b.item) {
            let shape = model.node_def(b.item).and_then(|def| output_shape(def, 0));
            let shape = shape.map_or(String::new(), |s| format!(" to {s}"));
            ui.label(format!("{}{shape}", model.op(b.item)));
        } else {
            let ops: Vec<String> = model.op_counts(b.item).take(5).map(|(op, n)| format!("{n} {op}")).collect();
            ui.label(format!("{}: {} …", format::count_of(u64::from(model.n_nodes(b.item)), "node"), ops.join(", ")));
        }
        let device = scene.colors.times.device(model, b.item);
        if !device.is_empty() {
            ui.label(RichText::new(device).color(weak));
        }
        let time = scene.colors.times.get(b.item);
        if time.count > 0 {
            let share = format::percent(f64::from(scene.colors.times.share(b.item)));
            ui.label(format!(
                "{} in {} executions, {share}",
                format::duration_ns(time.total_ns),
                format::count(time.count)
            ));
        }
    });
}
