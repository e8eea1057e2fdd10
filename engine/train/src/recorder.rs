//! The worker's side of [`super::gatherer`]: records this process when a run requests it, and sends the trace to the
//! run.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use distributed::Worker;
use events::StartError;
use events::control::Control;
use gather::{Scratch, Sender, SenderOptions, TransportProvider};
use parking_lot::Mutex;
use trace_record::{Collector, CollectorOptions};

use crate::trace_protocol::{CONTROL_STREAM, DATA_STREAM, Messages, RecordCommand, RecordEvent, send};
use crate::worker_processes::scratch_folder;

/// How long one wait for a message lasts at most.
const READ_TIMEOUT: Duration = Duration::from_millis(100);
/// How long sending the rest of a trace may take.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// The provider that hands the run's data streams to the sender; `None` while no run records.
type StreamSource = Arc<Mutex<Option<TransportProvider>>>;

/// Records for the runs that request it. A process that is already being recorded refuses.
pub(crate) fn serve(worker: &Worker) {
    let streams = StreamSource::default();
    worker.take_streams(Arc::new(move |purpose: &str, stream: UnixStream| match purpose {
        CONTROL_STREAM => {
            let streams = Arc::clone(&streams);
            let record = move || {
                // An error means that the run is gone; there is nobody to report it to.
                let _ = record(stream, &streams);
            };
            // Where no thread can be started the stream closes, and the run asks again.
            drop(std::thread::Builder::new().name("recorded".into()).spawn(record));
        }
        DATA_STREAM => {
            if let Some(provider) = &*streams.lock() {
                // Where the sender has ended the stream closes; a sender that lacks one requests another.
                let _ = provider.provide(stream);
            }
        }
        // Dropping the stream closes it: no other purpose is known.
        _ => {}
    }));
}

/// A recording that is being sent.
struct Recording {
    session: events::Session,
    collector: Collector,
    sender: Sender,
    control: Control,
    /// The recorded trace's folder, removed when this is dropped.
    _folder: Scratch,
}

/// The reason why nothing is recorded.
struct Refusal {
    reason: String,
    may_retry: bool,
}

/// Records until the run sends the command to end, or is gone.
fn record(stream: UnixStream, streams: &StreamSource) -> io::Result<()> {
    let mut messages = Messages::new(stream, READ_TIMEOUT)?;
    let mut recording = None;
    let result = handle_commands(&mut messages, &mut recording, streams);
    // A recording that is left was not ended by its run: the run is gone. The next recording may begin only after this
    // one is dropped.
    if recording.take().is_some() {
        streams.lock().take();
    }
    result
}

fn handle_commands(
    messages: &mut Messages,
    recording: &mut Option<Recording>,
    streams: &StreamSource,
) -> io::Result<()> {
    loop {
        let Some(command) = messages.next()? else { continue };
        match (command, recording.as_ref()) {
            (RecordCommand::Begin, None) => match begin(messages.stream(), streams) {
                Ok(started) => {
                    *recording = Some(started);
                    send(messages.stream(), &RecordEvent::Recording)?;
                }
                Err(Refusal { reason, may_retry }) => {
                    return send(messages.stream(), &RecordEvent::Refused { reason, may_retry });
                }
            },
            (RecordCommand::Steps { n }, Some(recording)) => recording.control.record_steps(n),
            (RecordCommand::Switch { on }, Some(recording)) => recording.control.switch(on),
            (RecordCommand::End, _) => {
                let problem = recording.take().and_then(end);
                streams.lock().take();
                send(messages.stream(), &RecordEvent::Ended { problem })?;
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

fn begin(stream: &UnixStream, streams: &StreamSource) -> Result<Recording, Refusal> {
    let temporary = |reason: String| Refusal { reason, may_retry: true };
    let mut streams = streams.lock();
    if streams.is_some() {
        return Err(temporary("it records for another run".into()));
    }
    let folder = scratch_folder().map_err(|error| temporary(format!("{error:#}")))?;
    let dir = folder.path().join("trace");
    let session = events::start(&dir, events::Options::default()).map_err(|error| Refusal {
        may_retry: false,
        reason: match error {
            StartError::AlreadyRecording(dir) => {
                format!("it is in {} of its host: it was recorded already", dir.display())
            }
            error => format!("nothing is recorded: {error}"),
        },
    })?;
    let collector =
        Collector::start(&dir, CollectorOptions::default()).map_err(|error| temporary(error.to_string()))?;
    let control = Control::open(&dir).map_err(|error| temporary(error.to_string()))?;
    let requests = stream.try_clone().map_err(|error| temporary(error.to_string()))?;
    let (provider, connector) = gather::transport(move || {
        // `Messages::next` notices that the run is gone.
        let _ = send(&requests, &RecordEvent::Connect);
    });
    let sender = Sender::start_with_transport(&dir, connector, SenderOptions::default());
    let sender = sender.map_err(|error| temporary(error.to_string()))?;
    *streams = Some(provider);
    Ok(Recording { session, collector, sender, control, _folder: folder })
}

/// Ends the recording and sends the rest of its trace; returns a warning where a part is missing.
fn end(recording: Recording) -> Option<String> {
    let Recording { session, collector, sender, .. } = recording;
    drop(session);
    let collected = collector.stop();
    let report = sender.finish(SEND_TIMEOUT);
    let warning =
        (collected.dropped > 0).then(|| format!("{} events were dropped: a ring was full", collected.dropped));
    if report.finished {
        return warning;
    }
    let problem = report.problem.map_or_else(String::new, |problem| format!(" ({problem})"));
    Some(format!("what it had not sent within {} s is missing{problem}", SEND_TIMEOUT.as_secs()))
}
