//! A terminal's manners: results that cannot be written, readers that leave, signals, progress. Each rule is a table with every
//! command in it, and a command that is missing there fails the test.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use serde_json::Value;
use stepscope_tests::training::output_of;
use stepscope_tests::{INTERRUPTED, TERMINATED, free_port, has_sql, left_out, root, stepscope_binary};

/// What a command does with its standard output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Writes its results and ends.
    Ends,
    /// Says where it listens, and goes on.
    Listens,
}
use Kind::{Ends, Listens};

/// Every command with what makes it write. `NEW` is a path that does not exist, `PORT` a free port, `RUN` a run's folder.
const CASES: &[(Kind, &str)] = &[
    (Ends, "demo --headless --steps 20 --logdir NEW"),
    (Ends, "demo --headless --steps 20 --logdir NEW --json"),
    (Ends, "train mlp --steps 20 --logdir NEW"),
    (Ends, "train mlp --steps 20 --logdir NEW --json"),
    (Ends, "run graph.pbtxt --init init --fetch read"),
    (Ends, "run graph.pbtxt --init init --fetch read --json"),
    (Ends, "params RUN/graph.pb"),
    (Ends, "params RUN/graph.pb --json"),
    (Ends, "compare graph.pbtxt graph.pbtxt --fetch two"),
    (Ends, "compare graph.pbtxt graph.pbtxt --fetch two --json"),
    (Ends, "freeze RUN/graph.pb --checkpoint ckpt -o NEW"),
    (Ends, "freeze RUN/graph.pb --checkpoint ckpt -o NEW --json"),
    (Ends, "analyze RUN"),
    (Ends, "analyze RUN --json"),
    (Ends, "diff RUN RUN"),
    (Ends, "diff RUN RUN --json"),
    (Ends, "dumps snapshot.pickle"),
    (Ends, "dumps snapshot.pickle --json"),
    (Ends, "report RUN -o NEW"),
    (Ends, "runs RUN"),
    (Ends, "runs RUN --json"),
    (Ends, "runs RUN --group .*"),
    (Ends, "import RUN -o NEW --json"),
    (Ends, "convert metrics.jsonl -o NEW"),
    (Ends, "convert metrics.jsonl -o NEW --json"),
    (Ends, "export RUN/trace"),
    (Ends, "export RUN/trace --format perfetto"),
    (Ends, "export RUN/trace --format csv"),
    (Ends, "export RUN --format csv"),
    (Ends, "export RUN --format json --follow"),
    (Ends, "query RUN"),
    (Ends, "query RUN --format json"),
    (Ends, "query RUN select*from(slices)"),
    (Ends, "ops"),
    (Ends, "ops --json"),
    (Ends, "doctor"),
    (Ends, "doctor --json"),
    (Ends, "certify one -o NEW"),
    (Ends, "certify one -o NEW --json"),
    (Ends, "completions bash"),
    (Ends, "completions zsh -o NEW"),
    (Ends, "man -o NEW"),
    (Listens, "serve RUN --listen 127.0.0.1:0 --json"),
    (Listens, "collect -o NEW --listen 127.0.0.1:0 --json"),
    (Listens, "worker --job worker --task 0 --cluster CLUSTER --json"),
    (Listens, "master --cluster CLUSTER --listen 127.0.0.1:PORT --json"),
];

/// Commands that write nothing to standard output by themselves: the program that they run does, or alerts and requests
/// make them write (tests/watch.rs, tests/mcp.rs).
const SILENT: &[&str] = &["view", "record", "help", "watch", "mcp"];

const GRAPH: &str = r#"
node { name: "two" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 2 } } } }
node { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shared_name" value { s: "v" } }
  attr { key: "shape" value { shape { } } } }
node { name: "init" op: "AssignVariableOp" input: "v" input: "two" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "read" op: "ReadVariableOp" input: "v" attr { key: "dtype" value { type: DT_FLOAT } } }
"#;

/// A folder with what the commands of the table need.
struct Fixture {
    binary: PathBuf,
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new(what: &str) -> Option<Fixture> {
        let binary = stepscope_binary(what)?;
        let folder = tempfile::tempdir().expect("a scratch folder");
        fs::write(folder.path().join("graph.pbtxt"), GRAPH).expect("the scratch folder is writable");
        let metrics = "{\"step\": 1, \"loss\": 1.0}\n{\"step\": 2, \"loss\": 0.5}\n";
        fs::write(folder.path().join("metrics.jsonl"), metrics).expect("the scratch folder is writable");
        let snapshot = root().join("profiler/dumps/tests/fixtures/gpu_p4.pickle");
        fs::copy(snapshot, folder.path().join("snapshot.pickle")).expect("the snapshot");
        let place = Fixture { binary, folder };
        let output = place
            .command("train mlp --steps 20 --logdir run --checkpoint-dir ckpt")
            .output()
            .expect("the binary starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command of a line, in the folder.
    fn command(&self, line: &str) -> Command {
        let scratch = tempfile::tempdir_in(self.folder.path()).expect("a scratch folder").keep();
        let words = line.split(' ').map(|word| match word {
            "select*from(slices)" => "select * from slices".to_owned(),
            "NEW" => scratch.join("new").display().to_string(),
            "CLUSTER" => {
                let file = scratch.join("cluster.toml");
                let text = format!("id = \"t\"\n[jobs]\nworker = [\"127.0.0.1:{}\"]\n", free_port());
                fs::write(&file, text).expect("the scratch folder is writable");
                file.display().to_string()
            }
            word => word.replace("PORT", &free_port().to_string()).replace("RUN", "run"),
        });
        let mut command = Command::new(&self.binary);
        command.args(words).current_dir(self.folder.path());
        command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").stdin(Stdio::null());
        command
    }

    /// Every command that the program lists.
    fn commands(&self) -> BTreeSet<String> {
        let help = Command::new(&self.binary).arg("--help").output().expect("the binary starts");
        let text = String::from_utf8(help.stdout).expect("UTF-8");
        let (_, list) = text.split_once("\nLook:\n").expect("a list of commands, in groups");
        let (list, _) = list.split_once("\nOptions:\n").expect("options after the commands");
        let lines = list.lines();
        // A description may take several lines, which are indented more.
        lines
            .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
            .filter(|w| !w.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// Whether this program was built without what the line asks for, and says so.
    fn lacks(&self, line: &str) -> bool {
        let is_missing = line.starts_with("query") && !has_sql(&self.binary);
        if is_missing {
            left_out(format_args!("{line}: STEPSCOPE_BIN was built without SQL"));
        }
        is_missing
    }
}

/// As a shell says it.
fn code(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|signal| 128 + signal)).expect("it has ended")
}

/// The end of a pipe that nobody reads.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

fn full_device() -> Stdio {
    File::options().write(true).open("/dev/full").expect("a full device").into()
}

fn kill(child: &Child, signal: &str) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill starts");
    assert!(status.success(), "kill {signal}");
}

/// Lines that are no progress and no notice of what was done.
fn complaints(stderr: &str) -> Vec<&str> {
    stderr.lines().filter(|line| line.starts_with("stepscope: standard output") || line.contains("panicked")).collect()
}

#[test]
fn every_command_is_in_the_tables() {
    let Some(place) = Fixture::new("the list of commands") else { return };
    let printed: BTreeSet<String> = CASES
        .iter()
        .map(|(_, line)| line.split(' ').next().expect("a command").to_owned())
        .chain(SILENT.iter().map(|name| (*name).to_owned()))
        .collect();
    assert_eq!(place.commands(), printed, "each command with what it writes belongs into CASES, or into SILENT");
}

#[test]
fn results_that_cannot_be_written_are_an_error() {
    let Some(place) = Fixture::new("results on a full device") else { return };
    for (kind, line) in CASES {
        if place.lacks(line) {
            continue;
        }
        let output = place.command(line).stdout(full_device()).output().expect("the binary starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{kind:?} {line}: {stderr}");
        let complaints = complaints(&stderr);
        assert_eq!(complaints.len(), 1, "{line}: {stderr}");
        assert!(complaints[0].contains("No space left on device"), "{line}: {stderr}");
    }
}

#[test]
fn a_reader_who_leaves_ends_a_command_quietly() {
    let Some(place) = Fixture::new("results for readers who leave") else { return };
    for (kind, line) in CASES {
        if place.lacks(line) {
            continue;
        }
        let mut child =
            place.command(line).stdout(closed_pipe()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut said = String::new();
        if *kind == Listens {
            // It goes on without, and says so to whoever looks.
            for text in stderr.lines().map_while(Result::ok) {
                let is_up = text.contains("Ctrl-C ends it");
                said += &(text + "\n");
                if is_up {
                    kill(&child, "-TERM");
                }
            }
        } else {
            let mut stderr = stderr;
            stderr.read_to_string(&mut said).expect("UTF-8");
        }
        let status = child.wait().expect("it ends");
        let wanted = if *kind == Listens { TERMINATED } else { 0 };
        assert_eq!(code(status), wanted, "{line}: {said}");
        assert!(complaints(&said).is_empty(), "{line}: {said}");
    }
}

#[test]
fn each_object_says_its_version() {
    let Some(place) = Fixture::new("versions of JSON objects") else { return };
    for (kind, line) in CASES.iter().filter(|(_, line)| line.ends_with("--json")) {
        let mut child =
            place.command(line).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut first = String::new();
        stdout.read_line(&mut first).expect("UTF-8");
        let object: Value = serde_json::from_str(&first).unwrap_or_else(|error| panic!("{line}: {error}: {first}"));
        assert!(object["schema_version"].as_u64().is_some_and(|version| version > 0), "{line}: {first}");
        if *kind == Listens {
            kill(&child, "-TERM");
        }
        std::io::copy(&mut stdout, &mut std::io::sink()).expect("the rest");
        child.wait().expect("it ends");
    }
}

/// Commands that go on until they are interrupted, and the stream and text by which they show that they are at it.
const LONG: &[(&str, Stream, &str)] = &[
    ("demo --headless --steps 1000000 --logdir NEW", Stream::Err, "step "),
    ("train mlp --steps 1000000 --logdir NEW --json", Stream::Err, "step "),
    ("train mlp --steps 1000000 --logdir NEW --workers 2", Stream::Err, "step "),
    ("serve RUN --listen 127.0.0.1:0", Stream::Err, "Ctrl-C ends it"),
    ("collect -o NEW --listen 127.0.0.1:0", Stream::Err, "Ctrl-C ends it"),
    ("worker --job worker --task 0 --cluster CLUSTER", Stream::Err, "Ctrl-C ends it"),
    ("master --cluster CLUSTER --listen 127.0.0.1:PORT", Stream::Err, "Ctrl-C ends it"),
    ("export logs --follow", Stream::Out, "loss"),
    ("record -o NEW -- sh long.sh", Stream::Out, "begun"),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stream {
    Out,
    Err,
}

#[test]
fn the_exit_code_says_which_signal_ended_a_command() {
    let Some(place) = Fixture::new("signals") else { return };
    // A script that runs the tests in the background has them ignore SIGINT; what they start would inherit that, and `record`
    // keeps what it inherits.
    // SAFETY: nothing here has a handler of its own that this could replace.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
    let writer = summaries::SummaryWriter::create(&place.path("logs"), summaries::WriterOptions::default());
    let writer = writer.expect("a writer");
    fs::write(place.path("long.sh"), "echo begun\nexec sleep 1000\n").expect("the scratch folder is writable");
    writer.add_scalar("loss", 0.5, 1);
    writer.flush().expect("written");
    for (line, stream, sign) in LONG {
        for (signal, wanted) in [("-INT", INTERRUPTED), ("-TERM", TERMINATED)] {
            let mut command = place.command(line);
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
            let (out, err) = (child.stdout.take().expect("a pipe"), child.stderr.take().expect("a pipe"));
            let (seen, other): (Box<dyn Read + Send>, Box<dyn Read + Send>) = match stream {
                Stream::Out => (Box::new(out), Box::new(err)),
                Stream::Err => (Box::new(err), Box::new(out)),
            };
            let other = std::thread::spawn(|| std::io::read_to_string(other).expect("UTF-8"));
            let (mut said, mut is_told) = (String::new(), false);
            for text in BufReader::new(seen).lines().map_while(Result::ok) {
                if text.contains(sign) && !is_told {
                    is_told = true;
                    kill(&child, signal);
                }
                said += &(text + "\n");
            }
            let status = child.wait().expect("it ends");
            let other = other.join().expect("read");
            assert!(is_told, "{line} never said '{sign}': {said}{other}");
            assert_eq!(code(status), wanted, "{line}, {signal}: {said}{other}");
            if line.contains("--json") {
                let object: Value = serde_json::from_str(&other).expect("its result, as far as it came");
                assert!(object["steps"].as_u64() < Some(1_000_000), "{object}");
            }
        }
    }
}

#[test]
fn what_takes_longer_says_how_far_it_is_unless_it_is_to_be_quiet() {
    let Some(place) = Fixture::new("progress") else { return };
    let said = |line: &str| {
        let output = output_of(&mut place.command(line));
        assert!(output.status.success());
        let stdout = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(serde_json::from_str::<Value>(&stdout).is_ok(), "one object and nothing else: {stdout}");
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    let loud = said("demo --headless --json --steps 200 --logdir NEW");
    assert!(loud.contains("step 200 of 200"), "{loud}");
    assert!(!loud.contains('\r') && !loud.contains('\x1b'), "stderr is no terminal: {loud}");
    assert_eq!(said("demo --headless --json --steps 200 --logdir NEW -q"), "");
}

/// Steps of `step N of M  R steps/s`, and the rate.
fn last_rate(stderr: &str) -> (u64, f64) {
    let line = stderr.lines().rfind(|line| line.starts_with("step ")).expect("progress");
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |text: &str| text.replace(',', "").parse::<f64>().expect("a number");
    (number(words[1]) as u64, number(words[4]))
}

#[test]
fn progress_and_summary_of_a_continued_run_agree() {
    let Some(place) = Fixture::new("progress after a restart") else { return };
    let train = |steps: u32| {
        let line = format!("train mlp --steps {steps} --checkpoint-dir again --logdir NEW --json");
        let output = output_of(&mut place.command(&line));
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{stderr}");
        (serde_json::from_slice::<Value>(&output.stdout).expect("one object"), stderr)
    };
    train(400);
    let (summary, stderr) = train(440);
    assert_eq!((summary["steps"].as_u64(), summary["restored_steps"].as_u64()), (Some(440), Some(400)));
    let (step, rate) = last_rate(&stderr);
    let printed = summary["steps_per_second"].as_f64().expect("a number");
    assert_eq!(step, 440);
    assert!((rate - printed).abs() <= 0.5, "the line says {rate} steps/s, the summary {printed}");
    let seconds = summary["seconds"].as_f64().expect("a number");
    assert!(
        (printed * seconds - 40.0).abs() < 0.01,
        "{printed} steps/s for {seconds} s are the 40 steps that were done"
    );
}

#[test]
fn rows_of_a_run_come_while_it_goes_on_and_end_with_it() {
    let Some(place) = Fixture::new("export --follow") else { return };
    let mut train = place
        .command("train mlp --steps 300 --logdir followed")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stderr = BufReader::new(train.stderr.take().expect("a pipe")).lines();
    assert!(stderr.by_ref().map_while(Result::ok).any(|line| line.starts_with("step ")), "it has begun");
    let follow = |path: &str, format: &str| {
        let line = format!("export {path} --follow --format {format}");
        place.command(&line).stdout(Stdio::piped()).spawn().expect("the binary starts")
    };
    let (rows, slices) = (follow("followed", "json"), follow("followed/trace", "csv"));
    let rest = std::thread::spawn(move || stderr.count());
    let (rows, slices) = (rows.wait_with_output().expect("it ends"), slices.wait_with_output().expect("it ends"));
    assert!(rows.status.success() && slices.status.success());
    assert!(train.wait().expect("it ends").success());
    rest.join().expect("read");
    let sorted = |bytes: &[u8]| {
        let mut lines: Vec<String> = String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let whole = |path: &str, format: &str| {
        let output = output_of(&mut place.command(&format!("export {path} --format {format}")));
        assert!(output.status.success());
        sorted(&output.stdout)
    };
    assert_eq!(sorted(&rows.stdout), whole("followed", "json"), "every point once");
    // Tracks may be numbered otherwise in what was sealed, and clock anchors that came later move times by a nanosecond.
    let without_track = |lines: Vec<String>| {
        let fields = [4, 1, 0];
        let what = |line: &String| fields.iter().fold(line.clone(), |line, n| drop_field(&line, *n));
        let mut rows: Vec<String> = lines.iter().map(what).collect();
        rows.sort();
        rows
    };
    let (live, sealed) = (without_track(sorted(&slices.stdout)), without_track(whole("followed/trace", "csv")));
    assert!(live.len() > 1_000, "{} slices", live.len());
    let differ = live.iter().zip(&sealed).find(|(a, b)| a != b);
    assert_eq!((live.len(), differ), (sealed.len(), None), "every slice once");
}

fn drop_field(line: &str, n: usize) -> String {
    let mut fields: Vec<&str> = line.split(',').collect();
    if fields.len() > n {
        fields.remove(n);
    }
    fields.join(",")
}

#[test]
fn shells_and_man_read_what_is_written_for_them() {
    let Some(place) = Fixture::new("completions and the manual") else { return };
    let commands = place.commands();
    let script = output_of(&mut place.command("completions bash")).stdout;
    fs::write(place.path("completions.bash"), &script).expect("the scratch folder is writable");
    // As bash asks for what may come after `stepscope `.
    let ask = "source completions.bash; COMP_WORDS=(stepscope ''); COMP_CWORD=1; _stepscope stepscope '' stepscope; echo \"${COMPREPLY[@]}\"";
    let bash = Command::new("bash").args(["--norc", "-c", ask]).current_dir(place.folder.path()).output();
    let bash = bash.expect("bash");
    let offered: BTreeSet<String> =
        String::from_utf8_lossy(&bash.stdout).split_whitespace().map(str::to_owned).collect();
    assert!(commands.is_subset(&offered), "{:?}: {}", offered, String::from_utf8_lossy(&bash.stderr));
    let man = output_of(&mut place.command("man -o man"));
    assert!(man.status.success(), "{}", String::from_utf8_lossy(&man.stderr));
    for command in commands.iter().filter(|name| *name != "help") {
        let page =
            fs::read_to_string(place.path(&format!("man/stepscope-{command}.1"))).expect("a page for each command");
        assert!(page.contains(".SH SYNOPSIS") && page.contains(".TH"), "{command}: {page}");
    }
    assert!(Path::new(&place.path("man/stepscope.1")).exists());
}

/// Commands that look for traces or logdirs, with a path where there is none.
const READERS: &[&str] = &[
    "analyze PATH",
    "diff PATH PATH",
    "report PATH -o NEW",
    "runs PATH",
    "import PATH -o NEW",
    "export PATH",
    "export PATH --format csv",
    "export PATH --follow",
    "serve PATH --listen 127.0.0.1:0",
    "view PATH",
];

#[test]
fn a_path_that_holds_nothing_is_told_once_in_one_line() {
    let Some(place) = Fixture::new("paths without traces") else { return };
    fs::create_dir(place.path("empty")).expect("the scratch folder is writable");
    fs::write(place.path("notes.txt"), "no trace\n").expect("the scratch folder is writable");
    for line in READERS {
        for path in ["not-there", "notes.txt", "empty"] {
            // A window, and rows that are to come, wait for what comes into a folder; there is nothing to serve yet either.
            let may_wait = ["view", "serve"].iter().any(|name| line.starts_with(name)) || line.ends_with("--follow");
            if path == "empty" && may_wait {
                continue;
            }
            let output = output_of(&mut place.command(&line.replace("PATH", path)));
            let stderr = String::from_utf8_lossy(&output.stderr);
            let printed: Vec<&str> = stderr.lines().filter(|line| line.starts_with("stepscope: ")).collect();
            assert_eq!(output.status.code(), Some(2), "{line} of {path}: {stderr}");
            assert_eq!((printed.len(), stderr.lines().count()), (1, 1), "{line} of {path}: {stderr}");
            assert_eq!(printed[0].matches(path).count(), 1, "{line} of {path}: {stderr}");
        }
    }
}
