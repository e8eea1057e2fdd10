//! Lines of JSON: an object a line, its numbers are scalars.

use std::{io, path::Path};

use jiter::{JsonObject, JsonValue};

use crate::{
    entry::{Entry, Value},
    json,
    progress::Progress,
    reader::{Batch, Problem, Reader},
    tail::{Line, Tail},
    time,
};

/// The keys of the step, by preference.
const STEPS: [&str; 7] = ["step", "_step", "global_step", "trainer/global_step", "iteration", "iter", "epoch"];
/// The keys of the time.
const WALLS: [&str; 5] = ["timestamp", "_timestamp", "time", "wall_time", "_wall_time"];
/// A number before 1973 is no time: many programs log the duration of a step as `time`.
const MIN_WALL: f64 = 1e8;

/// Follows a file of such lines.
#[derive(Debug)]
pub(crate) struct JsonLines {
    tail: Tail,
    progress: Progress,
}

impl JsonLines {
    pub fn new(path: &Path) -> Self {
        Self { tail: Tail::new(path), progress: Progress::default() }
    }

    /// Whether a line is one of such a log: an object with a step and another number.
    pub fn is_line(line: &str) -> bool {
        let Some(JsonValue::Object(object)) = json::parse(line) else { return false };
        let n_numbers = object.iter().filter(|(_, value)| json::number(value).is_some()).count();
        step(&object).is_some() && n_numbers > 1
    }
}

impl Reader for JsonLines {
    fn read(&mut self, allowance: u64, batch: &mut Batch) -> io::Result<()> {
        let read = self.tail.read(allowance, batch)?;
        if read.is_restarted {
            self.progress.restart();
        }
        for line in read.lines.iter().filter(|line| !line.text.trim().is_empty()) {
            if let Some(index) = self.progress.next(|| line.text.clone()) {
                entries(line, index, read.modified, batch);
            }
        }
        Ok(())
    }
}

/// The entries of a line; `index` is its step where it has none, `modified` its time.
fn entries(line: &Line, index: u64, modified: f64, batch: &mut Batch) {
    let parsed = json::parse(&line.text);
    let Some(JsonValue::Object(object)) = parsed else {
        batch.problems.push(Problem { what: "a line that is no object of JSON", bytes: line.bytes.clone() });
        return;
    };
    let (step_key, step) = step(&object).unwrap_or(("", index as i64));
    let (wall_key, wall) = wall(&object).unwrap_or(("", modified));
    json::walk(&object, "/", &|_| false, &mut |tag, value| {
        let is_axis = tag == step_key || tag == wall_key;
        if let Some(value) = json::number(value).filter(|_| !is_axis) {
            batch.entries.push(Entry { tag, step, wall, value: Value::Scalar(value) });
        }
    });
}

/// The step of a line, and its key.
fn step(object: &JsonObject<'_>) -> Option<(&'static str, i64)> {
    let step = |key: &'static str| match json::get(object, key)? {
        JsonValue::Bool(_) => None,
        value => Some((key, json::integer(value)?)),
    };
    STEPS.into_iter().find_map(step)
}

/// The time of a line, and its key: seconds, or a date and time of ISO 8601.
fn wall(object: &JsonObject<'_>) -> Option<(&'static str, f64)> {
    let wall = |key: &'static str| match json::get(object, key)? {
        JsonValue::Str(text) => Some((key, time::parse(text)?)),
        value => Some((key, json::number(value).filter(|wall| *wall >= MIN_WALL && wall.is_finite())?)),
    };
    WALLS.into_iter().find_map(wall)
}

#[cfg(test)]
mod tests {
    use super::JsonLines;

    #[test]
    fn lines_of_a_log() {
        assert!(JsonLines::is_line(r#"{"step": 1, "loss": 0.5}"#));
        assert!(JsonLines::is_line(r#"{"iteration": 1, "loss": NaN, "name": "x"}"#));
        for other in [r#"{"step": 1}"#, r#"{"traceEvents": [1, 2]}"#, r#"{"a": 1, "b": 2}"#, "1", "", "{"] {
            assert!(!JsonLines::is_line(other), "{other}");
        }
    }
}
