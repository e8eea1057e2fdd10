//! Sizes in the graph, in points at zoom 1.

/// Gap between boxes of a rank.
pub const NODE_GAP: f32 = 14.0;
/// Gap between an edge and its neighbours in a rank.
pub const EDGE_GAP: f32 = 9.0;
/// Gap between ranks.
pub const RANK_GAP: f32 = 30.0;
/// Gap between parts that no edge joins.
pub const PART_GAP: f32 = 26.0;
/// Room that a port takes on a border.
pub const PORT_W: f32 = 10.0;
/// Padding inside an open scope.
pub const SCOPE_PAD: f32 = 16.0;
/// Gap left and right of the line at the side area.
pub const SIDE_GAP: f32 = 16.0;
/// Height of the title of an open scope.
pub const TITLE_H: f32 = 24.0;
/// Least width of an open scope.
pub const SCOPE_MIN_W: f32 = 140.0;
/// Height of the line "and N more".
pub const MORE_H: f32 = 28.0;
/// Height of a closed scope of one node; grows with the logarithm of the node count up to [`SCOPE_MAX_H`].
pub const SCOPE_H: f32 = 36.0;
/// Greatest height of a closed scope.
pub const SCOPE_MAX_H: f32 = 60.0;
/// Width next to the label of a closed scope, for the button and the count.
pub const BOX_PAD: f32 = 58.0;
/// Least width of a closed scope.
pub const BOX_MIN_W: f32 = 84.0;
/// Greatest width of a closed scope.
pub const BOX_MAX_W: f32 = 220.0;
/// Height of a node.
pub const OP_H: f32 = 22.0;
/// Width next to the label of a node.
pub const OP_PAD: f32 = 20.0;
/// Least width of a node.
pub const OP_MIN_W: f32 = 44.0;
/// Greatest width of a node.
pub const OP_MAX_W: f32 = 170.0;
/// Width of a letter of a label, for boxes sized before any text is drawn.
pub const CHAR_W: f32 = 6.6;
/// Room for annotations next to a box.
pub const NOTE_W: f32 = 74.0;
/// Height of an annotation.
pub const NOTE_H: f32 = 13.0;
/// Size of the text of labels.
pub const LABEL: f32 = 12.0;
/// Size of the text of counts, annotations and shapes.
pub const LABEL_SMALL: f32 = 9.5;
/// Least and greatest width of an edge.
pub const EDGE_W: [f32; 2] = [1.0, 6.0];
/// Length of an arrow head.
pub const ARROW: f32 = 6.0;
/// Width of the minimap.
pub const MINIMAP_W: f32 = 180.0;
/// Greatest height of the minimap.
pub const MINIMAP_H: f32 = 140.0;
/// Width of the details panel.
pub const DETAILS_W: f32 = 300.0;
/// Height of the bars of the selected item's steps.
pub const STEPS_H: f32 = 56.0;
/// Side of the button that opens and closes a scope.
pub const BUTTON: f32 = 14.0;
/// Distance from a scope's border to the frame that marks a loop or a conditional.
pub const CONTROL_FRAME: f32 = 3.0;
