//! egui's style of each theme, from the palette and the metrics.

use super::{Palette, metrics};
use egui::{CornerRadius, FontFamily, FontId, Margin, Stroke, Style, TextStyle, Visuals, vec2};

/// Sets both themes of `ctx`. Call once, before the first frame.
pub fn install(ctx: &egui::Context) {
    // Names come from files: a letter that no font has is drawn as a box, in debug builds too.
    ctx.set_missing_glyph_policy(egui::epaint::text::MissingGlyphPolicy::Tofu);
    ctx.style_mut_of(egui::Theme::Dark, |style| {
        fill_style(style, Palette::for_theme(true));
    });
    ctx.style_mut_of(egui::Theme::Light, |style| {
        fill_style(style, Palette::for_theme(false));
    });
}

fn fill_style(style: &mut Style, p: &Palette) {
    let sizes = [
        (TextStyle::Small, metrics::TEXT_SMALL, FontFamily::Proportional),
        (TextStyle::Body, metrics::TEXT, FontFamily::Proportional),
        (TextStyle::Button, metrics::TEXT, FontFamily::Proportional),
        (TextStyle::Heading, metrics::TEXT_TITLE, FontFamily::Proportional),
        (TextStyle::Monospace, metrics::TEXT_SMALL, FontFamily::Monospace),
    ];
    style.text_styles = sizes.into_iter().map(|(name, size, family)| (name, FontId::new(size, family))).collect();
    fill_spacing(style, 1.0);
    style.spacing.window_margin = Margin::same(metrics::GAP_WIDE as i8);
    style.spacing.tooltip_width = 520.0;
    style.spacing.combo_height = metrics::MENU_H;
    style.animation_time = 0.12;
    style.visuals = visuals(p);
}

/// Sets gaps and heights to `factor` times the normal ones.
pub(super) fn fill_spacing(style: &mut Style, factor: f32) {
    style.spacing.item_spacing = vec2(metrics::PAD, metrics::GAP * factor);
    style.spacing.button_padding = vec2(metrics::PAD, 2.0 * factor);
    style.spacing.interact_size = vec2(metrics::ROW_H, metrics::ROW_H * factor);
}

fn visuals(p: &Palette) -> Visuals {
    let mut v = if p.dark { Visuals::dark() } else { Visuals::light() };
    let radius = CornerRadius::same(metrics::RADIUS);
    let hairline = |color| Stroke::new(metrics::HAIRLINE, color);
    v.panel_fill = p.panel;
    v.window_fill = p.panel;
    v.window_stroke = hairline(p.border);
    v.window_corner_radius = CornerRadius::same(2 * metrics::RADIUS);
    v.menu_corner_radius = radius;
    v.extreme_bg_color = p.canvas;
    v.faint_bg_color = p.stripe;
    v.code_bg_color = p.raised;
    v.weak_text_color = Some(p.text_weak);
    v.hyperlink_color = p.accent;
    v.warn_fg_color = p.warning;
    v.error_fg_color = p.error;
    v.selection.bg_fill = p.selected;
    v.selection.stroke = Stroke::new(metrics::HAIRLINE, p.text_strong);
    v.slider_trailing_fill = true;
    for (widget, fill, text) in [
        (&mut v.widgets.noninteractive, p.panel, p.text),
        (&mut v.widgets.inactive, p.raised, p.text),
        (&mut v.widgets.hovered, p.hovered, p.text_strong),
        (&mut v.widgets.active, p.hovered, p.text_strong),
        (&mut v.widgets.open, p.raised, p.text_strong),
    ] {
        widget.bg_fill = fill;
        widget.weak_bg_fill = fill;
        widget.bg_stroke = hairline(p.border);
        widget.fg_stroke = Stroke::new(metrics::HAIRLINE, text);
        widget.corner_radius = radius;
        widget.expansion = 0.0;
    }
    v
}
