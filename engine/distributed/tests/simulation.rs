//! The whole of master, workers and network code in a deterministic simulation: processes are killed, lost, stopped, cut off and
//! started again, connections reset, in an order that a seed says. 300 seeds here, 10,000 with STEPSCOPE_SOAK; STEPSCOPE_SEED=N is one.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

mod simulated;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use distributed::{Master, MasterOptions};
use engine::Graph;
use simulated::Simulated;
use threads::simulation::Simulation;

/// What became of a seed.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Outcome {
    trace: u64,
    n_steps: u64,
    n_restarts: u64,
    n_pieces: u64,
    reported_after: Duration,
    time_ns: i64,
}

/// A cluster of two to four tasks with a client, which is disturbed and must recover.
fn simulate(seed: u64, with: fn(&Simulation)) -> Outcome {
    Simulation::run(seed, |simulation| {
        with(simulation);
        let n = 2 + simulation.random(3) as usize;
        let mut cluster = Simulated::start(simulation, n);
        cluster.start_client();
        for _ in 0..1 + simulation.random(4) {
            threads::sleep(Duration::from_millis(simulation.random(1000)));
            cluster.disturb();
        }
        cluster.shared.state.lock().is_calm = true;
        // A stopped task goes on after six seconds, two more and what it takes to notice that a client is gone.
        cluster.until("training goes on", Duration::from_secs(60), || cluster.shared.state.lock().is_done);
        for (_, process) in &cluster.clients {
            simulation.kill(*process);
        }
        cluster.check_empty();
        let state = cluster.shared.state.lock();
        Outcome {
            trace: simulation.trace(),
            n_steps: state.n_steps,
            n_restarts: state.n_restarts,
            n_pieces: cluster.network.n_pieces(),
            reported_after: state.reported_after,
            time_ns: threads::now(),
        }
    })
}

/// What hangs, is gone with its host or cut off, in one direction or both, is reported within three seconds.
#[test]
fn what_hangs_is_reported_within_three_seconds() {
    let longest = (0..100).map(|seed| {
        Simulation::run(seed, |simulation| {
            let mut cluster = Simulated::start(simulation, 2 + simulation.random(3) as usize);
            cluster.start_client();
            cluster.until("it trains", Duration::from_secs(5), || cluster.shared.state.lock().n_steps > 3);
            threads::sleep(Duration::from_millis(simulation.random(1000)));
            let at = threads::now();
            cluster.hang();
            cluster.until("reported", Duration::from_secs(3), || cluster.shared.state.lock().reported_at.is_some());
            threads::since(at)
        })
    });
    println!("what hangs is reported after {:?} at most", longest.max().unwrap_or_default());
}

/// A step of no-ops on `n` tasks: each hears of it and answers, all side by side.
fn null_steps(n: usize) {
    const DELAY: Duration = Duration::from_micros(25);
    Simulation::run(n as u64, |simulation| {
        simulation.set_turn(Duration::ZERO);
        let cluster = Simulated::start(simulation, n);
        cluster.network.set_delays(DELAY, Duration::ZERO);
        // All listen.
        threads::sleep(Duration::from_millis(1));
        let g = Graph::new();
        let targets: Vec<String> = (0..n).map(|task| format!("null{task}")).collect();
        for (task, target) in targets.iter().enumerate() {
            g.with_device(&format!("/job:worker/task:{task}")).group(target, &[]);
        }
        let master = Master::new(cluster.cluster(), MasterOptions::default());
        let session = master.session(&g).unwrap();
        let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
        let step = session.prepare(&[], &[], &targets).unwrap();
        // No heartbeat comes between: connections are younger than that, or as old.
        threads::sleep(Duration::from_millis(100));
        let (begin, n_before) = (threads::now(), cluster.network.n_pieces());
        for _ in 0..3 {
            step.run(&[]).unwrap();
        }
        let (took, n_pieces) = (threads::since(begin) / 3, (cluster.network.n_pieces() - n_before) / 3);
        println!("a null step of {n} tasks: {n_pieces} messages, {took:?} with {DELAY:?} each way");
        assert_eq!((n_pieces, took), (2 * n as u64, 2 * DELAY));
    });
}

#[test]
fn a_null_step_takes_two_messages_a_task_and_a_round_trip() {
    let more: &[usize] = if std::env::var_os("STEPSCOPE_SOAK").is_some() { &[300, 1000] } else { &[] };
    [2, 16, 64].iter().chain(more).for_each(|n| null_steps(*n));
}

fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

fn outcome(seed: u64) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| simulate(seed, |_| {}))).unwrap_or_else(|payload| {
        panic!(
            "seed {seed}: {}\nagain: STEPSCOPE_SEED={seed} cargo test --package distributed --test simulation seeds",
            panic_text(&*payload)
        )
    })
}

#[test]
fn all_seeds_recover() {
    let seeds = match (std::env::var("STEPSCOPE_SEED"), std::env::var_os("STEPSCOPE_SOAK")) {
        (Ok(seed), _) => {
            let seed: u64 = seed.parse().unwrap();
            seed..seed + 1
        }
        (_, Some(_)) => 0..10_000,
        _ => 0..300,
    };
    let outcomes: Vec<Outcome> = seeds.map(outcome).collect();
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    let longest = outcomes.iter().map(|outcome| outcome.reported_after).max();
    let time = Duration::from_nanos(sum(|outcome| outcome.time_ns as u64));
    println!(
        "{} seeds, {:.0} simulated seconds: {} steps, {} restarts, {} pieces over the network; \
         a loss was reported after {:?} at most",
        outcomes.len(),
        time.as_secs_f64(),
        sum(|o| o.n_steps),
        sum(|o| o.n_restarts),
        sum(|o| o.n_pieces),
        longest.unwrap_or_default(),
    );
}

/// The checks can fail: where tasks and masters have the same number in each life, what an old one sent is taken for a new one's.
#[test]
fn without_incarnations_seeds_fail() {
    let fails =
        |seed| catch_unwind(AssertUnwindSafe(|| simulate(seed, |simulation| simulation.forget_identities(7)))).is_err();
    assert!((0..100).any(fails), "of a hundred seeds none needs incarnations");
}

#[test]
fn a_seed_happens_again_as_it_did() {
    for seed in 1000..1010 {
        let [first, second] = [0, 1].map(|_| simulate(seed, |_| {}));
        assert_eq!(first, second, "seed {seed}");
    }
}
