//! The real window without input: what it costs when nothing changes, and its memory.
//!
//! On the display of the session, or one of Xvfb where there is none; without either the part is skipped.

use crate::{
    report::{BenchError, Report},
    sealed, watched,
};
use ::dashboard::Options;
use ::events::clock;
use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, ExitCode, Stdio},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

/// What makes this program the window.
pub const WINDOW: &str = "--window";
/// From the start: when it has settled, and for how long it is watched then.
const SETTLED_NS: i64 = 6_000_000_000;
const WATCHED_NS: i64 = 10_000_000_000;

pub fn run(report: &mut Report) -> Result<(), BenchError> {
    let display = match std::env::var("DISPLAY") {
        Ok(name) => Some((name, None)),
        Err(_) => own_display(),
    };
    let Some((name, server)) = display else {
        eprintln!("dashboard: the window part is skipped: there is no display, and no Xvfb to make one");
        return Ok(());
    };
    let (dir, label) = sealed::made()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(WINDOW).arg(dir.path().join("trace")).env("DISPLAY", name);
    let outcome = watched::watch(&mut command);
    if let Some(mut server) = server {
        // It has ended otherwise, which is what is wanted.
        let _ = server.kill();
        let _ = server.wait();
    }
    let output = outcome?.output;
    let figures: Vec<f64> = output.split_whitespace().filter_map(|v| v.parse().ok()).collect();
    let [start_s, idle, rss] = figures[..] else { return Err(format!("the window said: {output}").into()) };
    report.add(format!("window, {label} sealed: CPU from start to rest"), start_s, "s");
    report.add(format!("window, {label} sealed: CPU without input"), idle, "%");
    report.add(format!("window, {label} sealed: resident memory"), rss, "MB");
    Ok(())
}

/// A display of its own, with the name that it chose.
fn own_display() -> Option<(String, Option<Child>)> {
    let mut server = Command::new("Xvfb");
    server
        .args(["-displayfd", "1", "-screen", "0", "1600x900x24", "-noreset"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut server = server.spawn().ok()?;
    let mut number = String::new();
    BufReader::new(server.stdout.take()?).read_line(&mut number).ok()?;
    Some((format!(":{}", number.trim()), Some(server)))
}

/// Shows the window on a path, and prints CPU seconds until it rests, its CPU share after that, and its memory.
pub fn show(path: &str) -> ExitCode {
    let begin = clock::mono_now();
    let at_rest = Arc::new(AtomicI64::new(0));
    let at_end = Arc::new(AtomicI64::new(0));
    let (rest, end) = (at_rest.clone(), at_end.clone());
    let watch = move || {
        let since = clock::mono_now() - begin;
        if since > SETTLED_NS && rest.load(Ordering::Relaxed) == 0 {
            rest.store(clock::cpu_now(), Ordering::Relaxed);
        }
        let is_over = since > SETTLED_NS + WATCHED_NS;
        if is_over {
            end.store(clock::cpu_now(), Ordering::Relaxed);
        }
        is_over
    };
    let options = Options { paths: vec![path.into()], close_when: Some(Box::new(watch)), ..Options::default() };
    let outcome = ::dashboard::run(options);
    if let Err(error) = outcome {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    let (rest, end) = (at_rest.load(Ordering::Relaxed), at_end.load(Ordering::Relaxed));
    let idle = (end - rest) as f64 / WATCHED_NS as f64 * 100.0;
    println!("{} {idle} {}", rest as f64 / 1e9, sealed::rss_bytes() as f64 / 1e6);
    ExitCode::SUCCESS
}
