//! Names of devices, full and partial (white paper, sections 3 and 4.3).
//!
//! ```text
//! /job:worker/replica:0/task:17/device:gpu:3     full, as the paper and TensorFlow write it
//! /job:worker/task:17     /device:GPU:*     /job:ps/cpu:0     cpu:0     partial: what is left out, or *, is any
//! ```
//!
//! Parts come in any order. Device types are compared without regard to case and written in upper case.

use std::fmt;
use std::str::FromStr;

/// The name of a device, each part given or left open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceName {
    /// The job: `worker`, `ps`, `localhost`.
    pub job: Option<String>,
    /// The replica of the job.
    pub replica: Option<u32>,
    /// The task within the job.
    pub task: Option<u32>,
    /// The device type, in upper case: `CPU`, `GPU`.
    pub kind: Option<String>,
    /// Which of the task's devices of that type.
    pub index: Option<u32>,
}

/// A device's name cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name:?} is not a device: {problem} in {part:?} (expected as /job:worker/replica:0/task:17/device:GPU:3, any part left out or *)"
)]
pub struct DeviceNameError {
    /// The whole name.
    pub name: String,
    /// The part that is wrong.
    pub part: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// Two partial names that no device fits at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{left} and {right} differ in {part}")]
pub struct DeviceNameConflict {
    /// The one.
    pub left: Box<DeviceName>,
    /// The other.
    pub right: Box<DeviceName>,
    /// `job`, `replica`, `task`, `type` or `index`.
    pub part: &'static str,
}

impl DeviceName {
    /// The full name of a device of this process.
    pub fn local(kind: &str, index: usize) -> DeviceName {
        DeviceName {
            job: Some("localhost".into()),
            replica: Some(0),
            task: Some(0),
            kind: Some(kind.to_ascii_uppercase()),
            index: u32::try_from(index).ok(),
        }
    }

    /// The task that the device is of: job, replica and task.
    pub fn task_name(&self) -> DeviceName {
        DeviceName { kind: None, index: None, ..self.clone() }
    }

    /// Whether nothing is left open.
    pub fn is_full(&self) -> bool {
        self.job.is_some()
            && self.replica.is_some()
            && self.task.is_some()
            && self.kind.is_some()
            && self.index.is_some()
    }

    /// Whether everything is left open.
    pub fn is_any(&self) -> bool {
        *self == DeviceName::default()
    }

    /// Whether the device `full` is one that this name means.
    pub fn admits(&self, full: &DeviceName) -> bool {
        admits(&self.job, &full.job)
            && admits(&self.replica, &full.replica)
            && admits(&self.task, &full.task)
            && admits(&self.kind, &full.kind)
            && admits(&self.index, &full.index)
    }

    /// What both names say together.
    ///
    /// # Errors
    /// A part is given in both and differs.
    pub fn merge(&self, other: &DeviceName) -> Result<DeviceName, DeviceNameConflict> {
        let conflict = |part| DeviceNameConflict { left: self.clone().into(), right: other.clone().into(), part };
        Ok(DeviceName {
            job: merge(&self.job, &other.job).ok_or_else(|| conflict("job"))?,
            replica: merge(&self.replica, &other.replica).ok_or_else(|| conflict("replica"))?,
            task: merge(&self.task, &other.task).ok_or_else(|| conflict("task"))?,
            kind: merge(&self.kind, &other.kind).ok_or_else(|| conflict("type"))?,
            index: merge(&self.index, &other.index).ok_or_else(|| conflict("index"))?,
        })
    }

    /// What both names say together where device types or indices that differ are left open, as soft placement takes
    /// two requests that contradict each other.
    ///
    /// # Errors
    /// They name different tasks.
    pub fn merge_softly(&self, other: &DeviceName) -> Result<DeviceName, DeviceNameConflict> {
        let task = self.task_name().merge(&other.task_name())?;
        let Some(kind) = merge(&self.kind, &other.kind) else { return Ok(task) };
        Ok(DeviceName { kind, index: merge(&self.index, &other.index).flatten(), ..task })
    }

    /// This name with the parts that `inner` gives in their place, as nested scopes of devices mean it. Another device
    /// type drops the index: it counted devices of the outer type.
    pub fn overridden_by(&self, inner: &DeviceName) -> DeviceName {
        let kind = inner.kind.clone().or_else(|| self.kind.clone());
        let index = if inner.kind.is_some() && inner.kind != self.kind { None } else { self.index };
        DeviceName {
            job: inner.job.clone().or_else(|| self.job.clone()),
            replica: inner.replica.or(self.replica),
            task: inner.task.or(self.task),
            kind,
            index: inner.index.or(index),
        }
    }

    /// This name without device type and index: what soft placement keeps where nothing fits.
    pub fn softened(&self) -> DeviceName {
        self.task_name()
    }

    /// Takes the part `key:value` (or `key:value:more`), written without its slash.
    fn take_part(&mut self, part: &str) -> Result<(), &'static str> {
        let (key, value) = part.split_once(':').ok_or("there is no colon")?;
        match key {
            "job" => set(&mut self.job, value, job),
            "replica" => set(&mut self.replica, value, number),
            "task" => set(&mut self.task, value, number),
            "device" => {
                let (kind, index) = value.split_once(':').unwrap_or((value, "*"));
                set(&mut self.kind, kind, device_type)?;
                set(&mut self.index, index, number)
            }
            // The old form, which names the type in the key's place.
            _ => {
                set(&mut self.kind, key, device_type)?;
                set(&mut self.index, value, number)
            }
        }
    }
}

fn admits<T: PartialEq>(wanted: &Option<T>, is: &Option<T>) -> bool {
    wanted.is_none() || wanted == is
}

fn merge<T: Clone + PartialEq>(a: &Option<T>, b: &Option<T>) -> Option<Option<T>> {
    match (a, b) {
        (Some(a), Some(b)) if a != b => None,
        (a, b) => Some(a.clone().or_else(|| b.clone())),
    }
}

fn set<T>(
    slot: &mut Option<T>,
    text: &str,
    parse: impl FnOnce(&str) -> Result<T, &'static str>,
) -> Result<(), &'static str> {
    if slot.is_some() {
        return Err("it says a second time what is said before");
    }
    if text != "*" {
        *slot = Some(parse(text)?);
    }
    Ok(())
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn job(text: &str) -> Result<String, &'static str> {
    if is_word(text) { Ok(text.to_owned()) } else { Err("a job is a letter, then letters, digits and _") }
}

fn device_type(text: &str) -> Result<String, &'static str> {
    if is_word(text) {
        Ok(text.to_ascii_uppercase())
    } else {
        Err("a device type is a letter, then letters, digits and _")
    }
}

fn number(text: &str) -> Result<u32, &'static str> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| is_number).ok_or("it is not a number below 2^32")
}

impl FromStr for DeviceName {
    type Err = DeviceNameError;

    fn from_str(text: &str) -> Result<DeviceName, DeviceNameError> {
        let mut name = DeviceName::default();
        if text.is_empty() {
            return Ok(name);
        }
        // A device of the own task may come without a slash: `cpu:0`.
        for part in text.strip_prefix('/').unwrap_or(text).split('/') {
            name.take_part(part).map_err(|problem| DeviceNameError {
                name: text.to_owned(),
                part: part.to_owned(),
                problem,
            })?;
        }
        Ok(name)
    }
}

impl fmt::Display for DeviceName {
    /// TensorFlow's canonical form; empty where everything is open.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(job) = &self.job {
            write!(f, "/job:{job}")?;
        }
        if let Some(replica) = self.replica {
            write!(f, "/replica:{replica}")?;
        }
        if let Some(task) = self.task {
            write!(f, "/task:{task}")?;
        }
        match (&self.kind, self.index) {
            (None, None) => Ok(()),
            (Some(kind), None) => write!(f, "/device:{kind}:*"),
            (None, Some(index)) => write!(f, "/device:*:{index}"),
            (Some(kind), Some(index)) => write!(f, "/device:{kind}:{index}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, canonical: &str) {
        let name: DeviceName = text.parse().unwrap();
        assert_eq!(name.to_string(), canonical, "{text}");
        assert_eq!(canonical.parse::<DeviceName>().unwrap(), name, "{text}");
    }

    #[test]
    fn all_forms_are_read() {
        check("/job:worker/replica:0/task:17/device:gpu:3", "/job:worker/replica:0/task:17/device:GPU:3");
        check("/job:worker/task:17", "/job:worker/task:17");
        check("/task:1/job:ps", "/job:ps/task:1");
        check("/cpu:0", "/device:CPU:0");
        check("/GPU:*", "/device:GPU:*");
        check("cpu:1", "/device:CPU:1");
        check("/device:CPU:*", "/device:CPU:*");
        check("/device:CPU", "/device:CPU:*");
        check("/device:*:1", "/device:*:1");
        check("/device:TPU_SYSTEM:0", "/device:TPU_SYSTEM:0");
        check("/job:*/replica:*/task:*/device:*:*", "");
        check("", "");
    }

    #[test]
    fn what_is_no_device_is_refused() {
        let bad = ["/", "/job:", "/job:1a", "/task:x", "/task:-1", "/task:+1", "/device:CPU:0:1", "/device::0", "cpu"];
        let more = ["/job:a//task:1", "/cpu:0/gpu:1", "/job:a/job:b", "/device:CPU:4294967296", "/job:a b", "//cpu:0"];
        for text in bad.iter().chain(&more) {
            assert!(text.parse::<DeviceName>().is_err(), "{text}");
        }
        let text = "/job:worker/tusk:x".parse::<DeviceName>().unwrap_err().to_string();
        assert!(text.contains("\"tusk:x\"") && text.contains("not a number"), "{text}");
    }

    #[test]
    fn partial_names_merge_or_conflict() {
        let name = |text: &str| text.parse::<DeviceName>().unwrap();
        assert_eq!(name("/job:ps").merge(&name("/cpu:0")).unwrap(), name("/job:ps/cpu:0"));
        let conflict = name("/job:ps/cpu:0").merge(&name("/cpu:1")).unwrap_err();
        assert_eq!(conflict.to_string(), "/job:ps/device:CPU:0 and /device:CPU:1 differ in index");
        assert_eq!(name("/job:ps/cpu:0").merge_softly(&name("/cpu:1")).unwrap(), name("/job:ps/device:CPU:*"));
        assert_eq!(name("/job:ps/cpu:0").merge_softly(&name("/gpu:0")).unwrap(), name("/job:ps"));
        assert!(name("/job:ps/cpu:0").merge_softly(&name("/job:worker")).is_err());
        assert_eq!(name("/job:ps/gpu:3").overridden_by(&name("/cpu:0")), name("/job:ps/cpu:0"));
        assert_eq!(name("/job:ps/gpu:3").overridden_by(&name("/device:cpu:*")), name("/job:ps/device:CPU:*"));
        assert_eq!(name("/gpu:3").overridden_by(&name("/task:2")), name("/task:2/gpu:3"));
        assert!(name("/device:cpu:*").admits(&DeviceName::local("CPU", 3)));
        assert!(!name("/device:cpu:2").admits(&DeviceName::local("CPU", 3)));
        assert!(DeviceName::local("cpu", 3).is_full());
    }

    prop_compose! {
        fn any_name()(
            job in proptest::option::of("[a-z][a-z0-9_]{0,4}"),
            replica in proptest::option::of(0u32..3),
            task in proptest::option::of(0u32..3),
            kind in proptest::option::of("[A-Z][A-Z0-9_]{0,3}"),
            index in proptest::option::of(0u32..3),
        ) -> DeviceName {
            DeviceName { job, replica, task, kind, index }
        }
    }

    proptest! {
        #[test]
        fn names_round_trip(name in any_name()) {
            prop_assert_eq!(name.to_string().parse::<DeviceName>().unwrap(), name);
        }

        #[test]
        fn a_merge_admits_what_both_admit(a in any_name(), b in any_name(), index in 0u32..3) {
            let full = DeviceName { index: Some(index), ..DeviceName::local("CPU", 0).overridden_by(&a) };
            if let Ok(both) = a.merge(&b) {
                prop_assert_eq!(both.admits(&full), a.admits(&full) && b.admits(&full));
                prop_assert_eq!(b.merge(&a).unwrap(), both);
            }
        }

        #[test]
        fn any_text_is_a_name_or_an_error(text in "[/a-zA-Z0-9:*_ ]{0,30}") {
            if let Ok(name) = text.parse::<DeviceName>() {
                prop_assert_eq!(name.to_string().parse::<DeviceName>().unwrap(), name);
            }
        }
    }
}
