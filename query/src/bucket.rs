//! Finds the traces below a bucket's URL, by the same rules as in folders.

use crate::error::QueryError;
use datafusion::execution::object_store::ObjectStoreUrl;
use futures_util::TryStreamExt;
use object_store::path::Path as Key;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use trace_store::seal::Checksums;
use url::Url;

/// A bucket, and the URL below which it is searched.
#[derive(Debug)]
pub(crate) struct Bucket {
    pub(crate) url: ObjectStoreUrl,
    pub(crate) address: Url,
    pub(crate) store: Arc<dyn ObjectStore>,
}

/// A trace in a bucket.
#[derive(Debug)]
pub(crate) struct Trace {
    /// The name of the trace's run; for a single object, its file name.
    pub(crate) label: String,
    /// The files of a sealed trace by name; `None` where the trace has unsealed parts.
    pub(crate) sealed_files: Option<BTreeMap<String, ObjectMeta>>,
    checksums: OnceCell<Result<Checksums, String>>,
    /// All objects, with their paths below the trace's folder.
    objects: Vec<(String, ObjectMeta)>,
    store: Arc<dyn ObjectStore>,
    handle: Handle,
    copy_folder: OnceLock<tempfile::TempDir>,
}

/// The most bytes at the end of a file whose checksum is verified: enough for most tables and the footers of slices.
const MAX_VERIFIED_BYTES: u64 = 1 << 20;

/// Whether a path is the URL of a bucket.
pub(crate) fn is_url(path: &str) -> bool {
    path.split_once("://").is_some_and(|(scheme, _)| ["s3", "gs", "az", "http", "https"].contains(&scheme))
}

/// The name of the run whose trace is in a folder: the path without `trace` and `sealed` at its end, `.` for the root.
pub(crate) fn run_name(folder: &str) -> String {
    let strip_folder = |name: &str, part: &str| match name.strip_suffix(part) {
        Some(rest) if rest.is_empty() || rest.ends_with('/') => rest.trim_end_matches('/').to_owned(),
        _ => name.to_owned(),
    };
    let name = strip_folder(&strip_folder(folder, "sealed"), "trace");
    if name.is_empty() { ".".to_owned() } else { name }
}

impl Bucket {
    /// Lists the objects below the URL, and finds their traces.
    pub(crate) fn open(url: &str, handle: &Handle) -> Result<(Bucket, Vec<Trace>), QueryError> {
        let failed = |reason: String| QueryError::Open { at: url.to_owned(), reason };
        let (store, prefix) = summaries::open_bucket(url).map_err(|e| match e {
            summaries::RemoteError::Url { reason, .. } => failed(reason),
            other => failed(other.to_string()),
        })?;
        let address = Url::parse(url).map_err(|e| failed(e.to_string()))?;
        let base = &address[..url::Position::BeforePath];
        let base = ObjectStoreUrl::parse(base).map_err(|e| failed(e.to_string()))?;
        let below = (!prefix.as_ref().is_empty()).then_some(&prefix);
        let objects: Vec<ObjectMeta> =
            handle.block_on(store.list(below).try_collect()).map_err(|e| failed(e.to_string()))?;
        let mut objects: Vec<(String, ObjectMeta)> =
            objects.into_iter().filter_map(|object| Some((path_below(&object.location, &prefix)?, object))).collect();
        if objects.is_empty() {
            let object = handle.block_on(store.head(&prefix)).map_err(|_| failed("there is nothing".to_owned()))?;
            objects.push((String::new(), object));
        }
        let traces = find_traces(&objects, &store, handle);
        Ok((Bucket { url: base, address, store }, traces))
    }
}

/// The path of an object below the prefix; empty for the object that the prefix itself names.
fn path_below(key: &Key, prefix: &Key) -> Option<String> {
    let parts: Vec<String> = key.prefix_match(prefix)?.map(|part| part.as_ref().to_owned()).collect();
    Some(parts.join("/"))
}

fn folder_and_name(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn is_in(path: &str, folder: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

fn is_collected(name: &str) -> bool {
    let is_part = ["meta-", "chunks-"].iter().any(|prefix| name.starts_with(prefix)) && name.ends_with(".bin");
    is_part || name.starts_with("ring-") && name.ends_with(".ring")
}

fn find_traces(objects: &[(String, ObjectMeta)], store: &Arc<dyn ObjectStore>, handle: &Handle) -> Vec<Trace> {
    let trace = |label: String, sealed_files, objects| {
        let (store, handle) = (Arc::clone(store), handle.clone());
        Trace { label, sealed_files, checksums: OnceCell::new(), objects, store, handle, copy_folder: OnceLock::new() }
    };
    if let [(path, object)] = objects
        && path.is_empty()
    {
        let name = object.location.filename().unwrap_or("trace").to_owned();
        return vec![trace(name.clone(), None, vec![(name, object.clone())])];
    }
    let mut roots: BTreeSet<&str> = BTreeSet::new();
    for (path, _) in objects {
        let (folder, name) = folder_and_name(path);
        if name == "slices.parquet" || name == "gathered.json" || is_collected(name) {
            let (outer, last) = folder_and_name(folder);
            roots.insert(if last == "sealed" { outer } else { folder });
        }
    }
    let mut found: Vec<Trace> = Vec::new();
    let mut last: Option<&str> = None;
    for root in roots {
        // A folder below a trace's folder belongs to that trace.
        if last.is_some_and(|last| is_in(root, last)) {
            continue;
        }
        last = Some(root);
        let root_objects: Vec<(String, ObjectMeta)> = objects
            .iter()
            .filter(|(path, _)| is_in(path, root))
            .map(|(path, object)| (path[root.len()..].trim_start_matches('/').to_owned(), object.clone()))
            .collect();
        found.push(trace(run_name(root), sealed_files(&root_objects), root_objects));
    }
    found
}

/// The files of a sealed trace; `None` where the trace has gathered or collected files, too.
fn sealed_files(objects: &[(String, ObjectMeta)]) -> Option<BTreeMap<String, ObjectMeta>> {
    let is_unsealed = |path: &str| path == "gathered.json" || is_collected(folder_and_name(path).1);
    if objects.iter().any(|(path, _)| is_unsealed(path)) {
        return None;
    }
    let in_folder = |folder: &str| -> BTreeMap<String, ObjectMeta> {
        let files = objects.iter().filter(|(path, _)| folder_and_name(path).0 == folder);
        files.map(|(path, object)| (folder_and_name(path).1.to_owned(), object.clone())).collect()
    };
    let is_complete = |files: &BTreeMap<String, ObjectMeta>| {
        ["slices.parquet", "checksums.txt"].iter().all(|name| files.contains_key(*name))
    };
    ["sealed", ""].map(in_folder).into_iter().find(is_complete)
}

impl Trace {
    /// Checks the length of a sealed trace's file, and the checksum of its end where the end has at most
    /// [`MAX_VERIFIED_BYTES`] bytes. Returns a description of the damage, if there is any.
    ///
    /// # Errors
    /// The bucket cannot be read.
    pub(crate) async fn damage(&self, name: &str) -> object_store::Result<Option<String>> {
        let Some(files) = &self.sealed_files else { return Ok(None) };
        let Some(object) = files.get(name) else { return Ok(None) };
        let sums = match self.checksums.get_or_try_init(|| self.read_checksums(files)).await? {
            Ok(sums) => sums,
            Err(problem) => return Ok(Some(problem.clone())),
        };
        let Some(end) = sums.last_part_of(name) else {
            return Ok(Some(format!("{name}: the list of checksums lacks it")));
        };
        if end.end != object.size {
            return Ok(Some(format!("{name}: it has {} bytes instead of {}", object.size, end.end)));
        }
        if end.end - end.start > MAX_VERIFIED_BYTES {
            return Ok(None);
        }
        let bytes = self.store.get_range(&object.location, end).await?;
        Ok((!sums.is_last_part_of(name, &bytes)).then(|| format!("{name}: its checksum is wrong")))
    }

    /// The list of checksums, or the problem with it.
    async fn read_checksums(
        &self,
        files: &BTreeMap<String, ObjectMeta>,
    ) -> object_store::Result<Result<Checksums, String>> {
        let name = Checksums::FILE;
        let Some(object) = files.get(name) else { return Ok(Err(format!("{name}: it is missing"))) };
        let bytes = self.store.get(&object.location).await?.bytes().await?;
        let text = std::str::from_utf8(&bytes).ok().and_then(Checksums::parse);
        Ok(text.ok_or_else(|| format!("{name}: it is damaged")))
    }

    /// Copies all objects to a folder that is deleted with this trace; returns the folder, or the file of a single
    /// object.
    pub(crate) fn copy(&self) -> Result<PathBuf, String> {
        let temp_dir = tempfile::Builder::new().prefix("stepscope-").tempdir().map_err(|e| e.to_string())?;
        let folder = temp_dir.path().to_owned();
        for (path, object) in &self.objects {
            // `object_store` refuses keys with `..`.
            let file = folder.join(path);
            let copied = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| File::create(&file));
            let mut out = copied.map_err(|e| format!("{}: {e}", file.display()))?;
            let written = self.handle.block_on(async {
                let mut parts = self.store.get(&object.location).await?.into_stream();
                while let Some(part) = parts.try_next().await? {
                    if let Err(error) = out.write_all(&part) {
                        return Ok(Err(error));
                    }
                }
                Ok::<_, object_store::Error>(Ok(()))
            });
            written.map_err(|e| e.to_string())?.map_err(|e| format!("{}: {e}", file.display()))?;
        }
        // Where another thread has finished a copy first, that copy is used.
        let folder = self.copy_folder.get_or_init(|| temp_dir).path().to_owned();
        Ok(match &self.objects[..] {
            [(path, _)] => folder.join(path),
            _ => folder,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;

    #[test]
    fn a_trace_is_called_as_its_run() {
        let names = ["", "trace", "sealed", "a/trace/sealed", "a/b/trace", "a/retrace", "sealed/x"].map(run_name);
        assert_eq!(names, [".", ".", ".", "a", "a/b", "a/retrace", "sealed/x"]);
    }

    #[test]
    fn traces_are_found_among_objects() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let keys = [
            "a/trace/sealed/slices.parquet",
            "a/trace/sealed/checksums.txt",
            "a/trace/control",
            "b/trace/sealed/slices.parquet",
            "b/trace/sealed/checksums.txt",
            "b/trace/chunks-7.bin",
            "c/meta-1.bin",
            "g/gathered.json",
            "g/host1/sealed/slices.parquet",
            "events.out.tfevents.1",
        ];
        let objects: Vec<(String, ObjectMeta)> = keys
            .map(|key| {
                let location = Key::from(key);
                runtime.block_on(store.put(&location, "x".into())).unwrap();
                (key.to_owned(), runtime.block_on(store.head(&location)).unwrap())
            })
            .into();
        let found = find_traces(&objects, &store, runtime.handle());
        let shown: Vec<_> =
            found.iter().map(|t| (t.label.as_str(), t.sealed_files.is_some(), t.objects.len())).collect();
        assert_eq!(shown, [("a", true, 3), ("b", false, 3), ("c", false, 1), ("g", false, 2)]);
    }
}
