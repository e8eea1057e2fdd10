//! Checkpoints in an object store that speaks S3's protocol.
//!
//! An object appears once it has arrived completely, so that a checkpoint's last file makes it whole there too. Large files travel in
//! parts, several at once. Place and credentials come from the usual variables: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
//! `AWS_REGION`, `AWS_ENDPOINT_URL`, and `AWS_ALLOW_HTTP=true` for a store without TLS.

use std::fs::File;
use std::future::Future;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use formats::all_causes;
use futures_util::TryStreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload, RetryConfig, WriteMultipart};

use super::FileStore;
use crate::checkpoint::CheckpointError;

/// A part of a large file; S3 wants 5 MiB at least.
const PART: usize = 8 << 20;
/// Parts on their way at once.
const PARALLEL: usize = 4;
/// How long a request is tried again.
const RETRY: Duration = Duration::from_secs(20);

/// A bucket of an object store below a prefix, as a place for files.
pub struct ObjectStoreFiles {
    store: Arc<dyn ObjectStore>,
    prefix: Key,
    url: String,
    runtime: tokio::runtime::Runtime,
}

impl ObjectStoreFiles {
    /// The place that `s3://BUCKET/PREFIX` names.
    ///
    /// # Errors
    /// The URL is none of these, or there are no credentials.
    pub fn open(url: &str) -> Result<ObjectStoreFiles, CheckpointError> {
        let bad = |problem: &str| CheckpointError::format(Path::new(url), problem);
        let rest = url.strip_prefix("s3://").ok_or_else(|| bad("it must begin with s3://"))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(bad("it names no bucket: s3://BUCKET/PREFIX"));
        }
        // Without any of these the store would ask the network for a role that only some clouds' machines have, for long.
        let sources = [
            "AWS_ACCESS_KEY_ID",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "AWS_METADATA_ENDPOINT",
            "AWS_SKIP_SIGNATURE",
        ];
        if sources.iter().all(|name| std::env::var_os(name).is_none()) {
            return Err(bad("there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"));
        }
        let retry = RetryConfig { retry_timeout: RETRY, max_retries: 5, ..RetryConfig::default() };
        let store = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry).build();
        let store = Arc::new(store.map_err(|e| bad(&e.to_string()))?);
        let prefix = Key::parse(prefix.trim_matches('/')).map_err(|e| bad(&e.to_string()))?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|e| CheckpointError::io(Path::new(url), e))?;
        Ok(ObjectStoreFiles { store, prefix, url: url.trim_end_matches('/').to_owned(), runtime })
    }

    fn key(&self, name: &str) -> Key {
        self.prefix.clone().join(name)
    }

    /// Waits for an answer of the store about the file `name`.
    fn wait<T>(&self, name: &str, answer: impl Future<Output = object_store::Result<T>>) -> Result<T, CheckpointError> {
        let at = format!("{}/{name}", self.url);
        self.runtime.block_on(answer).map_err(|e| CheckpointError::format(Path::new(&at), all_causes(&e)))
    }

    fn put_in_parts(&self, name: &str, file: &Path, mut from: File) -> Result<(), CheckpointError> {
        let upload = self.wait(name, self.store.put_multipart(&self.key(name)))?;
        // Its parts are sent from within the runtime.
        let _in_runtime = self.runtime.enter();
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PART);
        let mut part = vec![0; PART];
        loop {
            let read = match from.read(&mut part) {
                Ok(n) => n,
                Err(e) => {
                    // Unfinished uploads take room until they are aborted; that this fails too changes nothing.
                    let _ = self.runtime.block_on(upload.abort());
                    return Err(CheckpointError::io(file, e));
                }
            };
            if read == 0 {
                return self.wait(name, upload.finish()).map(drop);
            }
            self.wait(name, upload.wait_for_capacity(PARALLEL))?;
            upload.write(&part[..read]);
        }
    }
}

impl FileStore for ObjectStoreFiles {
    fn list(&self) -> Result<Vec<String>, CheckpointError> {
        let prefix = (!self.prefix.as_ref().is_empty()).then_some(&self.prefix);
        let all = self.wait("", self.store.list(prefix).try_collect::<Vec<_>>())?;
        let own = all.iter().filter_map(|object| {
            let mut rest = object.location.prefix_match(&self.prefix)?;
            let name = rest.next()?.as_ref().to_owned();
            rest.next().is_none().then_some(name)
        });
        Ok(own.collect())
    }

    fn put(&self, name: &str, file: &Path) -> Result<(), CheckpointError> {
        let io = |e| CheckpointError::io(file, e);
        let mut from = File::open(file).map_err(io)?;
        if from.metadata().map_err(io)?.len() > PART as u64 {
            return self.put_in_parts(name, file, from);
        }
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).map_err(io)?;
        self.wait(name, self.store.put(&self.key(name), PutPayload::from(bytes))).map(drop)
    }

    fn get(&self, name: &str, file: &Path) -> Result<(), CheckpointError> {
        let found = self.wait(name, self.store.get(&self.key(name)))?;
        let mut parts = found.into_stream();
        // Under its name only when all is there.
        let temporary = file.with_extension("part");
        let io = |e| CheckpointError::io(file, e);
        let mut to = File::create(&temporary).map_err(io)?;
        while let Some(part) = self.wait(name, parts.try_next())? {
            to.write_all(&part).map_err(io)?;
        }
        std::fs::rename(&temporary, file).map_err(io)
    }

    fn delete(&self, name: &str) -> Result<(), CheckpointError> {
        let key = self.key(name);
        self.wait(name, async {
            match self.store.delete(&key).await {
                Err(object_store::Error::NotFound { .. }) => Ok(()),
                other => other,
            }
        })
    }
}
