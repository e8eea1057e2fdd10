//! Models: graphs with what training and watching them needs.

mod mlp;

pub use mlp::{Mlp, MlpOptions, mlp};
