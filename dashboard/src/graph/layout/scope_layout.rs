//! The layout of an open scope: boxes, edges and annotations in the coordinates of the scope.

use crate::graph::model::{ItemId, MetaEdge};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Children of one scope that are drawn; the rest is counted as "and N more".
pub const MAX_CHILDREN: usize = 1_500;
/// Annotations on one side of a box that are drawn; the rest is counted.
pub const MAX_NOTES: usize = 5;

/// The open scopes; the root is always open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expansion {
    pub open: FxHashSet<ItemId>,
    /// Scopes whose children are all drawn, however many.
    pub unlimited: FxHashSet<ItemId>,
}

/// The meaning of an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// A constant that feeds the node.
    Constant,
    /// A summary op that records the node.
    Summary,
    /// The other end of an edge that is not drawn.
    Shortcut,
    /// The other end of a control edge that is not drawn.
    Control,
    /// The number of further annotations.
    More(u32),
}

/// An annotation next to a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// The item at the other end; the annotated item itself for [`NoteKind::More`].
    pub item: ItemId,
    pub kind: NoteKind,
}

/// A box in the layout of its scope.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BoxLayout {
    pub item: ItemId,
    /// Middle of the box, from the scope's top left corner.
    pub center: [f32; 2],
    pub size: [f32; 2],
    /// The layout of the children, if the box is open.
    pub inner: Option<Arc<ScopeLayout>>,
    /// Whether the box is in the side area.
    pub is_auxiliary: bool,
    pub notes_in: Arc<[Note]>,
    pub notes_out: Arc<[Note]>,
}

/// An edge between two children, or between a border and a child; in the coordinates of the scope or of the picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EdgeLayout {
    /// The shown edges, whose ends are boxes of the lowest common scope.
    pub metaedge: MetaEdge,
    /// The index of the scope, among those of the picture, whose layout has the points; 0 in a scope's layout.
    pub scope_idx: u32,
    /// Start and end of the edge's points among those of the scope.
    pub point_range: [u32; 2],
    /// Left, top, right, bottom of the points.
    pub bounds: [f32; 4],
    pub width: f32,
    /// Whether the edge ends at its consumer, rather than continuing across a border.
    pub has_head: bool,
}

/// The layout of an open scope.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ScopeLayout {
    pub size: [f32; 2],
    pub boxes: Vec<BoxLayout>,
    pub edges: Vec<EdgeLayout>,
    pub points: Vec<[f32; 2]>,
    /// Entry points of edges from outside items: offsets from the middle of the lower border.
    pub in_ports: FxHashMap<ItemId, f32>,
    /// Exit points of edges to outside items: offsets from the middle of the upper border.
    pub out_ports: FxHashMap<ItemId, f32>,
    /// Left border of the side area, if there is one.
    pub side_x: Option<f32>,
    /// Children that are not drawn.
    pub n_hidden: u32,
}
