//! What another machine has: `ssh://HOST/PATH` starts `stepscope serve --stdio` there, `--connect HOST:PORT` asks a collector or
//! `stepscope serve`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use gather::{Connection, Copied, LogdirCopy};
use profiler::far::Ask;

use crate::human;
use crate::outcome::Failure;

/// What `ssh` is called, where it is not `ssh`.
const SSH: &str = "STEPSCOPE_SSH";
/// Between two looks at a distant logdir: 20 times what the last took, within these.
const PAUSE: std::ops::Range<Duration> = Duration::from_millis(200)..Duration::from_secs(30);
const PAUSE_FACTOR: u32 = 20;

/// Whether a path is of another machine.
pub fn is_far(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.starts_with("ssh://"))
}

/// Everything that the window shows of other machines.
#[derive(Default)]
pub struct Distant {
    /// What the window opens: traces by their names here, logdirs as copies.
    pub paths: Vec<PathBuf>,
    traces: HashMap<PathBuf, Arc<dyn Ask>>,
    copies: Vec<PathBuf>,
}

impl Drop for Distant {
    fn drop(&mut self) {
        // The threads that keep the copies end with the program.
        for copy in &self.copies {
            let _ = std::fs::remove_dir_all(copy);
        }
    }
}

impl Distant {
    /// Looks at what is served at `HOST:PORT`.
    ///
    /// # Errors
    /// `Failure::Use` when the address is none or nobody answers there.
    pub fn connect(&mut self, address: &str) -> Result<(), Failure> {
        let connection = Connection::to_address(address).map_err(Failure::wrong_use)?;
        self.add(connection, &format!("connect://{address}"))
    }

    /// Looks at `ssh://HOST/PATH`.
    ///
    /// # Errors
    /// `Failure::Use` when the URL is none or `stepscope serve` does not answer there.
    pub fn ssh(&mut self, url: &Path, remote_bin: &str) -> Result<(), Failure> {
        let url = url.to_string_lossy();
        let target = Target::parse(&url).map_err(|why| Failure::wrong_use(format_args!("{url}: {why}")))?;
        let ssh = std::env::var(SSH).unwrap_or_else(|_| "ssh".to_owned());
        let connection = Connection::to_program(&url, &target.command(&ssh, remote_bin)).map_err(Failure::wrong_use)?;
        self.add(connection, url.trim_end_matches('/'))
    }

    fn add(&mut self, connection: Arc<Connection>, name: &str) -> Result<(), Failure> {
        let mut copy =
            LogdirCopy::new(Arc::clone(&connection)).context("a copy of a logdir needs a temporary folder")?;
        let copied = copy.fetch().map_err(|error| {
            let hint = if name.starts_with("ssh://") { "; is stepscope there? --remote-bin says where" } else { "" };
            Failure::wrong_use(format_args!("{error}{hint}"))
        })?;
        if copied.is_cut {
            eprintln!("warning: {name}: it has more files and folders than are looked at");
        }
        for trace in &copied.traces {
            let path = PathBuf::from(if trace.is_empty() { name.to_owned() } else { format!("{name}/{trace}") });
            self.traces.insert(path.clone(), connection.trace(trace));
            self.paths.push(path);
        }
        if copied.n_files > 0 {
            self.paths.push(copy.folder().to_owned());
            self.copies.push(copy.folder().to_owned());
            tell(name, &copied);
            std::thread::spawn(move || keep(copy));
        }
        Ok(())
    }

    /// Finds the traces for the window.
    pub fn opener(&self) -> dashboard::OpenFar {
        let traces = self.traces.clone();
        Arc::new(move |path| traces.get(path).map(Arc::clone))
    }
}

fn tell(name: &str, copied: &Copied) {
    let files = if copied.n_files == 1 { "file" } else { "files" };
    eprintln!("{name}: {} of {} {files}", human::bytes(copied.n_bytes), human::count(copied.n_files as u64));
}

/// Keeps a copy up to date until the program ends.
fn keep(mut copy: LogdirCopy) {
    let mut last_error = String::new();
    loop {
        let begin = events::clock::mono_now();
        if let Err(error) = copy.fetch() {
            let error = error.to_string();
            if error != last_error {
                eprintln!("warning: {error}");
                last_error = error;
            }
        }
        let took = Duration::from_nanos((events::clock::mono_now() - begin).unsigned_abs());
        std::thread::sleep((took * PAUSE_FACTOR).clamp(PAUSE.start, PAUSE.end));
    }
}

/// `ssh://[USER@]HOST[:PORT]/PATH`.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    host: String,
    port: Option<u16>,
    path: String,
}

impl Target {
    fn parse(url: &str) -> Result<Target, &'static str> {
        let rest = url.strip_prefix("ssh://").ok_or("not a URL of ssh")?;
        let (place, path) = rest.split_once('/').ok_or("it has no path: ssh://HOST/PATH")?;
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !host.ends_with(']') || !port.is_empty() => {
                (host, Some(port.parse().map_err(|_| "its port is no number")?))
            }
            _ => (place, None),
        };
        // A name that begins so would be an option of ssh.
        if host.is_empty() || host.starts_with('-') || host.chars().any(char::is_whitespace) {
            return Err("it has no host: ssh://HOST/PATH");
        }
        let path = match path.strip_prefix("~/") {
            Some(below_home) if !below_home.is_empty() => below_home.to_owned(),
            Some(_) => ".".to_owned(),
            None => format!("/{path}"),
        };
        Ok(Target { host: host.to_owned(), port, path })
    }

    /// What starts the other side.
    fn command(&self, ssh: &str, remote_bin: &str) -> Vec<String> {
        let mut command: Vec<String> = ssh.split_whitespace().map(ToOwned::to_owned).collect();
        // No terminal; a connection that hangs is noticed within a minute.
        command.extend(["-T", "-o", "ServerAliveInterval=15"].map(ToOwned::to_owned));
        if let Some(port) = self.port {
            command.extend(["-p".to_owned(), port.to_string()]);
        }
        // The shell there takes it apart again.
        let serve = format!("{} serve --stdio -- {}", quoted(remote_bin), quoted(&self.path));
        command.extend(["--".to_owned(), self.host.clone(), serve]);
        command
    }
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // tests
mod tests {
    use super::*;

    #[test]
    fn urls_of_ssh() {
        let target = |host: &str, port, path: &str| Target { host: host.to_owned(), port, path: path.to_owned() };
        assert_eq!(Target::parse("ssh://gpu7/data/runs"), Ok(target("gpu7", None, "/data/runs")));
        assert_eq!(Target::parse("ssh://me@gpu7:2222/data"), Ok(target("me@gpu7", Some(2222), "/data")));
        assert_eq!(Target::parse("ssh://gpu7/~/runs/a b"), Ok(target("gpu7", None, "runs/a b")));
        assert_eq!(Target::parse("ssh://gpu7/~/"), Ok(target("gpu7", None, ".")));
        for wrong in ["ssh://gpu7", "ssh:///runs", "ssh://-oProxyCommand=x/runs", "ssh://a b/runs", "ssh://h:port/runs"]
        {
            assert!(Target::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_path_is_one_word_for_the_shell_there() {
        let target = Target::parse("ssh://gpu7:22/it's; rm -rf x").unwrap();
        let command = target.command("ssh -i key", "stepscope");
        assert_eq!(&command[..2], ["ssh", "-i"]);
        assert_eq!(&command[command.len() - 2..], ["gpu7", r"'stepscope' serve --stdio -- '/it'\''s; rm -rf x'"]);
    }
}
