//! Concurrent steps: several training steps of one model at once on the same devices (white paper, figure 9).
//!
//! ```text
//! cargo run --release -p engine --example concurrent_steps [STEPS]
//! ```
//!
//! Two clients call `run` on one session from threads of their own. Where a step alone leaves workers idle, between its
//! few large kernels, the other's kernels fill them.

#![allow(clippy::print_stdout, reason = "a program whose output is its result")]

use std::sync::atomic::{AtomicUsize, Ordering};

use engine::models::MlpOptions;
use engine::training::mlp;
use engine::{Graph, Session, SessionOptions, Tensor};

type Failure = Box<dyn std::error::Error>;

/// Steps of each run, unless the caller says.
const STEPS: usize = 400;
const BATCH: usize = 32;

fn main() -> Result<(), Failure> {
    let n_steps = std::env::args().nth(1).map_or(Ok(STEPS), |n| n.parse())?;
    let g = Graph::new();
    let model = mlp(&g, &MlpOptions::default())?;
    let name = |id| g.node(id).map(|node| node.name.to_string());
    let (x, labels, train) = (name(model.x.node)?, name(model.labels.node)?, name(model.train_op)?);
    let (init, accuracy) = (name(model.init)?, name(model.accuracy.node)?);
    let data = engine::data::digits();
    let (images, classes) = (data.train_x.slice::<f32>()?, data.train_y.slice::<i64>()?);
    let batches: Vec<[Tensor; 2]> = (0..classes.len() / BATCH)
        .map(|i| {
            let rows = i * BATCH..(i + 1) * BATCH;
            let x = Tensor::from_vec([BATCH, 64], images[rows.start * 64..rows.end * 64].to_vec())?;
            Ok::<_, Failure>([x, Tensor::vector(&classes[rows])])
        })
        .collect::<Result<_, _>>()?;
    for n_clients in [1, 2, 4] {
        let session = Session::new(&g, SessionOptions::default())?;
        session.run(&[], &[], &[&init])?;
        let next = AtomicUsize::new(0);
        let begin = events::clock::mono_now();
        std::thread::scope(|scope| {
            let client = || -> Result<(), String> {
                let step = session.prepare(&[&x, &labels], &[], &[&train]).map_err(|e| e.to_string())?;
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= n_steps {
                        return Ok(());
                    }
                    step.run(&batches[i % batches.len()]).map_err(|e| e.to_string())?;
                }
            };
            let clients: Vec<_> = (0..n_clients).map(|_| scope.spawn(client)).collect();
            clients.into_iter().try_for_each(|c| c.join().unwrap_or_else(|_| Err("a client panicked".to_owned())))
        })?;
        let seconds = (events::clock::mono_now() - begin) as f64 / 1e9;
        let feeds = [(x.as_str(), data.test_x.clone()), (labels.as_str(), data.test_y.clone())];
        let right = session.run(&feeds, &[&accuracy], &[])?[0].item::<f32>()?;
        println!("{n_clients} at once: {:6.0} steps/s, test accuracy {:.1} %", n_steps as f64 / seconds, right * 100.0);
    }
    Ok(())
}
