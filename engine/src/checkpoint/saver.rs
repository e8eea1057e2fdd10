//! The checkpoints of a session: saved every so many steps or seconds, the last few kept, the newest whole one restored.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use super::snapshot::{self, Snapshot};
use super::{Checkpoint, CheckpointError};
use crate::session::Session;
use engine_core::checkpoint::FileStore;
use engine_core::checkpoint::files::{INDEX, SHARD};
use engine_core::checkpoint::state_file::{self, StateFile};
use engine_core::checkpoint::write::{folder_of, merge, sync_folder, write_shard};
use engine_core::graph::Graph;

/// What can be chosen for a [`Saver`]. The default: `model-STEP`, the last 5 are kept, and none is saved but by [`Saver::save`].
#[derive(Debug, Clone)]
pub struct SaverOptions {
    /// What the checkpoints are called: `NAME-STEP`.
    pub name: String,
    /// Save when so many steps have passed since the last.
    pub every_steps: Option<u64>,
    /// Save when so much time has passed since the last.
    pub every: Option<Duration>,
    /// How many are kept; older ones are deleted once a newer one is whole.
    pub max_to_keep: usize,
    /// Of those that would be deleted, one per this time is kept for good.
    pub keep_every: Option<Duration>,
}

impl Default for SaverOptions {
    fn default() -> SaverOptions {
        SaverOptions { name: "model".into(), every_steps: None, every: None, max_to_keep: 5, keep_every: None }
    }
}

/// Saves and restores the state of a session in a folder: variables, queues, positions of readers, random generators.
///
/// Each device's state is a shard of its own. A checkpoint counts once its last file is renamed; a run that is killed at
/// any moment restarts from the newest whole one.
pub struct Saver {
    folder: PathBuf,
    /// Where the checkpoints are for good, if the folder is only on the way there.
    store: Option<Arc<dyn FileStore>>,
    /// The files that were in the store at first.
    stored: Vec<String>,
    options: SaverOptions,
    last_step: Option<u64>,
    last_time: i64,
    writing: Option<JoinHandle<Result<PathBuf, CheckpointError>>>,
    n_skipped: u64,
}

/// What was restored.
#[derive(Debug, Clone)]
pub struct Restored {
    /// The step after which it was saved.
    pub step: u64,
    /// The checkpoint.
    pub prefix: PathBuf,
    /// How many tensors it has.
    pub n_tensors: usize,
    /// Variables of the graph that it does not have: they are still to be initialised.
    pub missing: Vec<String>,
    /// Newer ones that are damaged, and why.
    pub warnings: Vec<String>,
}

impl Saver {
    /// A saver of checkpoints in `folder`, which is made where it is missing.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(folder: impl AsRef<Path>, options: SaverOptions) -> Result<Saver, CheckpointError> {
        let folder = folder.as_ref().to_owned();
        fs::create_dir_all(&folder).map_err(|e| CheckpointError::io(&folder, e))?;
        let last_time = events::clock::mono_now();
        let (store, stored) = (None, Vec::new());
        Ok(Saver { folder, store, stored, options, last_step: None, last_time, writing: None, n_skipped: 0 })
    }

    /// A saver of checkpoints in `store`, on whose way they are written to `folder`, an empty one.
    ///
    /// The files of a checkpoint are put into the store in the order in which they are written, and older ones are
    /// deleted there only then: a run that is killed leaves the newest whole one.
    ///
    /// # Errors
    /// The store cannot be looked into, or the folder cannot be made.
    pub fn in_store(
        store: Arc<dyn FileStore>,
        folder: impl AsRef<Path>,
        options: SaverOptions,
    ) -> Result<Saver, CheckpointError> {
        let mut saver = Saver::new(folder, options)?;
        saver.stored = store.list()?;
        if saver.stored.iter().any(|name| name == state_file::NAME) {
            store.get(state_file::NAME, &saver.folder.join(state_file::NAME))?;
        }
        saver.store = Some(store);
        Ok(saver)
    }

    /// The prefixes of all whole-looking checkpoints, oldest first: those that the state file lists, and those
    /// that a run was killed too early to list.
    pub fn checkpoints(&self) -> Vec<(u64, PathBuf)> {
        let mut found: BTreeMap<u64, PathBuf> = BTreeMap::new();
        for (prefix, _) in StateFile::read(&self.folder).all {
            self.step_of(&prefix).map(|step| found.insert(step, prefix));
        }
        for name in files_in(&self.folder).chain(self.stored.iter().cloned()) {
            // A shard of several ends with a number too, behind its `of`.
            let prefix = name.strip_suffix(INDEX).or_else(|| name.strip_suffix(SHARD)).or(name.strip_suffix(".index"));
            let prefix = prefix.map(|p| self.folder.join(p));
            if let Some((step, prefix)) = prefix.and_then(|p| Some((self.step_of(&p)?, p))) {
                found.insert(step, prefix);
            }
        }
        found.into_iter().collect()
    }

    fn step_of(&self, prefix: &Path) -> Option<u64> {
        let name = prefix.file_name()?.to_str()?;
        name.strip_prefix(&self.options.name)?.strip_prefix('-')?.parse().ok()
    }

    /// Restores the newest checkpoint that is whole; `None` where there is none. Objects that are made later get their state
    /// when they are made.
    ///
    /// # Errors
    /// It does not fit the session's graph.
    pub fn restore(&mut self, session: &Session) -> Result<Option<Restored>, CheckpointError> {
        let found = self.newest(|checkpoint| snapshot::restore(checkpoint, session))?;
        Ok(found.map(|(restored, (n_tensors, missing))| Restored { n_tensors, missing, ..restored }))
    }

    /// As [`Saver::restore`] for a graph whose own nodes restore it, on the tasks of a cluster: `restore` gets the prefix of the
    /// newest checkpoint that is whole and has all variables of the graph.
    ///
    /// # Errors
    /// It does not fit the graph, or what `restore` says.
    pub fn restore_by<E: From<CheckpointError>>(
        &mut self,
        graph: &Graph,
        mut restore: impl FnMut(&Path) -> Result<(), E>,
    ) -> Result<Option<Restored>, E> {
        let found = self.newest(|checkpoint| {
            checkpoint.verify()?;
            if let Some(name) = snapshot::check_variables(checkpoint, graph)?.into_iter().next() {
                return Err(CheckpointError::NoTensor { path: checkpoint.prefix().to_owned(), name: name.into() });
            }
            Ok((checkpoint.tensors().len(), restore(checkpoint.prefix())))
        })?;
        let Some((restored, (n_tensors, done))) = found else { return Ok(None) };
        done.map(|()| Some(Restored { n_tensors, ..restored }))
    }

    /// The newest checkpoint that `take` takes.
    fn newest<T>(
        &mut self,
        mut take: impl FnMut(&Checkpoint) -> Result<T, CheckpointError>,
    ) -> Result<Option<(Restored, T)>, CheckpointError> {
        sweep(&self.folder, &self.options.name);
        let mut warnings = Vec::new();
        for (step, prefix) in self.checkpoints().into_iter().rev() {
            let fetched = self.fetch(&prefix);
            let taken = fetched.and_then(|()| Checkpoint::open(&prefix)).and_then(|c| take(&c));
            if self.store.is_some() {
                delete(&prefix);
            }
            match taken {
                Ok(taken) => {
                    self.last_step = Some(step);
                    return Ok(Some((Restored { step, prefix, n_tensors: 0, missing: Vec::new(), warnings }, taken)));
                }
                // It is sound but another model's: an older one would be no better.
                Err(
                    e @ (CheckpointError::Mismatch { .. }
                    | CheckpointError::State { .. }
                    | CheckpointError::NoTensor { .. }),
                ) => return Err(e),
                Err(e) => warnings.push(format!("checkpoint {} is not used: {e}", prefix.display())),
            }
        }
        match warnings.is_empty() {
            true => Ok(None),
            false => Err(CheckpointError::format(&self.folder, warnings.join("; "))),
        }
    }

    /// Brings the files of a checkpoint from the store into the folder.
    fn fetch(&self, prefix: &Path) -> Result<(), CheckpointError> {
        let Some(store) = &self.store else { return Ok(()) };
        let own = own_files(prefix, store.list()?.into_iter());
        own.iter().try_for_each(|name| store.get(name, &self.folder.join(name)))
    }

    /// Saves now and returns when all is on the disk (and in the store).
    ///
    /// # Errors
    /// The system refuses.
    pub fn save(&mut self, session: &Session, step: u64) -> Result<PathBuf, CheckpointError> {
        self.wait()?;
        let snapshot = Snapshot::take(session);
        self.note(step);
        write(&self.folder, self.store.as_deref(), &self.options, step, &snapshot)
    }

    /// As [`Saver::save`] for a graph whose own nodes save it, on the tasks of a cluster: `write` gets the prefix under which they
    /// make the checkpoint, and makes it.
    ///
    /// # Errors
    /// The system refuses, or what `write` says.
    pub fn save_by<E: From<CheckpointError>>(
        &mut self,
        step: u64,
        write: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        self.wait()?;
        self.note(step);
        let prefix = self.folder.join(format!("{}-{step}", self.options.name));
        write(&prefix)?;
        publish(&self.folder, self.store.as_deref(), &self.options, &prefix)?;
        Ok(prefix)
    }

    /// What part `i` of the checkpoint `prefix` is called until all are there: no reader takes it for a checkpoint.
    pub fn part(prefix: &Path, i: usize) -> PathBuf {
        let name = prefix.file_name().unwrap_or_default().to_string_lossy();
        prefix.with_file_name(format!(".{name}.part-{i}"))
    }

    /// Saves what the session holds now, writing in the background. Whether it began: while the last one is still being
    /// written it does not, and is counted ([`Saver::n_skipped`]).
    ///
    /// # Errors
    /// Those of the write before this one.
    pub fn save_in_background(&mut self, session: &Session, step: u64) -> Result<bool, CheckpointError> {
        if self.writing.as_ref().is_some_and(|w| !w.is_finished()) {
            self.n_skipped += 1;
            return Ok(false);
        }
        self.wait()?;
        let snapshot = Snapshot::take(session);
        self.note(step);
        let (folder, store, options) = (self.folder.clone(), self.store.clone(), self.options.clone());
        let thread = std::thread::Builder::new().name("saver".into());
        let writing = thread.spawn(move || write(&folder, store.as_deref(), &options, step, &snapshot));
        self.writing = Some(writing.map_err(|e| CheckpointError::io(&self.folder, e))?);
        Ok(true)
    }

    /// Call it after each step: saves in the background when it is time. Whether it did.
    ///
    /// # Errors
    /// As [`Saver::save_in_background`].
    pub fn after_step(&mut self, session: &Session, step: u64) -> Result<bool, CheckpointError> {
        if self.is_due(step) { self.save_in_background(session, step) } else { Ok(false) }
    }

    /// Whether it is time to save, after this step. The first interval begins with the first call.
    pub fn is_due(&mut self, step: u64) -> bool {
        let steps = step.saturating_sub(*self.last_step.get_or_insert(step));
        let elapsed = events::clock::mono_now() - self.last_time;
        let by_steps = self.options.every_steps.is_some_and(|every| steps >= every.max(1));
        let by_time = self.options.every.is_some_and(|every| elapsed >= every.as_nanos() as i64);
        by_steps || by_time
    }

    /// The step of the last checkpoint that was saved or restored.
    pub fn last_step(&self) -> Option<u64> {
        self.last_step
    }

    /// How many saves came while the one before was still being written.
    pub fn n_skipped(&self) -> u64 {
        self.n_skipped
    }

    /// Waits until what is being written is on the disk.
    ///
    /// # Errors
    /// It could not be written.
    pub fn wait(&mut self) -> Result<(), CheckpointError> {
        let Some(writing) = self.writing.take() else { return Ok(()) };
        match writing.join() {
            Ok(result) => result.map(drop),
            Err(_) => Err(CheckpointError::format(&self.folder, "the thread that wrote the checkpoint panicked")),
        }
    }

    fn note(&mut self, step: u64) {
        self.last_step = Some(step);
        self.last_time = events::clock::mono_now();
    }
}

impl Drop for Saver {
    fn drop(&mut self) {
        if let Some(writing) = self.writing.take() {
            // Whoever wants to know of errors calls `wait`.
            let _ = writing.join();
        }
        if self.store.is_some() {
            // All that lasts is in the store; what else may be there is not ours.
            let _ = fs::remove_file(self.folder.join(state_file::NAME));
            let _ = fs::remove_dir(&self.folder);
        }
    }
}

fn write(
    folder: &Path,
    store: Option<&dyn FileStore>,
    options: &SaverOptions,
    step: u64,
    snapshot: &Snapshot,
) -> Result<PathBuf, CheckpointError> {
    let prefix = folder.join(format!("{}-{step}", options.name));
    let metadata = BTreeMap::from([("step".to_owned(), step.to_string())]);
    let snapshot = snapshot.on_host(&prefix)?;
    if let [only] = snapshot.shards.as_slice() {
        write_shard(&prefix, only, &metadata)?;
    } else {
        let parts: Vec<PathBuf> = (0..snapshot.shards.len()).map(|i| Saver::part(&prefix, i)).collect();
        for (part, shard) in parts.iter().zip(&snapshot.shards) {
            write_shard(part, shard, &metadata)?;
        }
        merge(&parts, &prefix)?;
    }
    publish(folder, store, options, &prefix)?;
    Ok(prefix)
}

/// A checkpoint that is whole in its folder goes into the store and is listed; those that are too many go.
fn publish(
    folder: &Path,
    store: Option<&dyn FileStore>,
    options: &SaverOptions,
    prefix: &Path,
) -> Result<(), CheckpointError> {
    if let Some(store) = store {
        // What makes the checkpoint whole comes last.
        for name in own_files(prefix, files_in(folder)).iter().rev() {
            store.put(name, &folder.join(name))?;
        }
    }
    let gone = list_and_sweep(folder, options, prefix)?;
    if let Some(store) = store {
        store.put(state_file::NAME, &folder.join(state_file::NAME))?;
        let names = if gone.is_empty() { Vec::new() } else { store.list()? };
        for name in gone.iter().flat_map(|old| own_files(old, names.iter().cloned())) {
            store.delete(&name)?;
        }
        // They were on their way only.
        delete(prefix);
    }
    Ok(())
}

/// Deletes what runs that were killed while they saved have left behind. Whoever begins to restore has the folder to itself.
fn sweep(folder: &Path, name: &str) {
    let own = [format!("{name}-"), format!(".{name}-"), format!("{}.", state_file::NAME)];
    let is_own = |file: &String| own.iter().any(|own| file.starts_with(own));
    let is_left = |file: &String| file.ends_with(".tmp") || (file.starts_with('.') && file.contains(".part-"));
    for file in files_in(folder).filter(|file| is_own(file) && is_left(file)) {
        // What cannot be deleted does no harm but take room.
        let _ = fs::remove_file(folder.join(file));
    }
}

fn files_in(folder: &Path) -> impl Iterator<Item = String> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.map(|file| file.file_name().to_string_lossy().into_owned())
}

/// Puts the new checkpoint into the state file, then deletes those that are too many; gives these.
fn list_and_sweep(folder: &Path, options: &SaverOptions, prefix: &Path) -> Result<Vec<PathBuf>, CheckpointError> {
    let now = events::clock::wall_now() as f64 / 1e9;
    let mut state = StateFile::read(folder);
    state.all.retain(|(p, _)| p != prefix);
    state.all.push((prefix.to_owned(), now));
    if state.last_kept == 0.0 {
        state.last_kept = state.all[0].1;
    }
    let mut gone = Vec::new();
    while state.all.len() > options.max_to_keep.max(1) {
        let (old, time) = state.all.remove(0);
        match options.keep_every {
            Some(every) if time - state.last_kept >= every.as_secs_f64() => state.last_kept = time,
            _ => gone.push(old),
        }
    }
    state.write(folder)?;
    gone.iter().for_each(|old| delete(old));
    sync_folder(folder)?;
    Ok(gone)
}

/// Deletes the files of a checkpoint, its index first: what is left of it is then no checkpoint.
fn delete(prefix: &Path) {
    for file in own_files(prefix, files_in(folder_of(prefix))) {
        // What cannot be deleted now does no harm but take room.
        let _ = fs::remove_file(folder_of(prefix).join(file));
    }
}

/// Of the names of files, those of the checkpoint, its index first.
fn own_files(prefix: &Path, names: impl Iterator<Item = String>) -> Vec<String> {
    let Some(name) = prefix.file_name().map(|n| n.to_string_lossy().into_owned()) else { return Vec::new() };
    let own = |file: &String| {
        let rest = file.strip_prefix(&name).unwrap_or("-");
        rest == INDEX || rest == SHARD || rest == ".index" || rest.starts_with(".data-") || is_shard(rest)
    };
    let mut own: Vec<String> = names.filter(own).collect();
    own.sort_by_key(|file| !(file.ends_with(INDEX) || file.ends_with(".index")));
    own.dedup();
    own
}

/// Whether a name goes on as that of a shard: `-00001-of-00002.safetensors`.
fn is_shard(rest: &str) -> bool {
    let middle = rest.strip_prefix('-').and_then(|r| r.strip_suffix(SHARD)).and_then(|r| r.split_once("-of-"));
    middle.is_some_and(|(i, n)| [i, n].iter().all(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit())))
}
