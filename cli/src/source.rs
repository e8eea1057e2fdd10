//! The source of a logdir: a folder, an event file, or the URL of a bucket, which is copied to a temporary folder.

use std::path::{Path, PathBuf};

use crate::outcome::Failure;

/// A logdir that can be read.
pub struct Source {
    local: PathBuf,
    #[cfg(feature = "buckets")]
    bucket: Option<summaries::Remote>,
    /// The copy of a bucket, removed when this is dropped.
    #[cfg(feature = "buckets")]
    _followed: Option<remote::FollowedBucket>,
}

/// Whether a path is the URL of a bucket.
pub fn is_url(path: &Path) -> bool {
    let scheme = path.to_str().and_then(|text| text.split_once("://")).map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| ["s3", "gs", "az", "http", "https"].contains(&scheme))
}

impl Source {
    /// Opens a source with its present content.
    ///
    /// # Errors
    /// `Failure::Usage` when the URL is invalid, or this program was built without buckets; `Failure::Work` when the
    /// store fails.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        if !is_url(path) {
            return Ok(Self::from_path(path));
        }
        #[cfg(feature = "buckets")]
        {
            let mut bucket = remote::open(path)?;
            remote::fetch(&mut bucket)?;
            remote::print_cost(&bucket);
            Ok(Self { local: bucket.folder().to_owned(), bucket: Some(bucket), _followed: None })
        }
        #[cfg(not(feature = "buckets"))]
        Err(no_buckets(path))
    }

    /// Opens a source that is followed; a thread copies a bucket as it grows.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn follow(path: &Path) -> Result<Self, Failure> {
        if !is_url(path) {
            return Ok(Self::from_path(path));
        }
        #[cfg(feature = "buckets")]
        {
            let followed = remote::follow(remote::open(path)?)?;
            Ok(Self { local: followed.folder.clone(), bucket: None, _followed: Some(followed) })
        }
        #[cfg(not(feature = "buckets"))]
        Err(no_buckets(path))
    }

    fn from_path(path: &Path) -> Self {
        Self {
            local: path.to_owned(),
            #[cfg(feature = "buckets")]
            bucket: None,
            #[cfg(feature = "buckets")]
            _followed: None,
        }
    }

    /// The path of the logdir on this machine.
    pub fn path(&self) -> &Path {
        &self.local
    }

    /// Replaces the copy's folder in a message by the URL.
    pub fn with_url(&self, message: String) -> String {
        #[cfg(feature = "buckets")]
        if let Some(bucket) = &self.bucket {
            return message.replace(&bucket.folder().display().to_string(), bucket.url());
        }
        message
    }
}

#[cfg(not(feature = "buckets"))]
fn no_buckets(path: &Path) -> Failure {
    Failure::wrong_use(format_args!(
        "{}: this program was built without buckets; build it with: cargo build --release --features buckets",
        path.display()
    ))
}

#[cfg(feature = "buckets")]
mod remote {
    use std::path::{Path, PathBuf};

    use summaries::{FetchResult, Remote, RemoteError};

    use crate::outcome::Failure;

    pub fn open(path: &Path) -> Result<Remote, Failure> {
        Remote::open(&path.to_string_lossy()).map_err(Failure::wrong_use)
    }

    /// Fetches new data, and reports objects that cannot be read.
    pub fn fetch(bucket: &mut Remote) -> Result<FetchResult, Failure> {
        let fetched = bucket.fetch().map_err(work_failure)?;
        fetched.failed.iter().for_each(|error| note!("warning: {error}"));
        Ok(fetched)
    }

    fn work_failure(error: RemoteError) -> Failure {
        Failure::Work(error.into())
    }

    pub(super) fn print_cost(bucket: &Remote) {
        let cost = bucket.cost();
        note!(
            "{}: {} in {} requests, and {} to list it",
            bucket.url(),
            text::bytes(cost.n_bytes),
            text::count(cost.n_get_requests),
            text::count(cost.n_list_requests)
        );
    }

    /// The copy of a bucket that a thread updates; removed when this is dropped.
    pub struct FollowedBucket {
        pub folder: PathBuf,
    }

    impl Drop for FollowedBucket {
        fn drop(&mut self) {
            // The thread may wait for the store; it ends with the program.
            let _ = std::fs::remove_dir_all(self.folder.parent().unwrap_or(&self.folder));
        }
    }

    /// Copies a bucket and its new data until the program ends.
    pub fn follow(mut bucket: Remote) -> Result<FollowedBucket, Failure> {
        let n_files = bucket.find().map_err(work_failure)?;
        if n_files == 0 {
            let url = bucket.url();
            return Err(Failure::wrong_use(format_args!("{url}: no event files (*tfevents*) in or below it")));
        }
        let folder = bucket.folder().to_owned();
        std::thread::spawn(move || {
            let mut last_error = String::new();
            for i in 0_u64.. {
                match fetch(&mut bucket) {
                    Ok(_) if i == 0 => print_cost(&bucket),
                    Ok(_) => {}
                    Err(Failure::Work(error)) if error.to_string() != last_error => {
                        last_error = error.to_string();
                        note!("warning: {last_error}");
                    }
                    Err(_) => {}
                }
                std::thread::sleep(bucket.pause());
            }
        });
        Ok(FollowedBucket { folder })
    }
}
