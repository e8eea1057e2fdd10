//! An area between two lines as one mesh, a triangle strip.

use egui::{Color32, Mesh, Pos2};

/// The area between two lines, given as pairs of points.
pub fn strip(pairs: impl Iterator<Item = [Pos2; 2]>, color: Color32) -> Mesh {
    let mut mesh = Mesh::default();
    for (i, pair) in pairs.enumerate() {
        pair.into_iter().for_each(|point| mesh.colored_vertex(point, color));
        if i > 0 {
            let first = 2 * i as u32;
            mesh.add_triangle(first - 2, first - 1, first);
            mesh.add_triangle(first - 1, first, first + 1);
        }
    }
    mesh
}
