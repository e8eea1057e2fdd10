//! The command line: every command, its options and its examples. Names are agreed and stay.

mod engine;
mod traces;
mod window;

use std::path::PathBuf;

use clap::{Args as ClapArgs, CommandFactory, Parser, Subcommand};

pub use engine::{
    Certify, Compare, DEFAULT_MAX_RESTARTS, Demo, Freeze, Master, Numerics, Params, Run, Step, Train, Worker,
};
#[cfg(feature = "query")]
pub use traces::QueryAs;
pub use traces::{
    AnalysisFormat, Analyze, Collect, Convert, Diff, Dumps, Export, ExportAs, Grouping, Import, Query, Record, Report,
    RunsArgs, Switch, Watch,
};
pub use window::{Renderer, Theme, Window};

/// Train, trace and watch: a dataflow engine, its profiler and one native window.
#[derive(Parser, Debug)]
#[command(version, propagate_version = true, after_help = EXAMPLES)]
pub struct Args {
    /// The command
    #[command(subcommand)]
    pub command: Command,
    /// Print results and errors only
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Print details of the work (repeat for more)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

const EXAMPLES: &str = "\
Examples:
  stepscope demo                      train a small model and watch it in the window
  stepscope demo --headless --json    the same without a window, the result as JSON
  stepscope view runs                 open every run in a folder
  stepscope record --sched -- CMD     record any command
  stepscope doctor                    check the environment";

/// How much a command prints on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Errors and warnings.
    Quiet,
    /// Errors, warnings and progress.
    Normal,
    /// Errors, warnings, progress and details of each stage.
    Verbose,
}

impl Args {
    /// The verbosity of `-q` and `-v`.
    pub fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, _) => Verbosity::Verbose,
        }
    }
}

/// The commands, in the order of [`GROUPS`].
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Open logdirs, traces and graphs in the window
    View(View),
    /// Serve runs, logdirs and traces to a window on another machine
    Serve(Serve),
    /// Follow a logdir and raise alerts: NaN, limits, runs that stall
    Watch(Watch),
    /// List the runs of a logdir: tags, counts, last values, damage
    Runs(RunsArgs),
    /// Count a graph's parameters, scope by scope
    Params(Params),
    /// List the ops of the engine
    Ops(Ops),
    /// Run any command and record its events, scheduling and call stacks
    Record(Record),
    /// Gather the traces of many processes and hosts into one folder
    Collect(Collect),
    /// Convert other tools' traces
    Import(Import),
    /// Write what Weights & Biases, MLflow, trackio, Lightning or Hugging Face logged as event files
    Convert(Convert),
    /// Write a trace in another tool's format, or a logdir's points as rows
    Export(Export),
    /// Explain where a trace's time went, what held it up and what to change first
    Analyze(Analyze),
    /// Compare two traces, step for step
    Diff(Diff),
    /// Write a page with charts of traces and logdirs
    Report(Report),
    /// Query traces and logdirs with SQL
    Query(Query),
    /// Run two graphs on the same feeds and report where they diverge
    Compare(Compare),
    /// Explain PyTorch's memory snapshots, and which rank hangs by its flight recorder's dumps
    Dumps(Dumps),
    /// Train a small model on handwritten digits and watch it while it trains
    Demo(Demo),
    /// Train a model by name
    Train(Train),
    /// Run a TensorFlow graph: feed arrays, fetch arrays
    Run(Run),
    /// Replace a graph's variables by the constants of a checkpoint
    Freeze(Freeze),
    /// Start a cluster worker
    Worker(Worker),
    /// Start the cluster master, which runs its clients' graphs
    Master(Master),
    /// Make the TLS certificates of a cluster's hosts
    Certify(Certify),
    /// Serve traces and logdirs to agents, by the Model Context Protocol
    Mcp(Mcp),
    /// Check the environment and suggest fixes
    Doctor(Doctor),
    /// Print completions of commands and options for a shell
    Completions(Completions),
    /// Write the manual pages
    Man(Man),
}

/// The commands as `--help` groups them.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Look", &["view", "serve", "watch", "runs", "params", "ops"]),
    ("Record", &["record", "collect", "import", "convert", "export"]),
    ("Explain", &["analyze", "diff", "report", "query", "compare", "dumps"]),
    ("Train", &["demo", "train", "run", "freeze", "worker", "master", "certify"]),
    ("Set up", &["mcp", "doctor", "completions", "man", "help"]),
];

/// The command line, whose help groups the commands: clap has headings for options only.
pub fn command() -> clap::Command {
    let mut command = Args::command();
    command.build();
    let header = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let mut groups = String::new();
    for (title, names) in GROUPS {
        groups += &format!("{header}{title}:{header:#}\n");
        for name in names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            groups += &format!("  {literal}{name:<11}{literal:#}  {about}\n");
        }
        groups.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    Args::command().help_template(template)
}

impl Command {
    /// The activity that progress names, for commands that end by themselves; `None` for those that serve or show a
    /// window.
    pub fn activity(&self) -> Option<&'static str> {
        match self {
            Command::Demo(_) | Command::Train(_) => Some("preparing"),
            Command::Run(_) | Command::Compare(_) => Some("running"),
            Command::Params(_) | Command::Freeze(_) | Command::Runs(_) | Command::Report(_) => Some("reading"),
            Command::Convert(_) => Some("converting"),
            Command::Dumps(_) | Command::Analyze(_) | Command::Diff(_) | Command::Import(_) | Command::Export(_) => {
                Some("reading")
            }
            Command::Query(_) => Some("querying"),
            Command::Doctor(_) => Some("checking"),
            Command::Ops(_) | Command::Certify(_) | Command::Completions(_) | Command::Man(_) => None,
            Command::Worker(_) | Command::Master(_) | Command::View(_) => None,
            Command::Record(_) | Command::Collect(_) | Command::Serve(_) | Command::Watch(_) | Command::Mcp(_) => None,
        }
    }
}

/// `stepscope mcp`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Speaks the protocol on standard input and output; an agent starts it. Its tools only read: open, findings, diff, tags, points,
and, in a program with SQL, query.

Examples:
  claude mcp add stepscope -- stepscope mcp
  {\"mcpServers\": {\"stepscope\": {\"command\": \"stepscope\", \"args\": [\"mcp\"]}}}     # in an agent's configuration")]
pub struct Mcp {}

/// `stepscope view`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Opens TensorBoard logdirs and event files, run folders and traces of stepscope, GraphDefs (.pb, .pbtxt, gzipped too), and
traces of other tools: Chrome's JSON (PyTorch's profiler, viztracer), Perfetto, XPlane, RunMetadata, ftrace and perf script
texts, all gzipped or zstd too; what Weights & Biases, MLflow, trackio, Lightning and Hugging Face logged. Folders that grow are
followed. Built with the feature buckets: logdirs on s3://, gs://, az:// and http(s):// too.

Examples:
  stepscope view runs
  stepscope view runs/demo-20261121-101500 other/logdir
  stepscope view graph.pbtxt.gz
  stepscope view pytorch-trace.json.gz
  stepscope view snapshot.pickle                # PyTorch's memory snapshot
  stepscope view wandb mlflow.db lightning_logs
  stepscope view trace.json.gz --at 'timeline?view=0..5000000&colour=track'
  stepscope view ssh://gpu7/data/runs/today      # over ssh, only what is shown; ssh://gpu7/~/runs is below home
  stepscope view --connect 127.0.0.1:6470        # a collector, or stepscope serve

STEPSCOPE_SSH names another ssh, with options: STEPSCOPE_SSH='ssh -i key'")]
pub struct View {
    /// Files, folders, and folders of other machines (ssh://HOST/PATH); without any the start page opens
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Address of a collector, or of `stepscope serve`
    #[arg(long, value_name = "HOST:PORT")]
    pub connect: Vec<String>,
    /// Path of stepscope on the remote machine
    #[arg(long, value_name = "PATH", default_value = "stepscope")]
    pub remote_bin: String,
    /// The view to open, as copied by the window's "Copy a command line that opens this view"
    #[arg(long, value_name = "ADDRESS")]
    pub at: Option<dashboard::Address>,
    /// Open the window even where a path cannot be opened, and say so there: for a double click, which has no terminal
    #[arg(long)]
    pub errors_in_window: bool,
    #[command(flatten)]
    pub window: Window,
}

/// `stepscope serve PATH`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
A window on another machine fetches only what it shows. There is no authentication: listen on a loopback address, and let
others connect through ssh.

Examples:
  stepscope serve runs                            # then, here: stepscope view --connect 127.0.0.1:6471
  ssh -L 6471:127.0.0.1:6471 gpu7 stepscope serve /data/runs
  stepscope view ssh://gpu7/data/runs             # the same without a port: starts serve --stdio there")]
pub struct Serve {
    /// A run's folder, a logdir, a trace, or another tool's trace
    pub path: PathBuf,
    /// Address to listen on; port 0 chooses a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6471")]
    pub listen: std::net::SocketAddr,
    /// Serve through standard input and output
    #[arg(long, conflicts_with_all = ["listen", "json"])]
    pub stdio: bool,
    /// Print the address as one JSON object
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
    /// Write the file that the shell looks for into this folder instead of standard output
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let mut command = Args::command();
        command.build();
        let all: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert_eq!(grouped, all, "in the order of the enum, which man pages and completions have");
    }

    #[test]
    fn help_has_the_groups() {
        let help = command().render_help().to_string();
        for line in
            ["Look:", "Record:", "Explain:", "Train:", "  diff         Compare two traces, step for step", "Options:"]
        {
            assert!(help.lines().any(|l| l == line), "{line} is not in:\n{help}");
        }
        assert!(!help.contains("Commands:") && help.contains("Examples:"));
    }
}
