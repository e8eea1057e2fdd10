//! Training in several processes, to be disturbed: runs whose processes are found, killed and waited for.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use events::clock::mono_now;

/// Lines that a process wrote, each with the time when it was read (`events::clock::mono_now`).
type Lines = Arc<Mutex<Vec<(i64, String)>>>;

/// The time since then.
pub fn since(then: i64) -> Duration {
    Duration::from_nanos((mono_now() - then).max(0) as u64)
}

/// A command that runs, and what it says on stderr. Killed when this goes.
pub struct Running {
    /// The process.
    pub child: Child,
    said: Lines,
    reader: Option<std::thread::JoinHandle<()>>,
}

impl Running {
    /// Starts a command; its stdout goes where the command says.
    ///
    /// # Panics
    /// It does not start.
    pub fn start(command: &mut Command) -> Running {
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the command starts");
        let stderr = child.stderr.take().expect("stderr is piped");
        let said: Lines = Arc::default();
        let to = Arc::clone(&said);
        let read = move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                to.lock().expect("no thread panics with it").push((mono_now(), line));
            }
        };
        Running { child, said, reader: Some(std::thread::spawn(read)) }
    }

    /// What it said so far.
    ///
    /// # Panics
    /// The thread that reads panicked.
    pub fn said(&self) -> Vec<(i64, String)> {
        self.said.lock().expect("no thread panics with it").clone()
    }

    /// The same as text.
    pub fn text(&self) -> String {
        self.said().into_iter().map(|(_, line)| line + "\n").collect()
    }

    /// The lines that contain this.
    pub fn lines_with(&self, part: &str) -> Vec<(i64, String)> {
        self.said().into_iter().filter(|(_, line)| line.contains(part)).collect()
    }

    /// Waits until it says this for the `n`-th time, and gives when.
    ///
    /// # Panics
    /// It does not, in time.
    pub fn wait_for(&self, part: &str, n: usize, within: Duration) -> i64 {
        let begin = mono_now();
        loop {
            if let Some((when, _)) = self.lines_with(part).get(n - 1) {
                return *when;
            }
            assert!(since(begin) < within, "not within {within:?}: {part:?}, {n} times\n{}", self.text());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits until it has saved a checkpoint of a later step than this one into the folder, and gives the step.
    ///
    /// # Panics
    /// It does not, in time.
    pub fn wait_for_checkpoint(&self, folder: &Path, after: u64, within: Duration) -> u64 {
        let begin = mono_now();
        loop {
            let step = newest(folder);
            if step > after {
                return step;
            }
            assert!(since(begin) < within, "not within {within:?}: a checkpoint after step {after}\n{}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// It does not end in time.
    pub fn end(&mut self, within: Duration) -> ExitStatus {
        let begin = mono_now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it is this process's child") {
                if let Some(reader) = self.reader.take() {
                    reader.join().expect("the reader ends with what it reads");
                }
                return status;
            }
            assert!(since(begin) < within, "it does not end within {within:?}:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The processes that a launcher started, its training client first, then the workers in order.
    pub fn processes(&self) -> Vec<u32> {
        let id = self.child.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        let ids = children.split_whitespace().filter_map(|id| id.parse::<u32>().ok());
        let mut found: Vec<(String, u32)> = ids.filter_map(|id| Some((role(id)?, id))).collect();
        found.sort();
        found.into_iter().map(|(_, id)| id).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that ended cannot be killed, and is waited for all the same.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a process of a launcher is: `client`, or `worker` and its task.
fn role(id: u32) -> Option<String> {
    let line = fs::read(format!("/proc/{id}/cmdline")).ok()?;
    let words: Vec<String> = line.split(|b| *b == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let after = |name: &str| words.iter().position(|word| word == name).and_then(|at| words.get(at + 1));
    match words.get(1)?.as_str() {
        "train" => after("--attempt").map(|_| "client".to_owned()),
        "worker" => after("--task").map(|task| format!("worker {task:0>5}")),
        _ => None,
    }
}

/// Sends a signal; whether there was a process to get it.
///
/// # Panics
/// There is no `kill`.
pub fn signal(signal: &str, process: u32) -> bool {
    let mut command = Command::new("kill");
    let sent = command.args([signal, &process.to_string()]).stderr(Stdio::null()).status();
    sent.expect("kill is there").success()
}

/// What a command wrote and how it ended; one that goes on for 100 s is killed.
///
/// # Panics
/// It does not start, or had to be killed.
pub fn output_of(command: &mut Command) -> Output {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the command starts");
    let process = child.id();
    let (ended, end) = mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        let is_late = end.recv_timeout(Duration::from_secs(100)) == Err(RecvTimeoutError::Timeout);
        is_late && signal("-KILL", process)
    });
    let output = child.wait_with_output().expect("it ends");
    drop(ended);
    let was_killed = watch.join().expect("the watch does not panic");
    assert!(!was_killed, "{command:?} did not end: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Whether a process is there and no zombie.
pub fn is_running(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')))
}

/// Waits until something is so.
///
/// # Panics
/// It is not, within 20 s.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let so = (0..2000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        is_so()
    });
    assert!(so, "not within 20 s: {what}");
}

/// The step of a folder's newest checkpoint; 0 where there is none.
pub fn newest(folder: &Path) -> u64 {
    let printed = fs::read_to_string(folder.join("checkpoint")).unwrap_or_default();
    printed.split('"').nth(1).and_then(|name| name.rsplit('-').next()?.parse().ok()).unwrap_or(0)
}

/// The files of the checkpoint of a step, by name: byte by byte what the variables and generators are.
///
/// # Panics
/// The folder cannot be read.
pub fn checkpoint(folder: &Path, step: u64) -> BTreeMap<String, Vec<u8>> {
    let own = format!("model-{step}");
    let files = fs::read_dir(folder).expect("the folder of checkpoints").flatten().map(|file| file.path());
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_own = |name: &String| name.strip_prefix(&own).is_some_and(|rest| rest.starts_with(['.', '-']));
    let files = files.map(|path| (name(&path), path)).filter(|(name, _)| is_own(name) && !name.ends_with(".tmp"));
    files.map(|(name, path)| (name, fs::read(path).expect("it was there"))).collect()
}

/// Numbers that look random, the same in each run of a test.
pub struct Dice(pub u64);

impl Dice {
    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        // SplitMix64 (Steele, Lea and Flood 2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}
