//! The models by name: their graphs, and that they learn. Those that take longer are trained by the end-to-end tests.

use engine::models::{Inception, Unrolling};
use engine::tasks::{self, Task};
use engine::training::{InputMode, TrainingOptions, build};
use engine::{Graph, Output, Session, SessionOptions, Tensor};

fn name(g: &Graph, o: Output) -> String {
    format!("{}:{}", g.node(o.node).unwrap().name, o.port)
}

/// Trains with fed batches; gives the losses.
fn train(mut task: Task, n_steps: usize) -> Vec<f32> {
    let g = Graph::new();
    let options = TrainingOptions { input: InputMode::Fed, ..task.training.clone() };
    let built = build(&g, task.network.as_ref(), &options).unwrap();
    let session = Session::new(&g, SessionOptions::default()).unwrap();
    let node = |id| g.node(id).unwrap().name.to_string();
    session.run(&[], &[], &[&node(built.init)]).unwrap();
    let feeds: Vec<String> = built.feeds[0].iter().map(|o| name(&g, *o)).collect();
    let feeds: Vec<&str> = feeds.iter().map(String::as_str).collect();
    let (loss, op) = (name(&g, built.losses[0]), node(built.train_ops[0]));
    let step = session.prepare(&feeds, &[&loss], &[&op]).unwrap();
    (0..n_steps).map(|_| step.run(&(task.next_batch)()).unwrap()[0].item::<f32>().unwrap()).collect()
}

fn mean(losses: &[f32]) -> f32 {
    losses.iter().sum::<f32>() / losses.len() as f32
}

#[test]
fn word_vectors_learn() {
    let losses = train(tasks::embeddings(1).unwrap(), 200);
    assert!(mean(&losses[180..]) < 0.8 * losses[0], "{losses:?}");
}

#[test]
fn the_language_model_learns() {
    let losses = train(tasks::language_model(Unrolling::Unrolled, 1).unwrap(), 30);
    assert!(mean(&losses[25..]) < 0.9 * losses[0], "{losses:?}");
}

/// The loop computes what the copies compute.
#[test]
fn the_looped_language_model_is_the_unrolled_one() {
    let unrolled = train(tasks::language_model(Unrolling::Unrolled, 1).unwrap(), 4);
    let looped = train(tasks::language_model(Unrolling::While, 1).unwrap(), 4);
    for (a, b) in unrolled.iter().zip(&looped) {
        assert!((a - b).abs() < 1e-4 * a.abs(), "{unrolled:?} {looped:?}");
    }
}

#[test]
fn the_convnet_learns() {
    let losses = train(tasks::convnet(&engine::data::digits(), 1).unwrap(), 12);
    assert!(mean(&losses[9..]) < losses[0], "{losses:?}");
}

/// The white paper's Inception has 36,000 nodes with its gradients; this one has a tower that judges besides.
#[test]
fn inception_has_the_papers_size() {
    let g = Graph::new();
    let options = TrainingOptions { towers: 4, ..TrainingOptions::default() };
    build(&g, &Inception::default(), &options).unwrap();
    let n = g.n_nodes();
    assert!((36_000..46_000).contains(&n), "{n} nodes");
}

#[test]
fn batches_of_zero_rows_are_no_panic() {
    let mut task = tasks::embeddings(1).unwrap();
    assert_eq!((task.next_batch)()[0].dims(), &[256]);
    let _: Vec<Tensor> = task.test.remove(0);
}
