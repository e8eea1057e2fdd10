//! Shelf packing of blocks of different sizes.

/// Places blocks in rows, tallest first, so that the result is about `aspect` times as wide as high. Returns each
/// block's top left corner and the total size.
pub(super) fn pack_shelves(sizes: &[[f32; 2]], gap: f32, aspect: f32) -> (Vec<[f32; 2]>, [f32; 2]) {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by(|&a, &b| sizes[b][1].total_cmp(&sizes[a][1]).then(a.cmp(&b)));
    let area: f32 = sizes.iter().map(|s| (s[0] + gap) * (s[1] + gap)).sum();
    let widest = sizes.iter().map(|s| s[0]).fold(0.0, f32::max);
    let row_max = (area * aspect).sqrt().max(widest);
    let mut corners = vec![[0.0; 2]; sizes.len()];
    let (mut x, mut y, mut row_h, mut size) = (0.0_f32, 0.0_f32, 0.0_f32, [0.0_f32; 2]);
    for idx in order {
        let [w, h] = sizes[idx];
        if x > 0.0 && x + w > row_max {
            (x, y, row_h) = (0.0, y + row_h + gap, 0.0);
        }
        corners[idx] = [x, y];
        size = [size[0].max(x + w), size[1].max(y + h)];
        x += w + gap;
        row_h = row_h.max(h);
    }
    (corners, size)
}
