//! Sizes in points (egui's logical pixels). Multiples of 4 unless there is a reason for another size.

pub mod graph;

/// Smallest size of the window.
pub const WINDOW_MIN: [f32; 2] = [640.0, 400.0];
/// Size of a new window.
pub const WINDOW_START: [f32; 2] = [1440.0, 900.0];

/// Least and greatest scale of the window.
pub const SCALE: [f32; 2] = [0.5, 3.0];
/// Difference between two scales.
pub const SCALE_STEP: f32 = 0.1;

/// Size of body text.
pub const TEXT: f32 = 13.0;
/// Size of labels in charts and of secondary text.
pub const TEXT_SMALL: f32 = 11.5;
/// Size of the titles of cards and sections.
pub const TEXT_TITLE: f32 = 14.0;
/// Sizes of headings in Markdown, from the largest of six levels on.
pub const HEADINGS: [f32; 6] = [24.0, 19.0, 16.0, 14.5, 13.0, 12.0];
/// Distance between the two copies of bold letters as a share of their size, at least a pixel.
pub const BOLD_SHARE: f32 = 0.07;
/// Radius of the dot before a list's item in Markdown.
pub const BULLET: f32 = 2.0;
/// Size of the start screen's title.
pub const TEXT_HERO: f32 = 22.0;

/// Gap between controls of a group.
pub const GAP: f32 = 4.0;
/// Gap between groups.
pub const GAP_WIDE: f32 = 12.0;
/// Padding inside panels and cards.
pub const PAD: f32 = 8.0;
/// Corner radius of cards and buttons.
pub const RADIUS: u8 = 4;

/// Height of a row of a list, a table or a track.
pub const ROW_H: f32 = 20.0;
/// Height of the top bar.
pub const TOP_BAR_H: f32 = 36.0;
/// Height of the row of tabs.
pub const TAB_BAR_H: f32 = 28.0;
/// Width of the lists at the side (runs, tags).
pub const SIDE_W: f32 = 216.0;
/// Greatest share of a panel's width that such a list takes by default,
pub const SIDE_DEFAULT_SHARE: f32 = 0.36;
/// and after the user has resized it.
pub const SIDE_SHARE: f32 = 0.75;
/// Least width of such a list, if the panel has room.
pub const SIDE_MIN: f32 = 64.0;
/// Width of the strip that moves such a list's border.
pub const SIDE_BORDER: f32 = 10.0;
/// Points by which an arrow key moves that border.
pub const SIDE_STEP: f32 = 16.0;
/// Greatest share of a panel's height that the toolbar takes while it is closed,
pub const TOOLBAR_SHARE: f32 = 0.2;
/// and while the user has opened it to show all lines.
pub const TOOLBAR_OPEN_SHARE: f32 = 0.75;
/// Greatest share of a panel's height that an editor takes.
pub const EDITOR_SHARE: f32 = 0.4;
/// Room for text at the end of a toolbar.
pub const BAR_NOTE_W: f32 = 280.0;
/// Width from which on the facts about a slice have two columns.
pub const TWO_FACTS_W: f32 = 700.0;

/// Width of a curve.
pub const LINE: f32 = 1.6;
/// Width of a highlighted curve.
pub const LINE_STRONG: f32 = 2.4;
/// Width of grid lines and borders.
pub const HAIRLINE: f32 = 1.0;
/// Radius of a marked point.
pub const DOT: f32 = 3.5;
/// Side of a square that stands for a vector or vertex.
pub const CLOUD_DOT: f32 = 2.5;
/// Width of the image that stands for a vector,
pub const SPRITE: f32 = 20.0;
/// and how many times that width it reaches when the user zooms in.
pub const SPRITE_ZOOM: f32 = 4.0;
/// Diameter of a colour swatch.
pub const SWATCH: f32 = 10.0;

/// Least and greatest width of a card, if the page has room.
pub const CARD_W: [f32; 2] = [320.0, 800.0];
/// Height of a card's chart as a share of its width,
pub const CARD_CHART_ASPECT: f32 = 0.52;
/// and the bounds of that height.
pub const CARD_CHART_H: [f32; 2] = [170.0, 340.0];
/// Height of the chart in a card over the full page width.
pub const CARD_CHART_TALL_H: f32 = 380.0;

/// Least width of slices and nodes with a label.
pub const LABEL_MIN_W: f32 = 36.0;

/// Size of the labels of axes.
pub const TEXT_TICK: f32 = 10.5;
/// Room for the labels of a y axis.
pub const AXIS_LABEL_W: f32 = 46.0;
/// Room for the labels of an x axis.
pub const AXIS_LABEL_H: f32 = 18.0;
/// Approximate distance of vertical grid lines.
pub const TICK_EVERY_X: f32 = 70.0;
/// Approximate distance of horizontal grid lines.
pub const TICK_EVERY_Y: f32 = 36.0;
/// Least size of a zoom box: a smaller one is a click, and a lower one zooms only x.
pub const ZOOM_BOX_MIN: f32 = 6.0;

/// Height of a lane of the timeline, including the hairline below its slices.
pub const LANE_H: f32 = 18.0;
/// Height of the strip in a lane's middle where waits are drawn.
pub const WAIT_H: f32 = 5.0;
/// Width of the track labels.
pub const TRACK_LABELS_W: f32 = 196.0;
/// Width of the percentage next to a track's name.
pub const USE_W: f32 = 50.0;
/// Height of a counter's chart in the timeline.
pub const COUNTER_H: f32 = 38.0;
/// Height of the timeline's minimap.
pub const MINIMAP_H: f32 = 28.0;
/// Height of the timeline's ruler.
pub const RULER_H: f32 = 22.0;
/// Default share of a panel's height that the details below it take.
pub const DETAILS_SHARE: f32 = 0.36;
/// Thickness of the line along critical paths.
pub const PATH_LINE: f32 = 3.0;
/// Length of an arrow's head.
pub const ARROW_HEAD: f32 = 6.0;
/// Least width of stalls that are drawn on the timeline; narrower ones are only listed.
pub const STALL_MIN_W: f32 = 3.0;
/// Least length of a drag; a shorter one is a click.
pub const CLICK_SLACK: f32 = 4.0;

/// Distance from an icon button's edge to its icon.
pub const ICON_INSET: f32 = 5.0;
/// Line width of icons.
pub const ICON_LINE: f32 = 1.4;

/// Default width of dialogs.
pub const DIALOG_W: f32 = 560.0;
/// Width of the settings dialog.
pub const SETTINGS_W: f32 = 380.0;
/// Greatest width of a page of text and tables.
pub const PAGE_W: f32 = 1200.0;
/// Size of a bookmark's flag.
pub const FLAG: f32 = 10.0;
/// Width of the editor of bookmarks.
pub const NOTE_W: f32 = 320.0;
/// Greatest height of a menu of choices.
pub const MENU_H: f32 = 400.0;
/// Rows of the command palette.
pub const PALETTE_ROWS: usize = 14;
/// Distance of the command palette from the top of the window,
pub const PALETTE_TOP: f32 = 72.0;
/// and the greatest share of the window's height that this distance takes.
pub const PALETTE_TOP_SHARE: f32 = 0.1;
/// Least number of rows of a list in a dialog.
pub const LIST_ROWS_MIN: f32 = 3.0;
/// Width of the list of recent paths.
pub const RECENT_W: f32 = 560.0;
/// Shares of that width at which a recent path's kind and folder begin.
pub const RECENT_COLUMNS: [f32; 2] = [0.4, 0.55];
/// Share of the window's height above the start screen's title.
pub const START_TOP_SHARE: f32 = 0.12;
/// Width of a progress bar.
pub const PROGRESS_W: f32 = 96.0;
/// Width of the column of keys in the list of shortcuts,
pub const KEY_COLUMN_W: f32 = 150.0;
/// and the greatest share of the list's width that the column takes.
pub const KEY_COLUMN_SHARE: f32 = 0.4;
/// Gap between docked panels.
pub const TILE_GAP: f32 = 3.0;

/// Width of a filter above cards.
pub const FILTER_W: f32 = 180.0;
/// Width of a column of names.
pub const NAME_W: f32 = 160.0;
/// Greatest share of a table's width that the column of names takes by default.
pub const NAMES_SHARE: f32 = 0.4;
/// Width of a column of figures.
pub const FIGURE_W: f32 = 96.0;
/// Greatest distance of a click from the curve that it picks.
pub const PICK_SLACK: f32 = 8.0;
/// Width of a slider,
pub const SLIDER_W: f32 = 120.0;
/// and the greatest share of a row's width that the slider takes.
pub const SLIDER_SHARE: f32 = 0.35;
/// Height of a card's title.
pub const CARD_HEADER_H: f32 = 26.0;
/// Greatest number of rows of a tooltip.
pub const TOOLTIP_ROWS: usize = 12;
/// Width of the legend of colours next to a picture.
pub const LEGEND_W: f32 = 84.0;
/// Half the width of a mark for a value without a place.
pub const MARK: f32 = 4.0;
/// Least width of a value in a card's title.
pub const VALUE_W: f32 = 64.0;

/// Share of a histogram card's height that the greatest count rises.
pub const RIDGE_RISE: f32 = 0.4;
