//! Logdirs in buckets: `s3://`, `gs://`, `az://`, `http(s)://`.
//!
//! A bucket is copied to a temporary folder that a [`Logdir`](crate::Logdir) follows. Verifying records needs every
//! byte of an event file anyway, so copying does not read more. A [`fetch`](Remote::fetch) lists the objects (one
//! request for a thousand) and reads the range by which each has grown. A writer on an object store replaces the whole
//! object when it flushes, mostly by a longer one with the same beginning: the last bytes of the copy are read again
//! and compared, and an object that differs is copied anew.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use events::clock;
use formats::{all_causes, is_event_file_name};
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{
    ClientOptions, GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt, ObjectStoreScheme, RetryConfig,
    aws::AmazonS3Builder, azure::MicrosoftAzureBuilder, gcp::GoogleCloudStorageBuilder, http::HttpBuilder,
    path::Path as Key,
};
use tokio::runtime::Runtime;
use url::Url;

/// The largest range of a request, bytes.
const MAX_RANGE: u64 = 4 << 20;
/// The most requests at a time; their ranges are in memory.
const N_PARALLEL: usize = 16;
/// The bytes at the end of a copy that are read again, to check that the object has only been extended.
const OVERLAP: u64 = 64;
/// The time for which a failed request is retried.
const RETRY_TIMEOUT: Duration = Duration::from_secs(20);
/// The most objects that one list request returns.
const LIST_PAGE: u64 = 1000;
/// The shortest and the longest pause between two listings; between these limits the pause is [`PAUSE_FACTOR`] times
/// the duration of the last listing.
const PAUSE_LIMITS: Range<Duration> = Duration::from_secs(2)..Duration::from_secs(60);
const PAUSE_FACTOR: i64 = 20;

/// Why a bucket cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The URL is not that of a bucket, or its credentials are missing.
    #[error("{url}: {reason}")]
    Url {
        /// The URL.
        url: String,
        /// The fault and its remedy.
        reason: String,
    },
    /// The store did not answer, or returned an error.
    #[error("{at}: {reason}")]
    Store {
        /// The URL of the bucket or object.
        at: String,
        /// The store's message.
        reason: String,
    },
    /// The copy cannot be written.
    #[error("the copy of {url}: {source}")]
    Copy {
        /// The bucket.
        url: String,
        /// Why.
        source: io::Error,
    },
}

/// The cost of reading a bucket so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemoteCost {
    /// Requests that list objects.
    pub n_list_requests: u64,
    /// Requests that read a range of an object.
    pub n_get_requests: u64,
    /// Bytes that were read.
    pub n_bytes: u64,
}

/// The result of a fetch.
#[derive(Debug, Default)]
pub struct FetchResult {
    /// The number of event files.
    pub n_files: usize,
    /// The number of new bytes.
    pub n_bytes: u64,
    /// Objects that cannot be read at present; the next fetch tries again.
    pub failed: Vec<RemoteError>,
}

/// A logdir in a bucket, or a single event file in one.
#[derive(Debug)]
pub struct Remote {
    url: String,
    store: Arc<dyn ObjectStore>,
    key: Key,
    runtime: Arc<Runtime>,
    /// The folder of the copy, deleted when this is dropped.
    _temp_dir: tempfile::TempDir,
    folder: PathBuf,
    copies: BTreeMap<Key, CopiedObject>,
    cost: RemoteCost,
    listing_ns: i64,
    /// Whether the store can send ranges of objects; simple web servers send whole files only.
    has_ranges: bool,
}

/// The copy of an object.
#[derive(Debug)]
struct CopiedObject {
    file: PathBuf,
    n_bytes: u64,
    e_tag: Option<String>,
}

impl CopiedObject {
    /// Whether the object was to_copy_anew since it was copied, not just extended. In stores without tags only a smaller
    /// size shows this.
    fn is_replaced(&self, object: &ObjectMeta) -> bool {
        object.size < self.n_bytes || object.size == self.n_bytes && object.e_tag != self.e_tag
    }
}

/// A range to read. The copy already has its first `n_overlap` bytes.
#[derive(Debug, Clone)]
struct RangeRequest {
    object: ObjectMeta,
    range: Range<u64>,
    n_overlap: u64,
}

/// The outcome of a requested range.
enum CopyOutcome {
    /// The range was appended to the copy.
    Appended,
    /// The object has changed, and must be copied again from its beginning.
    Replaced,
}

impl Remote {
    /// Prepares to read `url`. Endpoint and credentials come from each store's usual variables (`AWS_ACCESS_KEY_ID`,
    /// `AWS_ENDPOINT_URL`, `GOOGLE_SERVICE_ACCOUNT`, `AZURE_STORAGE_ACCOUNT_NAME`, ...). Sends no request yet.
    ///
    /// # Errors
    /// The URL is not that of a bucket, or a variable is missing.
    pub fn open(url: &str) -> Result<Self, RemoteError> {
        let (store, path) = open_bucket(url)?;
        let parsed = Url::parse(url).map_err(|e| RemoteError::Url { url: url.to_owned(), reason: e.to_string() })?;
        let copy_error = |source| RemoteError::Copy { url: url.to_owned(), source };
        let temp_dir = tempfile::Builder::new().prefix("stepscope-").tempdir().map_err(copy_error)?;
        // The window shows the folder's name.
        let name = path.filename().or(parsed.host_str()).unwrap_or("bucket").to_owned();
        let folder = temp_dir.path().join(name);
        fs::create_dir(&folder).map_err(copy_error)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Ok(Self {
            url: url.trim_end_matches('/').to_owned(),
            store,
            key: path,
            runtime: Arc::new(runtime.map_err(copy_error)?),
            _temp_dir: temp_dir,
            folder,
            copies: BTreeMap::new(),
            cost: RemoteCost::default(),
            listing_ns: 0,
            has_ranges: true,
        })
    }

    /// The URL, without a slash at its end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The folder with the copy.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The cost of reading so far.
    pub fn cost(&self) -> RemoteCost {
        self.cost
    }

    /// The pause before the next fetch, so that listing stays cheap.
    pub fn pause(&self) -> Duration {
        Duration::from_nanos((self.listing_ns * PAUSE_FACTOR).unsigned_abs())
            .clamp(PAUSE_LIMITS.start, PAUSE_LIMITS.end)
    }

    /// Lists the event files and creates an empty copy of each new one, so that the logdir can be opened before
    /// everything is read. Returns the number of files.
    ///
    /// # Errors
    /// When the bucket cannot be listed, or the copy cannot be written.
    pub fn find(&mut self) -> Result<usize, RemoteError> {
        self.list().map(|objects| objects.len())
    }

    /// Copies new event files and the new ends of others.
    ///
    /// # Errors
    /// When the bucket cannot be listed, or the copy cannot be written. The result reports objects that cannot be read.
    pub fn fetch(&mut self) -> Result<FetchResult, RemoteError> {
        let objects = self.list()?;
        let mut result = FetchResult { n_files: objects.len(), ..FetchResult::default() };
        let n_bytes_before = self.cost.n_bytes;
        let mut requests: Vec<RangeRequest> = objects.iter().flat_map(|object| self.new_ranges(object)).collect();
        while !requests.is_empty() {
            let to_copy_anew = self.copy_all(requests, &mut result.failed)?;
            requests = Vec::new();
            for object in to_copy_anew {
                self.reset_copy(&object)?;
                requests.extend(self.new_ranges(&object));
            }
        }
        result.n_bytes = self.cost.n_bytes - n_bytes_before;
        Ok(result)
    }

    fn list(&mut self) -> Result<Vec<ObjectMeta>, RemoteError> {
        let begin_ns = clock::mono_now();
        let objects = if self.key.filename().is_some_and(|name| is_event_file_name(Path::new(name))) {
            self.cost.n_list_requests += 1;
            self.runtime.block_on(self.store.head(&self.key)).map(|object| vec![object])
        } else {
            let prefix = (!self.key.as_ref().is_empty()).then_some(&self.key);
            let all = self.runtime.block_on(self.store.list(prefix).try_collect::<Vec<_>>());
            let n = all.as_ref().map_or(0, |all: &Vec<_>| all.len() as u64);
            self.cost.n_list_requests += n.div_ceil(LIST_PAGE).max(1);
            all.map(|mut all| {
                all.retain(|object| object.location.filename().is_some_and(|name| is_event_file_name(Path::new(name))));
                all
            })
        };
        self.listing_ns = clock::mono_now() - begin_ns;
        let objects =
            objects.map_err(|e| RemoteError::Store { at: self.url.clone(), reason: self.listing_error(&e) })?;
        self.drop_deleted(&objects);
        for object in &objects {
            if self.copies.get(&object.location).is_none_or(|copied| copied.is_replaced(object)) {
                self.reset_copy(object)?;
            }
        }
        Ok(objects)
    }

    fn listing_error(&self, error: &object_store::Error) -> String {
        let is_folder = !self.key.filename().is_some_and(|name| is_event_file_name(Path::new(name)));
        let hint = if is_folder && self.url.starts_with("http") {
            " (most web servers cannot list their files: name the event file, as in http://host/run/events.out.tfevents.1)"
        } else {
            ""
        };
        all_causes(error) + hint
    }

    fn drop_deleted(&mut self, objects: &[ObjectMeta]) {
        let listed: BTreeSet<&Key> = objects.iter().map(|object| &object.location).collect();
        self.copies.retain(|key, copied| {
            let is_listed = listed.contains(key);
            if !is_listed {
                // The logdir then reports the file as deleted; where removing fails it is only shown longer.
                let _ = fs::remove_file(&copied.file);
            }
            is_listed
        });
    }

    /// Replaces the copy of an object by an empty one.
    fn reset_copy(&mut self, object: &ObjectMeta) -> Result<(), RemoteError> {
        let file = self.copy_path(&object.location);
        let empty_file = file.with_extension("fresh");
        let made = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| File::create(&empty_file));
        // Renaming gives the file another identity, by which the logdir reads it from its beginning.
        made.and_then(|_| fs::rename(&empty_file, &file))
            .map_err(|source| RemoteError::Copy { url: self.url.clone(), source })?;
        self.copies.insert(object.location.clone(), CopiedObject { file, n_bytes: 0, e_tag: object.e_tag.clone() });
        Ok(())
    }

    /// Returns the path of an object's copy. Parts of a key are never `..`, since object_store refuses such keys.
    fn copy_path(&self, key: &Key) -> PathBuf {
        let below =
            key.prefix_match(&self.key).map(|parts| parts.map(|part| part.as_ref().to_owned()).collect::<PathBuf>());
        match below.filter(|path| !path.as_os_str().is_empty()) {
            Some(path) => self.folder.join(path),
            None => self.folder.join(key.filename().unwrap_or("events.out.tfevents")),
        }
    }

    /// Returns the ranges by which an object has grown.
    fn new_ranges(&self, object: &ObjectMeta) -> Vec<RangeRequest> {
        let n_copied = self.copies.get(&object.location).map_or(0, |copied| copied.n_bytes);
        if object.size <= n_copied {
            return Vec::new();
        }
        if !self.has_ranges {
            return vec![RangeRequest { object: object.clone(), range: 0..object.size, n_overlap: n_copied }];
        }
        let n_overlap = n_copied.min(OVERLAP);
        let offsets = (n_copied - n_overlap..object.size).step_by(MAX_RANGE as usize);
        let range = |begin: u64| RangeRequest {
            object: object.clone(),
            range: begin..(begin + MAX_RANGE).min(object.size),
            n_overlap: n_copied.saturating_sub(begin),
        };
        offsets.map(range).collect()
    }

    /// Reads ranges, several at a time, and appends them to their copies; returns the objects that must be copied anew.
    fn copy_all(
        &mut self,
        requests: Vec<RangeRequest>,
        failed: &mut Vec<RemoteError>,
    ) -> Result<Vec<ObjectMeta>, RemoteError> {
        let (store, has_ranges) = (self.store.clone(), self.has_ranges);
        let get = |request: RangeRequest| {
            let store = store.clone();
            async move {
                let options = GetOptions {
                    range: has_ranges.then(|| request.range.clone().into()),
                    if_match: request.object.e_tag.clone(),
                    ..GetOptions::default()
                };
                let response = store.get_opts(&request.object.location, options).await;
                let bytes = match response {
                    Ok(response) => response.bytes().await,
                    Err(error) => Err(error),
                };
                (request, bytes)
            }
        };
        let mut skipped_keys: BTreeSet<Key> = BTreeSet::new();
        let mut to_copy_anew = Vec::new();
        let runtime = self.runtime.clone();
        runtime.block_on(async {
            let mut answers = stream::iter(requests).map(get).buffered(N_PARALLEL);
            while let Some((request, bytes)) = answers.next().await {
                self.cost.n_get_requests += 1;
                let key = request.object.location.clone();
                if skipped_keys.contains(&key) {
                    continue;
                }
                match bytes {
                    Ok(bytes) => match self.append(&request, &bytes)? {
                        CopyOutcome::Appended => {}
                        CopyOutcome::Replaced => {
                            skipped_keys.insert(key);
                            to_copy_anew.push(request.object);
                        }
                    },
                    // The server ignores ranges: it sent the whole object, which was not read.
                    Err(object_store::Error::NotSupported { .. }) if has_ranges => {
                        self.has_ranges = false;
                        skipped_keys.insert(key);
                        to_copy_anew.push(request.object);
                    }
                    Err(error) => {
                        failed.push(RemoteError::Store { at: key.to_string(), reason: all_causes(&error) });
                        skipped_keys.insert(key);
                    }
                }
            }
            Ok(to_copy_anew)
        })
    }

    /// Appends a range to its copy, if the bytes that the copy already has are the same.
    fn append(&mut self, request: &RangeRequest, bytes: &[u8]) -> Result<CopyOutcome, RemoteError> {
        let Some(copied) = self.copies.get_mut(&request.object.location) else { return Ok(CopyOutcome::Replaced) };
        self.cost.n_bytes += bytes.len() as u64;
        let n_overlap = request.n_overlap as usize;
        let appended = (|| {
            let mut file = OpenOptions::new().read(true).append(true).open(&copied.file)?;
            let mut overlap = vec![0; n_overlap];
            file.seek(SeekFrom::Start(request.range.start))?;
            file.read_exact(&mut overlap)?;
            if bytes.get(..n_overlap) != Some(&overlap[..]) {
                return Ok(CopyOutcome::Replaced);
            }
            file.write_all(&bytes[n_overlap..])?;
            Ok(CopyOutcome::Appended)
        })();
        copied.n_bytes += (bytes.len() - n_overlap.min(bytes.len())) as u64;
        copied.e_tag.clone_from(&request.object.e_tag);
        appended.map_err(|source| RemoteError::Copy { url: self.url.clone(), source })
    }
}

/// Returns the bucket of a URL, and the key or prefix in the bucket; see [`Remote::open`] for the credentials. Sends no
/// request yet.
///
/// # Errors
/// The URL is not that of a bucket, or a variable is missing.
pub fn open_bucket(url: &str) -> Result<(Arc<dyn ObjectStore>, Key), RemoteError> {
    let refused = |reason: String| RemoteError::Url { url: url.to_owned(), reason };
    let parsed = Url::parse(url).map_err(|e| refused(e.to_string()))?;
    let (scheme, path) = ObjectStoreScheme::parse(&parsed).map_err(|e| refused(e.to_string()))?;
    Ok((store(&parsed, &scheme).map_err(refused)?, path))
}

/// The environment variables of a cloud's credentials, and the error where none is set.
struct Credentials {
    /// The variables; one of them is enough.
    variables: &'static [&'static str],
    missing: &'static str,
}

const AWS: Credentials = Credentials {
    variables: &[
        "AWS_ACCESS_KEY_ID",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_METADATA_ENDPOINT",
        "AWS_SKIP_SIGNATURE",
    ],
    missing: "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE=true for a public bucket",
};

const GOOGLE: Credentials = Credentials {
    variables: &[
        "GOOGLE_SERVICE_ACCOUNT",
        "GOOGLE_SERVICE_ACCOUNT_PATH",
        "GOOGLE_SERVICE_ACCOUNT_KEY",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_SKIP_SIGNATURE",
        "GCE_METADATA_HOST",
    ],
    missing: "no credentials: set GOOGLE_APPLICATION_CREDENTIALS to a key file, or GOOGLE_SKIP_SIGNATURE=true for a public bucket, or \
              GCE_METADATA_HOST=metadata.google.internal on a machine of Google's cloud",
};

/// The file of a user's gcloud credentials, below the home folder.
const GCLOUD_FILE: &str = if cfg!(windows) {
    "gcloud/application_default_credentials.json"
} else {
    ".config/gcloud/application_default_credentials.json"
};

/// Refuses a store without credentials, which would request a machine's role over the network and wait for an answer.
fn check_credentials(credentials: &Credentials, has_file: bool) -> Result<(), String> {
    let has_variable = credentials.variables.iter().any(|name| std::env::var_os(name).is_some());
    if has_variable || has_file { Ok(()) } else { Err(credentials.missing.to_owned()) }
}

/// Creates the store of a URL, with the settings of the environment.
fn store(url: &Url, scheme: &ObjectStoreScheme) -> Result<Arc<dyn ObjectStore>, String> {
    let retry = RetryConfig { retry_timeout: RETRY_TIMEOUT, max_retries: 5, ..RetryConfig::default() };
    let text = |e: object_store::Error| all_causes(&e);
    Ok(match scheme {
        ObjectStoreScheme::AmazonS3 => {
            check_credentials(&AWS, false)?;
            let builder = AmazonS3Builder::from_env().with_url(url.as_str()).with_retry(retry);
            Arc::new(builder.build().map_err(text)?)
        }
        ObjectStoreScheme::GoogleCloudStorage => {
            // `gcloud auth application-default login` writes this file.
            let home = std::env::var_os(if cfg!(windows) { "APPDATA" } else { "HOME" }).map(PathBuf::from);
            let file = home.map(|home| home.join(GCLOUD_FILE));
            check_credentials(&GOOGLE, file.is_some_and(|file| file.is_file()))?;
            let builder = GoogleCloudStorageBuilder::from_env().with_url(url.as_str()).with_retry(retry);
            Arc::new(builder.build().map_err(text)?)
        }
        ObjectStoreScheme::MicrosoftAzure => {
            let builder = MicrosoftAzureBuilder::from_env().with_url(url.as_str()).with_retry(retry);
            Arc::new(builder.build().map_err(text)?)
        }
        ObjectStoreScheme::Http => {
            let options = ClientOptions::new().with_allow_http(url.scheme() == "http");
            let host = &url[..url::Position::BeforePath];
            let builder = HttpBuilder::new().with_url(host).with_client_options(options).with_retry(retry);
            Arc::new(builder.build().map_err(text)?)
        }
        _ => return Err("not the URL of a bucket: s3://, gs://, az://, http:// or https://".into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_missed_before_anything_is_asked() {
        let here = Credentials { variables: &["STEPSCOPE_TEST_NOBODY_SETS_THIS", "PATH"], missing: "none" };
        let nowhere = Credentials { variables: &["STEPSCOPE_TEST_NOBODY_SETS_THIS"], missing: "set it" };
        assert_eq!(check_credentials(&here, false), Ok(()));
        assert_eq!(check_credentials(&nowhere, true), Ok(()));
        assert_eq!(check_credentials(&nowhere, false), Err("set it".to_owned()));
        assert!(GOOGLE.variables.iter().any(|name| GOOGLE.missing.contains(name)));
        assert!(AWS.variables.iter().any(|name| AWS.missing.contains(name)));
    }
}
