//! The graph as text for other programs: the picture as SVG, the visible graph as DOT, all nodes as CSV.

use super::edges;
use crate::graph::{
    analysis::{NodeTime, Times},
    layout::{BoxLayout, Picture},
    model::{ItemId, Kind, MetaEdge, Model, output_shape},
};
use egui::Color32;
use std::{collections::BTreeMap, fmt::Write as _};
use ui::{
    export,
    theme::{Palette, metrics, metrics::graph as m, on_fill},
};

/// A format of the picture for the clipboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Export {
    /// The picture.
    Svg,
    /// The visible graph.
    Dot,
}

/// Returns the entire picture as an SVG document in the colours of the theme; `fill` returns the fill of a closed box.
pub(crate) fn svg(model: &Model, picture: &Picture, p: &Palette, fill: impl Fn(&BoxLayout) -> Color32) -> String {
    let [w, h] = picture.size;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w:.0} {h:.0}\" font-family=\"sans-serif\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n",
        hex(p.canvas)
    );
    for b in picture.boxes.iter().filter(|b| b.is_open) {
        write_box(&mut out, model, b, p.panel, p);
    }
    for edge in &picture.edges {
        let points: Vec<String> = picture.points(edge).map(|[x, y]| format!("{x:.1},{y:.1}")).collect();
        let dash = if edge.metaedge.is_control() { " stroke-dasharray=\"5 4\"" } else { "" };
        let width = edge.width;
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width:.1}\"{dash}/>",
            points.join(" "),
            hex(p.aggregate)
        );
    }
    for b in picture.boxes.iter().filter(|b| !b.is_open) {
        write_box(&mut out, model, b, fill(b), p);
    }
    out + "</svg>\n"
}

/// Returns every node with its figures in the open traces: zero, and an empty `values`, without a trace.
pub(crate) fn csv(model: &Model, times: &Times) -> String {
    let headings =
        ["node", "op", "device", "output_0", "executions", "total_ns", "critical_path_ns", "peak_bytes", "values"];
    let row = |item| {
        let NodeTime { count, total_ns, path_ns, peak_bytes, health } = times.get(item);
        let shape = model.node_def(item).and_then(|def| output_shape(def, 0)).map(|shape| shape.to_string());
        [
            model.name(item).to_owned(),
            model.op(item).to_owned(),
            times.device(model, item).to_owned(),
            shape.unwrap_or_default(),
            count.to_string(),
            total_ns.to_string(),
            path_ns.to_string(),
            peak_bytes.to_string(),
            health.text(true).unwrap_or_default(),
        ]
    };
    export::csv(&headings, model.items().filter(|item| model.is_op(*item)).map(row))
}

fn write_box(out: &mut String, model: &Model, b: &BoxLayout, fill: Color32, p: &Palette) {
    let [x0, y0, x1, y1] = b.rect;
    let radius = if model.kind(b.item) == Kind::Op { (y1 - y0) / 2.0 } else { f32::from(metrics::RADIUS) };
    let text_y = if b.is_open { y0 + m::LABEL + 4.0 } else { (y0 + y1 + m::LABEL) / 2.0 - 2.0 };
    let text_color = if b.is_open { p.text } else { on_fill(fill) };
    let _ = writeln!(
        out,
        "<rect x=\"{x0:.1}\" y=\"{y0:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"{radius:.1}\" fill=\"{}\" stroke=\"{}\">\
         <title>{}</title></rect>\n\
         <text x=\"{:.1}\" y=\"{text_y:.1}\" font-size=\"{}\" text-anchor=\"middle\" fill=\"{}\">{}</text>",
        x1 - x0,
        y1 - y0,
        hex(fill),
        hex(p.border),
        export::svg::escaped(model.name(b.item)),
        (x0 + x1) / 2.0,
        m::LABEL,
        hex(text_color),
        export::svg::escaped(&model.label(b.item)),
    );
}

fn hex(color: Color32) -> String {
    format!("#{:02x}{:02x}{:02x}", color.r(), color.g(), color.b())
}

/// Returns the visible graph in Graphviz's language: open scopes are clusters.
pub(crate) fn dot(model: &Model, picture: &Picture) -> String {
    let mut out = "digraph {\n  rankdir=BT;\n  node [shape=box, style=rounded];\n".to_owned();
    // Outer boxes come before inner ones; a cluster ends before the first box that is not inside.
    let mut open: Vec<&BoxLayout> = Vec::new();
    let mut sorted: Vec<&BoxLayout> = picture.boxes.iter().collect();
    sorted.sort_by_key(|b| b.item);
    for b in sorted {
        while open.last().is_some_and(|scope| !model.is_below(b.item, scope.item)) {
            open.pop();
            let _ = writeln!(out, "{}}}", "  ".repeat(open.len() + 1));
        }
        let indent = "  ".repeat(open.len() + 1);
        let label = quote(&model.label(b.item));
        if b.is_open {
            let _ = writeln!(out, "{indent}subgraph cluster_{} {{\n{indent}  label={label};", b.item.0);
            open.push(b);
        } else {
            let tooltip = match model.is_op(b.item) {
                true => model.op(b.item).to_owned(),
                false => ui::format::count_of(u64::from(model.n_nodes(b.item)), "node"),
            };
            let _ = writeln!(out, "{indent}n{} [label={label}, tooltip={}];", b.item.0, quote(&tooltip));
        }
    }
    for depth in (1..=open.len()).rev() {
        let _ = writeln!(out, "{}}}", "  ".repeat(depth));
    }
    for (from, to, is_control, label) in visible_edges(model, picture) {
        let style = if is_control { ", style=dashed" } else { "" };
        let _ = writeln!(out, "  n{from} -> n{to} [label={}{style}];", quote(&label));
    }
    out + "}\n"
}

/// Returns the edges between closed boxes, each pair once: (producer, consumer, is control, label).
fn visible_edges(model: &Model, picture: &Picture) -> Vec<(u32, u32, bool, String)> {
    let mut metaedges: BTreeMap<(u32, u32), MetaEdge> = BTreeMap::new();
    for edge in model.flow_into(ItemId::ROOT) {
        let ends = picture.innermost_box(model, edge.src).zip(picture.innermost_box(model, edge.dst));
        let Some((from, to)) = ends.filter(|(from, to)| from.item != to.item && !from.is_open && !to.is_open) else {
            continue;
        };
        metaedges
            .entry((from.item.0, to.item.0))
            .and_modify(|metaedge| metaedge.add(edge))
            .or_insert_with(|| MetaEdge::from_edge(from.item, to.item, edge));
    }
    metaedges
        .into_iter()
        .map(|((from, to), e)| (from, to, e.is_control(), edges::label_text(model, &e).unwrap_or_default()))
        .collect()
}

fn quote(text: &str) -> String {
    let mut out = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{
        layout::{Expansion, LayoutCache},
        model::tests::graph,
    };
    use std::sync::atomic::AtomicBool;

    #[test]
    fn what_is_visible_is_written() {
        let model = Model::build(graph("x = Placeholder()\ns/a<\"> = Neg(x)\ns/b = Neg(s/a<\">)\ny = Neg(s/b, ^x)"));
        let scope = model.find("s").unwrap();
        let expansion = Expansion { open: [scope].into_iter().collect(), ..Expansion::default() };
        let picture = LayoutCache::default().picture(&model, &expansion, &AtomicBool::new(false)).unwrap();
        let p = Palette::for_theme(true);
        let svg = svg(&model, &picture, p, |_| p.raised);
        assert_eq!(svg.matches("<rect ").count(), 1 + 5, "the background, the scope, four nodes\n{svg}");
        assert!(svg.contains("s/a&lt;&quot;&gt;"), "{svg}");
        let dot = dot(&model, &picture);
        let id = |name: &str| model.find(name).unwrap().0;
        assert!(dot.contains(&format!("subgraph cluster_{} {{", scope.0)), "{dot}");
        assert!(dot.contains(&format!("n{} -> n{} [", id("s/b"), id("y"))), "{dot}");
        assert!(dot.contains(&format!("n{} -> n{} [label=\"\", style=dashed]", id("x"), id("y"))), "{dot}");
        assert_eq!(dot.matches('{').count(), dot.matches('}').count());
    }
}
