//! Dumps of PyTorch: pickles of a dictionary, whose keys are near the beginning.

/// Keys of a memory snapshot; it begins with one of them.
const SNAPSHOT: [&[u8]; 2] = [b"segments", b"device_traces"];
/// Keys of a dump of the flight recorder.
const FLIGHT: [&[u8]; 2] = [b"pg_config", b"nccl_version"];

/// What a pickle contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pickle {
    /// A memory snapshot.
    Snapshot,
    /// A dump of the flight recorder.
    Recording,
    /// Anything else.
    Other,
}

/// The contents of a pickle; `None` for what is no pickle.
pub(super) fn recognise(prefix: &[u8]) -> Option<Pickle> {
    // The version of the protocol, which begins every pickle since the second one.
    let [0x80, 2..=5, ..] = prefix else { return None };
    let has = |keys: &[&[u8]]| keys.iter().any(|key| prefix.windows(key.len()).any(|part| part == *key));
    Some(match (has(&SNAPSHOT), has(&FLIGHT)) {
        (true, _) => Pickle::Snapshot,
        (false, true) => Pickle::Recording,
        (false, false) => Pickle::Other,
    })
}
