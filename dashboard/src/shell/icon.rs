//! The window's icon, drawn here: three tracks with slices, as in the timeline.

use egui::IconData;
use ui::theme::Palette;

const SIZE: usize = 64;
/// Slices as (track, left, right, colour index) on a 16-column grid.
const SLICES: [(usize, usize, usize, usize); 7] =
    [(0, 1, 9, 0), (0, 10, 15, 1), (1, 2, 5, 2), (1, 6, 14, 5), (2, 1, 4, 3), (2, 5, 11, 0), (2, 12, 15, 2)];

/// The icon: 64 by 64 pixels, RGBA.
pub fn app_icon() -> IconData {
    let p = Palette::for_theme(true);
    let mut rgba = vec![0; SIZE * SIZE * 4];
    let mut fill = |x0: usize, y0: usize, x1: usize, y1: usize, color: egui::Color32| {
        for y in y0..y1 {
            for x in x0..x1 {
                let at = 4 * (y * SIZE + x);
                rgba[at..at + 4].copy_from_slice(&color.to_srgba_unmultiplied());
            }
        }
    };
    fill(0, 0, SIZE, SIZE, p.canvas);
    for (track, left, right, color) in SLICES {
        let top = 8 + 17 * track;
        fill(4 * left, top, 4 * right - 1, top + 13, p.series(color));
    }
    IconData { rgba, width: SIZE as u32, height: SIZE as u32 }
}
