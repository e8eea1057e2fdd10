//! Opens the window on the paths given: `cargo run -p dashboard --example open -- [--light|--dark] [--config FILE] [--at ADDRESS] PATH...`

use dashboard::{Options, Theme, run};

fn main() -> Result<(), dashboard::Error> {
    let mut options = Options::default();
    let mut args = std::env::args_os().skip(1);
    while let Some(arg) = args.next() {
        match arg.to_str() {
            Some("--light") => options.theme = Some(Theme::Light),
            Some("--dark") => options.theme = Some(Theme::Dark),
            Some("--config") => options.config = args.next().map(Into::into),
            Some("--at") => options.at = args.next().and_then(|at| at.to_str()?.parse().ok()),
            _ => options.paths.push(arg.into()),
        }
    }
    run(options)
}
