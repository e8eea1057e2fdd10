//! The worker's side of [`super::gathering`]: its process records while a run wants it, into a folder of its own, and sends that to the run.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use distributed::Worker;
use events::StartError;
use events::control::Control;
use gather::{Scratch, Sender, SenderOptions, TransportProvider};
use parking_lot::Mutex;
use profiler::{Collector, CollectorOptions};

use super::trace_words::{Ask, DATA, Tell, WORDS, Words, say};
use super::workers;

/// How long each wait for a word takes.
const PERIOD: Duration = Duration::from_millis(100);
/// How long the rest of a trace may take to be sent.
const TO_SEND: Duration = Duration::from_secs(10);

/// The run that has the process record: where its streams go.
type Giving = Arc<Mutex<Option<TransportProvider>>>;

/// Records for runs that ask for it. A process that records already, for whoever started it, stays as it is.
pub(super) fn serve(worker: &Worker) {
    let giving = Giving::default();
    worker.take_streams(Arc::new(move |purpose: &str, stream: UnixStream| match purpose {
        WORDS => {
            let giving = Arc::clone(&giving);
            let record = move || {
                // Where the run is gone nobody wants to know.
                let _ = record(stream, &giving);
            };
            // Without a thread the run sees the stream close, and asks again.
            drop(std::thread::Builder::new().name("recorded".into()).spawn(record));
        }
        DATA => {
            if let Some(giver) = &*giving.lock() {
                // The sender asks for another.
                let _ = giver.provide(stream);
            }
        }
        // Closed: nothing else is known.
        _ => {}
    }));
}

/// What records, and sends it.
struct Recording {
    session: events::Session,
    collector: Collector,
    sender: Sender,
    control: Control,
    /// Goes with what was recorded, whether it was sent or not.
    _folder: Scratch,
}

/// Why nothing is recorded.
struct Refusal {
    why: String,
    for_now: bool,
}

/// Records until the run says that it is over, or is gone.
fn record(stream: UnixStream, giving: &Giving) -> io::Result<()> {
    let mut words = Words::new(stream, PERIOD)?;
    let mut recording = None;
    let result = talk(&mut words, &mut recording, giving);
    // One that is still there was not asked for its end: its run is gone. The next one may begin when it is over.
    if recording.take().is_some() {
        giving.lock().take();
    }
    result
}

fn talk(words: &mut Words, recording: &mut Option<Recording>, giving: &Giving) -> io::Result<()> {
    loop {
        let Some(word) = words.next()? else { continue };
        match (Ask::of(&word), recording.as_ref()) {
            (Some(Ask::Begin), None) => match begin(words.stream(), giving) {
                Ok(begun) => {
                    *recording = Some(begun);
                    say(words.stream(), &Tell::Recording.to_json())?;
                }
                Err(Refusal { why, for_now }) => return say(words.stream(), &Tell::Refused { why, for_now }.to_json()),
            },
            (Some(Ask::Steps(n)), Some(recording)) => recording.control.record_steps(n),
            (Some(Ask::Switch(on)), Some(recording)) => recording.control.switch(on),
            (Some(Ask::End), _) => {
                let problem = recording.take().and_then(end);
                giving.lock().take();
                say(words.stream(), &Tell::Ended(problem).to_json())?;
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

fn begin(stream: &UnixStream, giving: &Giving) -> Result<Recording, Refusal> {
    let for_now = |why: String| Refusal { why, for_now: true };
    let mut giving = giving.lock();
    if giving.is_some() {
        return Err(for_now("it records for another run".into()));
    }
    let folder = workers::scratch().map_err(|error| for_now(format!("{error:#}")))?;
    let dir = folder.path().join("trace");
    let session = events::start(&dir, events::Options::default()).map_err(|error| Refusal {
        for_now: false,
        why: match error {
            StartError::AlreadyRecording(dir) => {
                format!("it is in {} of its host: it was recorded already", dir.display())
            }
            error => format!("nothing is recorded: {error}"),
        },
    })?;
    let collector = Collector::start(&dir, CollectorOptions::default()).map_err(|error| for_now(error.to_string()))?;
    let control = Control::open(&dir).map_err(|error| for_now(error.to_string()))?;
    let asking = stream.try_clone().map_err(|error| for_now(error.to_string()))?;
    let (giver, given) = gather::transport(move || {
        // The run that is gone is seen where its words are read.
        let _ = say(&asking, &Tell::Connect.to_json());
    });
    let sender = Sender::start_over(&dir, given, SenderOptions::default());
    let sender = sender.map_err(|error| for_now(error.to_string()))?;
    *giving = Some(giver);
    Ok(Recording { session, collector, sender, control, _folder: folder })
}

/// Sends the rest; gives what is missing.
fn end(recording: Recording) -> Option<String> {
    let Recording { session, collector, sender, .. } = recording;
    drop(session);
    let collected = collector.stop();
    let report = sender.finish(TO_SEND);
    let dropped =
        (collected.dropped > 0).then(|| format!("{} events were dropped: a ring was full", collected.dropped));
    if report.finished {
        return dropped;
    }
    let problem = report.problem.map_or_else(String::new, |problem| format!(" ({problem})"));
    Some(format!("what it had not sent within {} s is missing{problem}", TO_SEND.as_secs()))
}
