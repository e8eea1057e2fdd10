//! A scope of 5,000 nodes that no series folds: what freezes other graph views for minutes.

use super::{
    graph::{is_drawn, on_graph, open},
    screen::{add_frames, ms},
};
use crate::report::{BenchError, Report};
use ::dashboard::View as _;
use ::events::clock;
use formats::proto::{GraphDef, NodeDef};

const N_CHILDREN: usize = 5_000;
const WIDTH: usize = 64;

pub fn run(report: &mut Report) -> Result<(), BenchError> {
    let mut screen = on_graph(flat());
    screen.until("graph", is_drawn)?;
    screen.rest();
    // A scope shows a part of its nodes, and all when asked, or led to one of the others.
    let begin = clock::mono_now();
    screen.state.view.run("open level");
    screen.frame(Vec::new());
    screen.until("picture", is_drawn)?;
    report.add("flat scope of 5,000 nodes: open", ms(clock::mono_now() - begin), "ms");
    screen.rest();
    add_frames(report, "flat scope of 5,000 nodes: frame", screen.frames(30));
    let mut screen = on_graph(flat());
    screen.until("graph", is_drawn)?;
    report.add("flat scope of 5,000 nodes: open and show all", open(&mut screen, "flat/")?, "ms");
    screen.key(egui::Key::F);
    screen.rest();
    add_frames(report, "flat scope of 5,000 nodes: frame with all of them", screen.frames(30));
    Ok(())
}

/// Each takes two of those 64 to 128 places before it: some 50 ranks of 100. Names have no number at their end.
fn flat() -> GraphDef {
    let mut random = 1_u64;
    let name = |i: usize| format!("flat/n{i}x");
    let mut node = |i: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let earlier = |shift: u32| name(i - WIDTH - (random >> shift) as usize % WIDTH);
        let input = if i < 2 * WIDTH { vec!["in".to_owned()] } else { vec![earlier(33), earlier(45)] };
        NodeDef { name: name(i), op: ["MatMul", "Add", "Relu"][i % 3].to_owned(), input, ..NodeDef::default() }
    };
    let source = NodeDef { name: "in".to_owned(), op: "Placeholder".to_owned(), ..NodeDef::default() };
    let children = (0..N_CHILDREN).map(&mut node);
    GraphDef { node: [source].into_iter().chain(children).collect(), ..GraphDef::default() }
}
