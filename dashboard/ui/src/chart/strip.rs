//! An area between two lines as one mesh.

use egui::{Color32, Mesh, Pos2};

/// The area between two lines, given as pairs of points.
pub fn strip(pairs: impl Iterator<Item = [Pos2; 2]>, color: Color32) -> Mesh {
    let mut mesh = Mesh::default();
    for (i, pair) in pairs.enumerate() {
        pair.into_iter().for_each(|point| mesh.colored_vertex(point, color));
        if i > 0 {
            let v = 2 * i as u32;
            mesh.add_triangle(v - 2, v - 1, v);
            mesh.add_triangle(v - 1, v, v + 1);
        }
    }
    mesh
}
