//! Threads that run steps and other calls which take longer than a connection can wait. They are kept: a step costs no new thread.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use threads::Condvar;

type Job = Box<dyn FnOnce() + Send>;

/// As many threads as there are jobs at once.
#[derive(Clone, Default)]
pub struct Runners(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    n_idle: usize,
    is_over: bool,
}

impl Runners {
    /// Has `job` run in a thread of its own, at once.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn run(&self, job: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let mut state = self.0.state.lock();
        if state.n_idle > state.jobs.len() {
            state.jobs.push_back(Box::new(job));
            drop(state);
            self.0.changed.notify_one();
            return Ok(());
        }
        drop(state);
        let shared = Arc::clone(&self.0);
        threads::spawn("step", move || {
            job();
            shared.work();
        })?;
        Ok(())
    }

    /// Lets idle threads end.
    pub fn end(&self) {
        self.0.state.lock().is_over = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn work(&self) {
        loop {
            let job = {
                let mut state = self.state.lock();
                state.n_idle += 1;
                while state.jobs.is_empty() && !state.is_over {
                    self.changed.wait(&mut state);
                }
                state.n_idle -= 1;
                state.jobs.pop_front()
            };
            let Some(job) = job else { return };
            job();
        }
    }
}
