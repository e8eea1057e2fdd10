//! Prints the events of training.

use std::sync::Arc;

use train::{Event, Observer};

use crate::out;

/// Prints events as they come: reports of a client on stdout, everything else on stderr.
pub fn observer() -> Arc<dyn Observer> {
    Arc::new(|event: &Event<'_>| match event {
        Event::Report(report) => out::line(report),
        Event::Warning(text) => note!("warning: {text}"),
        // Without the prefix, like the lines of progress that follow it.
        Event::Resumed { .. } => note!("{event}"),
        _ => note!("stepscope: {event}"),
    })
}
