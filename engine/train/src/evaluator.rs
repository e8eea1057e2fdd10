//! Tests of the model on the test batches, during training and at its end.

use anyhow::Context;
use engine::tasks::Judge;
use engine::{Output, RunOptions, Tensor};
use summaries::SummaryWriter;

use crate::backend::StepRunner;
use crate::named_graph::NamedGraph;
use crate::result::TestResult;

/// The test batches, and the judge of their result.
pub(crate) struct Evaluator {
    batches: Vec<Vec<Tensor>>,
    judge: Judge,
    /// The variable from whose value the judge computes the quality, if it needs one.
    variable: Option<Output>,
}

impl Evaluator {
    /// The evaluator of a task whose graph is `graph`.
    pub fn new(batches: Vec<Vec<Tensor>>, judge: Judge, graph: &NamedGraph) -> Evaluator {
        let wanted_name = judge.wants();
        let variable =
            graph.variables.iter().find(|(name, _)| Some(name.as_str()) == wanted_name).map(|(_, value)| *value);
        Evaluator { batches, judge, variable }
    }

    /// Computes loss and quality on the test batches, and writes them as the scalars `test/loss` and `test/QUALITY`.
    pub fn test(
        &self,
        runner: &StepRunner,
        graph: &NamedGraph,
        writer: &SummaryWriter,
        step: u64,
    ) -> anyhow::Result<TestResult> {
        let evaluation = &graph.evaluation;
        let options = RunOptions { label: "test", summary_step: Some(step as i64), ..RunOptions::default() };
        let mut fetches = vec![graph.name(evaluation.loss)];
        fetches.extend(evaluation.accuracy.map(|accuracy| graph.name(accuracy)));
        let targets: Vec<&str> = evaluation.updates.iter().map(|update| graph.name(*update)).collect();
        let (mut loss, mut accuracy, mut total_rows) = (0.0, 0.0, 0.0);
        for batch in &self.batches {
            let names = evaluation.feeds.iter().map(|feed| graph.name(*feed));
            let feeds: Vec<(&str, Tensor)> = names.zip(batch.iter().cloned()).collect();
            let fetched = runner.run_step(&options, &feeds, &fetches, &targets).context("testing")?;
            let n_rows = batch.first().and_then(|x| x.dims().first()).copied().unwrap_or(1) as f64;
            loss += n_rows * f64::from(fetched[0].item::<f32>()?);
            accuracy +=
                fetched.get(1).map(Tensor::item::<f32>).transpose()?.map_or(0.0, |value| n_rows * f64::from(value));
            total_rows += n_rows;
        }
        let (loss, accuracy) = (loss / total_rows, evaluation.accuracy.map(|_| accuracy / total_rows));
        let variable = match self.variable {
            Some(variable) => runner.run_step(&options, &[], &[graph.name(variable)], &[]).context("testing")?.pop(),
            None => None,
        };
        let quality = self.judge.quality(loss, accuracy, variable.as_ref());
        writer.add_scalar("test/loss", loss as f32, step as i64);
        writer.add_scalar(&format!("test/{}", tag(&quality.name)), quality.value as f32, step as i64);
        Ok(TestResult { loss, accuracy, quality })
    }
}

/// A quality's name as a tag: `test accuracy` is written as `test/accuracy`.
fn tag(name: &str) -> String {
    name.trim_start_matches("test ").replace(" / ", "_per_").replace(' ', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_have_no_spaces() {
        assert_eq!(
            ["test accuracy", "test loss / entropy", "near words"].map(tag),
            ["accuracy", "loss_per_entropy", "near_words"]
        );
    }
}
