//! The link between a launcher and its training client: the client writes reports to its standard output, a line of
//! JSON each, and reads the command `stop` from its standard input, whose end means that the launcher is gone.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::Context;

use crate::event::{Event, Observer};
use crate::progress::Progress;
use crate::report::Report;

/// The time between two reports that a client is alive.
const HEARTBEAT_PERIOD: Duration = Duration::from_millis(250);
/// The command that ends the client's run.
const STOP: &str = "stop";

/// Starts a thread that reports the client as alive, until `progress` is dropped.
pub(crate) fn start_heartbeat(progress: &Arc<Progress>, observer: Arc<dyn Observer>) -> anyhow::Result<()> {
    let progress: Weak<Progress> = Arc::downgrade(progress);
    let report = move || {
        while let Some(progress) = progress.upgrade() {
            observer.on_event(&Event::Report(&Report::Alive { step: progress.n_done() }));
            drop(progress);
            std::thread::sleep(HEARTBEAT_PERIOD);
        }
    };
    let thread = std::thread::Builder::new().name("alive".into()).spawn(report);
    thread.map(drop).context("starting the thread that reports to the launcher")
}

/// Handles the launcher's commands until their end; calls `on_orphaned` when the launcher is gone.
pub(crate) fn handle_commands(commands: impl BufRead, progress: &Progress, on_orphaned: impl FnOnce()) {
    for line in commands.lines().map_while(Result::ok) {
        if line == STOP {
            progress.stop();
        }
    }
    on_orphaned();
}

/// Sends a client the command to end its run.
pub(crate) fn send_stop(client: &mut impl Write) {
    // Writing fails where the client is gone, and then no command is needed.
    let _ = writeln!(client, "{STOP}").and_then(|()| client.flush());
}

/// Starts a thread that reads the reports of a client; the channel closes when the client ends. Lines that are no
/// reports are skipped.
pub(crate) fn read_reports(client: impl Read + Send + 'static) -> anyhow::Result<Receiver<Report>> {
    let (sender, reports) = mpsc::channel();
    let read = move || {
        let lines = BufReader::new(client).lines().map_while(Result::ok);
        for report in lines.filter_map(|line| serde_json::from_str(&line).ok()) {
            if sender.send(report).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("reports".into()).spawn(read).context("listening to the training client")?;
    Ok(reports)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::result;

    #[test]
    fn reports_are_lines_that_the_launcher_reads() {
        let lines = [
            Report::Alive { step: 7 }.to_string(),
            "a program's own line".to_owned(),
            Report::Lost { reason: "task 1\nis gone".into() }.to_string(),
            Report::Result(Box::new(result())).to_string(),
        ];
        assert!(lines.iter().all(|line| !line.contains('\n')), "{lines:?}");
        let reports = read_reports(std::io::Cursor::new(lines.join("\n"))).unwrap();
        let reports: Vec<Report> = reports.iter().collect();
        let [Report::Alive { step: 7 }, Report::Lost { reason }, Report::Result(back)] = &reports[..] else {
            panic!("{reports:?}")
        };
        assert_eq!(reason, "task 1\nis gone");
        assert_eq!(format!("{back:?}"), format!("{:?}", result()));
    }

    #[test]
    fn the_launchers_command_stops_and_its_end_orphans() {
        let mut commands = b"go\n".to_vec();
        let progress = Progress::new(1);
        let mut is_orphaned = false;
        handle_commands(&commands[..], &progress, || is_orphaned = true);
        assert!(!progress.is_stopping() && is_orphaned);
        send_stop(&mut commands);
        handle_commands(&commands[..], &progress, || {});
        assert!(progress.is_stopping());
    }
}
