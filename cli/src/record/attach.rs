//! `stepscope record --attach DIR`: says to the programs that record into a folder what to do.

use std::path::Path;
use std::time::Duration;

use events::control::Control;

use crate::args::{self, Switch, Verbosity};
use crate::human;
use crate::outcome::{Failure, Outcome};

/// How long a dump may take to be done.
const PATIENCE_NS: i64 = 5_000_000_000;

/// Does what the options say.
///
/// # Errors
/// `Failure::Use` when nobody records there or nothing is to be done, `Failure::Work` when a dump is not done in time.
pub fn run(folder: &Path, args: &args::Record, verbosity: Verbosity) -> Outcome {
    let control = Control::open(folder)
        .map_err(|error| Failure::wrong_use(format_args!("{}: nobody records there: {error}", folder.display())))?;
    let tell = |what: String| {
        if verbosity > Verbosity::Quiet {
            eprintln!("stepscope: {}: {what}", folder.display());
        }
    };
    match (args.steps, args.switch, args.dump) {
        (Some(n), ..) => {
            control.record_steps(n);
            tell(format!("the next {} steps are recorded", human::count(u64::from(n))));
        }
        (_, Some(switch), _) => {
            control.switch(switch == Switch::On);
            tell(format!("recording is {}", if switch == Switch::On { "on" } else { "off" }));
        }
        (.., true) => {
            dump(&control)?;
            tell("the flight recorder's events are in the trace".to_owned());
        }
        _ => return Err(Failure::wrong_use("say what to do: --steps N, --switch on|off or --dump")),
    }
    Ok(())
}

fn dump(control: &Control) -> Result<(), Failure> {
    if !control.is_flight() {
        return Err(Failure::wrong_use("no flight recorder runs there (record --flight SECONDS)"));
    }
    let number = control.request_dump();
    let begun = events::clock::mono_now();
    // A later dump includes this one.
    while control.dumps().1.wrapping_sub(number).cast_signed() < 0 {
        if events::clock::mono_now() - begun > PATIENCE_NS {
            return Err(Failure::Work(anyhow::anyhow!(
                "no collector wrote the dump within 5 s: does 'record' still run?"
            )));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
