//! `stepscope watch`: alerts on runs that are there and on runs that grow, by all channels.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use stepscope_tests::{left_out, stepscope_binary};
use summaries::{SummaryWriter, WriterOptions};

fn writer(folder: &Path) -> SummaryWriter {
    SummaryWriter::create(folder, WriterOptions::default()).expect("a writer")
}

#[test]
fn once_tells_by_its_exit_code() {
    let Some(binary) = stepscope_binary("alerts") else { return };
    let dir = tempfile::tempdir().expect("a scratch folder");
    let writer = writer(&dir.path().join("run"));
    (0..200).for_each(|step| writer.add_scalar("loss", if step > 50 { 5.0 } else { 1.0 }, step));
    writer.close().expect("all written");
    let watch = |alert: &str| {
        let mut command = Command::new(&binary);
        command.arg("watch").arg(dir.path()).args(["--once", "--json", "--alert", alert]);
        let output = command.output().expect("the program starts");
        (output.status.code(), String::from_utf8(output.stdout).expect("text"))
    };
    assert_eq!(watch("loss > 3 for 200 steps"), (Some(0), String::new()));
    let (code, line) = watch("loss > 3 for 100 steps");
    let alert: Value = serde_json::from_str(&line).expect("one object");
    assert_eq!(code, Some(1));
    assert_eq!((&alert["run"], &alert["tag"], &alert["step"]), (&"run".into(), &"loss".into(), &151.into()));
    assert_eq!(watch("loss"), (Some(2), String::new()));
}

/// Answers one request after the other and gives their bodies.
fn bodies(listener: &TcpListener) -> impl Iterator<Item = String> + '_ {
    listener.incoming().map(|stream| {
        let mut stream = BufReader::new(stream.expect("a connection"));
        let mut length = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).expect("a header");
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).expect("the body");
        stream.get_mut().write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").expect("an answer");
        String::from_utf8(body).expect("text")
    })
}

#[test]
fn a_growing_run_raises_alerts_in_the_terminal_on_the_desktop_and_at_an_address() {
    let Some(binary) = stepscope_binary("alerts by all channels") else { return };
    if Command::new("curl").arg("--version").output().is_err() {
        return left_out("alerts at an address: curl is not installed");
    }
    let dir = tempfile::tempdir().expect("a scratch folder");
    let (logdir, tools, shown) = (dir.path().join("logs"), dir.path().join("bin"), dir.path().join("shown"));
    fs::create_dir_all(&tools).expect("a folder");
    // Stands for the desktop: notes what it is to show.
    let notify = tools.join("notify-send");
    fs::write(&notify, format!("#!/bin/sh\necho \"$@\" >> {}\n", shown.display())).expect("a script");
    fs::set_permissions(&notify, fs::Permissions::from_mode(0o755)).expect("executable");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap_or_default());
    let writer = writer(&logdir);
    writer.add_scalar("loss", 1.0, 0);
    writer.flush().expect("written");
    let mut watch = Command::new(&binary);
    watch.arg("watch").arg(&logdir).args(["--alert", "loss >= 10 for 2 points", "--notify", "--webhook", &url]);
    watch.env("PATH", path).env("no_proxy", "*").stdout(Stdio::piped());
    let mut watch = watch.spawn().expect("the program starts");
    let mut lines = BufReader::new(watch.stdout.take().expect("piped")).lines();
    (1..4).for_each(|step| writer.add_scalar("loss", 10.0 * step as f32, step));
    writer.close().expect("all written");
    let body: Value = serde_json::from_str(&bodies(&listener).next().expect("a request")).expect("JSON");
    let line = lines.next().expect("an alert").expect("text");
    watch.kill().expect("it watches still");
    watch.wait().expect("it ends");
    assert_eq!(line, ".: loss = 20 at step 2 (loss >= 10 for 2 points)");
    assert_eq!((&body["text"], &body["value"]), (&line.clone().into(), &20.0.into()));
    let shown = fs::read_to_string(shown).expect("something shown");
    assert_eq!(shown.lines().count(), 1);
    assert!(shown.ends_with(&format!("{line}\n")), "{shown}");
}
