//! `stepscope watch`: follows a logdir and raises alerts.

mod channels;

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use events::clock;
use summaries::{Alert, Alerts, Logdir, Rule};

use crate::args;
use crate::logdir;
use crate::out;
use crate::outcome::{Failure, Outcome};
use crate::signals;
use crate::source::Source;
use channels::{Channels, json};

/// What is watched for where no alert is given.
const DEFAULT: [&str; 2] = ["* is nan", "run stalled for 10 minutes"];
/// The longest time between two looks: what the system does not report, and runs that stall.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Watches until Ctrl-C.
pub fn run(args: &args::Watch) -> Outcome {
    let rules = match &args.alerts[..] {
        [] => DEFAULT.iter().map(|rule| rule.parse::<Rule>()).collect::<Result<_, _>>().map_err(Failure::wrong_use)?,
        rules => rules.to_vec(),
    };
    let source = Source::follow(&args.logdir)?;
    logdir::refuse_other_files(&args.logdir)?;
    let mut logdir = Logdir::open(&[source.path().to_owned()]).map_err(Failure::wrong_use)?;
    let mut alerts = Alerts::new(rules);
    let mut channels = Channels::new(args.notify, args.webhook.clone());
    logdir.read_all();
    let mut raised = alerts.check(&logdir.runs(), clock::wall_now());
    // Most runs that had ended before are not stalled: nobody waits for them.
    raised.retain(|alert| args.once || !alert.is_stall());
    announce(&raised, args.json, &mut channels)?;
    if args.once {
        logdir::report_damage(&logdir.runs(), &source);
        return match raised.len() {
            0 => Ok(()),
            1 => Err(Failure::Work(anyhow::anyhow!("1 alert"))),
            n => Err(Failure::Work(anyhow::anyhow!("{n} alerts"))),
        };
    }
    note!(
        "stepscope: watching {}, runs so far: {}; Ctrl-C ends it",
        args.logdir.display(),
        logdir.runs().by_name.len()
    );
    follow(&mut logdir, |logdir| {
        let raised = alerts.check(&logdir.runs(), clock::wall_now());
        announce(&raised, args.json, &mut channels)
    })
}

/// Calls `check` after each change, and now and then, until a signal ends the program.
fn follow(logdir: &mut Logdir, mut check: impl FnMut(&Logdir) -> Outcome) -> Outcome {
    let (sender, wakes) = channel();
    let on_stop = sender.clone();
    // Fails where the receiver has been dropped.
    signals::on_stop(move || _ = on_stop.send(true))?;
    logdir.on_activity(move || _ = sender.send(false));
    loop {
        while logdir.poll().has_more {}
        check(logdir)?;
        match wakes.recv_timeout(MAX_WAIT) {
            Ok(true) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Ok(false) if wakes.try_iter().any(|is_stop| is_stop) => return Ok(()),
            Ok(false) | Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn announce(alerts: &[Alert], is_json: bool, channels: &mut Channels) -> Outcome {
    for alert in alerts {
        if is_json {
            out::announce(1, json(alert))?;
        } else {
            say!("{alert}");
        }
        channels.send(alert);
    }
    Ok(())
}
