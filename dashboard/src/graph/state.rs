//! The state of the panel, and the commands that change it.

use super::{
    analysis::{self, Changes, StepCosts, Summaries, Times},
    layout::{BoxLayout, Expansion, MAX_CHILDREN, Picture, Update, Worker},
    model::{ItemId, Kind, Model},
    paint::{Camera, ColorBy, Export, Flight, Transition, assign_structure_colors},
    panels::Search,
};
use crate::{Data, Selection, ViewKind};
use egui::{Context, Pos2, Rect};
use formats::proto::GraphDef;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Boxes that one "Expand one level" adds at most.
const MAX_OPEN_LEVEL: usize = 20_000;

/// The Graph panel's state.
#[derive(Default)]
pub struct GraphView {
    pub(super) graph_idx: usize,
    pub(super) color_by: ColorBy,
    pub(super) selected: Option<ItemId>,
    pub(super) hovered: Option<ItemId>,
    /// The highlighted items of a trace or a path.
    pub(super) traced: Option<FxHashSet<ItemId>>,
    /// The start of a path whose end is to be picked.
    pub(super) path_from: Option<ItemId>,
    /// A message about the last command.
    pub(super) notice: Option<&'static str>,
    pub(super) search: Search,
    /// A command of the palette, for the next frame.
    pub(super) command: Option<&'static str>,
    /// Whether the first node with a NaN or an infinity is to be shown once it is known.
    pub(super) seeks_first_non_finite: bool,
    /// The graph that an address names.
    pub(super) requested_graph: Option<Box<str>>,
    /// The format to copy in the next frame.
    pub(super) export: Option<Export>,
    pub(super) times: Times,
    pub(super) step_costs: StepCosts,
    pub(super) changes: Changes,
    /// The graph to compare with; `None` for the one before it in the list, or after the first.
    pub(super) compare_with: Option<Box<str>>,
    pub(super) summaries: Summaries,
    /// Colour by class of structure.
    pub(super) structure_colors: FxHashMap<u32, usize>,
    pub(super) camera: Camera,
    /// Whether to fit the graph as soon as the size of the view is known.
    pub(super) needs_fit: bool,
    /// Whether the graph was fitted and the camera has not moved since, so that changes of the view's size fit it
    /// again.
    pub(super) is_fitted: bool,
    /// The item to bring into view as soon as it is drawn.
    pub(super) center_on: Option<ItemId>,
    pub(super) flight: Option<Flight>,
    pub(super) transition: Option<Transition>,
    pub(super) model: Option<Arc<Model>>,
    pub(super) picture: Arc<Picture>,
    /// The clicked box and its position on the screen, which the next picture keeps.
    anchor: Option<(ItemId, Pos2)>,
    /// The size of the legend in the last frame.
    pub(super) legend_size: egui::Vec2,
    /// The rect of the view in the last frame.
    pub(super) view: Option<Rect>,
    expansion: Expansion,
    def: Option<Arc<GraphDef>>,
    worker: Option<Worker>,
    /// The last seen revision of the common node selection.
    node_revision: u64,
    /// The selection that the other panels know.
    shared_selection: Option<ItemId>,
    /// The full name of a node that another panel selected, until there is a model to find it in.
    requested_node: Option<Arc<str>>,
}

impl GraphView {
    /// Whether a model or a picture is being made.
    pub fn is_busy(&self) -> bool {
        self.worker.as_ref().is_some_and(Worker::is_busy)
    }

    /// Sets the property that the colours show.
    pub fn color_by(&mut self, by: ColorBy) {
        self.color_by = by;
    }

    /// Returns the index of the graph to compare with, if another one is open.
    pub(super) fn other_graph(&self, data: &Data) -> Option<usize> {
        let name = self.compare_with.as_deref();
        let named = data.graphs.iter().position(|g| Some(&*g.name) == name).filter(|&idx| idx != self.graph_idx);
        let neighbour = if self.graph_idx == 0 { 1 } else { self.graph_idx - 1 };
        named.or((neighbour < data.graphs.len()).then_some(neighbour))
    }

    /// Takes up new data, finished work and selections of other panels.
    pub(super) fn update(&mut self, ctx: &Context, data: &Data, selection: &mut Selection) {
        let now = ctx.input(|i| i.time);
        self.graph_idx = self.graph_idx.min(data.graphs.len().saturating_sub(1));
        if let Some(graph) = data.graphs.get(self.graph_idx)
            && !self.def.as_ref().is_some_and(|def| Arc::ptr_eq(def, &graph.def))
        {
            self.def = Some(Arc::clone(&graph.def));
            let worker = self.worker.get_or_insert_with(|| {
                let ctx = ctx.clone();
                Worker::start(move || ctx.request_repaint())
            });
            worker.build(Arc::clone(&graph.def));
        }
        match self.worker.as_mut().and_then(Worker::take) {
            Some(Update::Model(model)) => self.take_model(&model),
            Some(Update::Picture(model, picture)) => {
                let visible = picture.boxes.iter().map(|b| b.item);
                assign_structure_colors(&model, visible, &mut self.structure_colors);
                self.take_picture(picture, now);
            }
            None => {}
        }
        if let Some(name) = selection.node.news(ViewKind::Graph, &mut self.node_revision) {
            self.requested_node = Some(Arc::clone(name));
        }
        let Some(model) = self.model.clone() else { return };
        if let Some(item) = self.requested_node.take().and_then(|name| model.find(&name)) {
            self.reveal(&model, item);
            self.shared_selection = self.selected;
        }
        match self.other_graph(data).filter(|_| self.color_by == ColorBy::Change) {
            Some(other) => self.changes.update(ctx, &model, &data.graphs[other].def),
            None => self.changes.clear(),
        }
        let range = selection.time.get().map(|range| (range.trace_idx, range.ns.clone()));
        let input = analysis::Input { ctx, model: &model, data };
        self.times.update(input, range);
    }

    /// Transfers the open scopes and the selection to a new model, by name.
    fn take_model(&mut self, model: &Arc<Model>) {
        let old = self.model.replace(Arc::clone(model));
        let transfer = |item: ItemId| old.as_ref().and_then(|old| model.find(old.name(item)));
        let mut open: FxHashSet<ItemId> = self.expansion.open.iter().filter_map(|&i| transfer(i)).collect();
        let unlimited = self.expansion.unlimited.iter().filter_map(|&i| transfer(i)).collect();
        self.selected = self.selected.and_then(transfer);
        self.shared_selection = self.selected;
        (self.traced, self.path_from, self.notice) = (None, None, None);
        (self.anchor, self.hovered, self.center_on) = (None, None, None);
        // Items of the old picture are indices of the old model.
        self.picture = Arc::default();
        self.structure_colors.clear();
        self.needs_fit |= self.is_fitted;
        if old.is_none() {
            open = initially_open(model);
            self.needs_fit = true;
        }
        self.expansion = Expansion { open, unlimited };
        self.transition = None;
        self.redraw(model);
    }

    fn take_picture(&mut self, picture: Arc<Picture>, now: f64) {
        let old = std::mem::replace(&mut self.picture, picture);
        let mut shift = [0.0; 2];
        if let Some((item, at)) = self.anchor.take()
            && let (Some(new), Some(view)) = (self.picture.find(item), self.view)
        {
            let top = |b: &BoxLayout| [b.center()[0], b.rect[1]];
            if let Some(old) = old.find(item) {
                shift = [top(new)[0] - top(old)[0], top(new)[1] - top(old)[1]];
            }
            self.camera.move_point_to(view, top(new), at);
            self.flight = None;
            if new.is_open {
                self.fly_to_include(view, new.rect, now);
            }
        }
        if !old.boxes.is_empty() && old.boxes.len() + self.picture.boxes.len() < 4_000 {
            self.transition = Some(Transition::new(old, shift, now));
        }
    }

    /// Moves the camera as far as needed to show all of `rect`, without zooming in.
    fn fly_to_include(&mut self, view: Rect, rect: [f32; 4], now: f64) {
        if view.contains_rect(self.camera.rect_to_screen(view, rect)) {
            return;
        }
        let mut to = self.camera;
        to.fit(view, rect);
        if to.zoom > self.camera.zoom {
            to.zoom = self.camera.zoom;
        }
        self.flight = Some(Flight { from: self.camera, to, start: now });
    }

    /// Moves the camera so that `rect` is in the middle and legible.
    pub(super) fn fly_to(&mut self, view: Rect, rect: [f32; 4], now: f64) {
        let mut to = self.camera;
        to.fit(view, rect);
        to.zoom = to.zoom.min(self.camera.zoom.max(1.0));
        self.flight = Some(Flight { from: self.camera, to, start: now });
    }

    fn redraw(&mut self, model: &Arc<Model>) {
        if let Some(worker) = &mut self.worker {
            worker.draw(Arc::clone(model), self.expansion.clone());
        }
    }

    pub(super) fn select(&mut self, item: Option<ItemId>) {
        if self.selected != item {
            self.traced = None;
            self.notice = None;
        }
        if item.is_none() {
            self.path_from = None;
        }
        self.selected = item;
    }

    /// Shares the selection with the other panels, if it changed here.
    pub(super) fn share_selection(&mut self, model: &Model, selection: &mut Selection) {
        if self.selected != self.shared_selection {
            self.shared_selection = self.selected;
            let named = self.selected.filter(|&i| !matches!(model.kind(i), Kind::Series | Kind::Library));
            selection.node.set(ViewKind::Graph, named.map(|i| model.name(i).into()));
        }
    }

    /// Expands or collapses a scope; its box stays where it is on the screen.
    pub(super) fn toggle(&mut self, model: &Arc<Model>, item: ItemId) {
        if !model.is_expandable(item) {
            return;
        }
        if !self.expansion.open.remove(&item) {
            self.expansion.open.insert(item);
        }
        if let (Some(b), Some(view)) = (self.picture.find(item), self.view) {
            self.anchor = Some((item, self.camera.to_screen(view, [b.center()[0], b.rect[1]])));
        }
        self.redraw(model);
    }

    /// Expands the scopes around an item, selects the item and brings it into view.
    pub(super) fn reveal(&mut self, model: &Arc<Model>, item: ItemId) {
        let host = model.host(item);
        let (mut scope, mut has_changed) = (model.parent(host), false);
        loop {
            has_changed |= scope != ItemId::ROOT && self.expansion.open.insert(scope);
            if model.children(scope).len() > MAX_CHILDREN && self.picture.find(host).is_none() {
                has_changed |= self.expansion.unlimited.insert(scope);
            }
            if scope == ItemId::ROOT {
                break;
            }
            scope = model.parent(scope);
        }
        self.select(Some(item));
        self.center_on = Some(item);
        if has_changed {
            self.redraw(model);
        }
    }

    /// Expands every visible scope of the selected scope, or of the whole graph, by one level.
    pub(super) fn open_level(&mut self, model: &Arc<Model>) {
        let scope = self.selected.filter(|&i| !model.is_op(i)).unwrap_or(ItemId::ROOT);
        let closed: Vec<ItemId> = self
            .picture
            .boxes
            .iter()
            .filter(|b| !b.is_open && model.is_expandable(b.item) && model.is_below(b.item, scope))
            .map(|b| b.item)
            .collect();
        let mut n_left = MAX_OPEN_LEVEL;
        for item in closed {
            let n = model.children(item).len().min(MAX_CHILDREN);
            if n <= n_left {
                n_left -= n;
                self.expansion.open.insert(item);
            }
        }
        self.needs_fit = scope == ItemId::ROOT;
        self.redraw(model);
    }

    /// Collapses the selected scope or the one around the selected node; without a selection, all.
    pub(super) fn close(&mut self, model: &Arc<Model>) {
        let scope = self.selected.map(|i| if self.expansion.open.contains(&i) { i } else { model.parent(i) });
        match scope {
            Some(scope) if scope != ItemId::ROOT => {
                self.select(Some(scope));
                if self.expansion.open.contains(&scope) {
                    self.toggle(model, scope);
                }
            }
            _ => self.close_all(model),
        }
    }

    /// Collapses every scope.
    pub(super) fn close_all(&mut self, model: &Arc<Model>) {
        self.expansion.open.clear();
        self.needs_fit = true;
        self.redraw(model);
    }

    /// Draws all children of the selected scope or of the root.
    pub(super) fn show_all_children(&mut self, model: &Arc<Model>) {
        let scope = self.selected.map_or(ItemId::ROOT, |i| if model.is_op(i) { model.parent(i) } else { i });
        if self.expansion.unlimited.insert(scope) {
            self.redraw(model);
        }
    }

    /// Highlights everything that the selection depends on or (`forward`) that depends on it, or clears the highlight.
    pub(super) fn toggle_trace(&mut self, model: &Model, forward: bool) {
        let reachable = if forward { analysis::downstream } else { analysis::upstream };
        self.traced = match (self.traced.take(), self.selected) {
            (None, Some(item)) => Some(reachable(model, item)),
            _ => None,
        };
    }

    /// Starts a path at the selection, or highlights the nodes between the start and the selection.
    pub(super) fn find_path(&mut self, model: &Model) {
        let Some(item) = self.selected else { return };
        match self.path_from.take() {
            None => self.path_from = Some(item),
            Some(from) => {
                self.traced = analysis::nodes_between(model, from, item);
                self.notice = self.traced.is_none().then_some("No path between these two");
            }
        }
    }
}

/// Returns the scopes that are open at first: none, or a chain of single scopes that contain everything.
fn initially_open(model: &Model) -> FxHashSet<ItemId> {
    let mut open = FxHashSet::default();
    let mut scope = ItemId::ROOT;
    while let [only] = model.children(scope) {
        if !model.is_expandable(*only) || open.len() > 64 {
            break;
        }
        open.insert(*only);
        scope = *only;
    }
    open
}
