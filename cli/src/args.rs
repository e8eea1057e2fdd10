//! The command line: every command, its options and its examples. Names are agreed and stay.

mod engine;
mod traces;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

pub use engine::{Certify, Compare, Demo, Freeze, MAX_RESTARTS, Master, Numerics, Params, Run, Step, Train, Worker};
#[cfg(feature = "query")]
pub use traces::QueryAs;
pub use traces::{Analyze, Collect, Diff, Export, ExportAs, Import, Query, Record, Report, RunsArgs, Switch};

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
    /// Make certificates for a cluster's hosts, by which its processes know each other
    Certify(Certify),
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
    /// Print what a shell needs to complete commands and options
    Completions(Completions),
    /// Write the manual as pages for man
    Man(Man),
}

impl Command {
    /// What a command that ends by itself does, for who waits for it; others serve, or show windows.
    pub fn takes_a_while(&self) -> Option<&'static str> {
        match self {
            Command::Demo(_) | Command::Train(_) => Some("preparing"),
            Command::Run(_) | Command::Compare(_) => Some("running"),
            Command::Params(_) | Command::Freeze(_) | Command::Runs(_) | Command::Report(_) => Some("reading"),
            Command::Analyze(_) | Command::Diff(_) | Command::Import(_) | Command::Export(_) => Some("reading"),
            Command::Query(_) => Some("asking"),
            Command::Doctor(_) => Some("looking"),
            Command::Ops(_) | Command::Certify(_) | Command::Completions(_) | Command::Man(_) => None,
            Command::Worker(_) | Command::Master(_) | Command::View(_) => None,
            Command::Record(_) | Command::Collect(_) | Command::Serve(_) => None,
        }
    }
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

/// `stepscope completions SHELL`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Examples:
  stepscope completions bash > ~/.local/share/bash-completion/completions/stepscope
  stepscope completions zsh -o ~/.zfunc
  stepscope completions fish -o ~/.config/fish/completions")]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
    /// Write a file of the name that the shell looks for into this folder instead of standard output
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// `stepscope man`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Examples:
  stepscope man -o ~/.local/share/man/man1
  stepscope man -o man && man ./man/stepscope-analyze.1")]
pub struct Man {
    /// The folder to write, made if missing
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
}
