//! `stepscope record`: runs any command and records it. The command's output, signals and exit code are its own.

mod attach;
mod common;
pub mod cuda;
mod emitted;
mod signals;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

use anyhow::Context;
use trace_record::watch::Watch;
use trace_record::{Collector, CollectorOptions};

use crate::args::{self, Verbosity};
use crate::outcome::{Failure, Outcome};
use train::sending;

use common::{print_report, trace_folder, watch_options};

/// Runs the command.
///
/// # Errors
/// `Failure::Usage` when there is no such command or the folder is in use, `Failure::Work` when the folder cannot be
/// written, `Failure::Command` when the command fails.
pub fn run(args: &args::Record, verbosity: Verbosity) -> Outcome {
    if let Some(target) = &args.attach {
        return attach::run(target, args, verbosity);
    }
    let folder = trace_folder(args.out.as_deref())?;
    create_control_page(args, &folder)?;
    let options = watch_options(args);
    let watch =
        options.is_any_set().then(|| Watch::prepare(&folder, options)).transpose().context("watching the command")?;
    let collector = Collector::start_with(&folder, CollectorOptions::default(), watch.as_ref().map(Watch::tracks))
        .context("collecting the trace")?;
    let sender = sending::start(&folder, sending::collector_address(args.collector.as_deref()).as_deref())?;
    let begin_ns = events::clock::mono_now();
    let status = run_command(args, &folder, watch.as_ref())?;
    let wall_ns = events::clock::mono_now() - begin_ns;
    let is_watched = watch.is_some();
    let watch_report = watch.map(Watch::stop).unwrap_or_default();
    let collector_report = collector.stop();
    let hints = emitted::hints(&folder, is_watched);
    if let Some(why) = sending::end_and_seal(sender, &folder) {
        note!("warning: {}: {why}", folder.display());
    }
    if let Some(warning) = cuda::warning().filter(|_| !args.no_cuda) {
        note!("warning: {warning}");
    }
    hints.iter().for_each(|hint| note!("warning: {hint}"));
    if verbosity > Verbosity::Quiet {
        print_report(&folder, wall_ns, &watch_report, &collector_report);
    }
    match exit_code(status) {
        0 => Ok(()),
        code => Err(Failure::Command(code)),
    }
}

/// Creates the control page before the command runs, so that its programs find the switches set.
fn create_control_page(args: &args::Record, folder: &Path) -> anyhow::Result<()> {
    let control = events::control::Control::open_or_create(folder, true).context("making the control page")?;
    if let Some(n) = args.steps {
        control.record_steps(n);
    }
    if let Some(seconds) = args.flight {
        control.enable_flight_recorder(
            u64::from(seconds) * 1_000_000_000,
            args.slow_step.unwrap_or(0).saturating_mul(1_000_000),
        );
        signals::dump_on_signal(control);
    }
    Ok(())
}

fn run_command(args: &args::Record, folder: &Path, watch: Option<&Watch>) -> Result<ExitStatus, Failure> {
    let Some((program, arguments)) = args.command.split_first() else {
        return Err(Failure::wrong_use("no command to record"));
    };
    let mut command = Command::new(program);
    command.args(arguments).env(events::control::ENV, folder);
    if args.sample.is_some() {
        command.env("PYTHONPERFSUPPORT", "1");
    }
    if let Some(library) = cuda::find_library().filter(|_| !args.no_cuda) {
        cuda::inject(&mut command, &library);
    }
    let forwarding = signals::ForwardGuard::begin().context("taking over signals")?;
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            return Err(Failure::wrong_use(format_args!("cannot run {}: {error}", Path::new(program).display())));
        }
    };
    forwarding.forward_to(child.id());
    if let Some(watch) = watch {
        watch.set_command(child.id());
    }
    Ok(child.wait().context("waiting for the command")?)
}

/// The exit code as in a shell: 128 plus the signal's number for a command that a signal ended.
fn exit_code(status: ExitStatus) -> u8 {
    let signal = status.signal().map(|signal| 128 + signal);
    u8::try_from(status.code().or(signal).unwrap_or(1)).unwrap_or(1)
}
