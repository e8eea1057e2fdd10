//! Steps: one command each, its line printed before it runs, its wall time after; the table at the end.

use std::ffi::OsStr;
use std::process::Command;
use std::time::Duration;

/// The name of the step that failed.
#[derive(Debug)]
pub struct Failed(pub String);

/// The steps run so far, with their wall times.
pub struct Steps {
    done: Vec<(String, Duration)>,
    closing: String,
}

impl Steps {
    /// No steps yet.
    pub fn new() -> Self {
        Steps { done: Vec::new(), closing: String::new() }
    }

    /// Runs `cargo ARGS` with the environment `env` added.
    pub fn cargo(&mut self, name: &str, args: &[&str], env: &[(&str, &str)]) -> Result<(), Failed> {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        self.run(name, &cargo, args, env)
    }

    /// Runs a program to its end; anything but exit code 0 is a failure.
    pub fn run(&mut self, name: &str, program: &str, args: &[&str], env: &[(&str, &str)]) -> Result<(), Failed> {
        let shown: Vec<String> = env.iter().map(|(k, v)| format!("{k}={v}")).collect();
        eprintln!("\n== {name}: {} {program} {}", shown.join(" "), args.join(" "));
        // The one clock outside `events`: xtask links nothing of the workspace.
        #[expect(clippy::disallowed_methods)]
        let start = std::time::Instant::now();
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_package(name)) {
            command.env_remove(name);
        }
        let status = command.args(args).envs(env.iter().copied()).status();
        self.done.push((name.to_owned(), start.elapsed()));
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(_) => Err(Failed(name.to_owned())),
            Err(error) => Err(Failed(format!("{name} ({program}: {error})"))),
        }
    }

    /// Says `text` after everything else.
    pub fn close_with(&mut self, text: String) {
        self.closing = text;
    }

    /// Prints every step with its time, and the closing words.
    pub fn report(&self) {
        eprintln!();
        for (name, took) in &self.done {
            eprintln!("{:>8.1} s  {name}", took.as_secs_f64());
        }
        eprint!("{}", self.closing);
    }
}

/// Whether `cargo run` set it to describe xtask itself. Build scripts ask cargo to run them again when these change (ring's does, and half of what is
/// built depends on it), so that without this each `cargo test` by hand after `cargo xtask test` built DataFusion anew.
fn is_of_package(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
}
