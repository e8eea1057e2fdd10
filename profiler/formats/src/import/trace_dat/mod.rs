//! Reads `trace.dat` files of `trace-cmd`, versions 6 and 7: the kernel's trace pages with the formats of their events.
//!
//! Switches and wake-ups become [`super::sched`]'s slices, marks of programs slices, everything else instants with
//! their fields, as in an import of the text that `trace-cmd report` prints. Written after `trace-cmd.dat.v6(5)` and
//! `trace-cmd.dat.v7(5)`.
//!
//! Not read: files of big-endian machines (an error), recordings of latency tracers (text in the file), and the
//! corrections of a guest's clock; a trace of a guest keeps its own times.

mod events;
mod file;

use super::input::Input;
use super::problems::Problem;
use super::reader::Reader;
use super::stage::Stage;
use events::Events;
use file::{Contents, Pages};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::Arc;

pub(super) struct TraceDat {
    file: Arc<File>,
    length: u64,
    /// The reader of events, once the file's header is read.
    events: Option<Events>,
    /// The pages of CPUs that are still to be read.
    pages: VecDeque<Pages>,
    is_begun: bool,
    position: u64,
}

impl TraceDat {
    pub(super) fn new(input: &Input) -> TraceDat {
        let (file, length) = (input.file.clone(), input.length);
        TraceDat { file, length, events: None, pages: VecDeque::new(), is_begun: false, position: 0 }
    }
}

impl Reader for TraceDat {
    fn read(&mut self, stage: &mut Stage) -> io::Result<bool> {
        if !self.is_begun {
            self.is_begun = true;
            let contents = Contents::read(&self.file, self.length, &mut stage.problems)?;
            self.events = Events::new(&contents);
            self.pages = contents.pages.into();
            if self.events.is_none() {
                // Without `header_page` no page can be decoded.
                stage.problems.count_at(Problem::Damaged, 0);
            }
        }
        let (Some(events), Some(cpu)) = (&mut self.events, self.pages.front_mut()) else { return Ok(false) };
        match cpu.next(&self.file, self.length, &mut stage.problems)? {
            Some(bytes) => {
                events.pages(&bytes, cpu, stage);
                self.position = self.position.max(cpu.position());
            }
            None => _ = self.pages.pop_front(),
        }
        Ok(true)
    }

    fn position(&self) -> u64 {
        self.position
    }

    fn finish(&mut self, stage: &mut Stage) {
        if let Some(events) = &mut self.events {
            events.finish(stage);
        }
    }
}

#[cfg(test)]
mod tests;
