//! Callbacks for when a device is done: one thread looks at the events of a device in turn, so that no other one waits.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::backend::{Backend, Event, Failed, Lane};

/// Called when an event was passed, or with what failed before it.
type Callback = Box<dyn FnOnce(Result<(), Failed>) + Send>;

/// Looks without a pause before it begins to pause: most waits are short.
const EAGER: u32 = 200;
const PAUSE: Duration = Duration::from_micros(20);

#[derive(Default)]
struct Queue {
    waiting: Vec<(Event, Callback)>,
    /// Events that nobody uses.
    spare: Vec<Event>,
    is_closed: bool,
}

struct Shared {
    backend: Arc<dyn Backend>,
    queue: Mutex<Queue>,
    came: Condvar,
}

/// The events of a device.
pub(crate) struct Events {
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Events {
    /// Starts the thread that looks.
    pub fn start(backend: Arc<dyn Backend>, name: &str) -> std::io::Result<Events> {
        let shared = Arc::new(Shared { backend, queue: Mutex::default(), came: Condvar::new() });
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name(format!("{name} events")).spawn(move || look(&own))?;
        Ok(Events { shared, thread: Some(thread) })
    }

    /// An event that nobody uses, to be returned with [`Events::keep`].
    pub fn spare(&self) -> Result<Event, Failed> {
        let spare = self.shared.queue.lock().spare.pop();
        spare.map_or_else(|| self.shared.backend.event(), Ok)
    }

    /// Takes an event back.
    pub fn keep(&self, event: Event) {
        self.shared.queue.lock().spare.push(event);
    }

    /// Lets work that `later` is given from now on come after work that `earlier` was given so far.
    pub fn order(&self, earlier: Lane, later: Lane) -> Result<(), Failed> {
        let event = self.spare()?;
        let backend = &self.shared.backend;
        let ordered = backend.record(event, earlier).and_then(|()| backend.wait(later, event));
        // A wait keeps what was recorded, so that the event may be recorded anew.
        self.keep(event);
        ordered
    }

    /// Calls `done` once a lane is past the work that it was given so far.
    pub fn after(&self, lane: Lane, done: impl FnOnce(Result<(), Failed>) + Send + 'static) {
        let recorded = self.spare().and_then(|event| self.shared.backend.record(event, lane).map(|()| event));
        match recorded {
            Ok(event) => {
                self.shared.queue.lock().waiting.push((event, Box::new(done)));
                self.shared.came.notify_one();
            }
            Err(error) => done(Err(error)),
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.shared.queue.lock().is_closed = true;
        self.shared.came.notify_one();
        // The last user of a device may be a callback: the thread then ends by itself.
        if let Some(thread) = self.thread.take().filter(|t| t.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
    }
}

/// The thread: ends when it is closed and nothing waits any more.
fn look(shared: &Shared) {
    let mut n_looks = 0;
    loop {
        let waiting = {
            let mut queue = shared.queue.lock();
            while queue.waiting.is_empty() {
                if queue.is_closed {
                    return;
                }
                n_looks = 0;
                shared.came.wait(&mut queue);
            }
            std::mem::take(&mut queue.waiting)
        };
        let mut still = Vec::with_capacity(waiting.len());
        let n_before = waiting.len();
        for (event, done) in waiting {
            match shared.backend.is_past(event) {
                Ok(false) => still.push((event, done)),
                result => {
                    shared.queue.lock().spare.push(event);
                    done(result.map(drop));
                }
            }
        }
        n_looks = if still.len() < n_before { 0 } else { n_looks + 1 };
        let mut queue = shared.queue.lock();
        // What came meanwhile is later.
        still.append(&mut queue.waiting);
        queue.waiting = still;
        drop(queue);
        if n_looks > EAGER {
            std::thread::sleep(PAUSE);
        } else {
            std::thread::yield_now();
        }
    }
}
