//! Which tasks there are, and where (white paper section 3): from a file, or from a launcher's environment (`environment`).
//!
//! ```toml
//! id = "mnist-7"                  # only processes of one id talk to each other; without it "default"
//! master = "127.0.0.1:4100"
//!
//! [jobs]
//! ps = ["127.0.0.1:4000"]
//! worker = ["127.0.0.1:4001", "unix:/tmp/worker-1"]   # /job:worker/task:0 and /job:worker/task:1
//!
//! [tls]                           # between hosts; `stepscope certify` makes such files
//! authority = "certificates/ca.pem"
//! certificate = "certificates/{host}.pem"     # of each process its own: {host} is what it is reached by
//! key = "certificates/{host}.key"
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use engine::device::DeviceName;
use net::{Address, AddressError, Security, SecurityError};
use serde::Deserialize;

/// A task of a job.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskName {
    /// The job: a letter, then letters, digits and `_`.
    pub job: String,
    /// Which of its tasks.
    pub task: u32,
}

impl TaskName {
    /// Task `task` of `job`.
    pub fn new(job: &str, task: u32) -> TaskName {
        TaskName { job: job.to_owned(), task }
    }

    /// The task of a device; `None` where the name leaves it open.
    pub fn of_device(name: &DeviceName) -> Option<TaskName> {
        Some(TaskName { job: name.job.clone()?, task: name.task? })
    }
}

impl fmt::Display for TaskName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/job:{}/task:{}", self.job, self.task)
    }
}

/// The tasks of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// Only processes with the same id talk to each other.
    pub id: String,
    /// Where the master listens to clients.
    pub master: Option<Address>,
    /// Where each task listens.
    pub tasks: BTreeMap<TaskName, Address>,
    /// By what its processes know each other on different hosts.
    pub certificates: Option<Certificates>,
}

/// Files of certificates. In names `{host}` stands for what a process is reached by, so that one specification is for all hosts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificates {
    /// Of the authority that signed those of all processes.
    pub authority: PathBuf,
    /// The process's own.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// What stands for a host in the names of files.
const HOST: &str = "{host}";

impl Certificates {
    /// Those of a process that is reached by this name or number.
    fn of_host(&self, host: &str) -> Result<Security, SecurityError> {
        let file = |path: &Path| PathBuf::from(path.to_string_lossy().replace(HOST, &host.replace(':', "_")));
        Security::from_files(&self.authority, &file(&self.certificate), &file(&self.key))
    }

    /// With names from the folder of the specification.
    fn in_folder(self, folder: &Path) -> Certificates {
        let Certificates { authority, certificate, key } = self;
        Certificates { authority: folder.join(authority), certificate: folder.join(certificate), key: folder.join(key) }
    }
}

/// Why a cluster cannot be known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The file cannot be read.
    #[error("{file}: {source}")]
    File {
        /// The file.
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The text is no specification.
    #[error("the cluster specification: {0}")]
    Text(String),
    /// An address cannot be used.
    #[error("{task}: {source}")]
    Address {
        /// The task, or `master`.
        task: String,
        /// What is wrong with it.
        source: AddressError,
    },
    /// A job's name is none.
    #[error("{0:?} is no job: a job is a letter, then letters, digits and _")]
    Job(String),
    /// No tasks at all.
    #[error("the cluster has no tasks: name some under [jobs]")]
    Empty,
    /// Two tasks at one place.
    #[error("{first} and {second} are both at {address}")]
    SameAddress {
        /// The one.
        first: String,
        /// The other.
        second: String,
        /// The address.
        address: Address,
    },
    /// A task that the cluster does not have.
    #[error("the cluster has no {task} (it has {known})")]
    NoSuchTask {
        /// The task asked for.
        task: TaskName,
        /// Those that there are.
        known: String,
    },
    /// Certificates cannot be used.
    #[error("the cluster's certificates: {0}")]
    Security(#[from] SecurityError),
    /// The processes that MPI's launcher started are no cluster.
    #[error("the processes of MPI: {0}")]
    World(String),
    /// A variable of the environment is missing, or says nothing.
    #[error(
        "{name}: {problem} (torchrun sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; Slurm SLURM_PROCID, SLURM_JOB_NODELIST and \
         SLURM_TASKS_PER_NODE)"
    )]
    Environment {
        /// The variable.
        name: &'static str,
        /// What is wrong.
        problem: String,
    },
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    id: Option<String>,
    master: Option<String>,
    #[serde(default)]
    jobs: BTreeMap<String, Vec<String>>,
    tls: Option<Certificates>,
}

impl Cluster {
    /// Reads a specification from a file.
    ///
    /// # Errors
    /// See [`ClusterError`].
    pub fn read(file: &Path) -> Result<Cluster, ClusterError> {
        let text = std::fs::read_to_string(file)
            .map_err(|source| ClusterError::File { file: file.display().to_string(), source })?;
        let cluster = Cluster::parse(&text)?;
        let folder = file.parent().unwrap_or(Path::new(""));
        Ok(Cluster { certificates: cluster.certificates.map(|files| files.in_folder(folder)), ..cluster })
    }

    /// Reads a specification.
    ///
    /// # Errors
    /// See [`ClusterError`].
    pub fn parse(text: &str) -> Result<Cluster, ClusterError> {
        let text: Text = toml::from_str(text).map_err(|e| ClusterError::Text(e.to_string().trim_end().to_owned()))?;
        let address = |of: &dyn fmt::Display, text: &str| {
            text.parse::<Address>().map_err(|source| ClusterError::Address { task: of.to_string(), source })
        };
        let mut tasks = BTreeMap::new();
        for (job, addresses) in &text.jobs {
            for (task, at) in addresses.iter().enumerate() {
                let task = TaskName::new(job, task as u32);
                tasks.insert(task.clone(), address(&task, at)?);
            }
        }
        let master = text.master.as_deref().map(|at| address(&"master", at)).transpose()?;
        Cluster { id: text.id.unwrap_or_else(|| "default".into()), master, tasks, certificates: text.tls }.checked()
    }

    /// The specification as a file has it. Of each job the tasks must be numbered from 0 on.
    pub fn text(&self) -> String {
        let mut jobs: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (task, at) in &self.tasks {
            jobs.entry(&task.job).or_default().push(quoted(&at.to_string()));
        }
        let mut text = format!("id = {}\n", quoted(&self.id));
        text.extend(self.master.iter().map(|at| format!("master = {}\n", quoted(&at.to_string()))));
        text += "[jobs]\n";
        text.extend(jobs.iter().map(|(job, addresses)| format!("{job} = [{}]\n", addresses.join(", "))));
        if let Some(Certificates { authority, certificate, key }) = &self.certificates {
            text += "[tls]\n";
            let files = [("authority", authority), ("certificate", certificate), ("key", key)];
            text.extend(files.map(|(name, file)| format!("{name} = {}\n", quoted(&file.to_string_lossy()))));
        }
        text
    }

    pub(crate) fn checked(self) -> Result<Cluster, ClusterError> {
        if self.tasks.is_empty() {
            return Err(ClusterError::Empty);
        }
        let mut at: BTreeMap<String, String> = BTreeMap::new();
        let all = self.tasks.iter().map(|(task, address)| (task.to_string(), address));
        for (name, address) in all.chain(self.master.iter().map(|address| ("master".to_owned(), address))) {
            // Ports that the system chooses differ.
            let is_chosen = matches!(address, Address::Tcp { port: 0, .. });
            if let Some(first) = at.insert(address.to_string(), name.clone()).filter(|_| !is_chosen) {
                return Err(ClusterError::SameAddress { first, second: name, address: address.clone() });
            }
        }
        for task in self.tasks.keys() {
            let is_word = task.job.starts_with(|c: char| c.is_ascii_alphabetic())
                && task.job.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !is_word || task.job == "localhost" {
                return Err(ClusterError::Job(task.job.clone()));
            }
        }
        Ok(self)
    }

    /// By what a process of the cluster that is reached at `own` shows who it is; `None` where nothing is encrypted.
    ///
    /// # Errors
    /// The files cannot be read, or do not go together.
    pub fn security(&self, own: Option<&Address>) -> Result<Option<Security>, ClusterError> {
        let host = match own {
            Some(Address::Tcp { host, .. }) => host,
            Some(Address::Unix(_)) | None => "localhost",
        };
        Ok(self.certificates.as_ref().map(|files| files.of_host(host)).transpose()?)
    }

    /// Where a task listens.
    ///
    /// # Errors
    /// There is no such task.
    pub fn address(&self, task: &TaskName) -> Result<&Address, ClusterError> {
        self.tasks.get(task).ok_or_else(|| {
            let known: Vec<String> = self.tasks.keys().map(TaskName::to_string).collect();
            ClusterError::NoSuchTask { task: task.clone(), known: known.join(", ") }
        })
    }
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        Cluster::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_specification_names_tasks_and_addresses() {
        let text = "id = \"m\"\nmaster = \"127.0.0.1:1\"\n[jobs]\nps = [\"127.0.0.1:2\"]\nworker = [\"localhost:3\", \"unix:/a\"]";
        let cluster = Cluster::parse(text).unwrap();
        let names: Vec<String> = cluster.tasks.keys().map(TaskName::to_string).collect();
        assert_eq!(names, ["/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"]);
        assert_eq!(cluster.address(&TaskName::new("worker", 1)).unwrap().to_string(), "unix:/a");
        assert_eq!(Cluster::parse(&cluster.text()).unwrap(), cluster);
        assert_eq!((cluster.id.as_str(), cluster.master.unwrap().to_string().as_str()), ("m", "127.0.0.1:1"));
    }

    #[test]
    fn any_text_is_quoted() {
        for text in ["", "a b", "\"", "\\", "a\"\\n", "\n\t\u{7f}", "ä"] {
            let all = Cluster::parse(&format!("id = {}\n[jobs]\nw = [\"localhost:3\"]", quoted(text))).unwrap();
            assert_eq!(all.id, text);
        }
    }

    #[test]
    fn certificates_are_found_by_host() {
        let dir = tempfile::tempdir().unwrap();
        net::certify(&dir.path().join("c"), "m", &["127.0.0.1".into(), "::1".into()]).unwrap();
        let file = dir.path().join("cluster.toml");
        let tls = "[tls]\nauthority = \"c/ca.pem\"\ncertificate = \"c/{host}.pem\"\nkey = \"c/{host}.key\"";
        std::fs::write(&file, format!("[jobs]\nw = [\"127.0.0.1:1\", \"[::1]:2\", \"localhost:3\"]\n{tls}")).unwrap();
        let cluster = Cluster::read(&file).unwrap();
        for (task, is_there) in [(0, true), (1, true), (2, false)] {
            let found = cluster.security(Some(cluster.address(&TaskName::new("w", task)).unwrap()));
            assert_eq!(matches!(found, Ok(Some(_))), is_there, "{task}");
        }
        let missing = cluster.security(None).unwrap_err().to_string();
        assert!(missing.contains("localhost.pem"), "{missing}");
        assert_eq!(Cluster::parse(&cluster.text()).unwrap(), cluster);
        let plain = Cluster::parse("[jobs]\nw = [\"localhost:3\"]").unwrap();
        assert!(plain.security(None).unwrap().is_none());
    }

    #[test]
    fn what_is_no_specification_says_why() {
        assert!(message("jobs = 3").contains("invalid type"), "{}", message("jobs = 3"));
        assert!(message("[job]\nworker = []").contains("unknown field `job`"));
        assert!(message("").contains("no tasks"));
        assert!(message("[jobs]\nworker = [\"nowhere\"]").starts_with("/job:worker/task:0: \"nowhere\""));
        assert!(message("[jobs]\n\"1a\" = [\"localhost:3\"]").contains("is no job"));
        let same = message("master = \"localhost:3\"\n[jobs]\nworker = [\"localhost:3\"]");
        assert_eq!(same, "/job:worker/task:0 and master are both at localhost:3");
        let cluster = Cluster::parse("[jobs]\nworker = [\"localhost:3\"]").unwrap();
        let error = cluster.address(&TaskName::new("ps", 0)).unwrap_err().to_string();
        assert_eq!(error, "the cluster has no /job:ps/task:0 (it has /job:worker/task:0)");
    }
}
