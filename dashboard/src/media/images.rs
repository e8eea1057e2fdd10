//! Images in a card, next to each other. Brightness and contrast are common to all cards, the zoom is each card's own.

use super::decode::{MediaValue, Picture};
use egui::{Rect, Response, Role, Sense, Slider, Stroke, TextureHandle, TextureOptions, Ui, Vec2, pos2, vec2};
use std::sync::Arc;
use ui::{
    format,
    theme::{self, metrics, palette},
    widgets::{self, group, named},
};

/// Brightness and contrast that can be chosen, percent.
const PERCENT: std::ops::RangeInclusive<u32> = 0..=400;
/// Greatest width of an image's pixel, points.
const MAX_PIXEL: f32 = 64.0;

/// Brightness and contrast of all images, percent; 100 leaves the values unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tone {
    /// Factor of a channel's values.
    pub brightness: u32,
    /// Factor of the values' distance from the middle.
    pub contrast: u32,
}

impl Default for Tone {
    fn default() -> Self {
        Self { brightness: 100, contrast: 100 }
    }
}

impl Tone {
    /// Shows the sliders and the button that resets them.
    pub fn ui(&mut self, ui: &mut Ui) {
        for (name, value) in [("Brightness", &mut self.brightness), ("Contrast", &mut self.contrast)] {
            group(ui, name, |ui| {
                ui.weak(name.to_lowercase());
                let response = ui.add(Slider::new(value, PERCENT).suffix(" %"));
                named(&response, Role::Slider, name);
            });
        }
        if *self != Self::default() && ui.button("Reset").on_hover_text("Show images as they are").clicked() {
            *self = Self::default();
        }
    }

    /// The displayed value for each value of a channel: contrast first, then brightness.
    fn curve(self) -> [u8; 256] {
        let (brightness, contrast) = (f64::from(self.brightness) / 100.0, f64::from(self.contrast) / 100.0);
        std::array::from_fn(|value| (((value as f64 - 127.5) * contrast + 127.5) * brightness).round() as u8)
    }

    /// The pixels of a picture with this tone.
    fn applied(self, rgba: &[u8]) -> Vec<u8> {
        let curve = self.curve();
        let mut out = rgba.to_vec();
        for [red, green, blue, _] in out.as_chunks_mut::<4>().0 {
            for channel in [red, green, blue] {
                *channel = curve[usize::from(*channel)];
            }
        }
        out
    }
}

#[derive(Default)]
pub struct ImageCard {
    /// The value and tone that the textures were made from.
    of: Option<(Arc<MediaValue>, Tone)>,
    textures: Vec<TextureHandle>,
    view: ImageView,
}

/// The visible part of the images, the same for all images of a card.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ImageView {
    /// 1 fits the entire image.
    zoom: f32,
    /// The middle of the visible part as shares of the image's size.
    middle: Vec2,
}

impl Default for ImageView {
    fn default() -> Self {
        Self { zoom: 1.0, middle: vec2(0.5, 0.5) }
    }
}

impl ImageView {
    /// The rectangle of the image, of which `fitted` is the rectangle at zoom 1.
    fn rect(&self, fitted: Rect) -> Rect {
        let size = fitted.size() * self.zoom;
        Rect::from_min_size(fitted.center() - size * self.middle, size)
    }

    /// Handles drags, Ctrl and the wheel, and double clicks.
    fn input(&mut self, ui: &Ui, response: &Response, fitted: Rect, n_pixels: f32) {
        if response.dragged() {
            self.middle -= response.drag_delta() / self.rect(fitted).size();
        }
        let zoom = ui.input(egui::InputState::zoom_delta);
        if let (true, Some(at)) = (zoom != 1.0, response.hover_pos()) {
            let most = (MAX_PIXEL * n_pixels / fitted.width().max(1.0)).max(1.0);
            let zoomed = (self.zoom * zoom).clamp(1.0, most);
            // The point under the pointer stays there.
            let under = (at - self.rect(fitted).min) / self.rect(fitted).size();
            self.zoom = zoomed;
            self.middle = under - (at - fitted.center()) / self.rect(fitted).size();
        }
        if response.double_clicked() {
            *self = Self::default();
        }
        let reach = 0.5 / self.zoom;
        self.middle = self.middle.clamp(Vec2::splat(reach), Vec2::splat(1.0 - reach));
    }
}

impl ImageCard {
    /// Shows the images in all of `ui`'s space.
    pub fn ui(&mut self, ui: &mut Ui, tag: &str, shown: &Arc<MediaValue>, pictures: &[Picture], tone: Tone) {
        if !self.of.as_ref().is_some_and(|(of, with)| Arc::ptr_eq(of, shown) && *with == tone) {
            let texture = |picture: &Picture| {
                let image = theme::picture(picture.size, &tone.applied(&picture.rgba));
                ui.ctx().load_texture(tag, image, TextureOptions::NEAREST)
            };
            self.textures = pictures.iter().map(texture).collect();
            self.of = Some((Arc::clone(shown), tone));
        }
        let inner = ui.max_rect();
        let width = inner.width() / self.textures.len().max(1) as f32;
        ui.horizontal(|ui| {
            for (texture, picture) in self.textures.iter().zip(pictures) {
                let size = texture.size_vec2();
                let scale = (width / size.x).min(inner.height() / size.y);
                let (fitted, response) = ui.allocate_exact_size(size * scale, Sense::click_and_drag());
                self.view.input(ui, &response, fitted, size.x);
                let zoom = self.view.zoom;
                widgets::describe(&response, || {
                    let closer = if zoom > 1.0 {
                        format!(", {} times as large", format::value(f64::from(zoom)))
                    } else {
                        String::new()
                    };
                    format!("Image {tag}: {} x {} pixels{closer}", size.x, size.y)
                });
                let whole = Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0));
                let rect = self.view.rect(fitted);
                ui.painter().with_clip_rect(fitted.intersect(ui.clip_rect())).image(
                    texture.id(),
                    rect,
                    whole,
                    theme::UNTINTED,
                );
                pointed(ui, &response, rect, picture);
            }
        });
    }
}

/// Shows a tooltip with the pixel under the pointer, with the values of the file.
fn pointed(ui: &Ui, response: &Response, rect: Rect, picture: &Picture) {
    let Some(at) = response.hover_pos().filter(|_| !response.dragged()) else { return };
    let [width, height] = picture.size;
    let share = (at - rect.min) / rect.size();
    let [x, y] = [(share.x, width), (share.y, height)].map(|(share, n)| ((share * n as f32) as usize).min(n - 1));
    let first = 4 * (y * width + x);
    let Some([red, green, blue, alpha]) = picture.rgba.get(first..first + 4) else { return };
    let side = rect.width() / width as f32;
    if side >= metrics::MARK {
        let pixel = Rect::from_min_size(rect.min + side * vec2(x as f32, y as f32), Vec2::splat(side));
        let stroke = Stroke::new(metrics::HAIRLINE, palette(ui).highlight);
        ui.painter().with_clip_rect(response.rect).rect_stroke(pixel, 0.0, stroke, egui::StrokeKind::Outside);
    }
    let is_grey = red == green && green == blue;
    let value = if is_grey { red.to_string() } else { format!("{red}, {green}, {blue}") };
    let clear = if *alpha < 255 { format!(", alpha {alpha}") } else { String::new() };
    response.clone().on_hover_text_at_pointer(format!("x {x}, y {y}: {value}{clear}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contrast_then_brightness() {
        let rgba = [0, 100, 200, 7];
        assert_eq!(Tone::default().applied(&rgba), rgba);
        assert_eq!(Tone { brightness: 150, ..Tone::default() }.applied(&rgba), [0, 150, 255, 7]);
        assert_eq!(Tone { contrast: 200, ..Tone::default() }.applied(&rgba), [0, 73, 255, 7]);
        assert_eq!(Tone { contrast: 0, brightness: 50 }.applied(&rgba), [64, 64, 64, 7], "grey, half as bright");
    }

    #[test]
    fn an_image_fills_its_place_however_close_it_is() {
        let fitted = Rect::from_min_size(pos2(10.0, 20.0), vec2(100.0, 50.0));
        assert_eq!(ImageView::default().rect(fitted), fitted);
        let closer = ImageView { zoom: 4.0, middle: vec2(0.125, 0.875) };
        let rect = closer.rect(fitted);
        assert!(rect.contains_rect(fitted) && rect.size() == vec2(400.0, 200.0), "{rect:?}");
        assert_eq!((rect.min.x, rect.max.y), (fitted.min.x, fitted.max.y), "its corner is in the corner");
    }
}
