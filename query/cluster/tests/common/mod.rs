//! A Ballista cluster as it is installed: a scheduler and executors, each a process, on free ports of the loopback interface.

// Each test file uses some of it.
#![allow(dead_code, clippy::unwrap_used)]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ballista_core::object_store::{
    runtime_env_with_s3_support, session_config_with_s3_support, session_state_with_s3_support,
};
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use cluster::Ballista;
use datafusion::execution::object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::prelude::SessionConfig;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use query::{Database, Options};

const ROLE: &str = "STEPSCOPE_CLUSTER_TEST_ROLE";
const DIR: &str = "STEPSCOPE_CLUSTER_TEST_DIR";
const EXECUTORS: &str = "STEPSCOPE_CLUSTER_TEST_EXECUTORS";
const TIMEOUT: &str = "STEPSCOPE_CLUSTER_TEST_TIMEOUT";

/// The processes of a cluster; they end with this, and with the process that has it.
pub struct Nodes {
    pub address: String,
    pub dir: tempfile::TempDir,
    scheduler: Child,
    executors: Vec<Child>,
}

/// What kind of executors.
#[derive(Clone, Copy)]
pub enum Sight {
    /// They see the files of this machine.
    All,
    /// They see another folder in their place.
    Nothing,
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for child in self.executors.iter_mut().chain([&mut self.scheduler]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// This test binary again, as another process that plays `role`.
fn spawn(role: &str, dir: &Path, n_executors: usize, timeout_s: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "other_process", "--nocapture"])
        .env(ROLE, role)
        .env(DIR, dir)
        .env(EXECUTORS, n_executors.to_string())
        .env(TIMEOUT, timeout_s.to_string())
        // Its end shows the other process that nobody needs it any more.
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..2_400 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    panic!("after a minute: no {what}");
}

impl Nodes {
    /// A scheduler that gives an executor up when it has been silent for `timeout_s`, and two executors.
    pub fn start(sight: Sight, timeout_s: u64) -> Nodes {
        let dir = tempfile::tempdir().unwrap();
        let scheduler = spawn("scheduler", dir.path(), 2, timeout_s);
        let mut nodes = Nodes { address: String::new(), dir, scheduler, executors: Vec::new() };
        let port = nodes.dir.path().join("port");
        let port = wait_for("scheduler", || std::fs::read_to_string(&port).ok()?.strip_suffix('\n').map(str::to_owned));
        nodes.address = format!("df://127.0.0.1:{port}");
        let role = match sight {
            Sight::All => "executor",
            Sight::Nothing => "blind",
        };
        let folder = |i: usize| nodes.dir.path().join(format!("executor{i}"));
        let start = |i: usize| {
            std::fs::create_dir_all(folder(i)).unwrap();
            std::fs::write(folder(i).join("scheduler"), &port).unwrap();
            spawn(role, &folder(i), 2, timeout_s)
        };
        let mut executors = vec![start(0), start(1)];
        wait_for("executors", || {
            for (i, executor) in executors.iter_mut().enumerate() {
                // Its ports were free when it chose them, and somebody else's when it opened them.
                if executor.try_wait().unwrap().is_some() {
                    *executor = start(i);
                }
            }
            nodes.dir.path().join("ready").exists().then_some(())
        });
        nodes.executors = executors;
        nodes
    }

    /// The tables of `root` for queries that run on this cluster.
    pub fn open(&self, root: &Path, scratch: Option<&Path>) -> Database {
        let ballista = Ballista::new(&self.address, scratch.map(Path::to_owned)).unwrap();
        Database::open_on(root.to_str().unwrap(), Options::default(), Some(Arc::new(ballista))).unwrap()
    }

    /// Jobs that the scheduler has not seen the end of.
    pub fn n_running(&self) -> usize {
        let file = self.dir.path().join("running");
        wait_for("number of jobs", || std::fs::read_to_string(&file).ok()?.strip_suffix('\n')?.parse().ok())
    }

    /// Waits until the scheduler has no job left.
    pub fn wait_until_idle(&self) {
        wait_for("end of the last job", || (self.n_running() == 0).then_some(()));
    }

    /// An executor that has files for a job, if one has.
    pub fn at_work(&self) -> Option<usize> {
        (0..self.executors.len()).find(|i| self.work_of(*i) > 0)
    }

    /// Files that an executor keeps for jobs.
    pub fn work_of(&self, executor: usize) -> usize {
        fn files(folder: &Path) -> usize {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|e| if e.path().is_dir() { files(&e.path()) } else { 1 }).sum()
        }
        files(&self.dir.path().join(format!("executor{executor}")).join("work"))
    }

    /// Ends an executor as a power cut does.
    pub fn kill(&mut self, executor: usize) {
        self.executors[executor].kill().unwrap();
        self.executors[executor].wait().unwrap();
    }
}

/// What the other process does; nothing when the test harness runs this as a test.
pub fn other_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        // This process has nothing that should be kept.
        #[expect(clippy::disallowed_methods)]
        std::process::exit(0);
    });
    let dir = PathBuf::from(std::env::var_os(DIR).unwrap());
    let number = |name: &str| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        // As Ballista's own programs have it: plans are trees.
        .thread_stack_size(32 << 20)
        .build()
        .unwrap();
    match role.as_str() {
        "scheduler" => runtime.block_on(schedule(&dir, number(EXECUTORS) as usize, number(TIMEOUT))),
        role => runtime.block_on(execute(&dir, role == "blind")),
    }
}

/// A file that is there as a whole or not at all.
fn publish(path: &Path, text: &str) {
    let part = path.with_extension("part");
    std::fs::write(&part, format!("{text}\n")).unwrap();
    std::fs::rename(part, path).unwrap();
}

async fn schedule(dir: &Path, n_executors: usize, timeout_s: u64) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = SchedulerConfig {
        external_host: "127.0.0.1".to_owned(),
        bind_port: port,
        executor_timeout_seconds: timeout_s,
        no_executors_grace_period_seconds: timeout_s,
        expire_dead_executor_interval_seconds: 1,
        min_ready_executors: n_executors,
        // As Ballista's own scheduler is built: it knows buckets.
        override_config_producer: Some(Arc::new(session_config_with_s3_support)),
        override_session_builder: Some(Arc::new(session_state_with_s3_support)),
        ..SchedulerConfig::default()
    };
    let cluster = BallistaCluster::new_from_config(&config).await.unwrap();
    let scheduler = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, Arc::new(config)).await.unwrap();
    let watched = scheduler.clone();
    let dir = dir.to_owned();
    tokio::spawn(async move {
        publish(&dir.join("port"), &port.to_string());
        loop {
            if watched.is_ready() {
                publish(&dir.join("ready"), "");
            }
            publish(&dir.join("running"), &(watched.running_job_number() + watched.pending_job_number()).to_string());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    start_grpc_service_with_listener(listener, scheduler).await.unwrap();
}

async fn execute(dir: &Path, is_blind: bool) {
    let free = || TcpListener::bind("127.0.0.1:0").unwrap();
    let (flight, grpc) = (free(), free());
    let ports = [&flight, &grpc].map(|listener| listener.local_addr().unwrap().port());
    drop((flight, grpc));
    let work = dir.join("work");
    let elsewhere = dir.join("elsewhere");
    std::fs::create_dir_all(&work).unwrap();
    std::fs::create_dir_all(&elsewhere).unwrap();
    // What Ballista's own executors are given: the environment says who they are for a bucket.
    let seeing: ballista_core::RuntimeProducer = Arc::new(runtime_env_with_s3_support);
    let blind: ballista_core::RuntimeProducer = Arc::new(move |_: &SessionConfig| {
        let registry = DefaultObjectStoreRegistry::new();
        let store = LocalFileSystem::new_with_prefix(&elsewhere)?;
        registry.register_store(&"file:///".parse().unwrap(), Arc::new(store));
        RuntimeEnvBuilder::new().with_object_store_registry(Arc::new(registry)).build_arc()
    });
    let config = ExecutorProcessConfig {
        port: ports[0],
        grpc_port: ports[1],
        external_host: Some("127.0.0.1".to_owned()),
        scheduler_host: "127.0.0.1".to_owned(),
        scheduler_port: std::fs::read_to_string(dir.join("scheduler")).unwrap().parse().unwrap(),
        vcores: 1,
        work_dir: Some(work.to_str().unwrap().to_owned()),
        executor_heartbeat_interval_seconds: 1,
        override_config_producer: Some(Arc::new(session_config_with_s3_support)),
        override_runtime_producer: Some(if is_blind { blind } else { seeing }),
        ..ExecutorProcessConfig::default()
    };
    start_executor_process(Arc::new(config)).await.unwrap();
}
