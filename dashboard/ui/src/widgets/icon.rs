//! Buttons with a drawn picture: crisp at every scale, and no emoji font is needed.

use super::named;
use crate::theme::{metrics, palette};
use egui::{Color32, Painter, Rect, Response, Role, Sense, Stroke, Ui, pos2, vec2};

/// The pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icon {
    /// Two arrows outwards: over the full width.
    Expand,
    /// Two arrows inwards: back to one column.
    Shrink,
    /// A frame: show everything.
    Fit,
    /// Lines that come closer: logarithmic axis.
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
    /// Three dots: what there was no room for.
    More,
}

/// A button of one row's height with a picture; `label` is its name and its tooltip. `is_on` lights it.
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

/// Places in the unit square, from the top left corner.
type Stroked = &'static [(f32, f32)];

/// What is drawn with lines.
const STROKES: &[(Icon, &[Stroked])] = &[
    (
        Icon::Expand,
        &[
            &[(0.55, 0.05), (0.95, 0.05), (0.95, 0.45)],
            &[(0.45, 0.95), (0.05, 0.95), (0.05, 0.55)],
            &[(0.95, 0.05), (0.05, 0.95)],
        ],
    ),
    (
        Icon::Shrink,
        &[
            &[(0.55, 0.08), (0.55, 0.45), (0.92, 0.45)],
            &[(0.08, 0.55), (0.45, 0.55), (0.45, 0.92)],
            &[(0.55, 0.45), (0.98, 0.02)],
            &[(0.45, 0.55), (0.02, 0.98)],
        ],
    ),
    (
        Icon::Fit,
        &[
            &[(0.0, 0.35), (0.0, 0.0), (0.35, 0.0)],
            &[(1.0, 0.35), (1.0, 0.0), (0.65, 0.0)],
            &[(1.0, 0.65), (1.0, 1.0), (0.65, 1.0)],
            &[(0.0, 0.65), (0.0, 1.0), (0.35, 1.0)],
        ],
    ),
    (
        Icon::Log,
        &[
            &[(0.05, 0.05), (0.95, 0.05)],
            &[(0.05, 0.5), (0.95, 0.5)],
            &[(0.05, 0.75), (0.95, 0.75)],
            &[(0.05, 0.92), (0.95, 0.92)],
        ],
    ),
    (Icon::Open, &[&[(0.0, 0.85), (0.0, 0.15), (0.35, 0.15), (0.45, 0.3), (0.95, 0.3), (0.95, 0.85), (0.0, 0.85)]]),
    (Icon::Help, &[&[(0.25, 0.3), (0.3, 0.12), (0.5, 0.03), (0.7, 0.12), (0.74, 0.3), (0.5, 0.52), (0.5, 0.7)]]),
    (Icon::Warning, &[&[(0.5, 0.05), (1.0, 0.92), (0.0, 0.92), (0.5, 0.05)], &[(0.5, 0.38), (0.5, 0.62)]]),
    (Icon::Settings, &[&[(0.0, 0.15), (1.0, 0.15)], &[(0.0, 0.5), (1.0, 0.5)], &[(0.0, 0.85), (1.0, 0.85)]]),
    (Icon::Search, &[&[(0.67, 0.67), (1.0, 1.0)]]),
    (
        Icon::Save,
        &[&[(0.5, 0.0), (0.5, 0.65)], &[(0.22, 0.38), (0.5, 0.68), (0.78, 0.38)], &[(0.05, 0.95), (0.95, 0.95)]],
    ),
    (
        Icon::Copy,
        &[&[(0.3, 0.3), (1.0, 0.3), (1.0, 1.0), (0.3, 1.0), (0.3, 0.3)], &[(0.05, 0.7), (0.05, 0.0), (0.75, 0.0)]],
    ),
    (
        Icon::Pin,
        &[
            &[(0.3, 0.0), (0.7, 0.0)],
            &[(0.37, 0.0), (0.37, 0.35), (0.15, 0.6), (0.85, 0.6), (0.63, 0.35), (0.63, 0.0)],
            &[(0.5, 0.6), (0.5, 1.0)],
        ],
    ),
    (Icon::Close, &[&[(0.1, 0.1), (0.9, 0.9)], &[(0.9, 0.1), (0.1, 0.9)]]),
];

/// Draws a picture into a square.
pub fn paint(painter: &Painter, icon: Icon, rect: Rect, color: Color32) {
    let stroke = Stroke::new(metrics::ICON_LINE, color);
    let at = |x: f32, y: f32| pos2(rect.left() + x * rect.width(), rect.top() + y * rect.height());
    let strokes = STROKES.iter().filter(|(of, _)| *of == icon).flat_map(|(_, strokes)| *strokes);
    for points in strokes {
        painter.line(points.iter().map(|(x, y)| at(*x, *y)).collect(), stroke);
    }
    let dot = |x: f32, y: f32, lines: f32| _ = painter.circle_filled(at(x, y), lines * metrics::ICON_LINE, color);
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
