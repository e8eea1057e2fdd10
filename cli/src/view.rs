//! `stepscope view`: opens the window on files and folders; reports those that cannot be opened before.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use formats::{FileKind, Foreign};

use crate::args;
use crate::display;
use crate::outcome::{Failure, Outcome};
use crate::progress;
use crate::remote::{self, RemoteRuns};

/// Checks each path, unless the window shall say what cannot be opened, then opens the window on all of them.
pub fn run(args: args::View) -> Outcome {
    let is_local = |path: &&PathBuf| remote::url(path).is_none();
    if !args.errors_in_window {
        args.paths.iter().filter(is_local).try_for_each(|path| check(path))?;
    }
    let remote = RemoteRuns::new(&args.remote_bin);
    let urls: Vec<String> = args.connect.iter().map(|address| remote::connect_url(address)).collect();
    let urls: Vec<&str> =
        args.paths.iter().filter_map(|path| remote::url(path)).chain(urls.iter().map(|u| &**u)).collect();
    urls.iter().try_for_each(|url| remote.open_early(url))?;
    if let Some(reason) = display::unavailable_reason() {
        return Err(Failure::Work(anyhow::anyhow!("{reason}; the window needs one")));
    }
    let local = args.paths.iter().filter(is_local).cloned();
    let paths = local.chain(urls.iter().map(PathBuf::from)).collect();
    let shown = show_at(paths, args.window, "stepscope", args.at, None, Some(remote.opener()));
    shown.map_err(|error| Failure::Work(error.into()))
}

/// A function that returns true when the window shall close.
pub type CloseWhen = Option<Box<dyn Fn() -> bool + Send>>;

/// Opens the window and blocks until it is closed, by the user or by `close_when`.
pub fn show(
    paths: Vec<PathBuf>,
    window: args::Window,
    title: &str,
    close_when: CloseWhen,
) -> Result<(), dashboard::Error> {
    let remote = RemoteRuns::new("stepscope");
    show_at(paths, window, title, None, close_when, Some(remote.opener()))
}

/// As [`show`], at an address that a window copied, and with sources of other machines.
fn show_at(
    paths: Vec<PathBuf>,
    window: args::Window,
    title: &str,
    at: Option<dashboard::Address>,
    close_when: CloseWhen,
    open_remote: Option<dashboard::OpenRemote>,
) -> Result<(), dashboard::Error> {
    let theme = match window.theme {
        args::Theme::System => None,
        args::Theme::Dark => Some(dashboard::Theme::Dark),
        args::Theme::Light => Some(dashboard::Theme::Light),
    };
    let renderer = match window.renderer {
        args::Renderer::Glow => dashboard::Renderer::Glow,
        #[cfg(feature = "wgpu")]
        args::Renderer::Wgpu => dashboard::Renderer::Wgpu,
    };
    let _window = progress::HiddenGuard::begin();
    let config = dashboard::config::default_path();
    let title = title.to_owned();
    let sql = sql_engine();
    dashboard::run(dashboard::Options { paths, open_remote, sql, theme, renderer, title, at, config, close_when })
}

/// The engine of the SQL panel, if this program was built with SQL.
fn sql_engine() -> Option<Arc<dyn dashboard::sql::engine::Engine>> {
    #[cfg(feature = "query")]
    return Some(Arc::new(crate::sql::DataFusion));
    #[cfg(not(feature = "query"))]
    None
}

/// Refuses a path whose content is of no kind that the window can show. Damage within the content is not checked: the
/// window shows it.
fn check(path: &Path) -> Result<(), Failure> {
    let refuse = |why: String| Err(Failure::wrong_use(format_args!("{}: {why}", path.display())));
    match formats::sniff(path) {
        // An empty folder is accepted: training may begin after the window opens.
        Ok(FileKind::Unknown(Foreign::NothingInFolder)) => Ok(()),
        Ok(FileKind::Unknown(foreign)) => refuse(foreign.to_string()),
        Ok(FileKind::GraphDef | FileKind::GraphDefText) => match formats::graph_file::read(path) {
            Ok(_) => Ok(()),
            Err(error) => refuse(error.to_string()),
        },
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => refuse("no such file or folder".into()),
        Err(error) => refuse(error.to_string()),
    }
}
