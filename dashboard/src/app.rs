//! The window: options, start, and one frame.

use crate::{
    Address, Data, Selection, Theme, View,
    bottlenecks::BottlenecksView,
    command::{self, ShellCommand},
    config::Settings,
    data::Status,
    embeddings::EmbeddingsView,
    graph::GraphView,
    histograms::HistogramsView,
    hparams::HParamsView,
    loader::{Loader, OpenRemote, is_url},
    media::MediaView,
    memory::MemoryView,
    modules::ModulesView,
    ops::OpsView,
    scalars::ScalarsView,
    shell::{
        self, Choice, CommandPalette, FocusRing, Memory, Navigation, OpenDialog, Panels, PendingSaves, ProblemsWindow,
        RunFactsCache, SourceAction, StartAction, Tabs, TopBar,
    },
    sql::{SqlView, engine::Engine},
    timeline::TimelineView,
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use ui::{
    format,
    pace::Pace,
    theme::{self, SystemFonts, metrics},
    widgets::{is_keyboard_free, note_typing, set_side_sizes, side_sizes},
};

/// The graphics interface that draws the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Renderer {
    /// OpenGL; also the faster one without a GPU.
    #[default]
    Glow,
    /// Vulkan or GL through wgpu; needs the cargo feature `wgpu`.
    #[cfg(feature = "wgpu")]
    Wgpu,
}

/// Options of the window.
#[derive(Default)]
pub struct Options {
    /// Run folders, logdirs, traces and graph files to open.
    pub paths: Vec<PathBuf>,
    /// Opens URLs; `None` where URLs are not supported.
    pub open_remote: Option<OpenRemote>,
    /// Runs SQL queries; `None` leaves the SQL panel out.
    pub sql: Option<Arc<dyn Engine>>,
    /// The theme of this window; `None` for the one in the settings.
    pub theme: Option<Theme>,
    /// The address to go to once everything is read.
    pub at: Option<Address>,
    /// The file of [`crate::config`]; `None` stores no settings.
    pub config: Option<PathBuf>,
    /// The graphics interface.
    pub renderer: Renderer,
    /// The window's title; empty for `stepscope`.
    pub title: String,
    /// Called ten times a second; the window closes once it returns true, as after a signal.
    pub close_when: Option<Box<dyn Fn() -> bool + Send>>,
}

/// Why the window could not be opened.
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
            .with_inner_size(metrics::WINDOW_START)
            .with_min_inner_size(metrics::WINDOW_MIN),
        renderer: match options.renderer {
            Renderer::Glow => eframe::Renderer::Glow,
            #[cfg(feature = "wgpu")]
            Renderer::Wgpu => eframe::Renderer::Wgpu,
        },
        // egui's own search would read every font at the start; `SystemFonts` searches once a letter needs it.
        system_font_fallback: false,
        ..Default::default()
    };
    let create: eframe::AppCreator<'_> = Box::new(|cc| {
        let mut app = App::new(&cc.egui_ctx, options, pace_of(cc));
        app.set_fonts(SystemFonts::install(&cc.egui_ctx));
        Ok(Box::new(app))
    });
    eframe::run_native(&title, native, create).map_err(|error| Error::Window(error.to_string()))
}

/// The pace of frames for the graphics interface in use.
fn pace_of(cc: &eframe::CreationContext<'_>) -> Pace {
    use eframe::glow::HasContext;
    cc.gl.as_ref().map_or_else(Pace::default, |gl| {
        // SAFETY: the context is current while the app is created, and RENDERER is a valid name of a string.
        let renderer = unsafe { gl.get_parameter_string(eframe::glow::RENDERER) };
        Pace::of_renderer(&renderer)
    })
}

/// The window's contents. Tests drive them without a window.
pub struct App {
    tabs: Tabs,
    selection: Selection,
    loader: Loader,
    pace: Pace,
    /// The system's fonts for letters that the window's own fonts lack; without them such letters are boxes.
    fonts: Option<SystemFonts>,
    memory: Memory,
    navigation: Navigation,
    /// The paths that the user opened, for deep links.
    opened: Vec<PathBuf>,
    /// The facts that the top bar shows.
    facts: RunFactsCache,
    /// The theme of this window in place of the one in the settings.
    own_theme: Option<Theme>,
    open: OpenDialog,
    palette: CommandPalette,
    saving: PendingSaves,
    focus_ring: FocusRing,
    problems: ProblemsWindow,
    shows_settings: bool,
    shows_shortcuts: bool,
    /// Whether the first panel was chosen, by the first data that arrived or by the user.
    has_started: bool,
}

/// Closes the window once `when` returns true.
fn close_when(ctx: egui::Context, when: Box<dyn Fn() -> bool + Send>) {
    let watch = move || {
        while !when() {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        ctx.send_viewport_cmd(egui::ViewportCommand::Close);
        ctx.request_repaint();
    };
    // Where no thread can be started, only the user closes the window.
    drop(std::thread::Builder::new().name("close".into()).spawn(watch));
}

fn panels(tabs: &Tabs, data: &Data) -> Panels {
    Panels { kinds: tabs.kinds().collect(), commands: tabs.commands(data) }
}

/// Makes a path absolute; URLs stay as they are.
fn absolute(path: PathBuf) -> PathBuf {
    if is_url(&path) { path } else { std::path::absolute(&path).unwrap_or(path) }
}

impl App {
    /// Applies the settings to `ctx` and starts loading.
    pub fn new(ctx: &egui::Context, options: Options, pace: Pace) -> Self {
        theme::install(ctx);
        ctx.options_mut(|o| o.zoom_with_keyboard = false);
        let (repaint, paced) = (ctx.clone(), pace.clone());
        let open_remote =
            options.open_remote.unwrap_or_else(|| Arc::new(|_| Err("this program opens no URLs".to_owned())));
        // Data that is committed during the pause is shown in the same frame.
        let loader = Loader::new(Arc::new(move || repaint.request_repaint_after(paced.pause())), open_remote);
        if let Some(when) = options.close_when {
            close_when(ctx.clone(), when);
        }
        let mut views: Vec<Box<dyn View>> = vec![
            Box::new(ScalarsView::default()),
            Box::new(HistogramsView::default()),
            Box::new(GraphView::default()),
            Box::new(TimelineView::default()),
            Box::new(OpsView::default()),
            Box::new(MediaView::default()),
            Box::new(BottlenecksView::default()),
            Box::new(HParamsView::default()),
            Box::new(EmbeddingsView::default()),
            Box::new(ModulesView::default()),
            Box::new(MemoryView::default()),
        ];
        if options.sql.is_some() {
            views.push(Box::new(SqlView::new(options.sql)));
        }
        let mut app = Self {
            tabs: Tabs::new(views),
            selection: Selection::default(),
            loader,
            pace,
            fonts: None,
            memory: Memory::open(options.config),
            navigation: Navigation::new(options.at),
            opened: Vec::new(),
            facts: RunFactsCache::default(),
            own_theme: options.theme,
            open: OpenDialog::default(),
            palette: CommandPalette::default(),
            saving: PendingSaves::default(),
            focus_ring: FocusRing::default(),
            problems: ProblemsWindow::default(),
            shows_settings: false,
            shows_shortcuts: false,
            has_started: false,
        };
        app.selection.notes = app.memory.config.notes.clone();
        app.selection.pins = app.memory.config.pins.clone();
        set_side_sizes(ctx, app.memory.config.sides.clone());
        app.put_in_force(ctx);
        options.paths.into_iter().for_each(|path| app.open_path(path));
        app
    }

    /// Sets the source of fonts for letters that the window's own fonts lack.
    pub fn set_fonts(&mut self, fonts: SystemFonts) {
        self.fonts = Some(fonts);
    }

    /// Problems of the window itself: settings that are not stored, letters without a font.
    fn notices(&self) -> Vec<String> {
        let fonts = self.fonts.as_ref().and_then(SystemFonts::missing);
        self.memory.error().map(str::to_owned).into_iter().chain(fonts).collect()
    }

    /// Shows one frame.
    pub fn ui(&mut self, ui: &mut egui::Ui) {
        let data = self.loader.frame();
        self.saving.begin_frame(ui.ctx());
        let is_settled = data.logdirs.iter().all(|logdir| logdir.status != Status::Loading);
        self.selection.runs.update(data.runs().map(|run| (run.label, run.run)), is_settled);
        self.remember(&data);
        self.keys(ui, &data);
        self.top_bar(ui, &data);
        let is_empty = !shell::can_show_panels(&data);
        egui::CentralPanel::no_frame().show(ui, |ui| {
            if is_empty {
                ui.painter().rect_filled(ui.max_rect(), 0.0, theme::palette(ui).panel);
                self.start_screen(ui, &data);
            } else {
                self.start(&data);
                self.tabs.ui(ui, &data, &mut self.selection);
            }
            self.saving.ui(ui);
        });
        if let Some(kind) = self.selection.take_show() {
            self.tabs.activate(kind);
        }
        self.dialogs(ui, &data);
        self.navigation.observe(ui.ctx(), &self.tabs, &data, &self.selection);
        if self.memory.config.notes != self.selection.notes {
            self.memory.config.notes = self.selection.notes.clone();
        }
        if self.memory.config.pins != self.selection.pins {
            self.memory.config.pins = self.selection.pins.clone();
        }
        self.memory.config.sides = side_sizes(ui);
        self.memory.store(ui.ctx());
        note_typing(ui.ctx());
        self.focus_ring.ui(ui);
        self.saving.end_frame(ui.ctx(), ui.layer_id());
    }

    fn open_path(&mut self, path: PathBuf) {
        // A relative path in a bookmark or link would depend on the current folder.
        let path = absolute(path);
        if !self.opened.contains(&path) {
            self.opened.push(path.clone());
        }
        self.loader.open(path);
    }

    /// Applies the settings.
    fn put_in_force(&self, ctx: &egui::Context) {
        let Settings { theme, colors, density, time_unit, scale } = self.memory.config.settings;
        colors.apply();
        self.own_theme.unwrap_or(theme).apply(ctx);
        density.apply(ctx);
        format::set_time_unit(time_unit);
        ctx.set_zoom_factor(scale);
    }

    /// Stores and applies settings that the user chose.
    fn set(&mut self, ctx: &egui::Context, settings: Settings) {
        self.memory.config.settings = settings;
        self.put_in_force(ctx);
    }

    /// Stores the recent paths, and the arrangement of the panels for this kind of data.
    fn remember(&mut self, data: &Data) {
        for source in &data.sources {
            let is_read = !matches!(source.status, Status::Loading | Status::Failed);
            if is_read && self.opened.iter().any(|path| **path == *source.path) {
                let path = absolute(source.path.to_path_buf());
                let is_at_top = self.memory.config.recent.first().is_some_and(|r| r.path == path);
                let is_newest = self.opened.last().is_some_and(|last| **last == *source.path);
                if !is_at_top && (is_newest || !self.memory.config.recent.iter().any(|r| r.path == path)) {
                    self.memory.config.add_recent(&path, source.kind.name());
                }
            }
        }
        if let Some(kind) = shell::layout_key(data).filter(|_| self.has_started) {
            let layout = self.tabs.layout();
            if self.memory.config.layouts.get(kind) != Some(&layout) {
                self.memory.config.layouts.insert(kind.to_owned(), layout);
            }
        }
    }

    /// Restores the arrangement of the panels for this kind of data, and once brings a panel with contents to the
    /// front.
    fn start(&mut self, data: &Data) {
        let is_loading = data.sources.iter().any(|s| s.status == Status::Loading);
        if !self.has_started && is_loading {
            // Data that arrives first is shown at once, rather than an empty panel in front of it.
            let has_some = shell::has_contents_now(data, self.tabs.front());
            let first = self.tabs.kinds().find(|kind| shell::has_contents_now(data, *kind));
            if let Some(kind) = first.filter(|_| !has_some) {
                self.tabs.activate(kind);
            }
        }
        if !self.has_started && !is_loading {
            self.has_started = true;
            let stored_layout = shell::layout_key(data).and_then(|kind| self.memory.config.layouts.get(kind)).cloned();
            if let Some(layout) = stored_layout {
                self.tabs.arrange(&layout);
            }
            let visible = self.tabs.visible();
            match visible.iter().find(|kind| shell::has_contents(data, **kind)) {
                Some(kind) if !self.memory.config.layouts.is_empty() => self.tabs.activate(*kind),
                _ => self.tabs.activate(shell::default_panel(data)),
            }
        }
        if self.navigation.arrive(&mut self.tabs, data, &mut self.selection) {
            self.has_started = true;
        }
    }

    fn start_screen(&mut self, ui: &mut egui::Ui, data: &Data) {
        let keys = ui.ctx().format_shortcut(&egui::KeyboardShortcut::new(egui::Modifiers::COMMAND, egui::Key::O));
        match shell::start_screen(ui, data, &self.memory.config.recent, &keys) {
            Some(StartAction::Dialog) => self.open.open(),
            Some(StartAction::Open(path)) => self.open_path(path),
            Some(StartAction::Forget(path)) => self.memory.config.recent.retain(|r| r.path != path),
            Some(StartAction::Source(act)) => self.about_source(&act),
            None => {}
        }
    }

    fn about_source(&mut self, act: &SourceAction) {
        match act {
            SourceAction::Stop(path) => self.loader.stop(path),
            SourceAction::Retry(path) => self.loader.open(Path::to_owned(path)),
        }
    }

    fn top_bar(&mut self, ui: &mut egui::Ui, data: &Data) {
        let theme = self.own_theme.unwrap_or(self.memory.config.settings.theme);
        let n_notices = self.notices().len() as u64;
        let bar = TopBar { data, facts: self.facts.update(data), theme, n_notices };
        let panel = egui::Panel::top("top bar").exact_size(metrics::TOP_BAR_H);
        if let Some(command) = panel.show(ui, |ui| bar.ui(ui)).inner {
            self.run(ui.ctx(), data, command);
        }
    }

    fn dialogs(&mut self, ui: &egui::Ui, data: &Data) {
        let ctx = ui.ctx();
        if let Some(act) = self.problems.ui(ctx, data, &self.notices()) {
            self.about_source(&act);
        }
        shell::shortcuts_ui(ctx, &mut self.shows_shortcuts, &self.tabs.entries());
        let stored = self.memory.config.settings;
        let shown = Settings { theme: self.own_theme.unwrap_or(stored.theme), ..stored };
        let is_stored = self.memory.error().is_none();
        let chosen = shell::settings_ui(ctx, &mut self.shows_settings, shown, is_stored);
        if chosen != shown {
            // The window's own theme ends when the user chooses another one. Other changes of the settings do not store
            // it.
            let is_own = self.own_theme.is_some() && chosen.theme == shown.theme;
            self.own_theme = self.own_theme.filter(|_| is_own);
            self.set(ctx, Settings { theme: if is_own { stored.theme } else { chosen.theme }, ..chosen });
        }
        for path in shell::drop_target(ctx) {
            self.open_path(path);
        }
        if let Some(path) = self.open.ui(ctx, &self.memory.config.recent) {
            self.open_path(path);
        }
        let tabs = &self.tabs;
        match self.palette.ui(ctx, data, || panels(tabs, data), tabs.front()) {
            Some(Choice::Shell(command)) => self.run(ctx, data, command),
            Some(choice) => self.choose(choice, data),
            None => {}
        }
    }

    /// Carries out a choice of the command palette.
    fn choose(&mut self, choice: Choice, data: &Data) {
        match choice {
            Choice::Shell(_) => {}
            Choice::Panel(kind, id) => {
                self.tabs.activate(kind);
                if let Some(view) = self.tabs.view_mut(kind) {
                    view.run(id);
                }
            }
            Choice::Node(name) => {
                self.selection.node.select(Some(name));
                let has_graph = !data.graphs.is_empty();
                self.tabs.activate(if has_graph { crate::ViewKind::Graph } else { crate::ViewKind::Timeline });
            }
            Choice::Op(name) => {
                self.selection.op.select(Some(name));
                self.tabs.activate(crate::ViewKind::Timeline);
            }
            Choice::Tag(tag, kind) => {
                self.selection.tag.select(Some(tag));
                self.tabs.activate(kind);
            }
            Choice::Track(trace_idx, track) => {
                self.selection.track.select(Some((trace_idx, track)));
                self.tabs.activate(crate::ViewKind::Timeline);
            }
        }
    }

    /// Carries out a command of the window.
    fn run(&mut self, ctx: &egui::Context, data: &Data, command: ShellCommand) {
        let mut settings = self.memory.config.settings;
        let resized = |by: f32| {
            let [least, most] = metrics::SCALE;
            let steps = (settings.scale / metrics::SCALE_STEP).round() + by;
            (steps * metrics::SCALE_STEP).clamp(least, most)
        };
        match command {
            ShellCommand::Palette => self.palette.open(),
            ShellCommand::Open => self.open.open(),
            ShellCommand::Shortcuts => self.shows_shortcuts ^= true,
            ShellCommand::Settings => self.shows_settings ^= true,
            ShellCommand::Problems => self.problems.is_open ^= true,
            // The next theme may equal the stored one, which changes no setting; the window's own theme ends in that
            // case too.
            ShellCommand::Theme => {
                settings.theme = self.own_theme.take().unwrap_or(settings.theme).next();
                self.set(ctx, settings);
            }
            ShellCommand::Undo => _ = self.navigation.step(true, &mut self.tabs, &mut self.selection),
            ShellCommand::Redo => _ = self.navigation.step(false, &mut self.tabs, &mut self.selection),
            ShellCommand::CopyLink => {
                let address = shell::address(&self.tabs, data, &self.selection);
                ctx.copy_text(shell::command_line(&self.opened, &address));
                self.saving.notify(ctx, "Copied: a command that opens this view");
            }
            ShellCommand::SavePng => self.saving.png(ctx, &self.tabs),
            ShellCommand::SaveSvg => self.saving.svg(ctx, &self.tabs),
            ShellCommand::SaveCsv => self.saving.csv(&self.tabs, data, &self.selection),
            ShellCommand::Larger => settings.scale = resized(1.0),
            ShellCommand::Smaller => settings.scale = resized(-1.0),
            ShellCommand::NormalSize => settings.scale = 1.0,
            ShellCommand::ResetLayout => {
                let front = self.tabs.front();
                self.tabs.reset();
                self.tabs.activate(front);
            }
            ShellCommand::Panel(kind) => self.tabs.activate(kind),
        }
        if settings != self.memory.config.settings {
            self.set(ctx, settings);
        }
        ctx.request_repaint();
    }

    fn keys(&mut self, ui: &egui::Ui, data: &Data) {
        if let Some(command) = command::pressed(ui.ctx()) {
            self.run(ui.ctx(), data, command);
        }
        if !is_keyboard_free(ui) {
            return;
        }
        if let Some(kind) = shell::panel_key(ui) {
            self.has_started = true;
            self.tabs.activate(kind);
        }
        if ui.input(|i| i.key_pressed(egui::Key::Escape)) {
            self.selection.clear();
        }
    }
}

impl eframe::App for App {
    fn ui(&mut self, ui: &mut egui::Ui, frame: &mut eframe::Frame) {
        if let Some(seconds) = frame.info().cpu_usage {
            self.pace.record_frame(seconds);
        }
        Self::ui(self, ui);
    }

    fn clear_color(&self, visuals: &egui::Visuals) -> [f32; 4] {
        visuals.panel_fill.to_normalized_gamma_f32()
    }
}
