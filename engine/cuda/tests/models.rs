//! Models: which of their nodes a GPU takes, and that they learn there what they learn on the CPU.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod emulator;
mod networks;

use std::sync::Arc;

use engine::checkpoint::{Saver, SaverOptions};
use engine::models::Convnet;
use engine::{Session, SessionOptions, Tensor};

#[test]
fn models_learn_on_the_device_what_they_learn_on_the_cpu() {
    let mut wrong = Vec::new();
    for (name, network, size) in networks::all() {
        let Some(gpu) = emulator::device(1 << 30) else { return };
        let n = networks::n_steps(name, 4);
        let (expected, _) = networks::losses(&*network, size, n, &[], SessionOptions::default());
        let (got, left) = networks::losses(&*network, size, n, &["/device:GPU:0"], networks::options(Arc::clone(&gpu)));
        let stats = cuda::device::gpu_of(&gpu).unwrap().stats();
        assert!(stats.n_allocs > 100, "{name}: {stats:?}");
        wrong.extend(networks::differs(name, &expected, &got).map(|why| format!("{name}: {why}")));
        if !left.is_empty() {
            wrong.push(format!("{name}: {left:?} stay on the CPU"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What `train --device gpu:0` runs in addition to its steps: judging, summaries, checkpoints, which the CPU goes on from.
#[test]
fn training_is_judged_summarised_and_saved_as_on_the_cpu() {
    let Some(gpu) = emulator::device(1 << 30) else { return };
    let network = Convnet { edge: 12, filters: [4, 6], hidden: 20, dropout: 0.3, ..Convnet::default() };
    let folder = tempfile::tempdir().unwrap();
    let learn = |devices: &[&str], options: SessionOptions, restored: bool| {
        let (g, t) = networks::trained(&network, devices);
        let session = Session::new(&g, options).unwrap();
        let node = |id| g.node(id).unwrap().name.to_string();
        session.run(&[], &[], &[&node(t.init)]).unwrap();
        let mut saver = Saver::new(folder.path(), SaverOptions::default()).unwrap();
        if restored {
            assert_eq!(saver.restore(&session).unwrap().unwrap().step, 2);
        }
        let feeds = |of: &[engine::Output], n: usize| -> Vec<(String, Tensor)> {
            of.iter().map(|feed| networks::name(&g, *feed)).zip(networks::batch(&network, 8, n)).collect()
        };
        let run = |feeds: &[(String, Tensor)], fetches: &[String], targets: &[&str]| {
            let feeds: Vec<(&str, Tensor)> = feeds.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
            let fetches: Vec<&str> = fetches.iter().map(String::as_str).collect();
            session.run(&feeds, &fetches, targets).unwrap()
        };
        let train_op = node(t.train_ops[0]);
        if !restored {
            (0..2).for_each(|n| drop(run(&feeds(&t.feeds[0], n), &[], &[&train_op])));
        }
        let of_test = [Some(t.evaluation.loss), t.evaluation.accuracy];
        let of_test: Vec<String> = of_test.into_iter().flatten().map(|output| networks::name(&g, output)).collect();
        let mut values = run(&feeds(&t.evaluation.feeds, 7), &of_test, &[]);
        let texts: Vec<String> = [Some(t.scalars), Some(t.histograms), t.images]
            .into_iter()
            .flatten()
            .map(|output| networks::name(&g, output))
            .collect();
        let texts = run(&feeds(&t.feeds[0], 3), &texts, &[]);
        values.extend(texts.iter().map(|text| Tensor::scalar(text.strings().unwrap()[0].len() as f32)));
        if !restored && !devices.is_empty() {
            saver.save(&session, 2).unwrap();
        }
        values
    };
    let expected = learn(&[], SessionOptions::default(), false);
    let got = learn(&["/device:GPU:0"], networks::options(gpu), false);
    let again = learn(&[], SessionOptions::default(), true);
    assert_eq!(expected.len(), 5, "loss, accuracy, and three kinds of summaries");
    for (i, expected) in expected.iter().enumerate() {
        let [expected, got, again] = [expected, &got[i], &again[i]].map(|value| value.item::<f32>().unwrap());
        // Images are compressed, and histograms leave empty buckets out.
        let tolerance = if i < 2 { 2e-4 } else { 0.05 * expected };
        assert!((got - expected).abs() <= tolerance, "value {i}: {expected} {got}");
        assert!((again - got).abs() <= tolerance, "value {i}: {got} {again}");
    }
}
