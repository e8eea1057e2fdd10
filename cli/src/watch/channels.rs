//! Reports alerts outside of the terminal: on the desktop, to a web address.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;
use summaries::Alert;

use crate::logdir;

/// The longest time that a web address may take to answer, seconds.
const MAX_SECONDS: &str = "20";

/// Where alerts go besides the terminal.
pub struct Channels {
    notify: bool,
    webhook: Option<String>,
}

impl Channels {
    /// Alerts go to the desktop, and to the address if there is one.
    pub fn new(notify: bool, webhook: Option<String>) -> Channels {
        Channels { notify, webhook }
    }

    /// Sends an alert. What fails is a warning: watching goes on.
    pub fn send(&mut self, alert: &Alert) {
        if self.notify {
            let mut command = Command::new("notify-send");
            command.args(["--app-name=stepscope", "--urgency=critical", "--", &alert.run, &alert.to_string()]);
            if let Err(why) = run(command, "") {
                note!("warning: no desktop notification: {why}");
                // It would fail each time.
                self.notify = false;
            }
        }
        if let Some(url) = &self.webhook {
            let mut body = json(alert);
            // What Discord shows.
            body["content"] = body["text"].clone();
            let mut command = Command::new("curl");
            command.args(["--silent", "--show-error", "--fail", "--max-time", MAX_SECONDS, "--output", "/dev/null"]);
            command.args(["--header", "Content-Type: application/json", "--data-binary", "@-", "--", url]);
            if let Err(why) = run(command, &body.to_string()) {
                note!("warning: {url} was not reached: {why}");
            }
        }
    }
}

/// An alert in JSON.
pub fn json(alert: &Alert) -> Value {
    serde_json::json!({
        "text": alert.to_string(), "rule": alert.rule, "run": alert.run, "tag": alert.tag,
        "step": alert.point.step, "wall_time": alert.point.wall, "value": logdir::json_number(alert.point.value),
    })
}

/// Runs a program with this input; the error is its last line.
fn run(mut command: Command, input: &str) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends before it has read everything says why.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(said.lines().last().map_or_else(|| format!("{name}: {}", output.status), str::to_owned))
}
