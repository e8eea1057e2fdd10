//! A headless Chromium, driven by the DevTools protocol over a pipe: a page is read when it says that it is ready,
//! however long that takes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// A running browser, killed at the end.
pub struct Browser {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last_id: u64,
    /// What the pages' consoles said, errors and refused requests among it.
    pub console: Vec<Value>,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Browser {
    /// Starts the browser with a profile in a folder.
    ///
    /// # Panics
    /// It does not start.
    #[must_use]
    pub fn start(chromium: &Path, profile: &Path) -> Browser {
        // The protocol's pipes are the descriptors 3 and 4.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null", "sh"]).arg(chromium);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]);
        command.args(["--window-size=1280,2000"]).arg(format!("--user-data-dir={}", profile.display()));
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("a shell");
        let (input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        Browser { child, input, output: BufReader::new(output), last_id: 0, console: Vec::new() }
    }

    /// Opens a file and waits until its root element has the attribute `data-ready`; then gives the page as HTML.
    ///
    /// # Panics
    /// The browser ends, or refuses a command.
    pub fn ready_page(&mut self, file: &Path) -> String {
        const READY: &str = "new Promise(done => { const look = () => document.documentElement.dataset.ready === undefined \
                             ? setTimeout(look, 20) : done(document.documentElement.outerHTML); look(); })";
        let target = self.call(None, "Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = self.call(None, "Target.attachToTarget", &attach)["sessionId"].clone();
        for domain in ["Runtime.enable", "Log.enable", "Page.enable"] {
            self.call(Some(&session), domain, &json!({}));
        }
        self.call(Some(&session), "Page.navigate", &json!({ "url": format!("file://{}", file.display()) }));
        let ask = json!({ "expression": READY, "awaitPromise": true, "returnByValue": true });
        loop {
            let answer = self.call(Some(&session), "Runtime.evaluate", &ask);
            // The empty page before the file may still have answered, or have gone with the question.
            if let Some(html) = answer["result"]["value"].as_str() {
                return html.to_owned();
            }
        }
    }

    /// Sends a command and waits for its answer; what the consoles say meanwhile is collected.
    fn call(&mut self, session: Option<&Value>, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = session.clone();
        }
        let text = message.to_string();
        self.input.write_all(text.as_bytes()).and_then(|()| self.input.write_all(b"\0")).expect("the browser listens");
        loop {
            let mut bytes = Vec::new();
            self.output.read_until(0, &mut bytes).expect("the browser's pipe");
            assert_eq!(bytes.pop(), Some(0), "the browser ended: {method}");
            let message: Value = serde_json::from_slice(&bytes).expect("JSON");
            match message["method"].as_str() {
                Some("Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded") => {
                    self.console.push(message["params"].clone());
                }
                _ if message["id"].as_u64() == Some(self.last_id) => return message["result"].clone(),
                _ => {}
            }
        }
    }
}
