//! The window: options, start, and one frame.

use crate::{
    Selection, Theme, View, ViewKind, graph::GraphView, histograms::HistogramsView, loader::Loader, ops::OpsView,
    scalars::ScalarsView, theme, timeline::TimelineView,
};
use std::{path::PathBuf, sync::Arc};

/// How the window's pictures get to the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Renderer {
    /// OpenGL; also the quicker one without a GPU.
    #[default]
    Glow,
    /// Vulkan or GL through wgpu; needs the cargo feature `wgpu`.
    #[cfg(feature = "wgpu")]
    Wgpu,
}

/// What to open and how.
#[derive(Default)]
pub struct Options {
    /// Run folders, logdirs, traces, graph files.
    pub paths: Vec<PathBuf>,
    /// The theme to start with; `None` follows the desktop.
    pub theme: Option<Theme>,
    /// How to draw.
    pub renderer: Renderer,
    /// Of the window; empty for `stepscope`.
    pub title: String,
    /// Called once when the window closes.
    pub on_close: Option<Box<dyn FnOnce() + Send>>,
}

/// Why there is no window.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No display, no OpenGL, or the window system refused.
    #[error("cannot open a window: {0}")]
    Window(String),
}

/// Opens the window and blocks until it closes.
///
/// # Errors
/// When there is no display or no way to draw on it. Paths that cannot be opened are no error: the window says so.
pub fn run(options: Options) -> Result<(), Error> {
    let title = if options.title.is_empty() { "stepscope".to_owned() } else { options.title.clone() };
    let native = eframe::NativeOptions {
        viewport: egui::ViewportBuilder::default()
            .with_title(&title)
            .with_app_id("stepscope")
            .with_inner_size(theme::metrics::WINDOW_START)
            .with_min_inner_size(theme::metrics::WINDOW_MIN),
        renderer: match options.renderer {
            Renderer::Glow => eframe::Renderer::Glow,
            #[cfg(feature = "wgpu")]
            Renderer::Wgpu => eframe::Renderer::Wgpu,
        },
        ..Default::default()
    };
    eframe::run_native(&title, native, Box::new(|cc| Ok(Box::new(App::new(&cc.egui_ctx, options)))))
        .map_err(|error| Error::Window(error.to_string()))
}

/// The window's contents. Tests drive it without a window.
pub struct App {
    views: Vec<Box<dyn View>>,
    selection: Selection,
    loader: Loader,
    active: ViewKind,
    on_close: Option<Box<dyn FnOnce() + Send>>,
}

impl App {
    /// Puts the theme into `ctx` and starts loading.
    pub fn new(ctx: &egui::Context, options: Options) -> Self {
        theme::install(ctx);
        options.theme.unwrap_or_default().apply(ctx);
        let repaint = ctx.clone();
        let loader = Loader::new(Arc::new(move || repaint.request_repaint()));
        for path in options.paths {
            loader.open(path);
        }
        Self {
            views: vec![
                Box::new(ScalarsView::default()),
                Box::new(HistogramsView::default()),
                Box::new(GraphView::default()),
                Box::new(TimelineView::default()),
                Box::new(OpsView::default()),
            ],
            selection: Selection::default(),
            loader,
            active: ViewKind::Scalars,
            on_close: options.on_close,
        }
    }

    /// Shows one frame.
    pub fn ui(&mut self, ui: &mut egui::Ui) {
        let data = self.loader.frame();
        egui::Panel::top("tabs").show(ui, |ui| {
            ui.horizontal(|ui| {
                for kind in ViewKind::ALL {
                    ui.selectable_value(&mut self.active, kind, kind.title());
                }
            });
        });
        egui::CentralPanel::default().show(ui, |ui| {
            if let Some(view) = self.views.iter_mut().find(|view| view.kind() == self.active) {
                view.ui(ui, &data, &mut self.selection);
            }
        });
        if let Some(kind) = self.selection.take_show() {
            self.active = kind;
        }
    }
}

impl eframe::App for App {
    fn ui(&mut self, ui: &mut egui::Ui, _frame: &mut eframe::Frame) {
        Self::ui(self, ui);
    }

    fn on_exit(&mut self, _gl: Option<&eframe::glow::Context>) {
        if let Some(on_close) = self.on_close.take() {
            on_close();
        }
    }
}
