//! A session's checkpoints: all of its state comes back, the last few are kept, a run that is killed restarts.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use engine::checkpoint::{Saver, SaverOptions};
use engine::{DType, Graph, NodeId, Session, SessionOptions, Tensor};

const N_VARIABLES: usize = 6;

/// A graph whose step adds 1 to each of some variables; gives the names of the step and of the initialiser.
fn counters(n_devices: usize) -> (Graph, Session) {
    let g = Graph::new();
    let (mut steps, mut inits): (Vec<NodeId>, Vec<NodeId>) = (Vec::new(), Vec::new());
    for i in 0..N_VARIABLES {
        let on = g.with_device(&format!("/device:cpu:{}", i % n_devices));
        let of = |value: f32| Tensor::from_vec([100, i + 1], vec![value; 100 * (i + 1)]).unwrap();
        let v = on.variable(&format!("v{i}"), of(0.0));
        let one = on.constant(of(1.0));
        steps.push(on.value(v.handle).op_with("AssignAddVariableOp", one).node());
        inits.push(v.init);
    }
    g.group("step", &steps);
    g.group("init", &inits);
    let session = Session::new(&g, SessionOptions::devices(n_devices)).unwrap();
    (g, session)
}

fn values(session: &Session) -> Vec<f32> {
    let names: Vec<String> = (0..N_VARIABLES).map(|i| format!("v{i}/Read")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let all = session.run(&[], &names, &[]).unwrap();
    all.iter().flat_map(|t| t.slice::<f32>().unwrap().to_vec()).collect()
}

fn options(keep: usize) -> SaverOptions {
    SaverOptions { max_to_keep: keep, ..SaverOptions::default() }
}

fn step(session: &Session) {
    session.run(&[], &[], &["step"]).unwrap();
}

#[test]
fn state_comes_back_on_one_device_and_on_three() {
    for n_devices in [1, 3] {
        let folder = tempfile::tempdir().unwrap();
        let (_g, session) = counters(n_devices);
        session.run(&[], &[], &["init"]).unwrap();
        let mut saver = Saver::new(folder.path(), options(3)).unwrap();
        assert!(saver.restore(&session).unwrap().is_none());
        for i in 1..=5 {
            step(&session);
            saver.save(&session, i).unwrap();
        }
        let kept: Vec<u64> = saver.checkpoints().iter().map(|(step, _)| *step).collect();
        assert_eq!(kept, [3, 4, 5]);
        // Another session, also on another number of devices, before and after its variables were made.
        for (n, init) in [(n_devices, false), (n_devices, true), (2, false)] {
            let (_g, other) = counters(n);
            if init {
                other.run(&[], &[], &["init"]).unwrap();
            }
            let restored = Saver::new(folder.path(), options(3)).unwrap().restore(&other).unwrap().unwrap();
            assert_eq!((restored.step, restored.missing.len(), restored.warnings.len()), (5, 0, 0));
            assert!(values(&other).iter().all(|v| *v == 5.0), "{n_devices} devices, then {n}");
        }
        let left = fs::read_dir(folder.path()).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap());
        let foreign: Vec<String> = left.filter(|f| f != "checkpoint" && !f.starts_with("model-")).collect();
        assert_eq!(foreign, [""; 0], "nothing else is left behind");
    }
}

#[test]
fn a_damaged_checkpoint_gives_way_to_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let (_g, session) = counters(1);
    session.run(&[], &[], &["init"]).unwrap();
    let mut saver = Saver::new(folder.path(), options(5)).unwrap();
    for i in 1..=3 {
        step(&session);
        saver.save(&session, i).unwrap();
    }
    let damage = |name: &str, at: usize| {
        let path = folder.path().join(name);
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.len() - at;
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
    };
    damage("model-3.safetensors", 10);
    let restored = saver.restore(&session).unwrap().unwrap();
    assert_eq!(restored.step, 2);
    assert!(restored.warnings[0].contains("does not match its checksum"), "{:?}", restored.warnings);
    assert!(values(&session).iter().all(|v| *v == 2.0));
    damage("model-2.safetensors", 10);
    fs::write(folder.path().join("model-1.safetensors"), b"").unwrap();
    assert!(saver.restore(&session).unwrap_err().to_string().contains("too short"));
    // The state file is not needed.
    step(&session);
    saver.save(&session, 9).unwrap();
    fs::write(folder.path().join("checkpoint"), b"\xff garbage").unwrap();
    assert_eq!(saver.restore(&session).unwrap().unwrap().step, 9);
}

#[test]
fn another_models_checkpoint_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (_g, session) = counters(1);
    session.run(&[], &[], &["init"]).unwrap();
    let mut saver = Saver::new(folder.path(), options(5)).unwrap();
    saver.save(&session, 1).unwrap();
    let g = Graph::new();
    g.variable("v0", Tensor::vector(&[1.0f64]));
    let other = Session::new(&g, SessionOptions::default()).unwrap();
    let error = saver.restore(&other).unwrap_err().to_string();
    assert!(error.ends_with("tensor v0 is float[100,1], expected double[1]"), "{error}");
}

#[test]
fn writing_in_the_background_saves_the_moment_of_the_call() {
    let folder = tempfile::tempdir().unwrap();
    let (_g, session) = counters(1);
    session.run(&[], &[], &["init"]).unwrap();
    let mut saver = Saver::new(folder.path(), SaverOptions { every_steps: Some(10), ..options(50) }).unwrap();
    let mut began = Vec::new();
    for i in 0..=60 {
        if saver.after_step(&session, i).unwrap() {
            began.push(i);
        }
        step(&session);
    }
    saver.wait().unwrap();
    assert!(!began.is_empty() && began[0] == 10, "{began:?}");
    for (saved, prefix) in saver.checkpoints() {
        let checkpoint = engine::checkpoint::Checkpoint::open(prefix).unwrap();
        for i in 0..N_VARIABLES {
            let v = checkpoint.read(&format!("v{i}")).unwrap();
            assert!(v.slice::<f32>().unwrap().iter().all(|v| *v == saved as f32));
        }
    }
}

#[test]
fn queues_and_random_generators_go_on_where_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let build = || {
        let g = Graph::new();
        let shape = g.ints(&[3]);
        g.add_node("RandomUniform").name("random").input(shape).attr("dtype", DType::F32).attr("seed", 5).value();
        let queue =
            g.add_node("RandomShuffleQueueV2").name("queue").attr("component_types", vec![DType::I64, DType::String]);
        let queue = queue.attr("seed", 3).attr("min_after_dequeue", 1).value();
        let numbers = g.constant(Tensor::vector(&(0..40i64).collect::<Vec<_>>()));
        let texts = (0..40).map(|i| format!("text {i}").into_bytes()).collect();
        let texts = g.constant(Tensor::from_strings([40], texts).unwrap());
        g.add_node("QueueEnqueueManyV2").name("fill").input(queue).inputs(&[numbers, texts]).value();
        let take = g.add_node("QueueDequeueV2").name("take").input(queue);
        take.attr("component_types", vec![DType::I64, DType::String]).value();
        Session::new(&g, SessionOptions::default()).unwrap()
    };
    let draw = |session: &Session| session.run(&[], &["take:0", "take:1", "random"], &[]).unwrap();
    let session = build();
    session.run(&[], &[], &["fill"]).unwrap();
    (0..10).for_each(|_| drop(draw(&session)));
    let mut saver = Saver::new(folder.path(), options(5)).unwrap();
    saver.save(&session, 10).unwrap();
    let wanted: Vec<Vec<Tensor>> = (0..29).map(|_| draw(&session)).collect();
    let other = build();
    assert_eq!(saver.restore(&other).unwrap().unwrap().step, 10);
    let got: Vec<Vec<Tensor>> = (0..29).map(|_| draw(&other)).collect();
    assert_eq!(got, wanted);
    // And once more into objects that exist.
    saver.restore(&other).unwrap();
    assert_eq!(draw(&other), wanted[0]);
}

const CHILD: &str = "STEPSCOPE_TEST_SAVER_FOLDER";

/// Not a test by itself: what `killed_runs_restart` kills. It counts on from the last checkpoint, for ever.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    let (_g, session) = counters(2);
    let mut saver = Saver::new(Path::new(&folder), options(2)).unwrap();
    let mut at = match saver.restore(&session).unwrap() {
        Some(restored) => {
            assert!(restored.warnings.is_empty(), "{:?}", restored.warnings);
            assert!(values(&session).iter().all(|v| *v == restored.step as f32), "state of step {}", restored.step);
            restored.step
        }
        None => {
            session.run(&[], &[], &["init"]).unwrap();
            0
        }
    };
    println!("\nrestored {at}");
    loop {
        step(&session);
        at += 1;
        saver.save(&session, at).unwrap();
        println!("\nsaved {at}");
    }
}

#[test]
fn killed_runs_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (mut saved, mut n_saved) = (0u64, 0);
    for round in 0..25u64 {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "saver::child", "--nocapture"]).env(CHILD, folder.path());
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Somewhere within the save that follows, at another place each round.
        let mut left = 2 + round % 3;
        for line in lines.map_while(Result::ok) {
            let number = |prefix: &str| line.strip_prefix(prefix).and_then(|n| n.parse::<u64>().ok());
            if let Some(at) = number("restored ") {
                assert!(at >= saved, "round {round}: step {saved} was saved, but {at} restored");
            }
            if let Some(at) = number("saved ") {
                saved = at;
                n_saved += 1;
                left -= 1;
            }
            if left == 0 {
                std::thread::sleep(std::time::Duration::from_micros(round * 137));
                break;
            }
        }
        // SIGKILL: nothing of the child runs any more.
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(left, 0, "round {round}: the child ended by itself");
    }
    assert!(n_saved >= 50);
    let (_g, session) = counters(2);
    let restored = Saver::new(folder.path(), options(2)).unwrap().restore(&session).unwrap().unwrap();
    assert!(restored.step >= saved);
    assert!(values(&session).iter().all(|v| *v == restored.step as f32));
}

/// What a run that was killed while it saved has left goes when the next one restores; what is somebody else's stays.
#[test]
fn what_killed_runs_left_is_swept() {
    let folder = tempfile::tempdir().unwrap();
    let (_g, session) = counters(1);
    session.run(&[], &[], &["init"]).unwrap();
    let mut saver = Saver::new(folder.path(), options(3)).unwrap();
    saver.save(&session, 4).unwrap();
    let left = [
        ".model-5.part-0.safetensors",
        ".model-5.part-1.safetensors.77-3.tmp",
        "model-5.safetensors.1-0.tmp",
        "checkpoint.9-1.tmp",
    ];
    let others = ["other-5.safetensors.1-0.tmp", ".hidden", "model-notes.txt"];
    for name in left.iter().chain(&others) {
        fs::write(folder.path().join(name), "x").unwrap();
    }
    assert_eq!(saver.restore(&session).unwrap().unwrap().step, 4);
    assert!(left.iter().all(|name| !folder.path().join(name).exists()));
    assert!(others.iter().all(|name| folder.path().join(name).exists()));
}
