//! Runs, logdirs and traces of other machines: `ssh://HOST/PATH` starts `stepscope serve --stdio` there,
//! `--connect HOST:PORT` connects to a collector or `stepscope serve`; `s3://BUCKET/PATH` and similar URLs are buckets.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use anyhow::Context;
use dashboard::{RemoteSource, RemoteSources};
use gather::{Connection, CopyError, CopyResult, LogdirCopy, ViewError};
use parking_lot::Mutex;

use crate::outcome::Failure;
use crate::source::{self, Source};

/// The variable with the command to use instead of `ssh`, with its options.
const SSH_VARIABLE: &str = "STEPSCOPE_SSH";
/// The shortest and the longest pause between two fetches of a remote logdir. Within these limits a pause is
/// `PAUSE_FACTOR` times the duration of the last fetch.
const FETCH_PAUSE: std::ops::Range<Duration> = Duration::from_millis(200)..Duration::from_secs(30);
const PAUSE_FACTOR: u32 = 20;

/// The scheme of addresses of `--connect`.
const CONNECT_SCHEME: &str = "connect://";

/// The URL in a path that names no file of this machine.
pub fn url(path: &Path) -> Option<&str> {
    let is_url =
        |text: &str| ["ssh://", CONNECT_SCHEME].iter().any(|scheme| text.starts_with(scheme)) || source::is_url(path);
    path.to_str().filter(|text| is_url(text))
}

/// The URL of a collector, or of `stepscope serve`.
pub fn connect_url(address: &str) -> String {
    format!("{CONNECT_SCHEME}{address}")
}

/// The connections, buckets and copies from which the window shows other machines. Dropping it removes the copies of
/// logdirs.
pub struct RemoteRuns {
    remote_bin: String,
    copies: Mutex<Vec<PathBuf>>,
    /// Buckets, which are copied while this exists.
    buckets: Mutex<Vec<Source>>,
    /// The sources that were opened before the window, by URL.
    opened_early: Mutex<HashMap<String, RemoteSources>>,
}

impl Drop for RemoteRuns {
    fn drop(&mut self) {
        // The threads that update the copies end with the program.
        for copy in self.copies.get_mut() {
            let _ = std::fs::remove_dir_all(copy);
        }
    }
}

impl RemoteRuns {
    /// Opens nothing yet. `remote_bin` is the name of stepscope on other machines.
    pub fn new(remote_bin: &str) -> Arc<RemoteRuns> {
        let (copies, buckets, opened_early) = Default::default();
        Arc::new(RemoteRuns { remote_bin: remote_bin.to_owned(), copies, buckets, opened_early })
    }

    /// Opens a URL before there is a window, so that errors are reported before it opens.
    ///
    /// # Errors
    /// `Failure::Usage` when the URL is invalid, or no server answers.
    pub fn open_early(&self, url: &str) -> Result<(), Failure> {
        let found = self.open(url)?;
        self.opened_early.lock().insert(url.to_owned(), found);
        Ok(())
    }

    /// The function by which the window opens URLs.
    pub fn opener(self: &Arc<RemoteRuns>) -> dashboard::OpenRemote {
        let remote = Arc::clone(self);
        Arc::new(move |url| {
            let early = remote.opened_early.lock().remove(url);
            early.map_or_else(|| remote.open(url).map_err(failure_text), Ok)
        })
    }

    fn open(&self, url: &str) -> Result<RemoteSources, Failure> {
        let url = url.trim_end_matches('/');
        if let Some(address) = url.strip_prefix(CONNECT_SCHEME) {
            let connection = Connection::to_address(address).map_err(Failure::wrong_use)?;
            return self.open_connection(&connection, url);
        }
        if source::is_url(Path::new(url)) {
            return self.open_bucket(url);
        }
        let target = SshTarget::parse(url).map_err(|why| Failure::wrong_use(format_args!("{url}: {why}")))?;
        let ssh = std::env::var(SSH_VARIABLE).unwrap_or_else(|_| "ssh".to_owned());
        let program = target.command(&ssh, &self.remote_bin);
        let connection = Connection::to_program(url, &program).map_err(Failure::wrong_use)?;
        self.open_connection(&connection, url)
    }

    /// Opens the logdir in a bucket.
    fn open_bucket(&self, url: &str) -> Result<RemoteSources, Failure> {
        let bucket = Source::follow(Path::new(url))?;
        let (sender, found) = mpsc::channel();
        // Cannot fail: the receiver is in this function.
        let _ = sender.send((url.to_owned(), RemoteSource::Logdir(bucket.path().to_owned())));
        self.buckets.lock().push(bucket);
        Ok(found)
    }

    fn open_connection(&self, connection: &Arc<Connection>, url: &str) -> Result<RemoteSources, Failure> {
        let mut copy =
            LogdirCopy::new(Arc::clone(connection)).context("a copy of a logdir needs a temporary folder")?;
        let copied = copy.fetch().map_err(|error| Failure::wrong_use(format_args!("{error}{}", ssh_hint(&error))))?;
        if copied.is_cut {
            note!("warning: {url}: it has more files and folders than are read");
        }
        let folder = copy.folder().to_owned();
        self.copies.lock().push(copy.scratch().to_owned());
        let (sender, found) = mpsc::channel();
        let (connection, url) = (Arc::clone(connection), url.to_owned());
        let mut announcer = Announcer { url, folder, connection, sender, announced: HashSet::new() };
        if copied.n_files > 0 {
            print_cost(&announcer.url, &copied);
        }
        // Cannot fail: the receiver is in this function.
        let _ = announcer.announce(&copied);
        std::thread::spawn(move || update_copy(copy, announcer));
        Ok(found)
    }
}

/// A hint from the exit code of ssh: 255 is ssh's own code, any other is the remote program's. Both programs have
/// printed more on standard error.
fn ssh_hint(error: &CopyError) -> &'static str {
    match error {
        CopyError::View(ViewError::Ended(.., 255)) => {
            ": no connection, or no permission to log in; see ssh's message above"
        }
        CopyError::View(ViewError::Ended(.., 127)) => ": no stepscope there; --remote-bin names it",
        CopyError::View(ViewError::Ended(..)) => "; see its message above",
        _ => "",
    }
}

/// Announces the sources below a URL to the window, each once.
struct Announcer {
    url: String,
    /// The folder of the logdir's copy.
    folder: PathBuf,
    connection: Arc<Connection>,
    sender: mpsc::Sender<(String, RemoteSource)>,
    /// URLs that were announced.
    announced: HashSet<String>,
}

impl Announcer {
    /// Announces the new sources of a fetch; an error when the window is gone.
    fn announce(&mut self, copied: &CopyResult) -> Result<(), mpsc::SendError<(String, RemoteSource)>> {
        if copied.n_files > 0 && self.announced.insert(format!("logdir of {}", self.url)) {
            self.sender.send((self.url.clone(), RemoteSource::Logdir(self.folder.clone())))?;
        }
        for trace in &copied.traces {
            let url = if trace.is_empty() { self.url.clone() } else { format!("{}/{trace}", self.url) };
            if self.announced.insert(url.clone()) {
                self.sender.send((url, RemoteSource::Trace(self.connection.trace(trace))))?;
            }
        }
        Ok(())
    }
}

/// The text of a failure in the window.
fn failure_text(failure: Failure) -> String {
    match failure {
        Failure::Work(error) | Failure::Usage(error) => format!("{error:#}"),
        Failure::Command(code) => format!("a command ended with {code}"),
        Failure::Output => "standard output takes no more".to_owned(),
    }
}

fn print_cost(name: &str, copied: &CopyResult) {
    note!("{name}: {} of {}", text::bytes(copied.n_bytes), text::count_of(copied.n_files as u64, "file"));
}

/// Updates a copy and announces new sources, until the window closes.
fn update_copy(mut copy: LogdirCopy, mut announcer: Announcer) {
    let mut last_error = String::new();
    loop {
        let begin = events::clock::mono_now();
        match copy.fetch() {
            Ok(copied) if announcer.announce(&copied).is_err() => return,
            Ok(_) => last_error.clear(),
            Err(error) if error.to_string() != last_error => {
                last_error = error.to_string();
                note!("warning: {last_error}");
            }
            Err(_) => {}
        }
        let elapsed = Duration::from_nanos((events::clock::mono_now() - begin).unsigned_abs());
        std::thread::sleep((elapsed * PAUSE_FACTOR).clamp(FETCH_PAUSE.start, FETCH_PAUSE.end));
    }
}

/// `ssh://[USER@]HOST[:PORT]/PATH`.
#[derive(Debug, PartialEq, Eq)]
struct SshTarget {
    host: String,
    port: Option<u16>,
    path: String,
}

impl SshTarget {
    fn parse(url: &str) -> Result<SshTarget, &'static str> {
        let rest = url.strip_prefix("ssh://").ok_or("not a URL of ssh")?;
        let (authority, path) = rest.split_once('/').ok_or("it has no path: ssh://HOST/PATH")?;
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !host.ends_with(']') || !port.is_empty() => {
                (host, Some(port.parse().map_err(|_| "its port is no number")?))
            }
            _ => (authority, None),
        };
        // ssh would take a name that begins with `-` for an option.
        if host.is_empty() || host.starts_with('-') || host.chars().any(char::is_whitespace) {
            return Err("it has no host: ssh://HOST/PATH");
        }
        let path = match path.strip_prefix("~/") {
            Some(below_home) if !below_home.is_empty() => below_home.to_owned(),
            Some(_) => ".".to_owned(),
            None => format!("/{path}"),
        };
        Ok(SshTarget { host: host.to_owned(), port, path })
    }

    /// The command that starts the server on the other machine.
    fn command(&self, ssh: &str, remote_bin: &str) -> Vec<String> {
        let mut command: Vec<String> = ssh.split_whitespace().map(ToOwned::to_owned).collect();
        // No terminal; a connection that hangs is noticed within a minute.
        command.extend(["-T", "-o", "ServerAliveInterval=15"].map(ToOwned::to_owned));
        if let Some(port) = self.port {
            command.extend(["-p".to_owned(), port.to_string()]);
        }
        // Quoted, because the remote shell splits the command again.
        let serve = format!("{} serve --stdio -- {}", quoted(remote_bin), quoted(&self.path));
        command.extend(["--".to_owned(), self.host.clone(), serve]);
        command
    }
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // tests
mod tests {
    use super::*;

    #[test]
    fn urls_of_ssh() {
        let target = |host: &str, port, path: &str| SshTarget { host: host.to_owned(), port, path: path.to_owned() };
        assert_eq!(SshTarget::parse("ssh://gpu7/data/runs"), Ok(target("gpu7", None, "/data/runs")));
        assert_eq!(SshTarget::parse("ssh://me@gpu7:2222/data"), Ok(target("me@gpu7", Some(2222), "/data")));
        assert_eq!(SshTarget::parse("ssh://gpu7/~/runs/a b"), Ok(target("gpu7", None, "runs/a b")));
        assert_eq!(SshTarget::parse("ssh://gpu7/~/"), Ok(target("gpu7", None, ".")));
        for wrong in ["ssh://gpu7", "ssh:///runs", "ssh://-oProxyCommand=x/runs", "ssh://a b/runs", "ssh://h:port/runs"]
        {
            assert!(SshTarget::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_path_is_one_word_for_the_shell_there() {
        let target = SshTarget::parse("ssh://gpu7:22/it's; rm -rf x").unwrap();
        let command = target.command("ssh -i key", "stepscope");
        assert_eq!(&command[..2], ["ssh", "-i"]);
        assert_eq!(&command[command.len() - 2..], ["gpu7", r"'stepscope' serve --stdio -- '/it'\''s; rm -rf x'"]);
    }
}
