//! A part of the window's picture as a PNG file.

use egui::{ColorImage, Rect};
use std::io;

/// The pixels of `rect` (in points) of a screenshot of the window, as a PNG file.
///
/// # Errors
/// When no part of the rectangle is in the screenshot, or the pixels cannot be encoded.
pub fn encode(image: &ColorImage, rect: Rect, pixels_per_point: f32) -> io::Result<Vec<u8>> {
    let [width, height] = image.size;
    let to_pixels = |points: f32, max: usize| ((points * pixels_per_point).round().max(0.0) as usize).min(max);
    let (x0, x1) = (to_pixels(rect.left(), width), to_pixels(rect.right(), width));
    let (y0, y1) = (to_pixels(rect.top(), height), to_pixels(rect.bottom(), height));
    if x0 >= x1 || y0 >= y1 {
        return Err(io::Error::other("the panel is not on the screen"));
    }
    let rows = image.pixels.chunks_exact(width).take(y1).skip(y0);
    let bytes: Vec<u8> = rows.flat_map(|row| &row[x0..x1]).flat_map(egui::Color32::to_srgba_unmultiplied).collect();
    let mut out = Vec::new();
    let mut encoder = ::png::Encoder::new(&mut out, (x1 - x0) as u32, (y1 - y0) as u32);
    encoder.set_color(::png::ColorType::Rgba);
    encoder.set_depth(::png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(&bytes)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use egui::{Color32, pos2};

    #[test]
    fn the_part_at_two_pixels_a_point() {
        let image = ColorImage::new([8, 6], (0..48).map(|i| Color32::from_additive_luminance(5 * i)).collect());
        let rect = Rect::from_min_max(pos2(1.0, 1.0), pos2(3.0, 99.0));
        let bytes = encode(&image, rect, 2.0).unwrap();
        let mut reader = ::png::Decoder::new(io::Cursor::new(bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (4, 4));
        assert_eq!(pixels[..4], image.pixels[2 * 8 + 2].to_srgba_unmultiplied());
        assert!(encode(&image, Rect::from_min_max(pos2(50.0, 0.0), pos2(60.0, 9.0)), 2.0).is_err());
    }
}
