//! Pixels: the slices of all visible rows as a picture, cached until one of its inputs changes.

pub mod cache;
pub mod colors;
pub mod labels;
pub mod picture;
pub mod scene;
pub mod span_buffer;
pub mod strips;

pub use self::{
    labels::{fitted, label_font, label_in},
    picture::{Picture, PictureKey},
    scene::Scene,
    span_buffer::SourceVersion,
};
