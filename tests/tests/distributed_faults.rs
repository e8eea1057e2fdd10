//! Training in several processes that is disturbed: processes killed and stopped, while they train and while they save, full disks,
//! signals. Every run that goes on ends with the variables of the undisturbed one, bit by bit.

#![allow(clippy::print_stderr, reason = "a test that prints what it skips, and what it measured")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use stepscope_tests::times;
use stepscope_tests::training::{Dice, Running, checkpoint, is_running, newest, signal, since, until};
use stepscope_tests::{TERMINATED, left_out, stepscope_binary};

/// The longest that anything here may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// What each attempt but the first says when it has the variables.
const CONTINUES: &str = "continuing after step ";
/// For runs that end when they are stopped: however late a test comes to disturb them, they are at work.
const ENDLESS: &str = "--steps 1000000";

/// A place for runs: folders of their own for logdirs, checkpoints, and the sockets of launchers.
struct Fixture {
    folder: tempfile::TempDir,
    binary: PathBuf,
}

impl Fixture {
    fn new(what_is_skipped: &str) -> Option<Fixture> {
        let binary = stepscope_binary(what_is_skipped)?;
        let folder = tempfile::tempdir().expect("a scratch folder");
        std::fs::create_dir(folder.path().join("tmp")).expect("the scratch folder is ours");
        Some(Fixture { folder, binary })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `stepscope train` of a run `name`, whose checkpoints go into the folder `checkpoints-NAME`.
    fn train(&self, name: &str, args: &str) -> Running {
        Running::start(&mut self.command(name, args))
    }

    fn command(&self, name: &str, args: &str) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg("train").args(args.split_whitespace());
        command.arg("--checkpoint-dir").arg(self.path(&format!("checkpoints-{name}")));
        // New for each command: a launcher that was killed and is started again continues into another folder.
        let logdir = tempfile::Builder::new().prefix(name).tempdir_in(self.folder.path()).expect("a folder").keep();
        command.arg("--logdir").arg(logdir).env("TMPDIR", self.path("tmp")).stdout(Stdio::null());
        command
    }

    /// A run that nothing disturbs.
    fn undisturbed(&self, name: &str, args: &str) {
        let mut run = self.train(name, args);
        let status = run.end(PATIENCE);
        assert!(status.success(), "{status}: {}", run.text());
    }

    /// Ends a run that has no end of its own; gives the step after which it saved.
    fn end(&self, name: &str, run: &mut Running) -> u64 {
        assert!(signal("-TERM", run.child.id()));
        assert_eq!(run.end(seconds(30)).code(), Some(TERMINATED), "{}", run.text());
        let step = newest(&self.checkpoints(name));
        assert!(step > 0, "it saved nothing: {}", run.text());
        step
    }

    fn checkpoints(&self, name: &str) -> PathBuf {
        self.path(&format!("checkpoints-{name}"))
    }

    fn checkpoint(&self, name: &str, step: u64) -> std::collections::BTreeMap<String, Vec<u8>> {
        checkpoint(&self.checkpoints(name), step)
    }

    /// That the two runs ended with the same variables.
    fn assert_same(&self, a: &str, b: &str, step: u64) {
        let (one, other) = (self.checkpoint(a, step), self.checkpoint(b, step));
        assert!(!one.is_empty(), "{a} has no checkpoint of step {step}");
        assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
        assert!(one == other, "{a} and {b} differ");
    }

    /// That no launcher left anything where sockets are.
    fn assert_clean(&self) {
        let files = std::fs::read_dir(self.path("tmp")).expect("our folder").flatten();
        let left: Vec<PathBuf> = files.map(|file| file.path()).collect();
        assert!(left.is_empty(), "left in the folder of temporary files: {left:?}");
    }
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// The processes of a run with two workers when all are there: a run that has just lost one has none, or some.
fn all_of(run: &Running) -> Vec<u32> {
    let begin = events::clock::mono_now();
    loop {
        let processes = run.processes();
        if processes.len() == 3 {
            return processes;
        }
        assert!(since(begin) < PATIENCE, "not all are there: {processes:?}\n{}", run.text());
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Kills one of a run's processes, and waits until the run goes on once more.
fn kill_and_wait(run: &Running, victim: u32) {
    let n = run.lines_with(CONTINUES).len();
    assert!(signal("-KILL", victim), "{}", run.text());
    run.wait_for(CONTINUES, n + 1, PATIENCE);
}

/// Runs that are killed at random, launchers included, until `n_kills` of their processes are gone. Gives how long it took until
/// each loss was reported.
fn kill_at_random(place: &Fixture, args: &str, steps: u64, n_kills: usize, dice: &mut Dice) -> Vec<Duration> {
    let (mut n, mut printed, mut round) = (0, Vec::new(), 0);
    while n < n_kills {
        round += 1;
        let name = format!("killed-{round}");
        let mut run = place.train(&name, args);
        let mut restarts = 0;
        loop {
            std::thread::sleep(Duration::from_millis(50 + dice.below(900)));
            if let Some(status) = run.child.try_wait().expect("our child") {
                // Its last checkpoint may be the last thing that a launcher did which was killed.
                let is_over = status.success() || run.text().contains("nothing is left to train");
                assert!(is_over, "{status}: {}", run.text());
                break;
            }
            if n == n_kills {
                continue;
            }
            if dice.below(10) == 0 {
                let processes = run.processes();
                run.child.kill().expect("our child");
                run.end(seconds(5));
                until("nothing outlives its launcher", || !processes.iter().any(|process| is_running(*process)));
                run = place.train(&name, args);
                restarts = 0;
                n += 1;
                continue;
            }
            let processes = run.processes();
            let Some(victim) = processes.get(dice.below(3) as usize) else { continue };
            let before = run.lines_with("; restart ").len();
            if before == restarts && signal("-KILL", *victim) {
                // What `kill` itself takes is not the launcher's.
                let at = events::clock::mono_now();
                // It may have been the end of the run, or of what was lost already.
                n += 1;
                while run.lines_with("; restart ").len() == before && since(at) < seconds(10) {
                    if run.child.try_wait().expect("our child").is_some() {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
                if let Some((when, _)) = run.lines_with("; restart ").get(before) {
                    printed.push(Duration::from_nanos((when - at).max(0) as u64));
                }
                restarts = run.lines_with("; restart ").len();
            }
        }
        place.assert_same("undisturbed", &name, steps);
    }
    printed
}

#[test]
fn kills_change_nothing() {
    let Some(place) = Fixture::new("kill -9 of processes that train together") else { return };
    let steps = times(150, 400) as u64;
    let args = format!(
        "mlp --workers 2 --steps {steps} --seed 3 --checkpoint-every 7 --max-restarts 100000 --trace off --quiet"
    );
    place.undisturbed("undisturbed", &args);
    let mut printed = kill_at_random(&place, &args, steps, times(5, 200), &mut Dice(11));
    assert!(!printed.is_empty(), "no loss was reported");
    printed.sort();
    eprintln!(
        "reported {} losses: median {:?}, longest {:?}",
        printed.len(),
        printed[printed.len() / 2],
        printed[printed.len() - 1]
    );
    assert!(printed[printed.len() / 2] < Duration::from_millis(200), "{printed:?}");
    place.assert_clean();
}

/// A model with generators on all tasks: what dropout draws continues, too.
#[test]
fn generators_of_all_tasks_continue() {
    let Some(place) = Fixture::new("kill -9 of processes that train a model with dropout") else { return };
    let args = "convnet --workers 2 --seed 3 --checkpoint-every 2 --max-restarts 9 --trace off --quiet";
    let mut run = place.train("killed", &format!("{args} {ENDLESS}"));
    let folder = place.checkpoints("killed");
    // Some steps before each loss, and after the last.
    let mut after = 2;
    for n in 1..=2 {
        run.wait_for_checkpoint(&folder, after, PATIENCE);
        kill_and_wait(&run, all_of(&run)[n]);
        after = newest(&folder);
    }
    run.wait_for_checkpoint(&folder, after, PATIENCE);
    let steps = place.end("killed", &mut run);
    place.undisturbed("undisturbed", &format!("{args} --steps {steps}"));
    place.assert_same("undisturbed", "killed", steps);
    let files = place.checkpoint("killed", steps);
    assert_eq!(files.len(), 4, "variables, two tasks' generators, and the index: {:?}", files.keys());
}

/// Whoever is killed while a checkpoint is written: there is always a whole one, and never an older one than before.
#[test]
fn kills_while_saving_leave_a_whole_checkpoint() {
    let Some(place) = Fixture::new("kill -9 of processes that save") else { return };
    let args = "mlp --workers 2 --seed 3 --checkpoint-every 1 --max-restarts 100000 --trace off --quiet";
    let mut run = place.train("saving", &format!("{args} {ENDLESS}"));
    run.wait_for_checkpoint(&place.checkpoints("saving"), 0, PATIENCE);
    let mut dice = Dice(7);
    let n_kills = times(6, 500);
    for _ in 0..n_kills {
        std::thread::sleep(Duration::from_millis(dice.below(60)));
        // The one that writes, or the one that renames and lists.
        kill_and_wait(&run, all_of(&run)[dice.below(2) as usize]);
        let after = |line: &str| -> Option<u64> { line.split("after step ").nth(1)?.split(' ').next()?.parse().ok() };
        let steps: Vec<u64> = run.said().iter().filter_map(|(_, line)| after(line)).collect();
        assert!(steps.is_sorted(), "it went back: {steps:?}");
        let _ = run.lines_with("is not used").first().map(|(_, line)| panic!("a torn checkpoint: {line}"));
    }
    assert!(signal("-TERM", run.child.id()));
    assert_eq!(run.end(PATIENCE).code(), Some(TERMINATED), "{}", run.text());
    let left = std::fs::read_dir(place.path("checkpoints-saving")).expect("the checkpoints").flatten();
    let left: Vec<_> =
        left.map(|file| file.file_name()).filter(|name| name.to_string_lossy().ends_with(".tmp")).collect();
    assert!(left.len() <= 2, "what killed processes left is swept when the next one begins: {left:?}");
    place.assert_clean();
}

/// A process that is stopped holds its connections, and is silent.
#[test]
fn a_stopped_process_is_lost_within_three_seconds() {
    let Some(place) = Fixture::new("kill -STOP of processes that train together") else { return };
    let args = "mlp --workers 2 --seed 3 --checkpoint-every 20 --max-restarts 9 --trace off --quiet";
    let mut run = place.train("stopped", &format!("{args} {ENDLESS}"));
    let folder = place.checkpoints("stopped");
    let mut before = 0;
    for who in 0..times(2, 3) {
        // All of them train: it saves every 20 steps.
        run.wait_for_checkpoint(&folder, before, PATIENCE);
        let stopped = all_of(&run)[who];
        let [n_reported, n_continued] = ["; restart ", CONTINUES].map(|part| run.lines_with(part).len());
        assert!(signal("-STOP", stopped));
        // What `kill` itself takes is not the launcher's.
        let at = events::clock::mono_now();
        let printed = run.wait_for("; restart ", n_reported + 1, seconds(10));
        let took = Duration::from_nanos((printed - at).max(0) as u64);
        assert!(took < Duration::from_secs(3), "reported after {took:?}: {}", run.text());
        eprintln!("process {who} of 3 stopped: reported after {took:?}");
        run.wait_for(CONTINUES, n_continued + 1, PATIENCE);
        before = newest(&folder);
        assert!(!is_running(stopped), "what was stopped is gone");
    }
    run.wait_for_checkpoint(&folder, before, PATIENCE);
    let steps = place.end("stopped", &mut run);
    place.undisturbed("undisturbed", &format!("{args} --steps {steps}"));
    place.assert_same("undisturbed", "stopped", steps);
}

#[test]
fn sigterm_saves_first_and_the_run_goes_on_later() {
    let Some(place) = Fixture::new("SIGTERM of a launcher") else { return };
    let args = "mlp --workers 2 --steps 120 --seed 3 --checkpoint-every 1000 --trace off --quiet";
    place.undisturbed("undisturbed", args);
    let mut run = place.train("ended", &args.replace("--steps 120", "--steps 100000"));
    until("it trains", || !run.processes().is_empty());
    std::thread::sleep(Duration::from_millis(700));
    let processes = run.processes();
    let step = place.end("ended", &mut run);
    until("no process is left", || !processes.iter().any(|process| is_running(*process)));
    place.assert_clean();
    eprintln!("ended after step {step}");
    // From there to a step that the undisturbed run comes to as well.
    let steps = step + 20;
    place.undisturbed("longer", &args.replace("--steps 120", &format!("--steps {steps}")));
    place.undisturbed("ended", &args.replace("--steps 120", &format!("--steps {steps}")));
    place.assert_same("longer", "ended", steps);
}

#[test]
fn the_budget_of_restarts_ends() {
    let Some(place) = Fixture::new("more losses than a run may have") else { return };
    let args = "mlp --workers 2 --steps 100000 --seed 3 --checkpoint-every 5 --max-restarts 1 --trace off --quiet";
    let mut run = place.train("exhausted", args);
    for n in 1..=2 {
        until("a checkpoint", || place.path("checkpoints-exhausted").join("checkpoint").exists());
        until("all are there", || run.processes().len() == 3);
        std::thread::sleep(Duration::from_millis(200));
        assert!(signal("-KILL", run.processes()[n]));
        if n == 1 {
            run.wait_for("continuing after step", 1, PATIENCE);
        }
    }
    assert_eq!(run.end(seconds(20)).code(), Some(1), "{}", run.text());
    let text = run.text();
    assert!(text.contains("/job:worker/task:1 was lost") && text.contains("--max-restarts 1 allows"), "{text}");
    place.assert_clean();
}

/// A full disk is reported, costs no checkpoint that was there, and the run goes on when there is room.
#[test]
fn a_full_disk_is_told_and_leaves_what_was_saved() {
    let Some(place) = Fixture::new("a full disk") else { return };
    let folder = place.path("checkpoints-full");
    std::fs::create_dir(&folder).expect("our folder");
    let mount = |options: &str| {
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", options, "none"]).arg(&folder).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    if !mount("size=6m") {
        left_out("a full disk: mounting a small one takes root");
        return;
    }
    let args = "mlp --workers 2 --steps 60 --seed 3 --checkpoint-every 10 --max-restarts 9 --trace off --quiet";
    let mut run = place.train("full", args);
    let status = run.end(PATIENCE);
    let whole = std::fs::read_to_string(folder.join("checkpoint"));
    let printed = run.text();
    let done = mount("remount,size=64m").then(|| {
        place.undisturbed("full", args);
        place.undisturbed("undisturbed", args);
        (place.checkpoint("full", 60), place.checkpoint("undisturbed", 60))
    });
    assert!(Command::new("umount").arg(&folder).status().is_ok_and(|status| status.success()));
    assert_eq!(status.code(), Some(1), "{printed}");
    assert!(printed.contains("No space left on device"), "{printed}");
    assert!(!printed.contains("; restart "), "a disk that is full now is full then: {printed}");
    assert!(whole.is_ok_and(|text| text.contains("model-10")), "the first checkpoint fitted");
    let (full, undisturbed) = done.expect("a larger one");
    assert!(full == undisturbed && !full.is_empty(), "it went on from what was saved");
}

/// The loss that a run ends with, of the test batches.
fn test_loss(command: &mut Command) -> f64 {
    let out = command.stdout(Stdio::piped()).output().expect("the binary starts");
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{text}");
    let printed: serde_json::Value = serde_json::from_slice(&out.stdout).expect("one JSON object");
    printed["test_loss"].as_f64().expect("a loss")
}

/// One process goes on from what several saved, and several from what one did.
#[test]
fn one_process_and_several_read_each_others_checkpoints() {
    let Some(place) = Fixture::new("checkpoints of one process and of several") else { return };
    for model in ["mlp", "convnet"] {
        let args = |steps: u64| format!("{model} --steps {steps} --seed 3 --trace off --quiet --json");
        let loss = |name: &str, steps: u64, with: &str| {
            test_loss(&mut place.command(&format!("{model}-{name}"), &format!("{} {with}", args(steps))))
        };
        let expected = loss("one", 20, "--devices 2");
        for (first, then) in [("--devices 2", "--workers 2"), ("--workers 2", "--devices 2")] {
            let name = format!("from{first}").replace([' ', '-'], "");
            loss(&name, 10, first);
            let got = loss(&name, 20, then);
            assert!((got - expected).abs() <= 1e-3 * expected, "{model} {first}, {then}: {got}, not {expected}");
        }
        // Another model's checkpoints are refused, with the name of what does not fit.
        let other = if model == "mlp" { "convnet" } else { "mlp" };
        let mut run =
            place.train(&format!("{model}-one"), &args(30).replace(model, other).replace("--json", "--workers 1"));
        assert_eq!(run.end(PATIENCE).code(), Some(2), "{}", run.text());
    }
}

/// Steps without an order: the loss is what stays the same, within 20 % of what was learned.
fn goes_on_without_an_order(how: &str, steps: u64, seed: u64) {
    let Some(place) = Fixture::new("kill -9 of processes that train without an order") else { return };
    let [steps, more] = [steps, steps + 1].map(|steps| format!("--steps {steps}"));
    let args = &format!("mlp {how} {steps} --seed 3 --checkpoint-every 30 --max-restarts 1000 --trace off --quiet");
    let undisturbed = test_loss(place.command("undisturbed", args).arg("--json"));
    let mut run = place.train("killed", args);
    let mut dice = Dice(seed);
    for n in 1..=times(2, 10) {
        std::thread::sleep(Duration::from_millis(300 + dice.below(500)));
        let Some(victim) = run.processes().get(dice.below(3) as usize).copied() else { break };
        if signal("-KILL", victim) && run.child.try_wait().expect("our child").is_none() {
            eprintln!("kill {n}");
        }
    }
    assert!(run.end(PATIENCE).success(), "{}", run.text());
    let killed = test_loss(place.command("killed", &args.replace(&steps, &more)).arg("--json"));
    let learned = std::f64::consts::LN_10 - undisturbed;
    eprintln!("undisturbed {undisturbed:.4}, killed {killed:.4}");
    assert!((killed - undisturbed).abs() <= 0.2 * learned, "{killed}, undisturbed {undisturbed}");
}

#[test]
fn asynchronous_training_goes_on() {
    goes_on_without_an_order("--workers 2 --async", 600, 5);
}

#[test]
fn training_with_a_backup_worker_goes_on() {
    goes_on_without_an_order("--workers 3 --backup-workers 1", 400, 6);
}

/// The run's files: the trace has all processes, and TensorBoard learns what is done again.
#[test]
fn trace_and_summaries_survive_a_loss() {
    let Some(place) = Fixture::new("trace and summaries of a run that lost a process") else { return };
    let args = "mlp --workers 2 --seed 3 --checkpoint-every 40 --max-restarts 9 --quiet";
    let mut command = place.command("traced", &format!("{args} {ENDLESS}"));
    let logdir = logdir_of(&command);
    let mut run = Running::start(&mut command);
    let folder = place.checkpoints("traced");
    run.wait_for_checkpoint(&folder, 0, PATIENCE);
    // The training client.
    kill_and_wait(&run, all_of(&run)[0]);
    // At least as many steps as make the trace that is asked for below.
    run.wait_for_checkpoint(&folder, newest(&folder).max(149), PATIENCE);
    let last = place.end("traced", &mut run) as i64;
    let step = run.lines_with(CONTINUES)[0].1.split("after step ").nth(1).expect("a step").to_owned();
    let step: i64 = step.split(' ').next().and_then(|step| step.parse().ok()).expect("a number");
    let out =
        Command::new(&place.binary).args(["analyze", "--json"]).arg(logdir.join("trace")).output().expect("it runs");
    let printed: serde_json::Value = serde_json::from_slice(&out.stdout).expect("one JSON object");
    assert!(
        printed["slices"].as_u64() > Some(1000) && printed["tracks"].as_array().map(Vec::len) > Some(5),
        "{printed}"
    );
    // The second event files say from which step on the first ones are void.
    // All of the summarised steps are there, the last one from the process that came to it; of what the workers report about themselves, too.
    let mut runs = summaries::Logdir::open(std::slice::from_ref(&logdir)).expect("the logdir opens");
    runs.read_all();
    let runs = runs.runs();
    for name in [".", "worker_0", "worker_1"] {
        let run = &runs.by_name[name];
        assert!(run.damage.is_empty(), "{name}: {:?}", run.damage);
        assert_eq!(purges(&logdir.join(name)), [step + 1], "{name}");
        let summaries::Series::Scalar(loss) = &run.series["loss"] else { panic!("loss is a scalar") };
        let mut steps: Vec<i64> = loss.points().map(|point| point.step).collect();
        assert_eq!(steps.last(), Some(&last));
        steps.sort_unstable();
        steps.dedup();
        assert!((1..=last / 10).all(|i| steps.contains(&(10 * i))), "{name}: {steps:?}");
    }
}

fn logdir_of(command: &Command) -> PathBuf {
    let mut args = command.get_args().skip_while(|arg| *arg != "--logdir");
    args.nth(1).map(PathBuf::from).expect("a logdir")
}

/// The steps at which sessions start, in all event files.
fn purges(logdir: &Path) -> Vec<i64> {
    use prost::Message;
    let files = std::fs::read_dir(logdir).expect("the logdir").flatten().map(|file| file.path());
    let mut found = Vec::new();
    for file in files.filter(|file| file.to_string_lossy().contains("tfevents")) {
        let bytes = std::fs::read(file).expect("an event file");
        let mut at = 0;
        while let Some(head) = bytes.get(at..at + 8) {
            let len = u64::from_le_bytes(head.try_into().expect("8 bytes")) as usize;
            let event = formats::proto::Event::decode(&bytes[at + 12..at + 12 + len]).expect("an event");
            if let Some(formats::proto::event::What::SessionLog(_)) = event.what {
                found.push(event.step);
            }
            at += len + 16;
        }
    }
    found
}
