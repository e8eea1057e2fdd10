//! The window: options, start, and one frame.

use crate::{
    Data, Selection, Theme, View,
    data::Status,
    graph::GraphView,
    histograms::HistogramsView,
    loader::Loader,
    media::MediaView,
    ops::OpsView,
    pace::Pace,
    scalars::ScalarsView,
    shell::{self, OpenDialog, ProblemsWindow, ShortcutsWindow, Tabs, TopBar, TopBarAction},
    theme,
    timeline::TimelineView,
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
    /// Asked ten times a second; the window closes once it says yes (a signal, say).
    pub close_when: Option<Box<dyn Fn() -> bool + Send>>,
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
            .with_icon(shell::app_icon())
            .with_inner_size(theme::metrics::WINDOW_START)
            .with_min_inner_size(theme::metrics::WINDOW_MIN),
        renderer: match options.renderer {
            Renderer::Glow => eframe::Renderer::Glow,
            #[cfg(feature = "wgpu")]
            Renderer::Wgpu => eframe::Renderer::Wgpu,
        },
        ..Default::default()
    };
    eframe::run_native(&title, native, Box::new(|cc| Ok(Box::new(App::new(&cc.egui_ctx, options, pace_of(cc))))))
        .map_err(|error| Error::Window(error.to_string()))
}

/// How often to draw with what the window got to draw with.
fn pace_of(cc: &eframe::CreationContext<'_>) -> Pace {
    use eframe::glow::HasContext;
    cc.gl.as_ref().map_or_else(Pace::default, |gl| {
        // SAFETY: the context is current while the app is created, and RENDERER is a valid name of a string.
        let renderer = unsafe { gl.get_parameter_string(eframe::glow::RENDERER) };
        Pace::of_renderer(&renderer)
    })
}

/// The window's contents. Tests drive it without a window.
pub struct App {
    tabs: Tabs,
    selection: Selection,
    loader: Loader,
    pace: Pace,
    theme: Theme,
    open: OpenDialog,
    problems: ProblemsWindow,
    shortcuts: ShortcutsWindow,
    /// Whether the panel to start on was chosen: by what came first, or by the user.
    has_started: bool,
}

/// Closes the window once `when` says so.
fn close_when(ctx: egui::Context, when: Box<dyn Fn() -> bool + Send>) {
    let watch = move || {
        while !when() {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        ctx.send_viewport_cmd(egui::ViewportCommand::Close);
        ctx.request_repaint();
    };
    // Without a thread for it the window is closed by hand.
    drop(std::thread::Builder::new().name("close".into()).spawn(watch));
}

impl App {
    /// Puts the theme into `ctx` and starts loading.
    pub fn new(ctx: &egui::Context, options: Options, pace: Pace) -> Self {
        theme::install(ctx);
        let theme = options.theme.unwrap_or_default();
        theme.apply(ctx);
        let (repaint, paced) = (ctx.clone(), pace.clone());
        // What is committed until then shares the frame.
        let mut loader = Loader::new(Arc::new(move || repaint.request_repaint_after(paced.pause())));
        for path in options.paths {
            loader.open(path);
        }
        if let Some(when) = options.close_when {
            close_when(ctx.clone(), when);
        }
        let views: Vec<Box<dyn View>> = vec![
            Box::new(ScalarsView::default()),
            Box::new(HistogramsView::default()),
            Box::new(GraphView::default()),
            Box::new(TimelineView::default()),
            Box::new(OpsView::default()),
            Box::new(MediaView::default()),
        ];
        Self {
            tabs: Tabs::new(views),
            selection: Selection::default(),
            loader,
            pace,
            theme,
            open: OpenDialog::default(),
            problems: ProblemsWindow::default(),
            shortcuts: ShortcutsWindow::default(),
            has_started: false,
        }
    }

    /// Shows one frame.
    pub fn ui(&mut self, ui: &mut egui::Ui) {
        let data = self.loader.frame();
        self.selection.runs.update(data.runs().map(|run| run.label));
        self.keys(ui);
        self.top_bar(ui, &data);
        let is_empty = data.logdirs.is_empty() && data.traces.is_empty() && data.graphs.is_empty();
        egui::CentralPanel::no_frame().show(ui, |ui| {
            if is_empty {
                ui.painter().rect_filled(ui.max_rect(), 0.0, theme::palette(ui).panel);
                if shell::start_screen(ui, &data) {
                    self.open.open();
                }
            } else {
                self.start(&data);
                self.tabs.ui(ui, &data, &mut self.selection);
            }
        });
        if let Some(kind) = self.selection.take_show() {
            self.tabs.activate(kind);
        }
        self.dialogs(ui, &data);
    }

    /// Brings the first panel that has something to show to the front, once.
    fn start(&mut self, data: &Data) {
        let is_loading = data.sources.iter().any(|s| s.status == Status::Loading);
        if !self.has_started && !is_loading {
            self.has_started = true;
            self.tabs.activate(shell::first_panel(data));
        }
    }

    fn top_bar(&mut self, ui: &mut egui::Ui, data: &Data) {
        let bar = TopBar { data, theme: self.theme };
        let panel = egui::Panel::top("top bar").exact_size(theme::metrics::TOP_BAR_H);
        match panel.show(ui, |ui| bar.ui(ui)).inner {
            Some(TopBarAction::Open) => self.open.open(),
            Some(TopBarAction::Problems) => self.problems.is_open ^= true,
            Some(TopBarAction::Help) => self.shortcuts.is_open ^= true,
            Some(TopBarAction::NextTheme) => self.next_theme(ui),
            None => {}
        }
    }

    fn dialogs(&mut self, ui: &egui::Ui, data: &Data) {
        self.problems.ui(ui.ctx(), data);
        self.shortcuts.ui(ui.ctx(), &self.tabs.shortcuts());
        for path in shell::drop_target(ui.ctx()) {
            self.loader.open(path);
        }
        if let Some(path) = self.open.ui(ui.ctx()) {
            self.loader.open(path);
        }
    }

    fn keys(&mut self, ui: &egui::Ui) {
        if ui.input_mut(|i| i.consume_key(egui::Modifiers::COMMAND, egui::Key::O)) {
            self.open.open();
        }
        let is_help = |i: &egui::InputState| i.key_pressed(egui::Key::F1);
        if ui.input(is_help) || (!ui.ctx().text_edit_focused() && ui.input(|i| i.key_pressed(egui::Key::Questionmark)))
        {
            self.shortcuts.is_open ^= true;
        }
        if ui.ctx().text_edit_focused() {
            return;
        }
        if let Some(kind) = shell::panel_key(ui) {
            self.has_started = true;
            self.tabs.activate(kind);
        }
        if ui.input(|i| i.modifiers.is_none() && i.key_pressed(egui::Key::T)) {
            self.next_theme(ui);
        }
        if ui.input(|i| i.key_pressed(egui::Key::Escape)) {
            let was_open = self.shortcuts.is_open || self.problems.is_open;
            (self.shortcuts.is_open, self.problems.is_open) = (false, false);
            if !was_open {
                self.selection.clear();
            }
        }
    }

    fn next_theme(&mut self, ui: &egui::Ui) {
        self.theme = self.theme.next();
        self.theme.apply(ui.ctx());
    }
}

impl eframe::App for App {
    fn ui(&mut self, ui: &mut egui::Ui, frame: &mut eframe::Frame) {
        if let Some(seconds) = frame.info().cpu_usage {
            self.pace.frame_took(seconds);
        }
        Self::ui(self, ui);
    }

    fn clear_color(&self, visuals: &egui::Visuals) -> [f32; 4] {
        visuals.panel_fill.to_normalized_gamma_f32()
    }
}
