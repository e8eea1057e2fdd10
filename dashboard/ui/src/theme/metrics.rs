//! Sizes in points (egui's logical pixels). A multiple of 4 where nothing speaks against it.

pub mod graph;

/// Smallest size of the window.
pub const WINDOW_MIN: [f32; 2] = [640.0, 400.0];
/// Size of a new window.
pub const WINDOW_START: [f32; 2] = [1440.0, 900.0];

/// Least and greatest size of everything.
pub const SCALE: [f32; 2] = [0.5, 3.0];
/// From one size to the next.
pub const SCALE_STEP: f32 = 0.1;

/// Body text.
pub const TEXT: f32 = 13.0;
/// Labels in charts, secondary text.
pub const TEXT_SMALL: f32 = 11.5;
/// Titles of cards and sections.
pub const TEXT_TITLE: f32 = 14.0;
/// Headings of texts, from the largest of six levels on.
pub const HEADINGS: [f32; 6] = [24.0, 19.0, 16.0, 14.5, 13.0, 12.0];
/// How far apart bold letters are painted twice, of their size; a pixel at least.
pub const BOLD_SHARE: f32 = 0.07;
/// Radius of the dot before an item of a list in a text.
pub const BULLET: f32 = 2.0;
/// The start screen's title.
pub const TEXT_HERO: f32 = 22.0;

/// Between neighbours that belong together.
pub const GAP: f32 = 4.0;
/// Between groups.
pub const GAP_WIDE: f32 = 12.0;
/// Inside panels and cards.
pub const PAD: f32 = 8.0;
/// Corner radius of cards and buttons.
pub const RADIUS: u8 = 4;

/// Height of a row of a list, a table or a track.
pub const ROW_H: f32 = 20.0;
/// Height of the top bar.
pub const TOP_BAR_H: f32 = 36.0;
/// Height of the row of tabs.
pub const TAB_BAR_H: f32 = 28.0;
/// Width of a side list (runs, tags),
pub const SIDE_W: f32 = 216.0;
/// which is at most this share of a narrow panel until the user says otherwise,
pub const SIDE_USUAL_SHARE: f32 = 0.36;
/// and then this share. Less than this it is not, where there is room.
pub const SIDE_SHARE: f32 = 0.75;
/// See [`SIDE_SHARE`].
pub const SIDE_MIN: f32 = 64.0;
/// Width of the strip by which a side's border is moved.
pub const SIDE_BORDER: f32 = 10.0;
/// By how much an arrow key moves it.
pub const SIDE_STEP: f32 = 16.0;
/// Share of a panel's height that its controls take at most,
pub const TOOLBAR_SHARE: f32 = 0.2;
/// and where the user wants to see all of them.
pub const TOOLBAR_OPEN_SHARE: f32 = 0.75;
/// Share of a panel's height that an editor takes at most.
pub const EDITOR_SHARE: f32 = 0.4;
/// Room for words at the end of a row of controls.
pub const BAR_NOTE_W: f32 = 280.0;
/// From this width on, two facts about a slice stand next to each other.
pub const TWO_FACTS_W: f32 = 700.0;

/// Width of a curve.
pub const LINE: f32 = 1.6;
/// Width of a curve that stands out.
pub const LINE_STRONG: f32 = 2.4;
/// Width of grid lines and borders.
pub const HAIRLINE: f32 = 1.0;
/// Radius of a marked point.
pub const DOT: f32 = 3.5;
/// Side of a point of a cloud.
pub const CLOUD_DOT: f32 = 2.5;
/// Width of an embedding's image in the place of a dot,
pub const SPRITE: f32 = 20.0;
/// and how many times as wide it gets when one comes closer.
pub const SPRITE_ZOOM: f32 = 4.0;
/// Diameter of a colour swatch.
pub const SWATCH: f32 = 10.0;

/// Least and greatest width of a chart's card, as far as there is room.
pub const CARD_W: [f32; 2] = [320.0, 800.0];
/// A card's chart is this share of its width high,
pub const CARD_CHART_ASPECT: f32 = 0.52;
/// within these bounds.
pub const CARD_CHART_H: [f32; 2] = [170.0, 340.0];
/// Height of the chart in a card over the full width.
pub const CARD_CHART_TALL_H: f32 = 380.0;

/// Slices and nodes narrower than this carry no label.
pub const LABEL_MIN_W: f32 = 36.0;

/// Labels of axes.
pub const TEXT_TICK: f32 = 10.5;
/// Room for the labels of a y axis.
pub const AXIS_LABEL_W: f32 = 46.0;
/// Room for the labels of an x axis.
pub const AXIS_LABEL_H: f32 = 18.0;
/// About how far apart grid lines are, left to right.
pub const TICK_EVERY_X: f32 = 70.0;
/// About how far apart grid lines are, top to bottom.
pub const TICK_EVERY_Y: f32 = 36.0;
/// A zoom box smaller than this is a click; lower than this, it zooms x only.
pub const ZOOM_BOX_MIN: f32 = 6.0;

/// Height of a lane of the timeline; its slices are a hairline less.
pub const LANE_H: f32 = 18.0;
/// Height of the strip in a lane that stands for waiting.
pub const QUIET_H: f32 = 5.0;
/// Width of the column with the tracks' names.
pub const GUTTER_W: f32 = 196.0;
/// Room for the percentage next to a track's name.
pub const USE_W: f32 = 50.0;
/// Height of a counter's chart in the timeline.
pub const COUNTER_H: f32 = 38.0;
/// Height of the timeline's overview.
pub const MINIMAP_H: f32 = 28.0;
/// Height of the timeline's ruler.
pub const RULER_H: f32 = 22.0;
/// Share of a panel's height that details below it take at first.
pub const DETAILS_SHARE: f32 = 0.36;
/// Thickness of the line along a critical path.
pub const PATH_LINE: f32 = 3.0;
/// Length of an arrow's head.
pub const ARROW_HEAD: f32 = 6.0;
/// Stalls narrower than this are not marked in place; they stay in the lists.
pub const STALL_MIN_W: f32 = 3.0;
/// A drag shorter than this is a click.
pub const CLICK_SLACK: f32 = 4.0;

/// Between an icon button's edge and its picture.
pub const ICON_INSET: f32 = 5.0;
/// Line width of icons.
pub const ICON_LINE: f32 = 1.4;

/// Width of dialogs.
pub const DIALOG_W: f32 = 560.0;
/// Width of the settings.
pub const SETTINGS_W: f32 = 380.0;
/// Width at which a page of text and tables stops to grow.
pub const PAGE_W: f32 = 1200.0;
/// Size of a bookmark's flag.
pub const FLAG: f32 = 10.0;
/// Width of a bookmark's text.
pub const NOTE_W: f32 = 320.0;
/// Height of a menu of choices, at most.
pub const MENU_H: f32 = 400.0;
/// Rows of the command palette.
pub const PALETTE_ROWS: usize = 14;
/// How far below the top of the window the command palette stands.
pub const PALETTE_TOP: f32 = 72.0;
/// That is at most this share of its height.
pub const PALETTE_TOP_SHARE: f32 = 0.1;
/// Rows of a list in a dialog, at least.
pub const LIST_ROWS_MIN: f32 = 3.0;
/// Width of the list of recent paths.
pub const RECENT_W: f32 = 560.0;
/// Shares of that width at which a recent path's kind and folder begin.
pub const RECENT_COLUMNS: [f32; 2] = [0.4, 0.55];
/// Share of the window's height above the start screen's title.
pub const START_TOP_SHARE: f32 = 0.12;
/// Width of a progress bar.
pub const PROGRESS_W: f32 = 96.0;
/// Column of keys in the list of shortcuts.
pub const KEY_COLUMN_W: f32 = 150.0;
/// That is at most this share of a narrow list.
pub const KEY_COLUMN_SHARE: f32 = 0.4;
/// Between docked panels.
pub const TILE_GAP: f32 = 3.0;

/// Width of a filter above cards.
pub const FILTER_W: f32 = 180.0;
/// Width of a column of names.
pub const NAME_W: f32 = 160.0;
/// Of a table's width, what its names take at most before the user says otherwise.
pub const NAMES_SHARE: f32 = 0.4;
/// Width of a column of figures.
pub const FIGURE_W: f32 = 96.0;
/// A click this near to a curve picks its run.
pub const PICK_SLACK: f32 = 8.0;
/// Width of a slider,
pub const SLIDER_W: f32 = 120.0;
/// which is at most this share of a narrow row.
pub const SLIDER_SHARE: f32 = 0.35;
/// Height of a card's title.
pub const CARD_HEADER_H: f32 = 26.0;
/// Rows of a tooltip.
pub const TOOLTIP_ROWS: usize = 12;
/// Width of the column that explains the colours.
pub const LEGEND_W: f32 = 84.0;
/// Half the width of a mark for a value without a place.
pub const MARK: f32 = 4.0;
/// Room that a value in a card's title takes at least.
pub const VALUE_W: f32 = 64.0;

/// Share of a histogram card's height that the greatest count rises.
pub const RIDGE_RISE: f32 = 0.4;
