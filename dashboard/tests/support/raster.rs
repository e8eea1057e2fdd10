//! Pictures of frames without a GPU: the triangles that a frame tessellates to, filled as OpenGL does for the real window.
//!
//! One pixel a point. Colours are premultiplied and blended as they are stored, as egui's painters do. The same numbers on
//! every machine, up to what the processor makes of a fraction: see [`super::picture`] for what is forgiven.

use egui::{
    Color32, ColorImage, ImageData, Mesh, Pos2, Rect, TextureFilter, TextureId, TextureOptions, TexturesDelta,
    epaint::{ClippedPrimitive, Primitive, Vertex},
};
use egui_kittest::TestRenderer;
use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    rc::Rc,
};

/// The textures of a context, as its frames set them.
#[derive(Clone, Default)]
pub struct Textures(Rc<RefCell<TextureSet>>);

#[derive(Default)]
struct TextureSet {
    images: HashMap<TextureId, (ColorImage, TextureOptions)>,
    /// What goes once the next frame begins.
    leaving: HashSet<TextureId>,
}

impl TestRenderer for Textures {
    fn handle_delta(&mut self, delta: &mut TexturesDelta) {
        let mut known = self.0.borrow_mut();
        for id in std::mem::take(&mut known.leaving) {
            known.images.remove(&id);
        }
        for (id, part) in delta.set.drain().flat_map(|(id, parts)| parts.into_iter().map(move |part| (id, part))) {
            let ImageData::Color(image) = &part.image;
            match (part.pos, known.images.get_mut(&id)) {
                (Some([x, y]), Some((whole, _))) => {
                    for row in 0..image.height() {
                        let (from, to) = (row * image.width(), (y + row) * whole.width() + x);
                        whole.pixels[to..to + image.width()].copy_from_slice(&image.pixels[from..from + image.width()]);
                    }
                }
                _ => drop(known.images.insert(id, ((**image).clone(), part.options))),
            }
        }
        known.leaving.extend(delta.free.drain());
    }
}

/// An opaque picture.
#[derive(Clone, PartialEq, Eq)]
pub struct Pixels {
    pub width: usize,
    pub height: usize,
    /// Red, green, blue; rows from the top.
    pub rgb: Vec<[u8; 3]>,
}

impl Pixels {
    /// Black.
    pub fn new(width: usize, height: usize) -> Self {
        Self { width, height, rgb: vec![[0; 3]; width * height] }
    }

    /// Fills a rectangle, in pixels.
    pub fn fill(&mut self, rect: Rect, color: [u8; 3]) {
        let within = rect.intersect(self.rect());
        for y in within.top().round() as usize..within.bottom().round() as usize {
            let row = y * self.width;
            self.rgb[row + within.left().round() as usize..row + within.right().round() as usize].fill(color);
        }
    }

    fn rect(&self) -> Rect {
        Rect::from_min_size(Pos2::ZERO, egui::vec2(self.width as f32, self.height as f32))
    }

    /// Draws what a frame tessellated to.
    pub fn draw(&mut self, primitives: &[ClippedPrimitive], textures: &Textures) {
        let known = textures.0.borrow();
        for ClippedPrimitive { clip_rect, primitive } in primitives {
            let Primitive::Mesh(mesh) = primitive else { continue };
            let Some((image, options)) = known.images.get(&mesh.texture_id) else { continue };
            let clip = clip_rect.intersect(self.rect());
            if clip.is_positive() {
                self.mesh(mesh, clip, &Sampler { image, is_linear: options.magnification == TextureFilter::Linear });
            }
        }
    }

    fn mesh(&mut self, mesh: &Mesh, clip: Rect, sampler: &Sampler<'_>) {
        // As the scissor of OpenGL: whole pixels.
        let (x0, x1) = (clip.left().round() as usize, clip.right().round() as usize);
        let (y0, y1) = (clip.top().round() as usize, clip.bottom().round() as usize);
        for corners in mesh.indices.as_chunks::<3>().0 {
            let triangle = corners.map(|i| mesh.vertices[i as usize]);
            let paint = Paint::new(&triangle, sampler);
            let (top, bottom) = extent(triangle.map(|v| v.pos.y));
            for y in first(top).max(y0)..first(bottom).min(y1) {
                let Some((left, right)) = crossing(&triangle, y as f32 + 0.5) else { continue };
                for x in first(left).max(x0)..first(right).min(x1) {
                    let place = y * self.width + x;
                    self.rgb[place] = over(self.rgb[place], paint.at(x as f32 + 0.5, y as f32 + 0.5, sampler));
                }
            }
        }
    }
}

/// The first pixel whose middle is at or after this.
fn first(at: f32) -> usize {
    (at - 0.5).ceil().max(0.0) as usize
}

fn extent(values: [f32; 3]) -> (f32, f32) {
    values.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(lo, hi), v| (lo.min(*v), hi.max(*v)))
}

/// Where a row's middle enters a triangle and leaves it. Two triangles that share an edge get the same number for it: no
/// pixel is drawn twice or left out.
fn crossing(triangle: &[Vertex; 3], y: f32) -> Option<(f32, f32)> {
    let mut found: Option<(f32, f32)> = None;
    for i in 0..3 {
        let (mut a, mut b) = (triangle[i].pos, triangle[(i + 1) % 3].pos);
        if a.y > b.y {
            (a, b) = (b, a);
        }
        if a.y <= y && y < b.y {
            let x = a.x + (y - a.y) * (b.x - a.x) / (b.y - a.y);
            found = Some(found.map_or((x, x), |(left, right)| (left.min(x), right.max(x))));
        }
    }
    found
}

/// Premultiplied colour over an opaque one.
fn over(ground: [u8; 3], [r, g, b, a]: [f32; 4]) -> [u8; 3] {
    let left = 1.0 - a / 255.0;
    let mix = |ground: u8, ink: f32| (ink + f32::from(ground) * left + 0.5).clamp(0.0, 255.0) as u8;
    [mix(ground[0], r), mix(ground[1], g), mix(ground[2], b)]
}

/// What a triangle puts on its pixels: u, v, red, green, blue, alpha at an origin, and how each changes along x and y.
struct Paint {
    origin: Pos2,
    at_origin: [f32; 6],
    by_x: [f32; 6],
    by_y: [f32; 6],
    /// The one colour of a triangle that has one.
    flat: Option<[f32; 4]>,
}

impl Paint {
    fn new(triangle: &[Vertex; 3], sampler: &Sampler<'_>) -> Self {
        let values = triangle.map(|v| {
            let [r, g, b, a] = v.color.to_array().map(f32::from);
            [v.uv.x, v.uv.y, r, g, b, a]
        });
        let [a, b, c] = triangle.map(|v| v.pos);
        let (ab, ac) = (b - a, c - a);
        let area = ab.x * ac.y - ab.y * ac.x;
        let inverse = if area == 0.0 { 0.0 } else { area.recip() };
        let slopes = |i: usize| {
            let (to_b, to_c) = (values[1][i] - values[0][i], values[2][i] - values[0][i]);
            ((to_b * ac.y - to_c * ab.y) * inverse, (to_c * ab.x - to_b * ac.x) * inverse)
        };
        let slopes: [(f32, f32); 6] = std::array::from_fn(slopes);
        let is_flat = values[1] == values[0] && values[2] == values[0];
        let flat = is_flat.then(|| tinted(sampler.at(values[0][0], values[0][1]), &values[0]));
        Self { origin: a, at_origin: values[0], by_x: slopes.map(|s| s.0), by_y: slopes.map(|s| s.1), flat }
    }

    fn at(&self, x: f32, y: f32, sampler: &Sampler<'_>) -> [f32; 4] {
        if let Some(flat) = self.flat {
            return flat;
        }
        let (dx, dy) = (x - self.origin.x, y - self.origin.y);
        let values: [f32; 6] = std::array::from_fn(|i| self.at_origin[i] + dx * self.by_x[i] + dy * self.by_y[i]);
        tinted(sampler.at(values[0], values[1]), &values)
    }
}

/// A texel times a vertex's colour.
fn tinted(texel: [f32; 4], values: &[f32; 6]) -> [f32; 4] {
    std::array::from_fn(|i| texel[i] * values[2 + i].clamp(0.0, 255.0) / 255.0)
}

/// A texture, clamped to its edge.
struct Sampler<'a> {
    image: &'a ColorImage,
    is_linear: bool,
}

impl Sampler<'_> {
    fn at(&self, u: f32, v: f32) -> [f32; 4] {
        let [w, h] = self.image.size;
        let (x, y) = (u * w as f32, v * h as f32);
        if !self.is_linear {
            return self.texel(x.floor(), y.floor());
        }
        let (x, y) = (x - 0.5, y - 0.5);
        let (fx, fy) = (x - x.floor(), y - y.floor());
        let mut out = [0.0; 4];
        for (dx, wx) in [(0.0, 1.0 - fx), (1.0, fx)] {
            for (dy, wy) in [(0.0, 1.0 - fy), (1.0, fy)] {
                if wx * wy > 0.0 {
                    let texel = self.texel(x.floor() + dx, y.floor() + dy);
                    out.iter_mut().zip(texel).for_each(|(sum, part)| *sum += wx * wy * part);
                }
            }
        }
        out
    }

    fn texel(&self, x: f32, y: f32) -> [f32; 4] {
        let [w, h] = self.image.size;
        let (x, y) = ((x.max(0.0) as usize).min(w.saturating_sub(1)), (y.max(0.0) as usize).min(h.saturating_sub(1)));
        self.image.pixels.get(y * w + x).copied().unwrap_or(Color32::TRANSPARENT).to_array().map(f32::from)
    }
}
