//! The cluster that a launcher's environment describes: torchrun's variables, or Slurm's.
//!
//! | launcher | the tasks | this one | where |
//! |---|---|---|---|
//! | torchrun | WORLD_SIZE | RANK | MASTER_ADDR, at the ports after MASTER_PORT |
//! | Slurm | SLURM_TASKS_PER_NODE (`2(x3),1`) | SLURM_PROCID | SLURM_JOB_NODELIST (`node[01-03,7]`), at the ports after MASTER_PORT or one that follows from SLURM_JOB_ID |
//!
//! Within a step of Slurm (`srun`) the step's own SLURM_STEP_NODELIST and SLURM_STEP_TASKS_PER_NODE count. All tasks are of the job
//! `worker`. Certificates are named by STEPSCOPE_TLS_AUTHORITY, STEPSCOPE_TLS_CERTIFICATE and STEPSCOPE_TLS_KEY. (Processes
//! that MPI's launchers start exchange this among themselves: `member`.)

use std::path::PathBuf;

use net::Address;

use crate::cluster::{Certificates, Cluster, ClusterError, TaskName};

/// More tasks than this are a mistake.
const MAX_TASKS: usize = 1 << 16;

impl Cluster {
    /// The cluster that a launcher's environment describes, and which of its tasks this process is.
    ///
    /// # Errors
    /// A variable is missing or says nothing.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<(Cluster, TaskName), ClusterError> {
        let environment = Environment(&variable);
        let (cluster, rank) = match environment.is_slurm() {
            true => (environment.slurm("SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE")?, "SLURM_PROCID"),
            false => (environment.torchrun()?, "RANK"),
        };
        let task = TaskName::new("worker", environment.number(rank)?.into());
        if !cluster.tasks.contains_key(&task) {
            let problem = format!("there are {} tasks", cluster.tasks.len());
            return Err(ClusterError::Environment { name: rank, problem });
        }
        Ok((cluster, task))
    }

    /// The same for a process that is none of the tasks: a training client in Slurm's batch script, or next to torchrun.
    ///
    /// # Errors
    /// A variable is missing or says nothing.
    pub fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Cluster, ClusterError> {
        let environment = Environment(&variable);
        match environment.is_slurm() {
            true => environment.slurm("SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE"),
            false => environment.torchrun(),
        }
    }
}

/// The certificates that the environment names.
pub(crate) fn certificates(variable: &dyn Fn(&str) -> Option<String>) -> Option<Certificates> {
    let file = |name| variable(name).map(PathBuf::from);
    Some(Certificates {
        authority: file("STEPSCOPE_TLS_AUTHORITY")?,
        certificate: file("STEPSCOPE_TLS_CERTIFICATE")?,
        key: file("STEPSCOPE_TLS_KEY")?,
    })
}

struct Environment<'a>(&'a dyn Fn(&str) -> Option<String>);

impl Environment<'_> {
    /// torchrun's variables go first: it may run within a job of Slurm.
    fn is_slurm(&self) -> bool {
        (self.0)("WORLD_SIZE").is_none() && (self.0)("SLURM_JOB_NODELIST").is_some()
    }

    fn text(&self, name: &'static str) -> Result<String, ClusterError> {
        (self.0)(name).ok_or_else(|| ClusterError::Environment { name, problem: "it is not set".into() })
    }

    fn number(&self, name: &'static str) -> Result<u16, ClusterError> {
        let text = self.text(name)?;
        let problem = || format!("{text:?} is not a number below 65536");
        text.parse().map_err(|_| ClusterError::Environment { name, problem: problem() })
    }

    fn certificates(&self) -> Option<Certificates> {
        certificates(self.0)
    }

    fn torchrun(&self) -> Result<Cluster, ClusterError> {
        let (n, port) = (self.number("WORLD_SIZE")?, self.number("MASTER_PORT")?);
        let hosts = vec![self.text("MASTER_ADDR")?; n.into()];
        self.cluster((self.0)("TORCHELASTIC_RUN_ID"), &hosts, "MASTER_PORT", port)
    }

    fn slurm(&self, nodes: &'static str, per_node: &'static str) -> Result<Cluster, ClusterError> {
        let of_step = |step: &'static str, job| if (self.0)(step).is_some() { step } else { job };
        let (nodes, per_node) = (of_step(nodes, "SLURM_JOB_NODELIST"), of_step(per_node, "SLURM_TASKS_PER_NODE"));
        let bad = |name, text: &str| ClusterError::Environment { name, problem: format!("{text:?} cannot be read") };
        let distribution = (self.0)("SLURM_DISTRIBUTION").unwrap_or_default();
        if !distribution.is_empty() && !distribution.starts_with("block") {
            let problem = format!("{distribution:?}: tasks must be dealt out with --distribution=block");
            return Err(ClusterError::Environment { name: "SLURM_DISTRIBUTION", problem });
        }
        let text = self.text(nodes)?;
        let all = expand(&text).ok_or_else(|| bad(nodes, &text))?;
        let text = self.text(per_node)?;
        let counts = counts(&text).ok_or_else(|| bad(per_node, &text))?;
        if counts.len() != all.len() {
            let problem = format!("{text:?} is of {} nodes, {nodes} of {}", counts.len(), all.len());
            return Err(ClusterError::Environment { name: per_node, problem });
        }
        // One node needs no encryption, if it is called what it is called by itself only.
        let is_alone = all.len() == 1 && self.certificates().is_none();
        let host = |name: &String| if is_alone { "127.0.0.1".to_owned() } else { name.clone() };
        let hosts: Vec<String> =
            all.iter().zip(&counts).flat_map(|(name, n)| std::iter::repeat_n(host(name), *n)).collect();
        let job = self.text("SLURM_JOB_ID")?;
        let port = match (self.0)("MASTER_PORT") {
            Some(_) => self.number("MASTER_PORT")?,
            // Below the ports that the system hands out; jobs that share a node have different ones.
            None => 20_000 + (job.parse::<u64>().map_err(|_| bad("SLURM_JOB_ID", &job))? % 12_000) as u16,
        };
        self.cluster(Some(format!("slurm-{job}")), &hosts, "SLURM_JOB_ID", port)
    }

    /// Tasks on these hosts, each at a port of its own after the master's, which is on the first host.
    fn cluster(
        &self,
        id: Option<String>,
        hosts: &[String],
        of_port: &'static str,
        port: u16,
    ) -> Result<Cluster, ClusterError> {
        let at = |host: &str, offset: usize| match u16::try_from(usize::from(port) + offset) {
            Ok(port) => Ok(Address::Tcp { host: host.to_owned(), port }),
            Err(_) => Err(ClusterError::Environment { name: of_port, problem: "no ports after it".into() }),
        };
        let master = hosts.first().map(|host| at(host, 0)).transpose()?;
        let tasks = hosts.iter().enumerate().map(|(i, host)| Ok((TaskName::new("worker", i as u32), at(host, i + 1)?)));
        let tasks = tasks.collect::<Result<_, ClusterError>>()?;
        let id = id.unwrap_or_else(|| "default".into());
        Cluster { id, master, tasks, certificates: self.certificates() }.checked()
    }
}

/// The names that a list of Slurm's stands for: `gpu[1-3,7],node[08-10]n[0-1],login`.
fn expand(list: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut depth = 0;
    // Commas within brackets separate numbers.
    for name in list.split(|c| {
        depth += match c {
            '[' => 1,
            ']' => -1,
            _ => 0,
        };
        c == ',' && depth == 0
    }) {
        names.extend(expand_one(name)?);
        if names.len() > MAX_TASKS {
            return None;
        }
    }
    Some(names)
}

fn expand_one(name: &str) -> Option<Vec<String>> {
    let Some((before, rest)) = name.split_once('[') else {
        let is_name = !name.is_empty() && !name.contains([']', ' ']);
        return is_name.then(|| vec![name.to_owned()]);
    };
    let (numbers, after) = rest.split_once(']')?;
    let after = if after.is_empty() { vec![String::new()] } else { expand_one(after)? };
    let mut names = Vec::new();
    for range in numbers.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (from, to): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if from > to || (to - from) * after.len() >= MAX_TASKS || names.len() > MAX_TASKS {
            return None;
        }
        let width = first.len();
        names.extend((from..=to).flat_map(|n| after.iter().map(move |after| format!("{before}{n:0width$}{after}"))));
    }
    Some(names)
}

/// How many tasks each node has: `2(x3),1` is 2, 2, 2, 1.
fn counts(text: &str) -> Option<Vec<usize>> {
    let mut counts = Vec::new();
    for part in text.split(',') {
        let (n, times) = match part.split_once("(x") {
            Some((n, times)) => (n, times.strip_suffix(')')?.parse().ok()?),
            None => (part, 1usize),
        };
        let n: usize = n.parse().ok()?;
        if times > MAX_TASKS || counts.len() + times > MAX_TASKS || n > MAX_TASKS {
            return None;
        }
        counts.extend(std::iter::repeat_n(n, times));
    }
    (counts.iter().sum::<usize>() <= MAX_TASKS).then_some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env<'a>(variables: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn torchrun_sets_rank_and_port() {
        let with = |rank| {
            let all = [("RANK", rank), ("WORLD_SIZE", "3"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29500")];
            Cluster::from_environment(env(&all))
        };
        let (cluster, own) = with("2").unwrap();
        assert_eq!(own.to_string(), "/job:worker/task:2");
        assert_eq!(cluster.address(&own).unwrap().to_string(), "127.0.0.1:29503");
        assert_eq!(cluster.master.unwrap().to_string(), "127.0.0.1:29500");
        for rank in ["3", "x", "-1"] {
            assert!(with(rank).is_err(), "{rank}");
        }
        let error = Cluster::from_environment(|_| None).unwrap_err().to_string();
        assert!(error.starts_with("WORLD_SIZE: it is not set"), "{error}");
        let all = [("WORLD_SIZE", "9"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "65530")];
        let error = Cluster::of_environment(env(&all)).unwrap_err().to_string();
        assert!(error.starts_with("MASTER_PORT: no ports after it"), "{error}");
    }

    /// What `srun` and `sbatch` set for `--nodes=3 --ntasks=5`, as the man page of srun has it.
    const SLURM: &[(&str, &str)] = &[
        ("SLURM_JOB_ID", "60123"),
        ("SLURM_JOB_NODELIST", "node[08-10]"),
        ("SLURM_TASKS_PER_NODE", "2(x2),1"),
        ("SLURM_DISTRIBUTION", "block"),
        ("SLURM_PROCID", "3"),
    ];

    #[test]
    fn slurm_sets_nodes_and_tasks() {
        let (cluster, own) = Cluster::from_environment(env(SLURM)).unwrap();
        assert_eq!((cluster.id.as_str(), own.to_string().as_str()), ("slurm-60123", "/job:worker/task:3"));
        let at: Vec<String> = cluster.tasks.values().map(Address::to_string).collect();
        assert_eq!(at, ["node08:20124", "node08:20125", "node09:20126", "node09:20127", "node10:20128"]);
        assert_eq!(Cluster::of_environment(env(SLURM)).unwrap(), cluster);
        // Within a step its own nodes count.
        let step = [SLURM, &[("SLURM_STEP_NODELIST", "node09"), ("SLURM_STEP_TASKS_PER_NODE", "4")]].concat();
        let (cluster, _) = Cluster::from_environment(env(&step)).unwrap();
        assert_eq!(cluster.address(&TaskName::new("worker", 0)).unwrap().to_string(), "127.0.0.1:20124");
    }

    #[test]
    fn what_slurm_does_not_say_is_reported() {
        let with = |name: &'static str, value: &'static str| {
            let all: Vec<_> = SLURM.iter().map(|(n, v)| (*n, if *n == name { value } else { *v })).collect();
            Cluster::from_environment(env(&all)).unwrap_err().to_string()
        };
        assert!(with("SLURM_PROCID", "5").contains("there are 5 tasks"));
        assert!(with("SLURM_DISTRIBUTION", "cyclic").contains("--distribution=block"));
        assert!(with("SLURM_TASKS_PER_NODE", "2(x3)(").contains("cannot be read"));
        assert!(with("SLURM_TASKS_PER_NODE", "2").contains("is of 1 nodes, SLURM_JOB_NODELIST of 3"));
        assert!(with("SLURM_JOB_NODELIST", "node[3-1]").contains("cannot be read"));
        assert!(with("SLURM_JOB_NODELIST", "node[1-999999999999]").contains("cannot be read"));
    }

    #[test]
    fn lists_of_nodes_stand_for_names() {
        let names = |list: &str| expand(list).map(|names| names.join(" "));
        assert_eq!(names("a").unwrap(), "a");
        assert_eq!(names("gpu[1-3,7],login,n[08-10]").unwrap(), "gpu1 gpu2 gpu3 gpu7 login n08 n09 n10");
        assert_eq!(names("r[0-1]n[2-3]x").unwrap(), "r0n2x r0n3x r1n2x r1n3x");
        for bad in ["", "a,", "a[", "a[1", "a[]", "a[x]", "a]1[", "a[1-2-3]", "a[0-99999]b[0-99999]"] {
            assert_eq!(names(bad), None, "{bad}");
        }
        assert_eq!(counts("2(x3),1").unwrap(), [2, 2, 2, 1]);
        for bad in ["", "x", "2(x", "2(x3", "2x3", "1(x99999999)", "99999(x2)"] {
            assert_eq!(counts(bad), None, "{bad}");
        }
    }
}
