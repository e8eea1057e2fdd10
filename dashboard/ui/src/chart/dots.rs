//! Many dots as one mesh, which costs as much as one shape.

use egui::{Color32, Mesh, Pos2, vec2};

/// The corners of a dot. An octagon looks round at a few pixels.
const CORNERS: [[f32; 2]; 8] = [
    [1.0, 0.0],
    [0.707, 0.707],
    [0.0, 1.0],
    [-0.707, 0.707],
    [-1.0, 0.0],
    [-0.707, -0.707],
    [0.0, -1.0],
    [0.707, -0.707],
];

/// Adds a dot around `center`.
pub fn add(mesh: &mut Mesh, center: Pos2, radius: f32, color: Color32) {
    let first = mesh.vertices.len() as u32;
    for [x, y] in CORNERS {
        mesh.colored_vertex(center + radius * vec2(x, y), color);
    }
    for i in 1..CORNERS.len() as u32 - 1 {
        mesh.add_triangle(first, first + i, first + i + 1);
    }
}
