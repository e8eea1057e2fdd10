//! Commands of the engine: train, run, and what works on graphs.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, ValueEnum};
use engine::training::Parallelism;
use train::devices::DeviceSpec;
use train::{Model, TaskSpec, TraceTarget, TrainOptions};

use super::window::Window;

/// `stepscope demo`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Examples:
  stepscope demo
  stepscope demo --headless --steps 2000
  stepscope demo --headless --json | jq .test_accuracy")]
pub struct Demo {
    /// Run without a window, print progress and a summary
    #[arg(long)]
    pub headless: bool,
    #[command(flatten)]
    pub training: Training,
    #[command(flatten)]
    pub window: Window,
}

/// `stepscope train NAME`
#[derive(ClapArgs, Debug, Clone)]
#[command(after_help = "\
Examples:
  stepscope train convnet
  stepscope train lstm --steps 3000
  stepscope train mlp --devices 2 --async
  stepscope train mlp --workers 4 --backup-workers 1
  stepscope train convnet --device gpu:0
  stepscope train convnet --device gpu:0,gpu:1 --all-reduce
  stepscope train convnet --workers 2
  stepscope train convnet --workers 4 --all-reduce
  stepscope train convnet --workers 2 --checkpoint-dir checkpoints     # continues when one of its processes is lost
  stepscope train convnet --cluster cluster.toml --checkpoint-dir /shared/checkpoints --max-restarts 100
  stepscope train convnet --checkpoint-dir checkpoints --checkpoint-every 50
  stepscope train mlp --data my-digits.csv.gz --steps 5000
  stepscope train mlp --trace off --logdir runs/baseline
  stepscope train mlp --learning-rate 1000 --numerics trace      # where do the NaNs come from?
  stepscope train convnet --steps 10 --dump-graphs passes        # the graph before and after each pass: stepscope view passes")]
pub struct Train {
    /// The model
    #[arg(value_parser = model_parser())]
    pub name: Model,
    /// CSV of 64 pixels (0..16) and a label (0..9) per line, may be gzipped; without it the bundled digits
    #[arg(long, value_name = "PATH")]
    pub data: Option<PathBuf>,
    /// Run without a window (training opens none; accepted for scripts)
    #[arg(long)]
    pub headless: bool,
    /// Train in this many worker processes, each with a copy of the model and its own share of the input
    #[arg(long, value_name = "N", conflicts_with_all = ["devices", "device", "dump_graphs", "numerics"], value_parser = clap::value_parser!(u16).range(1..=64))]
    pub workers: Option<u16>,
    /// Train in the workers of a cluster that runs ('stepscope worker --input NAME', with the same --seed and --data); 'env': the
    /// cluster in the variables that Slurm or torchrun sets; 'mpi': the workers that the same mpirun started
    #[arg(long, value_name = "FILE|env|mpi", conflicts_with_all = ["workers", "devices", "device", "dump_graphs", "numerics"])]
    pub cluster: Option<PathBuf>,
    #[arg(long, value_name = "N", requires = "checkpoint_dir", help = format!(
        "How often a run may continue from its newest checkpoint after it lost a process [default: {DEFAULT_MAX_RESTARTS}]"
    ))]
    pub max_restarts: Option<u32>,
    #[arg(long, value_name = "SECONDS", requires = "cluster", value_parser = clap::value_parser!(u32).range(1..), help = format!(
        "Seconds to wait for tasks of the cluster that cannot be reached [default: {DEFAULT_PATIENCE_S}]"
    ))]
    pub patience: Option<u32>,
    /// For launchers: the number of the attempt
    #[arg(long, hide = true, value_name = "N", requires_all = ["cluster", "logdir"])]
    pub attempt: Option<u32>,
    /// For launchers: the folder to remove with the launcher
    #[arg(long, hide = true, value_name = "DIR", requires = "attempt")]
    pub scratch: Option<PathBuf>,
    #[command(flatten)]
    pub training: Training,
}

/// How often a run in several processes may start again without `--max-restarts`.
pub const DEFAULT_MAX_RESTARTS: u32 = 10;
/// Seconds to wait for tasks that cannot be reached, without `--patience`.
const DEFAULT_PATIENCE_S: u32 = 60;

impl Train {
    /// The model with its data.
    pub fn task(&self) -> TaskSpec {
        TaskSpec { model: self.name, data: self.data.clone(), seed: self.training.seed }
    }

    /// How long to wait for tasks that cannot be reached.
    pub fn patience(&self) -> Duration {
        Duration::from_secs(self.patience.unwrap_or(DEFAULT_PATIENCE_S).into())
    }
}

/// `stepscope worker`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
The cluster's file lists the tasks and their addresses; without --cluster the environment does, as torchrun sets it (RANK, WORLD_SIZE,
MASTER_ADDR, MASTER_PORT). Between hosts the file needs a [tls] section ('stepscope certify' makes the certificates); without it addresses
must be on this host.

  id = \"mnist-7\"
  [jobs]
  worker = [\"127.0.0.1:4001\", \"127.0.0.1:4002\"]

Examples:
  stepscope worker --job worker --task 0 --cluster cluster.toml
  stepscope worker --job worker --task 1 --cluster cluster.toml --input mlp
  torchrun --no-python --nproc-per-node 2 stepscope worker --input mlp
  mpirun -n 1 stepscope train mlp --cluster mpi : -n 2 stepscope worker --cluster mpi --input mlp")]
pub struct Worker {
    /// The task's job
    #[arg(long, value_name = "NAME", requires_all = ["task", "cluster"])]
    pub job: Option<String>,
    /// The task's number in its job
    #[arg(long, value_name = "N", requires_all = ["job", "cluster"])]
    pub task: Option<u32>,
    /// The file of the cluster: tasks and addresses; 'mpi': the processes of the same mpirun find each other
    #[arg(long, value_name = "FILE|mpi")]
    pub cluster: Option<PathBuf>,
    /// Fill the input queue of this task's copy of the model with its share of the batches
    #[arg(long, value_parser = model_parser(), value_name = "NAME")]
    pub input: Option<Model>,
    /// The data of --input, as for 'train'
    #[arg(long, value_name = "PATH", requires = "input")]
    pub data: Option<PathBuf>,
    /// The seed of --input, as for 'train'
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Worker threads [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Memory limit of a process's tensors, as 500M or 8G; a step that needs more fails [default: the machine's free
    /// memory]
    #[arg(long, value_name = "SIZE", value_parser = super::traces::parse_size)]
    pub memory_limit: Option<usize>,
    /// CPU devices of the task
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub devices: u16,
    /// End when standard input ends, with the process that started this one
    #[arg(long)]
    pub until_stdin_ends: bool,
    /// Print the task's address as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `stepscope master`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Clients speak gRPC: distributed::ClientSession, or TensorFlow 1's sessions. Anyone who reaches the address can run graphs: it must be on this host.

Examples:
  stepscope master --cluster cluster.toml
  stepscope master --cluster cluster.toml --listen 127.0.0.1:4100
  python3 -c 'import tensorflow.compat.v1 as tf; print(tf.Session(\"grpc://127.0.0.1:4100\").list_devices())'")]
pub struct Master {
    /// The file of the cluster: tasks and addresses
    #[arg(long, value_name = "FILE")]
    pub cluster: PathBuf,
    /// Address for clients [default: 'master' in the file]
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: Option<String>,
    /// Print the address as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `stepscope certify HOST...`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
The authority's key is not kept: to add a host, make all certificates anew in another folder.

Examples:
  stepscope certify -o certificates 10.0.0.1 10.0.0.2
  stepscope certify -o certificates --job mnist-7 node-1 node-2 node-3")]
pub struct Certify {
    /// The hosts, by name or address as in the cluster's file
    #[arg(value_name = "HOST", required = true)]
    pub hosts: Vec<String>,
    /// The folder; nothing in it is overwritten
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// The job in the authority's name
    #[arg(long, value_name = "ID", default_value = "default")]
    pub job: String,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Parses the name of a model.
fn model_parser() -> impl TypedValueParser<Value = Model> {
    let value = |model: Model| PossibleValue::new(model.name()).help(model.description());
    PossibleValuesParser::new(Model::ALL.map(value)).try_map(|name| name.parse::<Model>())
}

/// Options of every training run.
#[derive(ClapArgs, Clone, Debug)]
pub struct Training {
    /// Training steps [default: enough for the model's goal; demo and mlp: 10000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub steps: Option<u64>,
    /// Seed of the initial weights and of the batches
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Learning rate, instead of the model's own; with 0 nothing is learned
    #[arg(long, value_name = "RATE", value_parser = parse_learning_rate)]
    pub learning_rate: Option<f32>,
    /// Memory limit of a process's tensors, as 500M or 8G; a step that needs more fails [default: the machine's free
    /// memory]
    #[arg(long, value_name = "SIZE", value_parser = super::traces::parse_size)]
    pub memory_limit: Option<usize>,
    /// Worker threads [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// CPU devices to train on, each with a copy of the model [default: 1; inception: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub devices: Option<u16>,
    /// Devices to train on, by name, separated by commas, each with a copy of the model: cpu:0, gpu:0. Ops without a GPU
    /// kernel run on the first CPU
    #[arg(long, value_name = "DEVICE", value_delimiter = ',', conflicts_with = "devices")]
    pub device: Vec<DeviceSpec>,
    /// Average the devices' gradients before they are applied (the default)
    #[arg(long = "sync", conflicts_with = "asynchronous")]
    pub synchronous: bool,
    /// Let each device apply its gradients as soon as it has them
    #[arg(long = "async")]
    pub asynchronous: bool,
    /// Give each device variables of its own, and average the gradients among all of them at once (ring all-reduce)
    #[arg(long, conflicts_with = "asynchronous")]
    pub all_reduce: bool,
    /// Wait in each step only for the first gradients, from all devices or workers but N; later ones are dropped
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=255), conflicts_with_all = ["asynchronous", "all_reduce"])]
    pub backup_workers: Option<u16>,
    /// Checkpoints go here, a folder or (built with the feature `s3`) s3://BUCKET/PREFIX; if there are any, the run continues
    /// from the newest
    #[arg(long, value_name = "DIR")]
    pub checkpoint_dir: Option<PathBuf>,
    /// Steps between checkpoints [default: 100]
    #[arg(long, value_name = "STEPS", requires = "checkpoint_dir", value_parser = clap::value_parser!(u64).range(1..))]
    pub checkpoint_every: Option<u64>,
    /// Steps between histograms, images and tests [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub summary_every: Option<u64>,
    /// The run's folder, made if missing [default: runs/NAME-DATE]
    #[arg(long, value_name = "DIR")]
    pub logdir: Option<PathBuf>,
    /// The trace's folder, or 'off' [default: trace in the run's folder]
    #[arg(long, value_name = "DIR|off")]
    pub trace: Option<PathBuf>,
    /// Write every graph into this empty folder, before the first pass and after each: 'stepscope view DIR' shows them
    #[arg(long, value_name = "DIR")]
    pub dump_graphs: Option<PathBuf>,
    /// Check every result for NaNs and infinities: the trace records where they come up (in the window: Graph, Colour > Health), or the first ends the run
    #[arg(long, value_enum, value_name = "WHAT")]
    pub numerics: Option<Numerics>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
}

impl Training {
    /// Converts the options to those of the library.
    pub fn options(&self) -> TrainOptions {
        let backup = self.backup_workers.map(|spare| Parallelism::Backup { spare: spare.into() });
        let asynchronous = self.asynchronous.then_some(Parallelism::Asynchronous);
        let all_reduce = self.all_reduce.then_some(Parallelism::AllReduce);
        TrainOptions {
            steps: self.steps,
            learning_rate: self.learning_rate,
            memory_limit: self.memory_limit,
            threads: self.threads.map(usize::from),
            n_devices: self.devices.map(usize::from),
            devices: self.device.clone(),
            parallelism: backup.or(asynchronous).or(all_reduce),
            checkpoint_dir: self.checkpoint_dir.clone(),
            checkpoint_every: self.checkpoint_every,
            summary_every: self.summary_every,
            logdir: self.logdir.clone(),
            trace: match &self.trace {
                None => TraceTarget::RunFolder,
                Some(off) if off.as_os_str() == "off" => TraceTarget::Off,
                Some(folder) => TraceTarget::Folder(folder.clone()),
            },
            dump_graphs: self.dump_graphs.clone(),
            numerics: Numerics::for_session(self.numerics),
        }
    }
}

/// What is done about results that are not finite.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numerics {
    /// Record it in the trace, once for each node and whenever it changes
    Trace,
    /// End the run at the first op with one, and name it
    Fail,
}

impl Numerics {
    /// Converts the option to that of a session.
    pub fn for_session(option: Option<Numerics>) -> engine::Numerics {
        match option {
            None => engine::Numerics::Ignore,
            Some(Numerics::Trace) => engine::Numerics::Trace,
            Some(Numerics::Fail) => engine::Numerics::Fail,
        }
    }
}

fn parse_learning_rate(text: &str) -> Result<f32, String> {
    let rate = text.parse::<f32>().map_err(|e| e.to_string())?;
    if rate.is_finite() && rate >= 0.0 { Ok(rate) } else { Err("must be a number from 0 on".to_owned()) }
}

/// `stepscope run GRAPH`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Examples:
  stepscope run graph.pb --feed x=x.npy --fetch logits
  stepscope run graph.pbtxt --feed x:0=x.npy --fetch loss --fetch gradients/w:0 --out answers.npz
  stepscope run graph.pb --init init --fetch loss --trace trace --device-count 2
  stepscope run graph.pb --checkpoint checkpoints --feed x=x.npy --fetch probabilities
  stepscope run graph.pb --device gpu:0 --feed x=x.npy --fetch logits
  stepscope run two-gpus.pb --soft-placement --feed x=x.npy --fetch logits     # on a machine without them")]
pub struct Run {
    /// GraphDef: .pb, .pbtxt, either gzipped, or an event file with a graph
    pub graph: PathBuf,
    #[command(flatten)]
    pub step: Step,
    /// Output to compute (repeat for more)
    #[arg(long, value_name = "NAME[:PORT]")]
    pub fetch: Vec<String>,
    /// Node to run without fetching anything from it (repeat for more)
    #[arg(long, value_name = "NAME")]
    pub target: Vec<String>,
    /// A NumPy archive for the fetches; it must not exist yet
    #[arg(long, value_name = "FILE.npz")]
    pub out: Option<PathBuf>,
    /// Steps to run; the last one's values are printed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub steps: u64,
    /// Record the steps into this folder: 'stepscope view' opens it
    #[arg(long, value_name = "DIR")]
    pub trace: Option<PathBuf>,
    /// Write the graph into this empty folder, before the first pass and after each: 'stepscope view DIR' shows them
    #[arg(long, value_name = "DIR")]
    pub dump_graphs: Option<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// How a graph's step is run.
#[derive(ClapArgs, Debug)]
pub struct Step {
    /// Value of an output, from a NumPy file (repeat for more)
    #[arg(long, value_name = "NAME[:PORT]=FILE.npy", value_parser = parse_feed)]
    pub feed: Vec<(String, PathBuf)>,
    /// Node to run first, in a step of its own: variables' initialisers (repeat for more)
    #[arg(long, value_name = "NAME")]
    pub init: Vec<String>,
    /// Values of the variables: a checkpoint, or a folder of them (the newest is taken)
    #[arg(long, value_name = "PATH")]
    pub checkpoint: Option<PathBuf>,
    /// CPU devices to spread the nodes over
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub device_count: u16,
    /// Device to run on, by name: cpu:0, gpu:0; several, separated by commas, to spread the nodes over. Ops without a GPU
    /// kernel run on the first CPU
    #[arg(long, value_name = "DEVICE", value_delimiter = ',', conflicts_with = "device_count")]
    pub device: Vec<DeviceSpec>,
    /// Let nodes run on another device where theirs is missing, has no kernel for them, or contradicts a colocation,
    /// as TensorFlow 2 does (allow_soft_placement); without it that is an error, as in TensorFlow's sessions
    #[arg(long)]
    pub soft_placement: bool,
    /// Check every result for NaNs and infinities: the trace records where they come up (in the window: Graph, Colour > Health), or the first ends the run
    #[arg(long, value_enum, value_name = "WHAT")]
    pub numerics: Option<Numerics>,
    /// Worker threads [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Memory limit of the tensors, as 500M or 8G; a step that needs more fails [default: the machine's free memory]
    #[arg(long, value_name = "SIZE", value_parser = super::traces::parse_size)]
    pub memory_limit: Option<usize>,
    /// Seed of the random ops that have none of their own
    #[arg(long, value_name = "N")]
    pub seed: Option<i64>,
}

/// Parses `NAME[:PORT]=FILE`.
fn parse_feed(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.to_owned(), file.into())),
        _ => Err("expected NAME[:PORT]=FILE.npy".to_owned()),
    }
}

/// `stepscope params GRAPH`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Examples:
  stepscope params runs/demo-20261121-101500/graph.pb
  stepscope params graph.pb --depth 2
  stepscope params graph.pb --json | jq .trained")]
pub struct Params {
    /// GraphDef: .pb, .pbtxt, either gzipped, or an event file with a graph
    pub graph: PathBuf,
    /// Levels of scopes to list; 0 lists the total only [default: all]
    #[arg(long, value_name = "N")]
    pub depth: Option<usize>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `stepscope compare A B`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Examples:
  stepscope compare mine.pb theirs.pb --feed x=x.npy --fetch logits
  stepscope compare model.pb model.pb --device-count 4 --fetch loss --every-node
  stepscope compare model.pb model.pb --device gpu:0 --feed x=x.npy --fetch loss --every-node
  stepscope compare a.pb b.pb --fetch loss --tolerance 1e-5 --json")]
pub struct Compare {
    /// The first graph; it runs on one device
    pub a: PathBuf,
    /// The second graph; it runs on --device-count devices, or on those of --device
    pub b: PathBuf,
    #[command(flatten)]
    pub step: Step,
    /// Output to compare (repeat for more)
    #[arg(long, value_name = "NAME[:PORT]", required = true)]
    pub fetch: Vec<String>,
    /// Compare every node before the fetches that both graphs have, in the order of computation
    #[arg(long)]
    pub every_node: bool,
    /// Largest difference, relative to the largest value, that counts as equal
    #[arg(long, value_name = "X", default_value_t = 1e-5)]
    pub tolerance: f64,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `stepscope freeze GRAPH`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Examples:
  stepscope freeze runs/convnet/graph.pb --checkpoint checkpoints -o convnet.pb
  stepscope freeze graph.pb --checkpoint model.ckpt --fetch probabilities -o served.pb")]
pub struct Freeze {
    /// GraphDef: .pb, .pbtxt, either gzipped, or an event file with a graph
    pub graph: PathBuf,
    /// Values of the variables: a checkpoint, or a folder of them (the newest is taken)
    #[arg(long, value_name = "PATH")]
    pub checkpoint: PathBuf,
    /// Output to keep, with its inputs (repeat for more) [default: everything that neither trains nor saves]
    #[arg(long, value_name = "NAME")]
    pub fetch: Vec<String>,
    /// The frozen graph; it must not exist yet
    #[arg(short, long, value_name = "FILE.pb")]
    pub out: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
