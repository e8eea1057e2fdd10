//! A cluster of the processes that one launcher of MPI started, `mpirun -n 1 CLIENT : -n N WORKER` or one of Slurm's: by MPI they
//! exchange the addresses at which they listen, and large tensors go between them that way ([`net_mpi`]).

use std::time::Duration;

use net::{Address, NetError, Security};
use net_mpi::{LeaveRequest, World};

use crate::cluster::{Certificates, Cluster, ClusterError, TaskName};
use crate::environment;

/// What a process that is no task sends in place of an address.
const NO_TASK: &str = "";
/// Between two looks at who left.
const PERIOD: Duration = Duration::from_millis(2);

/// This process, in such a cluster. To be dropped when its workers and masters are gone.
pub struct Member {
    world: World,
    /// Which of its tasks it is; `None`: a client.
    task: Option<TaskName>,
    host: String,
    certificates: Option<Certificates>,
}

impl Member {
    /// Takes part: as the next task of the job `worker`, in the order of MPI's ranks, or as a client. All processes do. Where they are
    /// on several hosts, the environment names their certificates (STEPSCOPE_TLS_AUTHORITY and the others).
    ///
    /// # Errors
    /// There is no MPI for many threads.
    pub fn join(is_worker: bool, variable: impl Fn(&str) -> Option<String>) -> Result<Member, ClusterError> {
        let world = World::join().map_err(problem)?;
        let (is_alone, name) = (world.is_on_one_host(), world.host().map_err(problem)?);
        let host = if is_alone { "127.0.0.1".to_owned() } else { name };
        let certificates = if is_alone { None } else { environment::certificates(&variable) };
        let roles = world.all_gather(if is_worker { "worker" } else { NO_TASK }).map_err(problem)?;
        let before = roles.iter().take(world.rank() as usize).filter(|role| *role != NO_TASK).count();
        let task = is_worker.then(|| TaskName::new("worker", before as u32));
        Ok(Member { world, task, host, certificates })
    }

    /// The cluster's id.
    pub fn id(&self) -> String {
        let hex: Vec<String> = self.world.id().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("mpi-{}", hex.concat())
    }

    /// Which task it is, if it is one.
    pub fn task(&self) -> Option<&TaskName> {
        self.task.as_ref()
    }

    /// Where it is to listen: at any free port.
    pub fn address(&self) -> Address {
        Address::Tcp { host: self.host.clone(), port: 0 }
    }

    /// By what it shows who it is; `None` where all are on one host.
    ///
    /// # Errors
    /// The files cannot be read, or do not go together.
    pub fn security(&self) -> Result<Option<Security>, ClusterError> {
        let none = Cluster { id: self.id(), master: None, tasks: [].into(), certificates: self.certificates.clone() };
        none.security(Some(&self.address()))
    }

    /// Announces to all where this one listens, at which port, and learns where the others do. All processes do, once.
    ///
    /// # Errors
    /// There is no worker among them.
    pub fn cluster(&self, listens_at: Option<&Address>) -> Result<Cluster, ClusterError> {
        // By the host's name, as certificates have it.
        let own = match listens_at {
            Some(Address::Tcp { port, .. }) => Address::Tcp { host: self.host.clone(), port: *port }.to_string(),
            Some(Address::Unix(_)) | None => NO_TASK.to_owned(),
        };
        let addresses = self.world.all_gather(&own).map_err(problem)?;
        let tasks = addresses.iter().filter(|text| *text != NO_TASK).enumerate().map(|(i, text)| {
            let task = TaskName::new("worker", i as u32);
            let address = text.parse();
            address
                .map(|at| (task.clone(), at))
                .map_err(|source| ClusterError::Address { task: task.to_string(), source })
        });
        let tasks: std::collections::BTreeMap<_, _> = tasks.collect::<Result<_, _>>()?;
        if tasks.is_empty() {
            let text = format!(
                "there is no worker among {} (mpirun -n 1 stepscope train NAME --cluster mpi : -n 2 stepscope worker --cluster mpi \
                 --input NAME)",
                self.world.size()
            );
            return Err(ClusterError::World(text));
        }
        Cluster { id: self.id(), master: None, tasks, certificates: self.certificates.clone() }.checked()
    }

    /// Begins to wait for the end: until all processes have come here. Each does once, and drops this only after it; where one goes
    /// without, all are ended.
    ///
    /// # Errors
    /// MPI's.
    pub fn leave(&self) -> Result<LeaveRequest, ClusterError> {
        self.world.leave().map_err(problem)
    }

    /// The same, and waits for it.
    ///
    /// # Errors
    /// Some process does not come within that time; MPI's.
    pub fn end(&self, within: Duration) -> Result<(), ClusterError> {
        let (begin, mut leaving) = (threads::now(), self.leave()?);
        while !leaving.is_over().map_err(problem)? {
            if threads::since(begin) > within {
                let text = format!("not all of them came to the end within {} s", within.as_secs());
                return Err(ClusterError::World(text));
            }
            threads::sleep(PERIOD);
        }
        Ok(())
    }
}

fn problem(error: NetError) -> ClusterError {
    ClusterError::World(error.to_string())
}
