//! Commands of traces and logdirs: gather, convert, query and report.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use trace_record::count::DEFAULT_COUNTERS;

/// `stepscope record -- COMMAND`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
The command keeps its output, signals and exit code. Programs that link the events crate, or use tracing with its layer, emit events
where STEPSCOPE_TRACE is set, which 'record' does; of others scheduling and samples are recorded. --sample also sets PYTHONPERFSUPPORT=1,
so that Python reports the names of its functions. In programs that use CUDA the driver loads libstepscope_inject.so from this program's
folder: kernels, copies, calls and NVTX ranges are recorded, of PyTorch and JAX too.

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
    /// Record the scheduling of each CPU, and what the command's threads wait for
    #[arg(long)]
    pub sched: bool,
    /// Sample the call stacks of running threads, HZ times a second on each CPU
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub sample: Option<u32>,
    /// Count what processor and kernel do for each thread and op: names as in 'perf stat', separated by commas [without a
    /// list: task-clock,page-faults,cycles,instructions,cache-misses,branch-misses]. With flops,cache-misses 'analyze' has a roofline (Intel)
    #[arg(long, value_name = "LIST", num_args = 0..=1, default_missing_value = DEFAULT_COUNTERS)]
    pub counters: Option<trace_record::count::CounterSet>,
    /// Record the next N steps that begin, of all processes, and nothing else
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub steps: Option<u32>,
    /// Keep only the events of the last SECONDS; they are written at the end and on a dump (--dump, SIGUSR2 to 'record', a
    /// panic, a slow step)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400), conflicts_with = "steps")]
    pub flight: Option<u32>,
    /// Dump after a step that takes longer
    #[arg(long, value_name = "MS", requires = "flight", value_parser = clap::value_parser!(u64).range(1..))]
    pub slow_step: Option<u64>,
    /// Control a running recording, by its trace folder or by the id of a process
    ///
    /// With a process's id and --sched, --sample or --counters: watch the process until it ends or Ctrl-C.
    #[arg(long, value_name = "DIR|PID", conflicts_with_all = ["flight", "command"])]
    pub attach: Option<PathBuf>,
    /// Write the events in the flight recorder now
    #[arg(long, requires = "attach", conflicts_with_all = ["steps", "switch"])]
    pub dump: bool,
    /// Switch recording on or off
    #[arg(long, value_enum, value_name = "on|off", requires = "attach", conflicts_with = "steps")]
    pub switch: Option<Switch>,
    /// Send the trace to this address of 'stepscope collect' while it is recorded [default: the variable STEPSCOPE_COLLECTOR]
    ///
    /// With --attach: send what the collector lacks of that folder, and what is recorded into it meanwhile.
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["dump", "switch"])]
    pub collector: Option<String>,
    /// Do not record CUDA
    #[arg(long, conflicts_with = "attach")]
    pub no_cuda: bool,
    /// The command and its arguments
    #[arg(required_unless_present = "attach", last = true, value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
}

/// `stepscope collect`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Receives the traces of 'stepscope record --collector ADDR', or of training with STEPSCOPE_COLLECTOR=ADDR, and aligns their clocks, until
Ctrl-C. Anyone who reaches ADDR can add and read traces: connect other hosts through ssh (ssh -R 6470:127.0.0.1:6470 HOST), unless the
network is trusted. To continue after a collector was killed, start it with the same -o.

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
    /// Address to listen on; port 0 chooses a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6470")]
    pub listen: std::net::SocketAddr,
    /// Acknowledge before data is on disk: faster on slow disks, but a crash of the machine loses it
    #[arg(long)]
    pub no_sync: bool,
    /// Print the address and, at the end, what was received, as one JSON object each
    #[arg(long)]
    pub json: bool,
}

/// Recording, on or off.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// Record
    On,
    /// Do not record
    Off,
}

/// `stepscope analyze TRACE`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
docs/use/analysis.md defines every figure.

Examples:
  stepscope analyze runs/demo-20261121-101500
  stepscope analyze runs/demo-20261121-101500 --step 500
  stepscope analyze trace --json | jq '.findings[].text'
  stepscope analyze trace --format markdown > report.md
  stepscope analyze tpu.xplane.pb --peak-tflops 197 --peak-gbs 819   # limits for the roofline, where the trace has none")]
pub struct Analyze {
    /// A run's folder, a trace, another tool's trace, or a folder with those of a job
    pub trace: PathBuf,
    /// Only the step with this number
    #[arg(long, value_name = "N")]
    pub step: Option<i64>,
    /// The roofline's upper limit: the peak of a device, in 10^12 floating-point operations a second [default: as in the trace]
    #[arg(long, value_name = "N", value_parser = parse_positive)]
    pub peak_tflops: Option<f64>,
    /// The roofline's slope: the peak of a device's memory, in GB a second [default: as in the trace]
    #[arg(long, value_name = "N", value_parser = parse_positive)]
    pub peak_gbs: Option<f64>,
    /// How the analysis is printed
    #[arg(long, value_enum, default_value_t)]
    pub format: AnalysisFormat,
    /// Print one JSON object, as --format json
    #[arg(long)]
    pub json: bool,
}

/// `stepscope dumps FILE...`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
A memory snapshot (torch.cuda.memory._dump_snapshot) is explained: what is allocated and reserved, the peak, what failed for want of
memory, by the frame that allocated. Two are compared. The dumps of a job's flight recorders (TORCH_FR_DUMP_TEMP_FILE, pickle or JSON)
say which rank has not called the collective in which the others wait; the rank is the number at the end of a file's name.
Pickles are read as data: a file that names a function or a class is refused, nothing in it is executed.

Examples:
  stepscope dumps snapshot.pickle
  stepscope dumps before.pickle after.pickle
  stepscope dumps /tmp/nccl_trace_rank_*
  stepscope dumps dumps-of-all-ranks --json | jq '.groups[].stall'")]
pub struct Dumps {
    /// A memory snapshot, two of them, or the dumps of a job's ranks (files, or a folder with them)
    #[arg(required = true, value_name = "FILE")]
    pub paths: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `stepscope diff A B`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
A change is certain where the 95 % interval of Welch's t-test over the steps does not include zero.

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

/// How runs are grouped.
#[derive(ClapArgs, Debug)]
pub struct Grouping {
    /// Group runs by what this regular expression's first group (or the whole expression) matches in their names
    #[arg(long, value_name = "RE")]
    pub group: Option<String>,
    /// Group runs by the value of this hyperparameter
    #[arg(long, value_name = "NAME", conflicts_with = "group")]
    pub group_hparam: Option<String>,
}

/// `stepscope report PATH...`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Writes a self-contained index.html, and each chart as SVG and PNG, light and dark. Files that it did not write are not replaced.
Grouped runs are one curve, their mean, in a band from minimum to maximum. --html writes one file to pan, zoom and search in a
browser: the timeline of traces, the scalars, histograms, images and hyperparameters of logdirs.

Examples:
  stepscope report runs/demo-20261121-101500 -o report
  stepscope report runs/demo-20261121-101500 --html run.html
  stepscope report runs/a runs/b logs -o report
  stepscope report logs --group '^(.*)/seed' -o report")]
pub struct Report {
    /// Runs' folders, traces, logdirs
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// The folder to write, made if missing
    #[arg(short, long, value_name = "DIR", required_unless_present = "html")]
    pub out: Option<PathBuf>,
    /// The interactive page to write: one file, which needs no network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Of --html: the most slices; beyond it short ones are drawn merged
    #[arg(long, value_name = "N", default_value_t = 300_000, requires = "html")]
    pub max_slices: usize,
    /// Of --html: the most points of curves; beyond it curves are thinned
    #[arg(long, value_name = "N", default_value_t = 1_000_000, requires = "html")]
    pub max_points: usize,
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
  stepscope runs runs --group '^(.*)/seed'             # the seeds of a model as a group")]
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

/// The forms of `stepscope analyze`.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnalysisFormat {
    /// Text for a terminal
    #[default]
    Text,
    /// Markdown
    Markdown,
    /// One JSON object
    Json,
}

/// `stepscope watch`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
An alert is TAG OPERATOR NUMBER, TAG is nan, TAG is infinite, TAG stalled or run stalled, and for how long: for 100 steps,
5 points, 30 seconds, 10 minutes, 2 hours. In a tag * stands for any text. It is raised once for each stretch of points for
which it holds. Without --alert: '* is nan' and 'run stalled for 10 minutes'.

Examples:
  stepscope watch runs
  stepscope watch runs --alert 'loss > 3 for 100 steps' --alert '*acc* < 0.1 for 5 points' --notify
  stepscope watch wandb --webhook https://hooks.slack.com/services/...
  stepscope watch runs --once || echo 'something is wrong'")]
pub struct Watch {
    /// A folder with event files or logs of other tools in or below it, or one such file
    #[arg(value_name = "LOGDIR")]
    pub logdir: PathBuf,
    /// What to report, such as 'loss > 3 for 100 steps' (repeat for more)
    #[arg(long = "alert", value_name = "ALERT")]
    pub alerts: Vec<summaries::Rule>,
    /// Show each alert as a desktop notification, by notify-send
    #[arg(long)]
    pub notify: bool,
    /// Post each alert as JSON to this address, by curl; its text is in the fields text and content, as chats expect it
    #[arg(long, value_name = "URL")]
    pub webhook: Option<String>,
    /// Check what is there and end: with exit code 1 if an alert was raised
    #[arg(long)]
    pub once: bool,
    /// Print one JSON object per alert
    #[arg(long)]
    pub json: bool,
}

/// `stepscope convert`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Reads Weights & Biases' .wandb files, MLflow's mlruns and mlflow.db, trackio's databases, Lightning's metrics.csv, lines of
JSON (.jsonl) and Hugging Face's trainer_state.json, alone or in and below a folder. Each run becomes a folder with an event
file, which TensorBoard reads, too. `stepscope view` opens the same paths without a conversion.

Examples:
  stepscope convert wandb -o logs
  stepscope convert mlflow.db -o logs
  stepscope convert lightning_logs/version_0/metrics.csv -o logs --json")]
pub struct Convert {
    /// Logs, or folders with logs in or below them
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// The folder to write to; a run's folder in it may not have event files yet
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// Print one JSON object per run
    #[arg(long)]
    pub json: bool,
}

/// `stepscope import FILE...`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Reads every trace that 'stepscope view' opens and writes a sealed trace: a folder of Parquet files that opens at once at any
size. Several files are the ranks of one job, on one clock.

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
    /// Overwrite an existing sealed trace
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
job, written on one clock. Rows (csv, json) are a logdir's scalar points (run,tag,step,wall_time,value) or a trace's slices (ts_ns,dur_ns,
pid,process,track_id,track,category,name,node,step). With --follow they are written as they come, until the run is over, where that
is known, or Ctrl-C.

Examples:
  stepscope export runs/demo-20261121-101500 -o demo.json.gz
  stepscope export rank0.json.gz rank1.json.gz -o job.json
  stepscope export runs/demo-20261121-101500 -o demo.pftrace
  stepscope export trace.json --format chrome > mended.json
  stepscope export trace.json --format parquet -o tables
  stepscope export runs/record-20261121-101500 --format firefox -o record.firefox.json
  stepscope export logs --run 'seed[0-9]' --tag '^loss$' -o loss.csv
  stepscope export runs/demo-20261121-101500 --follow --tag loss --format json | ./my-dashboard")]
pub struct Export {
    /// Traces, or one logdir
    #[arg(value_name = "TRACE|LOGDIR", required = true)]
    pub paths: Vec<PathBuf>,
    /// The file to write, compressed where its name ends in .gz [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Format [default: by the file's name, else chrome for traces and csv for a logdir]
    #[arg(long, value_enum)]
    pub format: Option<ExportAs>,
    /// Of a logdir: only runs whose name this regular expression matches
    #[arg(long, value_name = "RE")]
    pub run: Option<String>,
    /// Of a logdir: only tags that this regular expression matches
    #[arg(long, value_name = "RE")]
    pub tag: Option<String>,
    /// Write rows as they come, until the run is over or Ctrl-C
    #[arg(long)]
    pub follow: bool,
    /// Overwrite an existing file
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
    /// A line per scalar point of a logdir, or per slice of a trace, every one, after a line with the names of the columns
    Csv,
    /// The same as one JSON object per line; NaN and infinities are strings
    Json,
    /// The same as columns of a Parquet file, which pandas, polars and DuckDB read; a trace as a folder of such
    Parquet,
}

/// `stepscope query PATH SQL`
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Without SQL: lists the tables, with their columns and units. Every row names its trace, so that one query covers a folder of
many. docs/use/query.md has more. From source: cargo build --release --features query (cluster for --cluster)

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
    /// Format of the rows [default: by the file's name, else table]
    #[arg(long, value_enum)]
    pub format: Option<QueryAs>,
    /// At most this many rows
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Memory for sorting, grouping and joining before they use temporary files: 500M, 8G
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = parse_size, conflicts_with = "cluster")]
    pub memory: usize,
    /// Threads [default: one per CPU]; with --cluster the number of partitions [default: 16]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    /// Run the query on the Ballista cluster of this scheduler, whose executors must see PATH too
    #[arg(long, value_name = "df://HOST:PORT")]
    pub cluster: Option<String>,
    /// With --cluster: a folder that the executors see too, for rows that are not in Parquet files and too many to send
    #[arg(long, value_name = "DIR", requires = "cluster")]
    pub scratch: Option<PathBuf>,
    /// Overwrite an existing file
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

/// Parses a number of bytes, as `500M` or `8G`.
pub(super) fn parse_size(text: &str) -> Result<usize, String> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let shift = match unit.trim_end_matches(['i', 'B']) {
        "" => 0,
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(format!("'{unit}' is not a unit; use 500M or 8G")),
    };
    let bytes = digits.parse::<usize>().ok().and_then(|n| n.checked_mul(1 << shift)).filter(|n| *n > 0);
    bytes.ok_or_else(|| format!("'{text}' is not a size; use 500M or 8G"))
}

/// Parses a number above zero.
fn parse_positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0);
    number.ok_or_else(|| format!("'{text}' is not a number above zero"))
}
