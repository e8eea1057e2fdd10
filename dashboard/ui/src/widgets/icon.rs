//! Icon buttons, drawn as lines: sharp at every scale, and without an emoji font.

use super::named;
use crate::theme::{metrics, palette};
use egui::{Color32, Painter, Rect, Response, Role, Sense, Stroke, Ui, pos2, vec2};

/// The icons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icon {
    /// Two arrows outwards: over the full width.
    Expand,
    /// Two arrows inwards: back to one column.
    Shrink,
    /// A frame: show everything.
    Fit,
    /// Lines at shrinking distances: logarithmic axis.
    Log,
    /// A folder.
    Open,
    /// A question mark.
    Help,
    /// A triangle with an exclamation mark.
    Warning,
    /// A half-filled disc: theme.
    Theme,
    /// A cross.
    Close,
    /// Sliders: settings.
    Settings,
    /// A magnifying glass.
    Search,
    /// An arrow down onto a line: save.
    Save,
    /// Two sheets: copy.
    Copy,
    /// A pin: keep at the top.
    Pin,
    /// A triangle to the right: play.
    Play,
    /// Two bars: pause.
    Pause,
    /// Three dots: show the rest.
    More,
}

/// Shows a button of one row's height. `label`: its accessible name and tooltip; `is_on`: whether it is highlighted.
pub fn icon_button(ui: &mut Ui, icon: Icon, label: &str, is_on: bool) -> Response {
    let (rect, response) = ui.allocate_exact_size(vec2(metrics::ROW_H, metrics::ROW_H), Sense::click());
    named(&response, Role::Button, label);
    if ui.is_rect_visible(rect) {
        let p = palette(ui);
        if response.hovered() || response.has_focus() || is_on {
            ui.painter().rect_filled(rect, f32::from(metrics::RADIUS), p.hovered);
        }
        let color = if is_on {
            p.accent
        } else if response.hovered() {
            p.text_strong
        } else {
            p.text_weak
        };
        paint(ui.painter(), icon, rect.shrink(metrics::ICON_INSET), color);
    }
    response.on_hover_text(label)
}

/// Icons drawn with lines, as SVG paths in a square of 100: `M` begins a line.
const STROKES: &[(Icon, &str)] = &[
    (Icon::Expand, "M55 5 95 5 95 45M45 95 5 95 5 55M95 5 5 95"),
    (Icon::Shrink, "M55 8 55 45 92 45M8 55 45 55 45 92M55 45 98 2M45 55 2 98"),
    (Icon::Fit, "M0 35 0 0 35 0M65 0 100 0 100 35M100 65 100 100 65 100M0 65 0 100 35 100"),
    (Icon::Log, "M5 5 95 5M5 50 95 50M5 75 95 75M5 92 95 92"),
    (Icon::Open, "M0 85 0 15 35 15 45 30 95 30 95 85 0 85"),
    (Icon::Help, "M25 30 30 12 50 3 70 12 74 30 50 52 50 70"),
    (Icon::Warning, "M50 5 100 92 0 92 50 5M50 38 50 62"),
    (Icon::Settings, "M0 15 100 15M0 50 100 50M0 85 100 85"),
    (Icon::Search, "M67 67 100 100"),
    (Icon::Save, "M50 0 50 65M22 38 50 68 78 38M5 95 95 95"),
    (Icon::Copy, "M30 30 100 30 100 100 30 100 30 30M5 70 5 0 75 0"),
    (Icon::Pin, "M30 0 70 0M37 0 37 35 15 60 85 60 63 35 63 0M50 60 50 100"),
    (Icon::Close, "M10 10 90 90M90 10 10 90"),
];

/// Paints an icon into a square.
pub fn paint(painter: &Painter, icon: Icon, rect: Rect, color: Color32) {
    let stroke = Stroke::new(metrics::ICON_LINE, color);
    let at = |x: f32, y: f32| pos2(rect.left() + x * rect.width(), rect.top() + y * rect.height());
    let path = STROKES.iter().find(|(stroked, _)| *stroked == icon).map_or("", |(_, path)| path);
    for line in path.split('M').skip(1) {
        let numbers: Vec<f32> = line.split(' ').filter_map(|number| number.parse().ok()).collect();
        let points = numbers.as_chunks::<2>().0.iter().map(|[x, y]| at(x / 100.0, y / 100.0));
        painter.line(points.collect(), stroke);
    }
    let dot = |x: f32, y: f32, n_lines: f32| _ = painter.circle_filled(at(x, y), n_lines * metrics::ICON_LINE, color);
    match icon {
        Icon::Help => dot(0.5, 0.92, 1.0),
        Icon::Warning => dot(0.5, 0.77, 0.8),
        Icon::Settings => [(0.7, 0.15), (0.25, 0.5), (0.55, 0.85)].into_iter().for_each(|(x, y)| dot(x, y, 1.6)),
        Icon::More => [0.1, 0.5, 0.9].into_iter().for_each(|x| dot(x, 0.5, 1.2)),
        Icon::Search => _ = painter.circle_stroke(at(0.4, 0.4), 0.36 * rect.width(), stroke),
        Icon::Theme => {
            let radius = rect.width() / 2.0;
            painter.circle_stroke(rect.center(), radius, stroke);
            let half = (0..=12).map(|i| {
                let angle = std::f32::consts::FRAC_PI_2 - std::f32::consts::PI * i as f32 / 12.0;
                rect.center() + radius * vec2(angle.cos(), angle.sin())
            });
            painter.add(egui::Shape::convex_polygon(half.collect(), color, Stroke::NONE));
        }
        Icon::Play => {
            let points = vec![at(0.2, 0.0), at(1.0, 0.5), at(0.2, 1.0)];
            painter.add(egui::Shape::convex_polygon(points, color, Stroke::NONE));
        }
        Icon::Pause => {
            for x in [0.15, 0.6] {
                painter.rect_filled(Rect::from_min_max(at(x, 0.0), at(x + 0.25, 1.0)), 0.0, color);
            }
        }
        _ => {}
    }
}
