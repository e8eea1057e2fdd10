//! A training step of Inception v3 on four towers, 36,303 nodes, from its file to pictures.
//!
//! The file is `graphs/tf_inception_v3_4towers.tfevents.gz` below `STEPSCOPE_DATA`; without it the part is skipped.

use super::screen::{Screen, add_frames, ms};
use crate::report::{BenchError, Report};
use ::dashboard::{
    Data, Selection, View as _,
    graph::{ColorBy, GraphView},
    loader::Loader,
};
use ::events::clock;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

const FILE: &str = "graphs/tf_inception_v3_4towers.tfevents.gz";
/// Pictures are timed this many times; the fastest counts.
const TRIES: usize = 3;
const FRAMES: usize = 30;

/// The panel with what reads its file.
pub struct Graph {
    loader: Loader,
    data: Data,
    /// The panel.
    pub view: GraphView,
    /// What is picked.
    pub selection: Selection,
}

impl Graph {
    fn of(loader: Loader, data: Data) -> Self {
        Self { loader, data, view: GraphView::default(), selection: Selection::default() }
    }
}

/// The panel on a file.
fn on_file(path: PathBuf) -> Screen<Graph> {
    let make = |ctx: &egui::Context| {
        let ctx = ctx.clone();
        let mut loader = Loader::new(Arc::new(move || ctx.request_repaint()), Arc::new(|_| Err("no URLs".to_owned())));
        loader.open(path);
        Graph::of(loader, Data::default())
    };
    Screen::new(make, |ui, graph| {
        graph.data = graph.loader.frame();
        graph.view.ui(ui, &graph.data, &mut graph.selection);
    })
}

/// The panel on a graph.
pub fn on_graph(def: formats::proto::GraphDef) -> Screen<Graph> {
    let loader = Loader::new(Arc::new(|| {}), Arc::new(|_| Err("no URLs".to_owned())));
    let data = Data::default().with_graph("bench", def);
    Screen::new(|_| Graph::of(loader, data), |ui, graph| graph.view.ui(ui, &graph.data, &mut graph.selection))
}

/// Whether boxes are on the screen and no other picture is being made.
pub fn is_drawn(graph: &Graph, says: &[String]) -> bool {
    let has_boxes = |s: &String| s.starts_with("Graph: ") && !s.starts_with("Graph: 0 boxes");
    !graph.view.is_busy() && says.iter().any(has_boxes)
}

pub fn run(report: &mut Report) -> Result<(), BenchError> {
    let Some(path) = std::env::var_os("STEPSCOPE_DATA").map(|data| PathBuf::from(data).join(FILE)) else {
        eprintln!("dashboard: the graph part is skipped: STEPSCOPE_DATA names no folder with {FILE}");
        return Ok(());
    };
    let (mut first, mut opened): (f64, BTreeMap<String, f64>) = (f64::INFINITY, BTreeMap::new());
    for _ in 0..TRIES {
        let mut screen = on_file(path.clone());
        first = first.min(screen.until("graph", is_drawn)?);
        for (scope, n) in crowded(&screen) {
            let label = format!("{} ({n} children)", scope.trim_end_matches('/'));
            let took = open(&mut screen, &scope)?;
            let best = opened.entry(label).or_insert(f64::INFINITY);
            *best = best.min(took);
        }
    }
    report.add("graph of 36,303 nodes: file to first picture", first, "ms");
    for (label, took) in opened {
        report.add(format!("graph of 36,303 nodes: open {label}"), took, "ms");
    }
    frames(report, &mut on_file(path))
}

/// Scopes with the most children, by name with the slash, outer ones first: those that are hard to lay out.
fn crowded(screen: &Screen<Graph>) -> Vec<(String, usize)> {
    let Some(graph) = screen.state.data.graphs.first() else { return Vec::new() };
    let mut children: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for node in &graph.def.node {
        let ends = node.name.match_indices('/').map(|(at, _)| at + 1);
        let mut from = 0;
        for end in ends {
            children.entry(&node.name[..from]).or_default().insert(&node.name[from..end - 1]);
            from = end;
        }
        children.entry(&node.name[..from]).or_default().insert(&node.name[from..]);
    }
    let mut list: Vec<_> = children.into_iter().filter(|(scope, _)| !scope.is_empty()).collect();
    list.sort_by_key(|(scope, children)| (std::cmp::Reverse(children.len()), *scope));
    let mut list: Vec<_> = list.into_iter().take(6).map(|(s, c)| (s.to_owned(), c.len())).collect();
    list.sort_by_key(|(scope, _)| (scope.matches('/').count(), scope.clone()));
    list
}

/// Opens a scope by leading to a node in it; how long until it is drawn.
pub fn open(screen: &mut Screen<Graph>, scope: &str) -> Result<f64, BenchError> {
    let graph = screen.state.data.graphs.first().ok_or("no graph was read")?;
    let inside = graph.def.node.iter().find_map(|n| n.name.strip_prefix(scope));
    let inside = inside.ok_or_else(|| format!("no node is below {scope}"))?;
    let child = format!("{scope}{}", inside.split('/').next().unwrap_or_default());
    screen.state.selection.node.select(Some(child.into()));
    let begin = clock::mono_now();
    // The frame that asks for the picture.
    screen.frame(Vec::new());
    screen.until("picture", is_drawn)?;
    let took = ms(clock::mono_now() - begin);
    screen.rest();
    Ok(took)
}

/// Each colour, and frames with more and more open.
fn frames(report: &mut Report, screen: &mut Screen<Graph>) -> Result<(), BenchError> {
    screen.until("graph", is_drawn)?;
    screen.rest();
    for level in 0..6 {
        for by in ColorBy::all() {
            screen.state.view.color_by(by);
            let took = screen.frame(Vec::new()).cpu_ms;
            report.add(format!("graph, {level} levels open: first frame with colour {}", by.title()), took, "ms");
        }
        screen.state.view.color_by(ColorBy::default());
        screen.rest();
        add_frames(report, &format!("graph, {level} levels open: frame"), screen.frames(FRAMES));
        let begin = clock::mono_now();
        screen.state.view.run("open level");
        screen.frame(Vec::new());
        screen.until("picture", is_drawn)?;
        report.add(format!("graph: open level {}", level + 1), ms(clock::mono_now() - begin), "ms");
        screen.rest();
    }
    Ok(())
}
