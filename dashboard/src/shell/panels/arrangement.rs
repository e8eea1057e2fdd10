//! The arrangement of the panels: stored in a file, and applied to the tree of tiles.

use crate::{ViewKind, lenient::valid_elements};
use egui_tiles::{Container, Linear, LinearDir, Tile, TileId, Tiles, Tree};
use serde::{Deserialize, Serialize};

/// A part of the window. As JSON: `"timeline"`, `{"tabs": [..], "front": 0}`, `{"row": [..], "shares": [..]}`,
/// `{"column": ..}`. Panels that this version does not know are left out.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Layout {
    Panel(ViewKind),
    /// Panels that share their space; one is in front.
    Tabs {
        /// Index of the panel in front.
        #[serde(default)]
        front: usize,
        /// From left to right.
        #[serde(rename = "tabs", deserialize_with = "valid_elements")]
        parts: Vec<Layout>,
    },
    /// Next to each other.
    Row {
        /// Widths, relative.
        #[serde(default, deserialize_with = "valid_elements")]
        shares: Vec<f32>,
        /// From left to right.
        #[serde(rename = "row", deserialize_with = "valid_elements")]
        parts: Vec<Layout>,
    },
    /// One above the other.
    Column {
        /// Heights, relative.
        #[serde(default, deserialize_with = "valid_elements")]
        shares: Vec<f32>,
        /// From top to bottom.
        #[serde(rename = "column", deserialize_with = "valid_elements")]
        parts: Vec<Layout>,
    },
}

impl Layout {
    /// Panels in one row of tabs.
    pub fn tabs(kinds: impl IntoIterator<Item = ViewKind>) -> Self {
        Self::Tabs { front: 0, parts: kinds.into_iter().map(Self::Panel).collect() }
    }

    /// The arrangement of a tree. Grids count as rows.
    pub fn from_tree(tree: &Tree<ViewKind>) -> Self {
        tree.root().and_then(|root| Self::of_tile(&tree.tiles, root)).unwrap_or_else(|| Self::tabs([]))
    }

    fn of_tile(tiles: &Tiles<ViewKind>, id: TileId) -> Option<Self> {
        let container = match tiles.get(id)? {
            Tile::Pane(kind) => return Some(Self::Panel(*kind)),
            Tile::Container(container) => container,
        };
        let part = |child: &TileId| Some((*child, Self::of_tile(tiles, *child)?));
        let (children, parts): (Vec<TileId>, Vec<Self>) = container.children().filter_map(part).unzip();
        Some(match container {
            Container::Tabs(tabs) => {
                let front = children.iter().position(|child| Some(*child) == tabs.active).unwrap_or(0);
                Self::Tabs { front, parts }
            }
            Container::Linear(linear) => {
                let shares = children.iter().map(|child| linear.shares[*child]).collect();
                match linear.dir {
                    LinearDir::Horizontal => Self::Row { shares, parts },
                    LinearDir::Vertical => Self::Column { shares, parts },
                }
            }
            Container::Grid(_) => Self::Row { shares: vec![1.0; children.len()], parts },
        })
    }

    /// A tree with this arrangement of the panels `kinds`. Each panel is in it once: repetitions are left out, and
    /// missing panels are added to a row of tabs.
    pub fn tree(&self, kinds: impl IntoIterator<Item = ViewKind>) -> Tree<ViewKind> {
        let mut tiles = Tiles::default();
        let mut missing: Vec<ViewKind> = kinds.into_iter().collect();
        let mut root = self.insert(&mut tiles, &mut missing);
        if !missing.is_empty() {
            let rest: Vec<TileId> = missing.iter().map(|kind| tiles.insert_pane(*kind)).collect();
            let first_tabs = tiles.iter().find(|(_, t)| matches!(t, Tile::Container(Container::Tabs(_)))).map(|t| *t.0);
            match first_tabs.and_then(|id| tiles.get_mut(id)) {
                Some(Tile::Container(tabs)) => rest.into_iter().for_each(|tile| tabs.add_child(tile)),
                _ => {
                    let children = root.into_iter().chain(rest).collect();
                    root = Some(tiles.insert_tab_tile(children));
                }
            }
        }
        let root = root.unwrap_or_else(|| tiles.insert_tab_tile(Vec::new()));
        Tree::new(egui::Id::unique("panels"), root, tiles)
    }

    fn insert(&self, tiles: &mut Tiles<ViewKind>, missing: &mut Vec<ViewKind>) -> Option<TileId> {
        let mut all = |parts: &[Self], tiles: &mut Tiles<ViewKind>| -> Vec<(usize, TileId)> {
            let children = parts.iter().enumerate();
            children.filter_map(|(nth, part)| Some((nth, part.insert(tiles, missing)?))).collect()
        };
        match self {
            Self::Panel(kind) => {
                let at = missing.iter().position(|k| k == kind)?;
                missing.remove(at);
                Some(tiles.insert_pane(*kind))
            }
            Self::Tabs { front, parts } => {
                let children = all(parts, tiles);
                if children.is_empty() {
                    return None;
                }
                let id = tiles.insert_tab_tile(children.iter().map(|(_, id)| *id).collect());
                let active = children.iter().find(|(nth, _)| nth == front).map(|(_, id)| *id);
                if let (Some(active), Some(Tile::Container(Container::Tabs(tabs)))) = (active, tiles.get_mut(id)) {
                    tabs.set_active(active);
                }
                Some(id)
            }
            Self::Row { shares, parts } | Self::Column { shares, parts } => {
                let dir = if matches!(self, Self::Row { .. }) { LinearDir::Horizontal } else { LinearDir::Vertical };
                let children = all(parts, tiles);
                let mut linear = Linear::new(dir, children.iter().map(|(_, id)| *id).collect());
                for (nth, id) in &children {
                    linear.shares.set_share(*id, shares.get(*nth).copied().unwrap_or(1.0).clamp(0.05, 20.0));
                }
                (!children.is_empty()).then(|| tiles.insert_container(linear))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_arrangement_survives_the_tree_and_the_file() {
        let rest: Vec<Layout> = ViewKind::ALL
            .into_iter()
            .filter(|k| *k != ViewKind::Timeline && *k != ViewKind::Graph)
            .map(Layout::Panel)
            .collect();
        let split = Layout::Row {
            shares: vec![0.5, 1.5],
            parts: vec![
                Layout::Tabs { front: 1, parts: rest },
                Layout::Column {
                    shares: vec![1.0, 2.0],
                    parts: vec![
                        Layout::Tabs { front: 0, parts: vec![Layout::Panel(ViewKind::Graph)] },
                        Layout::Tabs { front: 0, parts: vec![Layout::Panel(ViewKind::Timeline)] },
                    ],
                },
            ],
        };
        for layout in [Layout::tabs(ViewKind::ALL), split] {
            assert_eq!(Layout::from_tree(&layout.tree(ViewKind::ALL)), layout);
            let text = serde_json::to_string(&layout).unwrap();
            assert_eq!(serde_json::from_str::<Layout>(&text).unwrap(), layout);
        }
    }

    #[test]
    fn every_panel_is_there_once_whatever_the_file_says() {
        for text in [
            r#"{"tabs":["ops","ops","nowhere"],"front":77}"#,
            r#"{"row":[{"tabs":[]},{"column":[]}],"shares":[null]}"#,
            r#""ops""#,
        ] {
            let layout: Layout = serde_json::from_str(text).unwrap();
            let tree = layout.tree(ViewKind::ALL);
            let (mut kinds, mut below_root) = (Vec::new(), vec![tree.root().unwrap()]);
            while let Some(id) = below_root.pop() {
                match tree.tiles.get(id).unwrap() {
                    Tile::Pane(kind) => kinds.push(*kind),
                    Tile::Container(container) => below_root.extend(container.children()),
                }
            }
            kinds.sort_unstable();
            assert_eq!(kinds, ViewKind::ALL, "{text}");
            assert!(!tree.is_empty());
        }
        assert!(serde_json::from_str::<Layout>("5").is_err());
    }
}
