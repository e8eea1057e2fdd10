//! A picture as shapes: `camera` and `motion` say where it is on the screen, `color` what boxes are filled with;
//! `scene` joins them for a frame, `visible` paints what is in view with `boxes`, `notes` and `edges`; `minimap` and
//! `legend` lie over it. `export` writes a picture as text.

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
pub(super) use legend::{corner_of, legend_ui};
pub(super) use minimap::minimap_ui;
pub(super) use motion::{Flight, Transition};
pub(super) use scene::Scene;
pub(super) use visible::paint;
