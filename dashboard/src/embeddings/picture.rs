//! The painted vectors, cached.

use super::model::Sheet;
use egui::{Mesh, Pos2, TextureHandle};
use std::sync::Arc;
use ui::chart::orbit::Orbit;

/// The shapes of the vectors, cached while nothing that they depend on changes.
#[derive(Default)]
pub(super) struct Picture {
    pub key: Option<(u64, Orbit, [u32; 4], usize, bool)>,
    pub placed: Vec<(Pos2, f32)>,
    pub dots: Arc<Mesh>,
    pub images: Arc<Mesh>,
}

/// The sheet of images as a texture.
#[derive(Default)]
pub(super) struct Texture {
    pub sheet: Option<Arc<Sheet>>,
    pub handle: Option<TextureHandle>,
}
