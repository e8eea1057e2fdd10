//! Batches of sentences of like length: a queue for each bucket, so that little of a batch is padding.
//!
//! ```text
//! cargo run --release -p engine --example length_buckets
//! ```
//!
//! A step per sentence draws it from the text and puts it into its bucket's queue; whichever bucket is full first gives the next
//! batch. A model that guesses each word from the one before learns from them, moving only the rows of its embeddings that
//! a batch uses. The program prints how much of its batches is padding, compared with batches of sentences in any
//! order.

#![allow(clippy::print_stdout, reason = "a program whose output is its result")]

use std::sync::Arc;

use engine::data::Grammar;
use engine::gradients::gradients;
use engine::graph::{Graph, NodeId, Output, Value};
use engine::layers::{Initial, Variables};
use engine::optimizer::{Optimizer, Slots};
use engine::queues::{BatchOptions, Coordinator, QueueRunner, bucket_by_sequence_length};
use engine::{DType, Session, SessionOptions, Tensor};

type Failure = Box<dyn std::error::Error>;

const BATCH: usize = 32;
const SIZE: usize = 32;
const BOUNDARIES: [i32; 4] = [5, 7, 9, 12];
const STEPS: usize = 400;

/// Sentences one behind the other, words from 1 on: 0 is padding.
struct Sentences {
    words: Vec<i32>,
    /// Where each begins, and how long it is.
    places: Vec<(i32, i32)>,
    n_words: usize,
}

fn sentences() -> Sentences {
    let grammar = Grammar::new();
    let end = grammar.words().iter().position(|word| *word == ".").unwrap_or_default() as i32;
    let words: Vec<i32> = grammar.text(40_000, 5).iter().map(|word| word + 1).collect();
    let mut places = Vec::new();
    let mut begin = 0;
    for (i, _) in words.iter().enumerate().filter(|(_, word)| **word == end + 1) {
        places.push((begin, i as i32 + 1 - begin));
        begin = i as i32 + 1;
    }
    Sentences { words, places, n_words: grammar.words().len() + 1 }
}

/// One sentence a step, in any order: its length and its words.
fn draw(g: &Graph, text: &Sentences) -> [Output; 2] {
    let (begins, lengths): (Vec<i32>, Vec<i32>) = text.places.iter().copied().unzip();
    let range = [0, text.places.len() as i32].map(|end| g.constant(Tensor::scalar(end)));
    let at = g.add_node("RandomUniformInt").input(g.ints(&[])).input(range[0]).input(range[1]);
    let at = at.attr("seed", 3i64).attr("seed2", 4i64).value();
    let pick = |all: &[i32]| g.ints(all).embedding_lookup(at);
    let (begin, length) = (pick(&begins), pick(&lengths));
    let one = g.ints(&[1]);
    let (from, size) = (begin.reshape(one), length.reshape(one));
    let words = g.add_node("Slice").input(g.ints(&text.words)).input(from).input(size).value();
    [length, words].map(Value::output)
}

struct Model {
    init: NodeId,
    train: NodeId,
    loss: Output,
    /// Places in the batch, and those of them that are words.
    counts: [Output; 2],
    runners: Vec<QueueRunner>,
}

fn build(g: &Graph, text: &Sentences) -> Result<Model, Failure> {
    let [length, words] = draw(g, text);
    let (batch, runners) = bucket_by_sequence_length(g, length, &[words], &BOUNDARIES, &BatchOptions::new(BATCH))?;
    let words = g.value(batch[1]);
    let mut variables = Variables::new(g, 1);
    let vectors = variables.get("vectors", &[text.n_words, SIZE], Initial::Normal(0.1));
    let weights = variables.get("weights", &[SIZE, text.n_words], Initial::Glorot);
    let part = |first: i32, last: i32| {
        let node = g.add_node("StridedSlice").input(words).input(g.ints(&[0, first]));
        let node = node.input(g.ints(&[0, last])).input(g.ints(&[1, 1]));
        let ends = (1 | if first == 0 { 2 } else { 0 }, 1 | if last == 0 { 2 } else { 0 });
        node.attr("begin_mask", i64::from(ends.0)).attr("end_mask", i64::from(ends.1)).value().reshape([-1])
    };
    let (before, next) = (part(0, -1), part(1, 0));
    let logits = g.value(vectors.value).embedding_lookup(before).matmul(weights.value);
    let is_word = next.op_with("NotEqual", 0.0).cast(DType::F32);
    let losses = logits.sparse_cross_entropy(next);
    let loss = ((losses * is_word).sum_all() / is_word.sum_all()).output();
    let trained = variables.trained();
    let xs: Vec<Output> = trained.iter().map(|var| var.value).collect();
    let grads = gradients(g, &[loss], &xs, &[])?;
    let rate = g.named_constant("rate", 0.3f32);
    let training = Optimizer::Adagrad { initial: 0.1 }.apply(g, &trained, &grads, rate, &mut Slots::default())?;
    let all_words = words.op_with("NotEqual", 0.0);
    let counts = [words.size_tensor(), all_words.cast(DType::I32).sum_all()].map(Value::output);
    let init = variables.init().into_iter().chain(training.init).collect::<Vec<_>>();
    let init = g.group("init", &init);
    g.check()?;
    Ok(Model { init, train: training.op, loss, counts, runners })
}

/// The share of padding in batches of sentences in the order in which they are drawn.
fn padding_in_any_order(text: &Sentences) -> f64 {
    let (mut places, mut words) = (0, 0);
    for batch in text.places.chunks_exact(BATCH) {
        places += batch.iter().map(|(_, n)| *n).max().unwrap_or(0) as usize * BATCH;
        words += batch.iter().map(|(_, n)| *n as usize).sum::<usize>();
    }
    1.0 - words as f64 / places as f64
}

fn main() -> Result<(), Failure> {
    let text = sentences();
    let g = Graph::new();
    let model = build(&g, &text)?;
    let name = |o: Output| g.node(o.node).map(|node| format!("{}:{}", node.name, o.port));
    let [loss, places, words] = [model.loss, model.counts[0], model.counts[1]].map(name);
    let (loss, places, words) = (loss?, places?, words?);
    let (init, train) = (g.node(model.init)?.name.to_string(), g.node(model.train)?.name.to_string());
    let session = Arc::new(Session::new(&g, SessionOptions::default())?);
    session.run(&[], &[], &[&init])?;
    let coordinator = Coordinator::new();
    for runner in &model.runners {
        runner.start(&session, &coordinator)?;
    }
    let step = session.prepare(&[], &[&loss, &places, &words], &[&train])?;
    let (mut first, mut last, mut counts) = (0.0, 0.0, [0i64; 2]);
    for i in 1..=STEPS {
        let fetched = step.run(&[])?;
        let item = |i: usize| fetched[i].item::<i32>();
        counts = [counts[0] + i64::from(item(1)?), counts[1] + i64::from(item(2)?)];
        last = fetched[0].item::<f32>()?;
        first = if i == 1 { last } else { first };
        if i % 100 == 0 {
            println!("step {i:4}  loss {last:.3}");
        }
    }
    coordinator.stop();
    coordinator.join()?;
    let padding = 1.0 - counts[1] as f64 / counts[0] as f64;
    let in_any_order = padding_in_any_order(&text);
    println!("padding: {:.1} %; of batches in any order: {:.1} %", padding * 100.0, in_any_order * 100.0);
    if padding > in_any_order / 2.0 || last > first * 0.7 {
        return Err(format!("padding {padding}, loss from {first} to {last}").into());
    }
    Ok(())
}
