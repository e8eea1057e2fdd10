//! The error of a query on a cluster.

use std::path::PathBuf;

/// Why a query failed on a cluster. The messages say what the user can do.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The address is not that of a scheduler.
    #[error("{address:?} is no address of a Ballista scheduler: {reason}; say df://HOST:PORT")]
    Address {
        /// The address as given.
        address: String,
        /// The fault in the address.
        reason: String,
    },
    /// The scratch folder, for rows that are too many for a plan, cannot be used.
    #[error("{}: {reason}", path.display())]
    Scratch {
        /// The folder, or a file in it.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// No process at the address speaks Ballista's protocol.
    #[error("no Ballista scheduler answers at {at} ({reason})")]
    NoScheduler {
        /// The scheduler's address.
        at: String,
        /// The reply.
        reason: String,
    },
    /// Client and scheduler are of different major versions, whose plans differ.
    #[error("{0}: without --cluster the query runs here")]
    VersionMismatch(String),
    /// The scheduler refused the query, or lost it.
    #[error("the scheduler at {at} {what}: {reason}")]
    Refused {
        /// The scheduler's address.
        at: String,
        /// The predicate of the message: the action of the scheduler.
        what: &'static str,
        /// The scheduler's message.
        reason: String,
    },
    /// A table has too many rows for a plan.
    #[error(
        "the rows of {table} are in no Parquet file, and too many to be sent with the query: name a folder that the executors see at \
         the same path (--scratch DIR), or import the trace first"
    )]
    TooManyRows {
        /// The table.
        table: String,
    },
    /// The plan is too large for a message.
    #[error("the query's plan has {bytes} bytes, more than schedulers take: ask for fewer traces (where trace = ...)")]
    PlanTooLarge {
        /// The size of the plan, bytes.
        bytes: usize,
    },
    /// The limit does not fit into the 32 bits that Ballista has for it.
    #[error("a limit of more than 4294967295 rows cannot be sent to a cluster; leave it away")]
    LimitTooLarge,
    /// An executor does not see a file.
    #[error(
        "an executor of the cluster does not see {file}: a trace has to be at the same path on all executors, or in a bucket that they \
         can read"
    )]
    FileNotVisible {
        /// The file, as the executor names it.
        file: String,
    },
    /// The executors do not support this kind of bucket.
    #[error(
        "the executors of the cluster cannot read {scheme}:// (as they are released they read file://, s3:// and http://): {reason}"
    )]
    UnsupportedBucket {
        /// The scheme of the bucket's URL.
        scheme: String,
        /// The executor's message.
        reason: String,
    },
    /// An executor's memory is too small.
    #[error(
        "an executor has too little memory for the query ({0}); give it more, or cut the work into more parts with --threads"
    )]
    OutOfMemory(String),
    /// The query failed on the cluster.
    #[error("the query failed on the cluster: {0}")]
    Failed(String),
    /// The query has run, but its result cannot be fetched.
    #[error(
        "the executor at {at} has rows of the result and does not give them ({reason}); run the query again if it died, and if it \
         cannot be reached from here, start the scheduler with --enable-embedded-flight-proxy"
    )]
    FetchFailed {
        /// The address of the executor, or of its proxy.
        at: String,
        /// The reply.
        reason: String,
    },
}

impl ClusterError {
    /// Classifies the error of a failed job by its text: Ballista sends no other information.
    pub(crate) fn from_job_error(text: &str) -> ClusterError {
        let substring_between = |text: &str, from: &str, to: &str| -> Option<String> {
            let rest = &text[text.find(from)? + from.len()..];
            Some(rest[..rest.find(to)?].to_owned())
        };
        if let Some(file) = substring_between(text, "Object at location ", " not found") {
            return ClusterError::FileNotVisible { file };
        }
        if text.contains("No such file or directory") {
            let file = substring_between(text, "path: \"", "\"").unwrap_or_else(|| "a file".to_owned());
            return ClusterError::FileNotVisible { file };
        }
        let no_store = ["No suitable object store found for ", "store not supported, url "];
        if let Some(scheme) = no_store.iter().find_map(|words| substring_between(text, words, "://")) {
            return ClusterError::UnsupportedBucket { scheme, reason: one_line(text) };
        }
        if let Some((_, what)) = text.split_once("Resources exhausted: ") {
            return ClusterError::OutOfMemory(one_line(what));
        }
        ClusterError::Failed(one_line(text))
    }
}

/// A text on one line, cut at 600 characters.
pub(crate) fn one_line(text: &str) -> String {
    const MAX_CHARS: usize = 600;
    let line = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}
