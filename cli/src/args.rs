//! The command line: every command, its options and its examples. Names are agreed and stay.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

use crate::logdir::Grouping;

/// Train, trace and watch: a dataflow engine, its profiler and one native window.
#[derive(Parser, Debug)]
#[command(version, propagate_version = true, after_help = EXAMPLES)]
pub struct Args {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
    /// Print results and errors only
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Print more about what is done (repeat for more)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

const EXAMPLES: &str = "\
Examples:
  stepscope demo                      train a small model and watch it in the window
  stepscope demo --headless --json    the same without a window, the result as JSON
  stepscope view runs                 open every run in a folder
  stepscope record --sched -- CMD     record any command
  stepscope doctor                    what works on this machine";

/// How much a command says on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Errors and warnings.
    Quiet,
    /// And progress.
    Normal,
    /// And what is done at each stage.
    Verbose,
}

impl Args {
    /// What `-q` and `-v` say together.
    pub fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, _) => Verbosity::Verbose,
        }
    }
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Train a small model on handwritten digits and watch it while it trains
    Demo(Demo),
    /// Train a model by name
    Train(Train),
    /// Be a task of a cluster: run what its master gives this task
    Worker(Worker),
    /// Be the master of a cluster: run the graphs of clients on its tasks
    Master(Master),
    /// Open logdirs, traces and graphs in the window
    View(View),
    /// Run any command and record what it emits, its scheduling and its call stacks
    Record(Record),
    /// Gather the traces of many processes and hosts into one folder
    Collect(Collect),
    /// Let a window on another machine look at runs, logdirs and traces here
    Serve(Serve),
    /// Run a graph that TensorFlow made: feed arrays, fetch arrays
    Run(Run),
    /// Count a graph's parameters, scope by scope
    Params(Params),
    /// Run two graphs on the same feeds and tell where their values part
    Compare(Compare),
    /// Put a checkpoint's values in the place of a graph's variables
    Freeze(Freeze),
    /// Say where a trace's time went, what held it up and what to change first
    Analyze(Analyze),
    /// Say what changed between two traces, step for step
    Diff(Diff),
    /// Write a page with charts about traces and logdirs, to be kept or mailed
    Report(Report),
    /// List the runs of a logdir: tags, counts, last values, damage
    Runs(RunsArgs),
    /// Keep other tools' traces as one of stepscope's
    Import(Import),
    /// Write a trace as another tool's, or a logdir's points as rows
    Export(Export),
    /// Ask for rows of traces and logdirs by SQL
    Query(Query),
    /// List the ops that the engine knows
    Ops(Ops),
    /// Say what works on this machine and how to get what does not
    Doctor(Doctor),
}

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
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Examples:
  stepscope train convnet
  stepscope train lstm --steps 3000
  stepscope train mlp --devices 2 --async
  stepscope train convnet --workers 2
  stepscope train convnet --checkpoint-dir checkpoints --checkpoint-every 50
  stepscope train mlp --data my-digits.csv.gz --steps 5000
  stepscope train mlp --trace off --logdir runs/baseline")]
pub struct Train {
    /// The model
    #[arg(value_enum)]
    pub name: Model,
    /// CSV of 64 pixels (0..16) and a label (0..9) per line, may be gzipped; without it the bundled digits
    #[arg(long, value_name = "PATH")]
    pub data: Option<PathBuf>,
    /// Run without a window (training opens none; accepted so that scripts can say it)
    #[arg(long)]
    pub headless: bool,
    /// Train in this many worker processes, each with a copy of the model and its own share of the input
    #[arg(long, value_name = "N", conflicts_with_all = ["devices", "checkpoint_dir"], value_parser = clap::value_parser!(u16).range(1..=64))]
    pub workers: Option<u16>,
    /// Train in the workers of a cluster that runs ('stepscope worker --input NAME', with the same --seed and --data)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workers", "devices", "checkpoint_dir"])]
    pub cluster: Option<PathBuf>,
    #[command(flatten)]
    pub training: Training,
}

/// `stepscope worker`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
The cluster's file names the tasks and where they listen; without --cluster the environment does, as torchrun sets it (RANK, WORLD_SIZE,
MASTER_ADDR, MASTER_PORT). Connections are not encrypted yet: addresses must be of this host.

  id = \"mnist-7\"
  [jobs]
  worker = [\"127.0.0.1:4001\", \"127.0.0.1:4002\"]

Examples:
  stepscope worker --job worker --task 0 --cluster cluster.toml
  stepscope worker --job worker --task 1 --cluster cluster.toml --input mlp
  torchrun --no-python --nproc-per-node 2 stepscope worker --input mlp")]
pub struct Worker {
    /// The job that the task is of
    #[arg(long, value_name = "NAME", requires_all = ["task", "cluster"])]
    pub job: Option<String>,
    /// Which of the job's tasks it is
    #[arg(long, value_name = "N", requires_all = ["job", "cluster"])]
    pub task: Option<u32>,
    /// The tasks of the cluster and where they listen
    #[arg(long, value_name = "FILE", requires_all = ["job", "task"])]
    pub cluster: Option<PathBuf>,
    /// Fill the queue from which this task's copy of a model takes its batches, with the task's share of them
    #[arg(long, value_enum, value_name = "NAME")]
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
    /// CPU devices of the task
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub devices: u16,
    /// End when standard input ends: with the process that started this one
    #[arg(long)]
    pub until_stdin_ends: bool,
    /// Print where the task listens as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `stepscope master`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Clients speak gRPC: distributed::ClientSession, or TensorFlow 1's sessions. Who reaches the address can run graphs: it must be of this host.

Examples:
  stepscope master --cluster cluster.toml
  stepscope master --cluster cluster.toml --listen 127.0.0.1:4100
  python3 -c 'import tensorflow.compat.v1 as tf; print(tf.Session(\"grpc://127.0.0.1:4100\").list_devices())'")]
pub struct Master {
    /// The tasks of the cluster and where they listen
    #[arg(long, value_name = "FILE")]
    pub cluster: PathBuf,
    /// Where clients are listened to [default: the file's 'master']
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: Option<String>,
    /// Print where it listens as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The models of `train`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Multi-layer perceptron 64-512-512-10 on 8x8 digits; goal: 95 % of the test images
    Mlp,
    /// LeNet-style convolutional net on digits enlarged to 28x28; goal: 97.5 %
    Convnet,
    /// Inception-style net of 44,000 nodes on digits enlarged to 75x75, on four devices; goal: 90 %
    Inception,
    /// Language model of two LSTM layers, unrolled; goal: a loss of at most 1.06 times the text's entropy
    Lstm,
    /// The same, as a loop
    LstmWhile,
    /// Word vectors; goal: of 90 % of the words, the nearest neighbour is of their kind
    Embeddings,
}

impl Model {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Model::Mlp => "mlp",
            Model::Convnet => "convnet",
            Model::Inception => "inception",
            Model::Lstm => "lstm",
            Model::LstmWhile => "lstm-while",
            Model::Embeddings => "embeddings",
        }
    }

    /// Whether its data are images of digits.
    pub fn learns_digits(self) -> bool {
        matches!(self, Model::Mlp | Model::Convnet | Model::Inception)
    }
}

/// Options of every training run.
#[derive(ClapArgs, Clone, Debug)]
pub struct Training {
    /// Training steps [default: what the model's quality needs; demo and mlp: 10000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub steps: Option<u64>,
    /// Seed of the initial weights and of the batches
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Learning rate, instead of the model's own; with 0 nothing is learned, and the same batch gives the same loss
    #[arg(long, value_name = "RATE", value_parser = learning_rate)]
    pub learning_rate: Option<f32>,
    /// Worker threads [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// CPU devices to train on, each with a copy of the model [default: 1; inception: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub devices: Option<u16>,
    /// Average the devices' gradients before they are applied (the default)
    #[arg(long = "sync", conflicts_with = "asynchronous")]
    pub synchronous: bool,
    /// Let each device apply its gradients as soon as it has them
    #[arg(long = "async")]
    pub asynchronous: bool,
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
    /// Where the trace goes, or 'off' [default: the run's folder/trace]
    #[arg(long, value_name = "DIR|off")]
    pub trace: Option<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
}

fn learning_rate(text: &str) -> Result<f32, String> {
    let rate = text.parse::<f32>().map_err(|e| e.to_string())?;
    if rate.is_finite() && rate >= 0.0 { Ok(rate) } else { Err("must be a number from 0 on".to_owned()) }
}

/// `stepscope record -- COMMAND`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
The command runs as it would alone: its output, signals and exit code are its own. Programs that link stepscope-events, or use
tracing with its layer, emit events where STEPSCOPE_TRACE is set, which 'record' does; of others scheduling and samples are recorded.
With --sample it also sets PYTHONPERFSUPPORT=1, so that Python tells the names of its functions.

Examples:
  stepscope record -- ./my-program --with its arguments
  stepscope record --sched --sample 1000 -- python3 train.py
  stepscope record -o trace --sched -- make -j4
  stepscope record --counters cycles,instructions,cache-misses,page-faults -- ./my-training
  stepscope record --steps 20 -- ./my-training
  stepscope record -o trace --flight 10 --slow-step 50 -- ./my-training
  stepscope record --attach trace --dump
  stepscope record -o trace --attach 4711 --sched --sample 1000
  stepscope record --attach runs/demo-20261121-101500/trace --steps 5
  stepscope record --collector 127.0.0.1:6470 -- ./my-training
  stepscope record --attach trace --collector 127.0.0.1:6470
  stepscope view trace")]
pub struct Record {
    /// The trace folder, made if missing; it must be empty [default: runs/record-DATE/trace]
    #[arg(short, long, value_name = "TRACE")]
    pub out: Option<PathBuf>,
    /// Record who runs on each CPU, and what the command's threads wait for
    #[arg(long)]
    pub sched: bool,
    /// Take call stacks of running threads, HZ times a second on each CPU
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub sample: Option<u32>,
    /// Count what processor and kernel do for each thread and op: names as 'perf stat' has them, with commas between them [without a
    /// list: task-clock,page-faults,cycles,instructions,cache-misses,branch-misses]. With flops,cache-misses 'analyze' has a roofline (Intel)
    #[arg(long, value_name = "LIST", num_args = 0..=1, default_missing_value = profiler::count::USUAL)]
    pub counters: Option<profiler::count::CounterSet>,
    /// Record the next N steps that begin, in all processes together, and no events else
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub steps: Option<u32>,
    /// Keep the events of the last SECONDS only; they are written at the end, and when a dump is asked for (--dump, SIGUSR2 to 'record', a
    /// panic, a slow step)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400), conflicts_with = "steps")]
    pub flight: Option<u32>,
    /// A step that takes longer asks for a dump
    #[arg(long, value_name = "MS", requires = "flight", value_parser = clap::value_parser!(u64).range(1..))]
    pub slow_step: Option<u64>,
    /// Run nothing: say to the programs that record into this trace folder what to do, or to the process with this id
    ///
    /// With a process's id and --sched, --sample or --counters: watch it from outside until it ends or Ctrl-C.
    #[arg(long, value_name = "DIR|PID", conflicts_with_all = ["flight", "command"])]
    pub attach: Option<PathBuf>,
    /// Write what the flight recorder holds now
    #[arg(long, requires = "attach", conflicts_with_all = ["steps", "switch"])]
    pub dump: bool,
    /// Switch recording on or off
    #[arg(long, value_enum, value_name = "on|off", requires = "attach", conflicts_with = "steps")]
    pub switch: Option<Switch>,
    /// Send the trace to 'stepscope collect' there while it is recorded [default: the variable STEPSCOPE_COLLECTOR]
    ///
    /// With --attach: send what is in that folder and not there yet, and what comes while somebody records into it.
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["dump", "switch"])]
    pub collector: Option<String>,
    /// The command and its arguments
    #[arg(required_unless_present = "attach", last = true, value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
}

/// `stepscope collect`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Takes the traces that 'stepscope record --collector ADDR', or training with STEPSCOPE_COLLECTOR=ADDR, sends, lays them on one clock and
keeps them until Ctrl-C. Whoever reaches ADDR can add traces and look at them: for other hosts let them come through
ssh (ssh -R 6470:127.0.0.1:6470 HOST), unless the network is trusted. A collector that was killed is started again with the same -o.

Examples:
  stepscope collect
  stepscope collect -o gathered --listen 127.0.0.1:6470
  stepscope record --collector 127.0.0.1:6470 -- ./my-training
  stepscope view gathered
  stepscope analyze gathered")]
pub struct Collect {
    /// The gathered folder: new, empty, or gathered into before [default: runs/collect-DATE/trace]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6470")]
    pub listen: std::net::SocketAddr,
    /// Acknowledge before the disk has it: faster on slow disks, and what the machine's stop loses then is lost
    #[arg(long)]
    pub no_sync: bool,
    /// Print where it listens and, at the end, what came, as one JSON object each
    #[arg(long)]
    pub json: bool,
}

/// Recording, on or off.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// Record
    On,
    /// Do not
    Off,
}

/// `stepscope run GRAPH`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Examples:
  stepscope run graph.pb --feed x=x.npy --fetch logits
  stepscope run graph.pbtxt --feed x:0=x.npy --fetch loss --fetch gradients/w:0 --out answers.npz
  stepscope run graph.pb --init init --fetch loss --trace trace --device-count 2
  stepscope run graph.pb --checkpoint checkpoints --feed x=x.npy --fetch probabilities")]
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
    /// Where the fetches go, as a NumPy archive; it must not exist yet
    #[arg(long, value_name = "FILE.npz")]
    pub out: Option<PathBuf>,
    /// Steps to run; the last one's values are told
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub steps: u64,
    /// Records the steps into this folder, to be opened with 'stepscope view'
    #[arg(long, value_name = "DIR")]
    pub trace: Option<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// How a graph's step is run.
#[derive(ClapArgs, Debug)]
pub struct Step {
    /// Value of an output, from a NumPy file (repeat for more)
    #[arg(long, value_name = "NAME[:PORT]=FILE.npy", value_parser = feed)]
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
    /// Worker threads [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Seed of the random ops that have none of their own
    #[arg(long, value_name = "N")]
    pub seed: Option<i64>,
}

/// `NAME[:PORT]=FILE`.
fn feed(text: &str) -> Result<(String, PathBuf), String> {
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
    /// Levels of scopes to tell apart; 0 tells the total only [default: all]
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
  stepscope compare a.pb b.pb --fetch loss --tolerance 1e-5 --json")]
pub struct Compare {
    /// The first graph; it runs on one device
    pub a: PathBuf,
    /// The second graph; it runs on --device-count devices
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
    /// Output to keep, with what it needs (repeat for more) [default: all that neither trains nor saves]
    #[arg(long, value_name = "NAME")]
    pub fetch: Vec<String>,
    /// The frozen graph; it must not exist yet
    #[arg(short, long, value_name = "FILE.pb")]
    pub out: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Options of every window.
#[derive(ClapArgs, Clone, Copy, Debug)]
pub struct Window {
    /// Colours of the window
    #[arg(long, value_enum, default_value_t = Theme::System)]
    pub theme: Theme,
    /// What draws the window
    #[arg(long, value_enum, default_value_t = Renderer::Glow)]
    pub renderer: Renderer,
}

/// The window's colours.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// As the desktop says
    System,
    /// Dark
    Dark,
    /// Light
    Light,
}

/// What draws the window.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renderer {
    /// OpenGL
    Glow,
    /// Vulkan, Metal or Direct3D
    #[cfg(feature = "wgpu")]
    Wgpu,
}

/// `stepscope view`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Opens TensorBoard logdirs and event files, run folders and traces of stepscope, GraphDefs (.pb, .pbtxt, gzipped too), and
traces of other tools: Chrome's JSON (PyTorch's profiler, viztracer), Perfetto, XPlane, RunMetadata, ftrace and perf script
texts, all gzipped or zstd too. Folders that grow are followed. Built with the feature buckets: logdirs on s3://, gs://, az:// and
http(s):// too.

Examples:
  stepscope view runs
  stepscope view runs/demo-20261121-101500 other/logdir
  stepscope view graph.pbtxt.gz
  stepscope view pytorch-trace.json.gz
  stepscope view trace.json.gz --at 'timeline?view=0..5000000&colour=track'
  stepscope view ssh://gpu7/data/runs/today      # what is shown comes through ssh; ssh://gpu7/~/runs is below home
  stepscope view --connect 127.0.0.1:6470        # what a collector gathers, or stepscope serve serves

STEPSCOPE_SSH names another ssh, with options: STEPSCOPE_SSH='ssh -i key'")]
pub struct View {
    /// Files, folders, and folders of other machines (ssh://HOST/PATH); none opens the start page
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// A collector, or `stepscope serve`, to look at from here
    #[arg(long, value_name = "HOST:PORT")]
    pub connect: Vec<String>,
    /// What stepscope is called on the other side of ssh
    #[arg(long, value_name = "PATH", default_value = "stepscope")]
    pub remote_bin: String,
    /// What to show, as the window's "Copy a command line that opens this view" says it
    #[arg(long, value_name = "ADDRESS")]
    pub at: Option<dashboard::Address>,
    #[command(flatten)]
    pub window: Window,
}

/// `stepscope serve PATH`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
A window elsewhere shows what is here, and fetches only what it shows. There is no authentication: listen on a loopback address, and let
others come through ssh.

Examples:
  stepscope serve runs                            # then, here: stepscope view --connect 127.0.0.1:6471
  ssh -L 6471:127.0.0.1:6471 gpu7 stepscope serve /data/runs
  stepscope view ssh://gpu7/data/runs             # the same without a port: starts serve --stdio there")]
pub struct Serve {
    /// A run's folder, a logdir of many, a trace, or another tool's
    pub path: PathBuf,
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6471")]
    pub listen: std::net::SocketAddr,
    /// Serve who is at the other end of standard input and output
    #[arg(long, conflicts_with_all = ["listen", "json"])]
    pub stdio: bool,
    /// Print where it listens as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `stepscope analyze TRACE`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
docs/analysis.md defines every figure.

Examples:
  stepscope analyze runs/demo-20261121-101500
  stepscope analyze runs/demo-20261121-101500 --step 500
  stepscope analyze trace --json | jq '.findings[].text'
  stepscope analyze tpu.xplane.pb --peak-tflops 197 --peak-gbs 819   # limits for the roofline, where the trace tells none")]
pub struct Analyze {
    /// A run's folder, a trace, or another tool's
    pub trace: PathBuf,
    /// Only the step with this number
    #[arg(long, value_name = "N")]
    pub step: Option<i64>,
    /// The roofline's upper limit: 10^12 floating-point operations a second that a device reaches at most [default: what the trace tells]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub peak_tflops: Option<f64>,
    /// The roofline's slope: GB a second that a device's memory gives at most [default: what the trace tells]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub peak_gbs: Option<f64>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `stepscope diff A B`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
A change is certain where the 95 % interval of Welch's t-test over the steps does not hold zero.

Examples:
  stepscope diff runs/before runs/after
  stepscope diff runs/before runs/after --json | jq '.ops[] | select(.certain)'")]
pub struct Diff {
    /// The first trace or run's folder
    pub a: PathBuf,
    /// The second
    pub b: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `stepscope report PATH...`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Writes index.html, which holds everything, and each chart as SVG and PNG files on a light and a dark ground. Files that it did not
write are not replaced. Grouped runs are one curve, their mean, in a band from the least to the greatest.

Examples:
  stepscope report runs/demo-20261121-101500 -o report
  stepscope report runs/a runs/b logs -o report
  stepscope report logs --group '^(.*)/seed' -o report")]
pub struct Report {
    /// Runs' folders, traces, logdirs
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// The folder to write, made if missing
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    #[command(flatten)]
    pub grouping: Grouping,
}

/// `stepscope runs`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Examples:
  stepscope runs runs
  stepscope runs runs --json | jq -r 'select(.damaged > 0) | .run'
  stepscope runs runs --group-hparam rate              # last values by learning rate
  stepscope runs runs --group '^(.*)/seed'             # the seeds of a model together")]
pub struct RunsArgs {
    /// A folder with event files in or below it, or one event file
    #[arg(value_name = "LOGDIR")]
    pub logdir: PathBuf,
    #[command(flatten)]
    pub grouping: Grouping,
    /// Print one JSON object per run, or per group
    #[arg(long)]
    pub json: bool,
}

/// `stepscope import FILE...`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Reads every trace that 'stepscope view' opens and writes a sealed trace: a folder of Parquet files that opens at once, whatever
its size. Several files are the ranks of one job, put on one clock.

Examples:
  stepscope import trace.json.gz -o trace
  stepscope import rank0.json.gz rank1.json.gz -o job
  stepscope import trace.pftrace -o trace --json | jq .slices")]
pub struct Import {
    /// Files of other tools, or one trace
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The trace to write: a folder
    #[arg(short, long, value_name = "TRACE")]
    pub out: PathBuf,
    /// Write over a sealed trace that exists
    #[arg(long)]
    pub force: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `stepscope export TRACE|LOGDIR`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Reads run folders and traces of stepscope, and every trace that 'stepscope view' opens; several files are the ranks of one
job, written on one clock.

Examples:
  stepscope export runs/demo-20261121-101500 -o demo.json.gz
  stepscope export rank0.json.gz rank1.json.gz -o job.json
  stepscope export runs/demo-20261121-101500 -o demo.pftrace
  stepscope export trace.json --format chrome > mended.json
  stepscope export trace.json --format parquet -o tables
  stepscope export runs/record-20261121-101500 --format firefox -o record.firefox.json
  stepscope export logs --run 'seed[0-9]' --tag '^loss$' -o loss.csv")]
pub struct Export {
    /// Traces, or one logdir
    #[arg(value_name = "TRACE|LOGDIR", required = true)]
    pub paths: Vec<PathBuf>,
    /// The file to write, compressed where its name ends in .gz [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// What to write [default: what the file's name says, else chrome of traces and csv of a logdir]
    #[arg(long, value_enum)]
    pub format: Option<ExportAs>,
    /// Of a logdir: only runs whose name this regular expression matches
    #[arg(long, value_name = "RE")]
    pub run: Option<String>,
    /// Of a logdir: only tags that this regular expression matches
    #[arg(long, value_name = "RE")]
    pub tag: Option<String>,
    /// Write over a file that exists
    #[arg(long)]
    pub force: bool,
}

/// Formats to export.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportAs {
    /// Chrome's trace events (JSON): opens in chrome://tracing, Perfetto and here
    Chrome,
    /// Perfetto's protobuf: opens in ui.perfetto.dev and here
    Perfetto,
    /// The Firefox profiler's JSON: opens in profiler.firefox.com
    Firefox,
    /// A logdir's scalars as run,tag,step,wall_time,value, a line per point, every point
    Csv,
    /// The same as one JSON object per line; NaN and infinities are strings
    Json,
    /// The same as columns of a Parquet file, which pandas, polars and DuckDB read; a trace as a folder of such
    Parquet,
}

/// `stepscope query PATH SQL`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Without SQL: lists the tables, with their columns and units. Every row says its trace, so that a folder of many traces is asked
at once. docs/query.md has more. From source: cargo build --release --features query (cluster for --cluster)

Examples:
  stepscope query runs/demo-20261121-101500
  stepscope query runs/demo-20261121-101500 'select name, count(*), sum(dur_ns) / 1e6 ms from slices group by name order by ms desc'
  stepscope query trace.json.gz 'select * from slices where dur_ns > 1000000 order by ts_ns' --limit 20
  stepscope query runs 'select trace, cause, sum(dur_ns) ns from stalls group by 1, 2' --format csv
  stepscope query s3://bucket/runs -f question.sql -o answer.parquet
  stepscope query /shared/runs -f question.sql --cluster df://scheduler:50050 --scratch /shared/tmp")]
pub struct Query {
    /// A trace, a logdir, a folder of many, or the URL of a bucket
    #[arg(value_name = "PATH|URL")]
    pub path: String,
    /// The query; - reads it from standard input
    #[arg(value_name = "SQL")]
    pub sql: Option<String>,
    /// Read the query from a file
    #[arg(short, long, value_name = "FILE", conflicts_with = "sql")]
    pub file: Option<PathBuf>,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// How to write rows [default: what the file's name says, else table]
    #[arg(long, value_enum)]
    pub format: Option<QueryAs>,
    /// At most this many rows
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Memory that sorting, grouping and joining may take before they use temporary files: 500M, 8G
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = size, conflicts_with = "cluster")]
    pub memory: usize,
    /// Threads [default: one per CPU]; with --cluster parts into which the work is cut [default: 16]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    /// Run the query on the Ballista cluster of this scheduler, whose executors see PATH too
    #[arg(long, value_name = "df://HOST:PORT")]
    pub cluster: Option<String>,
    /// With --cluster: a folder that the executors see too, for rows that are in no Parquet file and too many to be sent
    #[arg(long, value_name = "DIR", requires = "cluster")]
    pub scratch: Option<PathBuf>,
    /// Write over a file that exists
    #[arg(long)]
    pub force: bool,
}

/// How rows are written.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryAs {
    /// Columns side by side, long texts cut
    Table,
    /// A header line, then a line per row
    Csv,
    /// One object per line; NaN and infinities are strings
    Json,
    /// A Parquet file
    Parquet,
}

/// Bytes, as `500M` or `8G`.
fn size(text: &str) -> Result<usize, String> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let shift = match unit.trim_end_matches(['i', 'B']) {
        "" => 0,
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(format!("'{unit}' is no unit; say 500M or 8G")),
    };
    let bytes = digits.parse::<usize>().ok().and_then(|n| n.checked_mul(1 << shift)).filter(|n| *n > 0);
    bytes.ok_or_else(|| format!("'{text}' is no size; say 500M or 8G"))
}

/// A number above zero.
fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0);
    number.ok_or_else(|| format!("'{text}' is no number above zero"))
}

/// `stepscope ops`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Examples:
  stepscope ops
  stepscope ops --json | jq -r .name")]
pub struct Ops {
    /// Print one JSON object per op
    #[arg(long)]
    pub json: bool,
}

/// `stepscope doctor`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Examples:
  stepscope doctor
  stepscope doctor --json")]
pub struct Doctor {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
