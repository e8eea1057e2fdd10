//! Opens the Graph panel alone: `cargo run -p dashboard --example graph -- [--light] FILE`
//!
//! FILE is a graph file or an event file that holds a graph, either of them gzipped.

use dashboard::{Data, Selection, Theme, View, graph::GraphView};
use formats::{
    graph_file,
    proto::{Event, GraphDef, event::What},
    tfrecord::{RecordStream, Scan},
};
use prost::Message;
use std::io::Read;
use ui::theme;

fn read(path: &str) -> Result<GraphDef, Box<dyn std::error::Error>> {
    let mut bytes = std::fs::read(path)?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut plain = Vec::new();
        flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut plain)?;
        bytes = plain;
    }
    if !path.contains("tfevents") {
        return Ok(graph_file::decode(&bytes)?);
    }
    let (mut stream, mut rest) = (RecordStream::new(0), &bytes[..]);
    while let Scan::Record(record) = stream.next(&mut rest)? {
        if let Some(What::GraphDef(def)) = Event::decode(record.data)?.what {
            return Ok(GraphDef::decode(&def[..])?);
        }
    }
    Err("the event file holds no graph".into())
}

struct App {
    graph: GraphView,
    data: Data,
    selection: Selection,
}

impl eframe::App for App {
    fn ui(&mut self, ui: &mut egui::Ui, _frame: &mut eframe::Frame) {
        egui::CentralPanel::no_frame().show(ui, |ui| self.graph.ui(ui, &self.data, &mut self.selection));
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let light = args.iter().position(|arg| arg == "--light").map(|at| args.remove(at)).is_some();
    let path = args.first().ok_or("name a graph file")?;
    let data = Data::default().with_graph(path, read(path)?);
    let app = App { graph: GraphView::default(), data, selection: Selection::default() };
    let options = eframe::NativeOptions {
        viewport: egui::ViewportBuilder::default().with_inner_size([1280.0, 720.0]).with_maximized(true),
        ..eframe::NativeOptions::default()
    };
    let start = move |cc: &eframe::CreationContext<'_>| {
        theme::install(&cc.egui_ctx);
        if light { Theme::Light } else { Theme::Dark }.apply(&cc.egui_ctx);
        Ok(Box::new(app) as Box<dyn eframe::App>)
    };
    Ok(eframe::run_native("stepscope graph", options, Box::new(start))?)
}
