//! Embeddings without egui: `files` lists and reads them, `choices` are the user's, `projection` lays out vectors in a
//! thread, `vectors` has their colours, labels and matches, `sprites` their images.

mod choices;
mod files;
mod projection;
mod sprites;
mod vectors;

pub(super) use choices::{Choices, MethodName};
pub(super) use files::{Folders, ListedEmbedding, Listing, LoadedEmbedding, folders, list, read};
pub(super) use projection::Worker;
pub(super) use sprites::SpriteSheet;
pub(super) use vectors::{ColorBy, Coloring, MAX_GROUPS, label, matching, scaled};
