//! Opens the window on the paths given: `cargo run -p stepscope-dashboard --example open -- [--light|--dark] PATH...`

use stepscope_dashboard::{Options, Theme, run};

fn main() -> Result<(), stepscope_dashboard::Error> {
    let mut options = Options::default();
    for arg in std::env::args_os().skip(1) {
        match arg.to_str() {
            Some("--light") => options.theme = Some(Theme::Light),
            Some("--dark") => options.theme = Some(Theme::Dark),
            _ => options.paths.push(arg.into()),
        }
    }
    run(options)
}
