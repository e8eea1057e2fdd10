//! A call under way: commands of this program, one after the other.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::tools::ToolCommand;

/// The most characters of a result: a model's context is small, and a query can be narrowed.
const MAX_CHARS: usize = 60_000;
/// The most bytes that are read of a command.
const MAX_BYTES: u64 = 64 << 20;

/// A call, shared by the thread that runs it and by who may cancel it.
#[derive(Clone, Default)]
pub struct Call {
    child: Arc<Mutex<Option<Child>>>,
    is_cancelled: Arc<AtomicBool>,
}

impl Call {
    /// Ends the command that runs.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
        if let Some(child) = &mut *self.child.lock() {
            // Fails where it has just ended by itself.
            let _ = child.kill();
        }
    }

    /// Whether the call was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }

    /// Runs the commands that apply; gives their results, or the message of the first that fails.
    pub fn run(&self, commands: &[ToolCommand]) -> Result<String, String> {
        let mut text = String::new();
        for command in commands {
            if self.is_cancelled() {
                break;
            }
            let (output, notes) = self.run_one(&command.args)?;
            text.push_str(&(command.shorten)(&output));
            // Warnings are part of the answer: damage, what was left out.
            notes.lines().filter(|line| line.starts_with("warning: ")).for_each(|line| text.extend([line, "\n"]));
        }
        Ok(cut(text))
    }

    /// The standard output and standard error of one command.
    fn run_one(&self, args: &[String]) -> Result<(String, String), String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        *self.child.lock() = Some(child);
        if self.is_cancelled() {
            self.cancel();
        }
        let errors = std::thread::spawn(move || read(stderr));
        let output = read(stdout);
        let notes = errors.join().unwrap_or_default();
        let child = self.child.lock().take();
        let status = child.map(|mut child| child.wait()).transpose().map_err(|error| error.to_string())?;
        if status.is_some_and(|status| status.success()) {
            return Ok((output, notes));
        }
        let last = notes.lines().last().unwrap_or("the command failed");
        Err(last.trim_start_matches("stepscope: ").to_owned())
    }
}

/// What a command writes, up to a limit; the rest is read and dropped, so that the command ends.
fn read(source: Option<impl Read>) -> String {
    let Some(mut source) = source else { return String::new() };
    let mut bytes = Vec::new();
    // What was read before an error counts.
    let _ = source.by_ref().take(MAX_BYTES).read_to_end(&mut bytes);
    let _ = std::io::copy(&mut source, &mut std::io::sink());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Cuts a long text at the end of a line, and says so.
fn cut(text: String) -> String {
    let Some((end, _)) = text.char_indices().nth(MAX_CHARS) else { return text };
    let end = text[..end].rfind('\n').map_or(end, |at| at + 1);
    format!("{}[{} more characters: ask for less]\n", &text[..end], text[end..].chars().count())
}
