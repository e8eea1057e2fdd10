//! Reads Chrome's trace event format, as PyTorch's Kineto, viztracer, Chrome and many others write it.
//!
//! A file is an object with an array `traceEvents`, or the array alone, or several of them one after another. A scanner
//! finds the extent of each event's fields in the bytes of the file, and only the values that are needed are parsed.
//! After damage, reading continues at the next bytes that begin like an event.

mod devices;
mod event;
mod json;
mod kineto;
mod onnxruntime;
mod phases;
mod time;

pub(super) use kineto::{category, step_number};

use super::input::{Input, MAX_EVENT, Window};
use super::problems::Problem;
use super::reader::Reader;
use super::stage::Stage;
use event::Fields;
use json::{Member, Quotes, Stop, member, skip_space, string, value};
use phases::Phases;
use std::io;

/// Bytes that one call reads, approximately.
const PART: u64 = 8 << 20;

/// The position of the window in the structure of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nesting {
    /// Before an object or array.
    Outside,
    /// In the outer object, before a key or its end.
    Object,
    /// In an array of events, and whether that is in an object.
    Events { in_object: bool },
    /// At the end.
    End,
}

pub(super) struct Chrome {
    window: Window,
    at: Nesting,
    phases: Phases,
}

impl Chrome {
    pub(super) fn new(input: &Input) -> Chrome {
        Chrome { window: Window::new(input), at: Nesting::Outside, phases: Phases::new(input) }
    }

    /// Parses the next part. `Err(More)` if the window does not have all its bytes.
    fn next(&mut self, stage: &mut Stage) -> Result<usize, Stop> {
        match self.at {
            Nesting::Outside => self.outside(),
            Nesting::Object => self.outer_member(stage),
            Nesting::Events { in_object } => self.event(in_object, stage),
            Nesting::End => Ok(0),
        }
    }

    fn outside(&mut self) -> Result<usize, Stop> {
        let bytes = self.window.bytes();
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let bom = self.window.bytes().len() - bytes.len();
        let i = skip_space(bytes, 0);
        self.at = match bytes.get(i) {
            Some(b'{') => Nesting::Object,
            Some(b'[') => Nesting::Events { in_object: false },
            // The array ended too early: the remaining events follow.
            Some(b',') => Nesting::Events { in_object: false },
            Some(_) => return Err(Stop::Bad(i)),
            None => return Err(Stop::More),
        };
        Ok(bom + i + 1)
    }

    fn outer_member(&mut self, stage: &mut Stage) -> Result<usize, Stop> {
        let bytes = self.window.bytes();
        let mut i = skip_space(bytes, 0);
        while bytes.get(i) == Some(&b',') {
            i = skip_space(bytes, i + 1);
        }
        // The array of events is parsed event by event.
        if bytes.get(i) == Some(&b'"') {
            let end = string(bytes, i + 1)?;
            if matches!(&bytes[i + 1..end], b"traceEvents") {
                let colon = skip_space(bytes, end + 1);
                let bracket = skip_space(bytes, colon + 1);
                match bytes.get(bracket) {
                    None => return Err(Stop::More),
                    Some(b'[') if bytes[colon] == b':' => {
                        self.at = Nesting::Events { in_object: true };
                        return Ok(bracket + 1);
                    }
                    Some(_) => {}
                }
            }
        }
        match member(bytes, i, Quotes::Usual)? {
            Member::End(end) => {
                self.at = Nesting::Outside;
                Ok(end)
            }
            Member::Is { key, value, next } => {
                self.phases.outer(&bytes[key.0..key.1], &bytes[value.0..value.1], stage);
                Ok(next)
            }
        }
    }

    fn event(&mut self, in_object: bool, stage: &mut Stage) -> Result<usize, Stop> {
        let bytes = self.window.bytes();
        let mut i = skip_space(bytes, 0);
        while bytes.get(i) == Some(&b',') {
            i = skip_space(bytes, i + 1);
        }
        match bytes.get(i) {
            None => Err(Stop::More),
            Some(b'{') => self.fields(i, stage),
            Some(b']') => {
                self.at = if in_object { Nesting::Object } else { Nesting::Outside };
                Ok(i + 1)
            }
            // A value that is not an object, such as `null`, between events.
            Some(c) if c.is_ascii_alphanumeric() || *c == b'"' => value(bytes, i),
            Some(_) => Err(Stop::Bad(i)),
        }
    }

    /// Parses the event that begins at `i`; returns the index after it.
    fn fields(&mut self, i: usize, stage: &mut Stage) -> Result<usize, Stop> {
        let bytes = self.window.bytes();
        let (fields, end) = match Fields::read(bytes, i + 1, Quotes::Usual) {
            // Perhaps only quotes are not escaped.
            Err(Stop::Bad(at)) => Fields::read(bytes, i + 1, Quotes::Doubtful).map_err(|_| Stop::Bad(at))?,
            read => read?,
        };
        self.phases.take(bytes, self.window.offset(), &fields, stage);
        Ok(end)
    }

    /// Skips damage, up to the next bytes that begin like an event, or like the end of the array.
    fn skip_damage(&mut self, stage: &mut Stage) -> io::Result<()> {
        let is_between = |c: &u8| *c == b',' || c.is_ascii_whitespace();
        let begin = self.window.bytes().iter().take_while(|c| is_between(c)).count();
        stage.problems.count_at(Problem::Damaged, self.window.offset() + begin as u64);
        if self.at == Nesting::Object || self.at == Nesting::Outside {
            self.at = Nesting::Events { in_object: false };
        }
        // Begins after the bytes that were tried before.
        let mut from = begin + 1;
        loop {
            let bytes = self.window.bytes();
            while let Some(n) = bytes.get(from..).and_then(|rest| memchr::memchr(b'{', rest)) {
                let brace = from + n;
                let before = bytes[..brace].iter().rev().find(|c| !c.is_ascii_whitespace());
                let after = skip_space(bytes, brace + 1);
                if matches!(before, Some(b',' | b'[')) && bytes.get(after) == Some(&b'"') {
                    self.window.consume(brace);
                    return Ok(());
                }
                if after >= bytes.len() && !self.window.is_last() {
                    break;
                }
                from = brace + 1;
            }
            // The last bytes may be the begin of a match.
            let keep = 256.min(bytes.len());
            let consumed = bytes.len() - keep;
            self.window.consume(consumed);
            from = from.max(consumed) - consumed;
            if !self.window.more()? {
                self.at = Nesting::End;
                return Ok(());
            }
        }
    }
}

impl Reader for Chrome {
    fn read(&mut self, stage: &mut Stage) -> io::Result<bool> {
        let until = self.window.offset() + PART;
        while self.at != Nesting::End && self.window.offset() < until {
            match self.next(stage) {
                Ok(n) => self.window.consume(n),
                Err(Stop::Bad(_)) => self.skip_damage(stage)?,
                Err(Stop::More) if self.window.bytes().len() > MAX_EVENT => self.skip_damage(stage)?,
                Err(Stop::More) if self.window.more()? => {}
                Err(Stop::More) => {
                    let rest = &self.window.bytes()[skip_space(self.window.bytes(), 0)..];
                    // An array alone need not be closed. An object or an event that is not closed was truncated.
                    let is_cut = match self.at {
                        Nesting::Events { in_object } => {
                            in_object || rest.iter().any(|c| *c != b',' && !c.is_ascii_whitespace())
                        }
                        _ => !rest.is_empty() || self.at == Nesting::Object,
                    };
                    if rest.len() > 1 && self.skip_unclosed(stage)? {
                        continue;
                    }
                    if is_cut {
                        stage.problems.count_at(Problem::Truncated, self.window.offset());
                    }
                    self.at = Nesting::End;
                }
            }
        }
        Ok(self.at != Nesting::End)
    }

    fn position(&self) -> u64 {
        self.window.offset()
    }

    fn finish(&mut self, stage: &mut Stage) {
        self.phases.finish(stage);
    }
}

impl Chrome {
    /// If other events follow an event without an end, a bracket or quote is missing in it: moves to the next event,
    /// and returns true.
    fn skip_unclosed(&mut self, stage: &mut Stage) -> io::Result<bool> {
        let bytes = self.window.bytes();
        let starts = memchr::memmem::find_iter(bytes, b"\"ph\"").take(2).count();
        if starts < 2 {
            return Ok(false);
        }
        self.skip_damage(stage)?;
        Ok(self.at != Nesting::End)
    }
}
