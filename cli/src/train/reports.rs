//! What the training client of a launcher says on its standard output, a line of JSON each, and what it is told on its standard
//! input: `stop`. Where that ends the launcher is gone.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

use super::learned::Learned;
use super::progress::Shared;
use crate::out;

/// How often a client says that it is alive.
const EVERY: Duration = Duration::from_millis(250);
/// What tells it to end its run.
const STOP: &str = "stop";

/// What a client says.
#[derive(Debug)]
pub(super) enum Report {
    /// It is there, and has done so many steps.
    Alive { step: u64 },
    /// A task was lost, and with it the run.
    Lost { why: String },
    /// It is done.
    Learned(Box<Learned>),
}

impl Report {
    fn to_json(&self) -> Value {
        match self {
            Report::Alive { step } => json!({"alive": step}),
            Report::Lost { why } => json!({"lost": why}),
            Report::Learned(learned) => json!({"learned": learned.to_json()}),
        }
    }

    fn parse(line: &str) -> Option<Report> {
        let value: Value = serde_json::from_str(line).ok()?;
        let alive = value.get("alive").and_then(Value::as_u64).map(|step| Report::Alive { step });
        let lost = || Some(Report::Lost { why: value.get("lost")?.as_str()?.to_owned() });
        alive.or_else(lost).or_else(|| Some(Report::Learned(Box::new(Learned::from_json(value.get("learned")?)?))))
    }

    /// Says it on standard output.
    pub fn tell(&self) {
        // Whoever listened may be gone, which standard input tells.
        out::line(self.to_json());
    }
}

/// Says that the client is alive until `alive` is dropped.
pub(super) fn say_alive(alive: &Arc<Shared>) -> anyhow::Result<()> {
    let alive: Weak<Shared> = Arc::downgrade(alive);
    let say = move || {
        while let Some(shared) = alive.upgrade() {
            Report::Alive { step: shared.done() }.tell();
            drop(shared);
            std::thread::sleep(EVERY);
        }
    };
    std::thread::Builder::new().name("alive".into()).spawn(say).map(drop).context("starting the thread that says so")
}

/// Does what the launcher says, until it is gone: then `orphaned`.
pub(super) fn obey(shared: Arc<Shared>, orphaned: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    let listen = move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if line == STOP {
                shared.stop();
            }
        }
        orphaned();
    };
    std::thread::Builder::new().name("launcher".into()).spawn(listen).map(drop).context("listening to the launcher")
}

/// Tells a client to end its run.
pub(super) fn stop(client: &mut ChildStdin) {
    // One that is gone needs no telling.
    let _ = writeln!(client, "{STOP}").and_then(|()| client.flush());
}

/// What a client says, as it comes; it ends with the client.
pub(super) fn listen(client: ChildStdout) -> anyhow::Result<Receiver<Report>> {
    let (tell, told) = mpsc::channel();
    let read = move || {
        let lines = BufReader::new(client).lines().map_while(Result::ok);
        for report in lines.filter_map(|line| Report::parse(&line)) {
            if tell.send(report).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("reports".into()).spawn(read).context("listening to the training client")?;
    Ok(told)
}
