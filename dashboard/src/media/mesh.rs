//! Meshes and point clouds, which a drag turns.

use super::decode::MediaValue;
use egui::{Mesh, Rect, Sense, Shape, Ui};
use std::sync::Arc;
use summaries::MeshPart;
use ui::{
    chart::orbit::Orbit,
    format,
    theme::{Palette, metrics, mix, palette, shaded},
    widgets,
};

/// Faces and points that are drawn, at most. Of more, every n-th is drawn.
const MAX_DRAWN: usize = 100_000;

/// The state of a part of a mesh: vertices, faces or colours.
#[derive(Clone, Debug, Default)]
pub enum PartState {
    /// The run has no such part.
    #[default]
    Missing,
    /// The part is being read.
    Reading,
    /// The part, or the reason why it cannot be shown.
    Read(Arc<MediaValue>),
}

impl From<Option<Arc<MediaValue>>> for PartState {
    fn from(value: Option<Arc<MediaValue>>) -> Self {
        value.map_or(Self::Reading, Self::Read)
    }
}

impl PartState {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Read(a), Self::Read(b)) => Arc::ptr_eq(a, b),
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }

    fn part(&self) -> Option<&MeshPart> {
        let Self::Read(shown) = self else { return None };
        if let MediaValue::Mesh(part) = &**shown { Some(part) } else { None }
    }

    /// The reason why a part of the run cannot be drawn.
    fn error(&self) -> Option<&str> {
        let Self::Read(shown) = self else { return None };
        if let MediaValue::Text(why) = &**shown { Some(why) } else { None }
    }
}

/// The cached state of a card.
#[derive(Default)]
pub struct MeshCard {
    orbit: Orbit,
    of: [PartState; 3],
    model: Model,
    drawn: Option<(Orbit, [u32; 4], usize, Arc<Mesh>)>,
}

/// A mesh scaled into the unit ball.
#[derive(Debug, Default, PartialEq)]
struct Model {
    vertices: Vec<[f32; 3]>,
    faces: Vec<[u32; 3]>,
    /// The colour of each vertex; empty without colours.
    colors: Vec<[u8; 3]>,
    /// A note about errors and omissions.
    note: Option<String>,
}

impl Model {
    /// The model of parts in any state; the note names missing and unreadable ones.
    fn of_states(states: &[PartState; 3]) -> Self {
        let mut model = Self::from_parts([states[0].part(), states[1].part(), states[2].part()]);
        let mut notes: Vec<String> = states.iter().filter_map(|state| Some(state.error()?.to_owned())).collect();
        if let PartState::Missing = states[0] {
            notes.push("nothing to draw: the run has no vertices of this mesh at this step".into());
        } else if states[0].part().is_some() && model.vertices.is_empty() {
            notes.push("nothing to draw: the mesh has no vertices at this step".into());
        }
        notes.extend(model.note.take());
        model.note = (!notes.is_empty()).then(|| notes.join(", "));
        model
    }

    /// The model of vertices, faces and colours: of the first mesh of their batches.
    fn from_parts(parts: [Option<&MeshPart>; 3]) -> Self {
        let rows = |part: Option<&MeshPart>| -> Vec<[f64; 3]> {
            let Some(part) = part else { return Vec::new() };
            let n = part.values.shape.iter().rev().nth(1).copied().unwrap_or(0);
            part.values.values.chunks_exact(3).take(n).map(|v| [v[0], v[1], v[2]]).collect()
        };
        let [vertices, faces, colors] = parts.map(rows);
        let n_batch = parts[0].map_or(1, |part| part.values.shape.iter().rev().nth(2).copied().unwrap_or(1));
        let n = vertices.len();
        let n_faces = faces.len();
        let corner = |x: f64| (x >= 0.0 && x < n as f64).then_some(x as u32);
        let face = |[a, b, c]: [f64; 3]| Some([corner(a)?, corner(b)?, corner(c)?]);
        let faces: Vec<[u32; 3]> = faces.into_iter().filter_map(face).collect();
        let mut notes = Vec::new();
        if faces.len() < n_faces {
            notes.push(format!("{} faces have no such vertices", n_faces - faces.len()));
        }
        if n_batch > 1 {
            notes.push(format!("the first of {n_batch}"));
        }
        let n_drawn = if faces.is_empty() { n } else { faces.len() };
        if n_drawn > MAX_DRAWN {
            notes.push(format!("one of {} drawn", n_drawn.div_ceil(MAX_DRAWN)));
        }
        if !colors.is_empty() && colors.len() != n {
            notes.push(format!("without its colours: {} for {n} vertices", colors.len()));
        }
        let colors: Vec<[u8; 3]> = colors.into_iter().map(|c| c.map(|x| x.clamp(0.0, 255.0) as u8)).collect();
        let colors = if colors.len() == n { colors } else { Vec::new() };
        Self { vertices: fitted(&vertices), faces, colors, note: (!notes.is_empty()).then(|| notes.join(", ")) }
    }
}

/// Moves and scales vertices into the unit ball. Vertices that are not finite are put in its middle.
fn fitted(vertices: &[[f64; 3]]) -> Vec<[f32; 3]> {
    let finite = || vertices.iter().filter(|v| v.iter().all(|x| x.is_finite()));
    let (mut lo, mut hi) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
    for v in finite() {
        for i in 0..3 {
            (lo[i], hi[i]) = (lo[i].min(v[i]), hi[i].max(v[i]));
        }
    }
    let middle = [0, 1, 2].map(|i| (lo[i] + hi[i]) / 2.0);
    let radius = finite().map(|v| (0..3).map(|i| (v[i] - middle[i]).powi(2)).sum::<f64>().sqrt()).fold(0.0, f64::max);
    let scale = if radius > 0.0 { 1.0 / radius } else { 0.0 };
    let place = |v: &[f64; 3]| {
        let is_finite = v.iter().all(|x| x.is_finite());
        [0, 1, 2].map(|i| if is_finite { ((v[i] - middle[i]) * scale) as f32 } else { 0.0 })
    };
    vertices.iter().map(place).collect()
}

impl MeshCard {
    /// Shows the mesh of these parts, as far as they are read.
    pub fn ui(&mut self, ui: &mut Ui, name: &str, parts: [PartState; 3]) {
        if !self.of.iter().zip(&parts).all(|(known, part)| known.is_same(part)) {
            self.model = Model::of_states(&parts);
            self.of = parts;
            self.drawn = None;
        }
        let rect = ui.max_rect();
        let response = ui.interact(rect, ui.scope_id().with("mesh"), Sense::click_and_drag());
        widgets::describe(&response, || {
            let vertices = format::count_of_irregular(self.model.vertices.len() as u64, "vertex", "vertices");
            let faces = format::count_of(self.model.faces.len() as u64, "face");
            let colors = format::count_of(self.model.colors.len() as u64, "colour");
            let note = self.model.note.as_ref().map_or_else(String::new, |note| format!(", {note}"));
            format!("Mesh {name}: {vertices}, {faces}, {colors}{note}")
        });
        self.orbit.input(ui, &response, false);
        let p = palette(ui);
        let of = (self.orbit, [rect.min.x, rect.min.y, rect.max.x, rect.max.y].map(f32::to_bits), p.id());
        let mesh = match &self.drawn {
            Some((orbit, at, palette, mesh)) if (*orbit, *at, *palette) == of => Arc::clone(mesh),
            _ => {
                let mesh = Arc::new(draw(&self.model, &self.orbit, rect, p));
                self.drawn = Some((of.0, of.1, of.2, Arc::clone(&mesh)));
                mesh
            }
        };
        ui.painter_at(rect).add(Shape::Mesh(mesh));
        if let Some(note) = &self.model.note {
            let font = egui::FontId::proportional(metrics::TEXT_SMALL);
            let galley = ui.painter().layout(note.clone(), font, p.text_weak, rect.width() - 2.0 * metrics::GAP);
            let at = rect.left_bottom() + egui::vec2(metrics::GAP, -metrics::GAP - galley.size().y);
            ui.painter().galley(at, galley, p.text_weak);
        }
    }
}

/// Draws faces from the farthest to the nearest, lit from the eye; without faces, the vertices as dots.
fn draw(model: &Model, orbit: &Orbit, rect: Rect, p: &Palette) -> Mesh {
    let placed: Vec<_> = model.vertices.iter().map(|v| orbit.project(rect, *v, false)).collect();
    let color = |i: usize| model.colors.get(i).map_or(p.series(0), |[r, g, b]| ui::theme::rgb(*r, *g, *b));
    let mut mesh = Mesh::default();
    if model.faces.is_empty() {
        let stride = placed.len().div_ceil(MAX_DRAWN).max(1);
        let mut order: Vec<usize> = (0..placed.len()).step_by(stride).collect();
        order.sort_by(|a, b| placed[*b].1.total_cmp(&placed[*a].1));
        for i in order {
            let (at, depth) = placed[i];
            let near = mix(p.canvas, color(i), 0.85 - 0.35 * depth.clamp(-0.4, 1.0));
            mesh.add_colored_rect(Rect::from_center_size(at, egui::Vec2::splat(metrics::CLOUD_DOT)), near);
        }
        return mesh;
    }
    let stride = model.faces.len().div_ceil(MAX_DRAWN).max(1);
    let mut order: Vec<(f32, [usize; 3])> = model
        .faces
        .iter()
        .step_by(stride)
        .map(|face| {
            let corners = face.map(|i| i as usize);
            (corners.iter().map(|i| placed[*i].1).sum::<f32>(), corners)
        })
        .collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (_, corners) in order {
        let light = light(corners.map(|i| (placed[i].0.x, placed[i].0.y, placed[i].1)), rect.height());
        let first = mesh.vertices.len() as u32;
        for i in corners {
            mesh.colored_vertex(placed[i].0, shaded(color(i), light));
        }
        mesh.add_triangle(first, first + 1, first + 2);
    }
    mesh
}

/// The brightness of a face: how much it turns to the eye, 0 to 1.
fn light([a, b, c]: [(f32, f32, f32); 3], height: f32) -> f32 {
    let scale = 0.45 * height.max(1.0);
    let side = |p: (f32, f32, f32), q: (f32, f32, f32)| [(q.0 - p.0) / scale, (q.1 - p.1) / scale, q.2 - p.2];
    let ([ax, ay, az], [bx, by, bz]) = (side(a, b), side(a, c));
    let normal = [ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx];
    let length = normal.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > 0.0 { (normal[2] / length).abs() } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use formats::{plugins::mesh_plugin_data::ContentType, proto::DataType};
    use summaries::NumberTensor;

    fn part(n_batch: usize, values: &[f64]) -> MeshPart {
        let shape = vec![n_batch, values.len() / 3 / n_batch, 3];
        let values = NumberTensor { dtype: DataType::DtFloat, shape, values: values.to_vec() };
        MeshPart { mesh: "m".into(), content: ContentType::Vertex, values }
    }

    #[test]
    fn vertices_fill_the_unit_ball_and_faces_have_vertices() {
        let vertices = part(2, &[0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0]);
        let faces = part(1, &[0.0, 1.0, 0.0, 0.0, 1.0, 7.0, -1.0, 0.0, 0.0]);
        let model = Model::from_parts([Some(&vertices), Some(&faces), None]);
        assert_eq!(model.vertices, [[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]);
        assert_eq!(model.faces, [[0, 1, 0]]);
        assert_eq!(model.note.as_deref(), Some("2 faces have no such vertices, the first of 2"));
        assert_eq!(Model::from_parts([None, None, None]), Model::default());
        let few = Model::from_parts([Some(&vertices), None, Some(&part(1, &[1.0, 2.0, 3.0]))]);
        assert_eq!(few.note.as_deref(), Some("the first of 2, without its colours: 1 for 2 vertices"));
        let empty = PartState::Read(Arc::new(MediaValue::Mesh(part(1, &[]))));
        for (vertices, note) in [
            (PartState::Missing, Some("nothing to draw: the run has no vertices of this mesh at this step")),
            (PartState::Reading, None),
            (empty, Some("nothing to draw: the mesh has no vertices at this step")),
            (PartState::Read(Arc::new(MediaValue::Text("torn".into()))), Some("torn")),
        ] {
            let model = Model::of_states(&[vertices, PartState::Missing, PartState::Missing]);
            assert_eq!(model.note.as_deref(), note);
        }
        let nowhere = Model::from_parts([Some(&part(1, &[f64::NAN, 0.0, 0.0, 1.0, 1.0, 1.0])), None, None]);
        assert_eq!(nowhere.vertices, [[0.0; 3], [0.0; 3]]);
    }
}
