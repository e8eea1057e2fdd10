//! Paints a picture. `camera` and `motion` map it to the screen, `color` fills its boxes; `scene` has the inputs of a
//! frame, and `visible` paints the part in view with `boxes`, `notes` and `edges`; `minimap` and `legend` are overlays.
//! `export` writes a picture as text.

mod boxes;
mod camera;
mod color;
mod edges;
mod export;
mod legend;
mod minimap;
mod motion;
mod notes;
mod scene;
mod visible;

pub(super) use boxes::button_rect;
pub(super) use camera::Camera;
pub use color::ColorBy;
pub(super) use color::{COLOR_MODES, Colors, assign_structure_colors};
pub(super) use export::{Export, csv, dot, svg};
pub(super) use legend::{legend_rect, legend_ui};
pub(super) use minimap::minimap_ui;
pub(super) use motion::{Flight, Transition};
pub(super) use scene::Scene;
pub(super) use visible::paint;
