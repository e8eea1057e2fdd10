//! `stepscope record --attach DIR|PID`: controls the programs that record into a folder, sends the folder to a
//! collector, or watches a running process.

use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use anyhow::Context;
use events::control::{ClaimError, Control};
use trace_record::watch::Watch;
use trace_record::{CollectError, Collector, CollectorOptions};

use crate::args::{self, Switch, Verbosity};
use crate::outcome::{Failure, Outcome};
use crate::signals;
use crate::trace_file;
use train::sending;

use super::common::{print_report, trace_folder, watch_options};

/// How long a dump may take, nanoseconds.
const DUMP_TIMEOUT_NS: i64 = 5_000_000_000;
/// The time between two checks whether a process still records.
const CHECK_PERIOD: Duration = Duration::from_millis(20);

/// Runs the actions of the options.
///
/// # Errors
/// `Failure::Usage` when no process records there or there is nothing to do, `Failure::Work` when a dump takes too
/// long.
pub fn run(target: &Path, args: &args::Record, verbosity: Verbosity) -> Outcome {
    let pid = target.to_str().and_then(|text| text.parse::<u32>().ok()).filter(|_| !target.is_dir());
    let is_watching = watch_options(args).is_any_set();
    let folder = match pid {
        Some(pid) if is_watching => return watch(pid, args, verbosity),
        Some(pid) => find_trace_folder(pid)?,
        None if is_watching || args.out.is_some() => {
            return Err(Failure::wrong_use("--sched, --sample, --counters and -o need a process's id to attach to"));
        }
        None => target.to_path_buf(),
    };
    let folder = folder.as_path();
    if let Some(address) = &args.collector {
        return send(folder, address, verbosity);
    }
    let control = Control::open(folder)
        .map_err(|error| Failure::wrong_use(format_args!("{}: no process records there: {error}", folder.display())))?;
    let report = |what: String| {
        if verbosity > Verbosity::Quiet {
            note!("stepscope: {}: {what}", folder.display());
        }
    };
    match (args.steps, args.switch, args.dump) {
        (Some(n), ..) => {
            control.record_steps(n);
            report(format!("the next {} steps are recorded", text::count(u64::from(n))));
        }
        (_, Some(switch), _) => {
            control.switch(switch == Switch::On);
            report(format!("recording is {}", if switch == Switch::On { "on" } else { "off" }));
        }
        (.., true) => {
            dump(&control)?;
            report("the flight recorder's events are in the trace".to_owned());
        }
        _ => {
            return Err(Failure::wrong_use(
                "say what to do: --steps N, --switch on|off, --dump or --collector HOST:PORT",
            ));
        }
    }
    Ok(())
}

/// The trace folder that a process records into: it has the control page mapped.
fn find_trace_folder(pid: u32) -> Result<PathBuf, Failure> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))
        .map_err(|error| Failure::wrong_use(format_args!("process {pid}: {error}")))?;
    let mapped = maps.lines().filter_map(|line| Some(Path::new(&line[line.find('/')?..])));
    let mut pages = mapped.filter(|path| path.file_name().is_some_and(|name| name == events::control::FILE_NAME));
    let folder = pages.find_map(|path| path.parent().filter(|dir| Control::open(dir).is_ok()));
    folder.map(Path::to_path_buf).ok_or_else(|| {
        Failure::wrong_use(format_args!(
            "process {pid} records no events; --sched, --sample HZ or --counters watch it from outside"
        ))
    })
}

/// Watches a process from outside until it ends or Ctrl-C.
fn watch(pid: u32, args: &args::Record, verbosity: Verbosity) -> Outcome {
    if args.steps.is_some() || args.switch.is_some() || args.dump {
        return Err(Failure::wrong_use(
            "--steps, --switch and --dump are for programs that record; leave --sched, --sample and --counters out",
        ));
    }
    let born = events::session::born(pid);
    if born == 0 {
        return Err(Failure::wrong_use(format_args!("there is no process {pid}")));
    }
    let folder = trace_folder(args.out.as_deref())?;
    let options = watch_options(args);
    let stopped = signals::stop_signals()?;
    let watch = Watch::attach(&folder, options, pid).context("watching the process")?;
    let collector = Collector::start_with(&folder, CollectorOptions::default(), Some(watch.tracks()))
        .context("collecting the trace")?;
    let sender = sending::start(&folder, sending::collector_address(args.collector.as_deref()).as_deref())?;
    let begin_ns = events::clock::mono_now();
    while stopped.recv_timeout(CHECK_PERIOD) == Err(RecvTimeoutError::Timeout) && events::session::born(pid) == born {}
    let wall_ns = events::clock::mono_now() - begin_ns;
    let watch_report = watch.stop();
    let collector_report = collector.stop();
    if let Some(why) = sending::end_and_seal(sender, &folder) {
        note!("warning: {}: {why}", folder.display());
    }
    if verbosity > Verbosity::Quiet {
        print_report(&folder, wall_ns, &watch_report, &collector_report);
    }
    Ok(())
}

/// Sends the content of the folder, and the events that are recorded into it meanwhile.
fn send(folder: &Path, address: &str, verbosity: Verbosity) -> Outcome {
    if !folder.is_dir() {
        return Err(Failure::wrong_use(format_args!("{}: no such folder", folder.display())));
    }
    if folder.join(trace_model::layout::SEALED_FOLDER).is_dir() {
        return send_sealed(folder, address, verbosity);
    }
    if !folder.join(events::control::FILE_NAME).is_file() {
        return Err(Failure::wrong_use(format_args!("{}: no trace that was recorded", folder.display())));
    }
    let sender = sending::start(folder, Some(address))?;
    // Drains rings that have no collector any more; where there is a collector, sends until it has finished.
    loop {
        match Collector::start(folder, CollectorOptions::default()) {
            Ok(collector) => {
                while sending::has_live_writer(folder) {
                    std::thread::sleep(CHECK_PERIOD);
                }
                collector.stop();
                break;
            }
            Err(CollectError::Claim(_, ClaimError::Taken { .. })) => {
                std::thread::sleep(CHECK_PERIOD);
                if Control::open(folder).is_ok_and(|control| control.collector().finished) {
                    break;
                }
            }
            Err(error) => return Err(Failure::Work(error.into())),
        }
    }
    report_sending(sending::end(sender, folder), folder, address, verbosity)
}

/// Sends a sealed trace as the files that it was sealed from, which are temporarily written next to it.
fn send_sealed(folder: &Path, address: &str, verbosity: Verbosity) -> Outcome {
    let store = trace_file::open(folder)?;
    let unsealed = gather::Unsealed::create(folder, &store).map_err(Failure::from)?;
    let sender = sending::start(unsealed.dir(), Some(address))?;
    trace_file::warn(folder, &store);
    report_sending(sending::end(sender, folder), folder, address, verbosity)
}

fn report_sending(problem: Option<String>, folder: &Path, address: &str, verbosity: Verbosity) -> Outcome {
    if let Some(why) = problem {
        return Err(Failure::Work(anyhow::anyhow!("{why}")));
    }
    if verbosity > Verbosity::Quiet {
        note!("stepscope: {} is at {address}", folder.display());
    }
    Ok(())
}

fn dump(control: &Control) -> Result<(), Failure> {
    if !control.is_flight() {
        return Err(Failure::wrong_use("no flight recorder runs there (record --flight SECONDS)"));
    }
    let number = control.request_dump();
    let begin_ns = events::clock::mono_now();
    // Dumps are numbered: a higher number includes this dump.
    while control.dumps().1.wrapping_sub(number).cast_signed() < 0 {
        if events::clock::mono_now() - begin_ns > DUMP_TIMEOUT_NS {
            return Err(Failure::Work(anyhow::anyhow!(
                "no collector wrote the dump within 5 s: does 'record' still run?"
            )));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
