//! Two tasks in processes that `mpirun` started, whose large values go by MPI: a peer of this program's own.

use std::io::{BufRead, Write};
use std::time::Duration;

use ::distributed::{Master, MasterOptions, Member, Worker, WorkerOptions};
use ::net::Limits;
use serde_json::{Value, json};

use super::one_way::{OneWay, times};
use crate::report::BenchError;

/// Between two looks at the end, and how long it may take.
const PERIOD: Duration = Duration::from_millis(20);
const TO_END: Duration = Duration::from_secs(10);

/// Is one of the two. Task 0 has the master, and answers requests as the peers in Python do.
pub fn be() -> Result<(), BenchError> {
    let member = Member::join(true, |_| None)?;
    let task = member.task().ok_or("it is a worker")?;
    // Otherwise they would be taken from the other's memory.
    let limits = Limits { lends: false, ..Limits::default() };
    let options = WorkerOptions { job_id: member.id(), threads: Some(1), limits, ..WorkerOptions::default() };
    let worker = Worker::start(task, &member.address(), &options)?;
    let cluster = member.cluster(Some(worker.address()))?;
    if task.task == 0 {
        answer(&Master::new(cluster, MasterOptions::default()))?;
        member.end(TO_END)?;
    } else {
        let mut leaving = member.leave()?;
        while !leaving.is_over()? {
            std::thread::sleep(PERIOD);
        }
    }
    drop(worker);
    Ok(())
}

fn answer(master: &Master) -> Result<(), BenchError> {
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let (case, repeat) = (request["case"].as_str().unwrap_or_default(), request["repeat"].as_u64().unwrap_or(1));
        let bytes = case.strip_prefix("tensor ").ok_or_else(|| format!("unknown case {case}"))?.parse()?;
        let mut way = OneWay::new(master, bytes)?;
        let mut wall_ns = Vec::new();
        times(&mut wall_ns, repeat as usize, || way.step())?;
        println!("{}", json!({ "wall_ns": wall_ns, "cpu_ns": [], "nodes": null }));
        #[expect(clippy::disallowed_methods, reason = "a program whose output is its result")]
        let mut stdout = std::io::stdout();
        stdout.flush()?;
    }
    Ok(())
}
