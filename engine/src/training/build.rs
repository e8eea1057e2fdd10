//! What a network is trained with, as a graph.

use super::input::{self, Enqueue, Position};
use super::options::{Parallelism, TrainingOptions};
use super::saving::{self, Saving};
use super::tower::{Built, Pushes, Updates, clipped};
use super::tower_summaries::{self, TowerSummaries};
use super::{backup, replicas, summaries};
use crate::layers::{Phase, Variables};
use crate::models::Network;
use crate::optimizer::Slots;
use crate::slices::mean_gradient;
use engine_core::graph::{Graph, GraphError, NodeId, Output};
use engine_ops::gradients::{GradientError, gradients};

/// A network in a graph, ready to be trained.
#[derive(Debug, Clone)]
pub struct TrainingGraph {
    /// Initialises everything; run it once.
    pub init: NodeId,
    /// What a batch is fed to, in the order of [`Network::inputs`], for each tower; with a queue, its enqueueing step takes
    /// the batches instead, and these are what it gives.
    pub feeds: Vec<Vec<Output>>,
    /// The queue's side for the thread that fills it, where there is a queue; of queues per tower, one for each.
    pub enqueues: Vec<Enqueue>,
    /// Of queues per tower, where the input of each begins.
    pub positions: Vec<Position>,
    /// Where the towers' places are said ([`TrainingOptions::devices`]), what saves and restores everything there.
    pub saving: Option<Saving>,
    /// One step of training; asynchronous: one for each tower.
    pub train_ops: Vec<NodeId>,
    /// With backup workers, what the towers run meanwhile.
    pub pushes: Option<Pushes>,
    /// The training loss of each train op, a scalar.
    pub losses: Vec<Output>,
    /// What judges the network, and what it is fed.
    pub evaluation: Evaluation,
    /// A string with summaries of loss, accuracy and learning rate.
    pub scalars: Output,
    /// A string with histograms of the trained variables and their gradients.
    pub histograms: Output,
    /// A string with images, where the network has any.
    pub images: Option<Output>,
    /// Of queues per tower, the summaries that each tower's task writes itself.
    pub towers: Vec<TowerSummaries>,
    /// Its variables; of the first tower, where each has its own.
    pub variables: Vec<(String, Output)>,
    /// Gives all towers the first one's variables, where each has its own: after they were restored, say.
    pub alike: Option<NodeId>,
}

/// What judges a network.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// What a batch is fed to.
    pub feeds: Vec<Output>,
    /// The mean loss.
    pub loss: Output,
    /// The share of examples that are classified rightly.
    pub accuracy: Option<Output>,
    /// What must run with it: state that is carried on.
    pub updates: Vec<NodeId>,
}

/// Adds everything that training the network takes.
///
/// # Errors
/// The network has an op without a gradient, or nodes do not fit.
pub fn build(g: &Graph, network: &dyn Network, options: &TrainingOptions) -> Result<TrainingGraph, GradientError> {
    let n_towers = if options.devices.is_empty() { options.towers.max(1) } else { options.devices.len() };
    let device = |i: usize| options.devices.get(i).cloned().unwrap_or_else(|| device(i));
    // With several devices the variables' place is said; with one nothing needs to be.
    let is_placed = n_towers > 1 || !options.devices.is_empty();
    let home = if is_placed { g.with_device(&device(0)) } else { g.clone() };
    // Towers with variables of their own have them in scopes of their own, but for the first: its names are those of one tower.
    let n_replicas = if options.parallelism == Parallelism::AllReduce { n_towers } else { 1 };
    let at = |i: usize| if i == 0 { home.clone() } else { g.with_device(&device(i)).scope(&format!("replica{i}")) };
    let replicas: Vec<Graph> = (0..n_replicas).map(at).collect();
    let mut variables: Vec<Variables> = replicas.iter().map(|at| Variables::new(at, options.seed)).collect();
    let mut source = input::Source::new(&home, network, options.input);
    let mut built = Vec::new();
    for i in 0..n_towers {
        // One tower has the names that it has without devices: a checkpoint of the one is one of the other.
        let at = if is_placed { g.with_device(&device(i)) } else { g.clone() };
        let at = if n_towers > 1 { at.scope(&format!("tower{i}")) } else { at };
        built.push(tower(&at, network, &mut variables[i % n_replicas], &mut source)?);
    }
    let evaluation = evaluation(&home, network, &mut variables[0], &built[0])?;
    let rate = home.named_constant("learning_rate", options.learning_rate).output();
    let Updates { train_ops, losses, accuracy, gradients, mut init, alike, pushes } = match options.parallelism {
        Parallelism::AllReduce if n_replicas > 1 => replicated(&replicas, &variables, &built, rate, options)?,
        Parallelism::Backup { spare } => backup::updates(&home, &variables[0], &built, rate, options, spare)?,
        _ => updates(&home, &variables[0], &built, rate, options)?,
    };
    init.extend(variables.iter().flat_map(Variables::init));
    let variables = variables.swap_remove(0);
    let summaries = home.scope("summaries");
    let scalars = summaries::scalars(&summaries, losses[0], accuracy, rate).output();
    let histograms = summaries::histograms(&summaries, &variables, &gradients).output();
    let images = summaries::images(&summaries, &built[0].tower.images);
    let mut towers = Vec::new();
    for (i, built) in built.iter().enumerate() {
        let g = summaries.with_device(&device(i)).scope(&format!("tower{i}"));
        let own = built.began.as_ref().map(|began| tower_summaries::of_tower(&g, i, built, began, &variables));
        towers.extend(own.transpose()?);
    }
    let of_towers = pushes.iter().flat_map(|pushes| &pushes.ops);
    let steps: Vec<NodeId> = train_ops.iter().chain(&evaluation.updates).chain(of_towers).copied().collect();
    let saving = (!options.devices.is_empty()).then(|| saving::saving(&home, &steps));
    let (enqueues, positions) = source.into_ends();
    let init = home.group("init", &init);
    g.check()?;
    Ok(TrainingGraph {
        init,
        feeds: built.into_iter().map(|built| built.feeds).collect(),
        enqueues,
        positions,
        saving,
        train_ops,
        pushes,
        losses,
        evaluation,
        scalars,
        histograms,
        images,
        towers,
        variables: variables.all().iter().map(|v| (v.name.clone(), v.var.value)).collect(),
        alike,
    })
}

fn device(i: usize) -> String {
    format!("/job:localhost/device:cpu:{i}")
}

fn tower(
    g: &Graph,
    network: &dyn Network,
    variables: &mut Variables,
    source: &mut input::Source,
) -> Result<Built, GradientError> {
    let (feeds, began) = source.batch(g, network)?;
    let tower = network.tower(g, variables, &feeds, Phase::Training)?;
    let xs: Vec<Output> = variables.trained().iter().map(|var| var.value).collect();
    let gradients = gradients(g, &[tower.loss], &xs, &[])?;
    Ok(Built { tower, feeds, began, gradients })
}

/// The first tower itself, where evaluation computes nothing else; otherwise a tower of its own.
fn evaluation(
    g: &Graph,
    network: &dyn Network,
    variables: &mut Variables,
    first: &Built,
) -> Result<Evaluation, GraphError> {
    if !network.has_phases() {
        let tower = &first.tower;
        let feeds = first.feeds.clone();
        return Ok(Evaluation { feeds, loss: tower.loss, accuracy: tower.accuracy, updates: Vec::new() });
    }
    let scope = g.scope("evaluation");
    let feeds = input::placeholders(&scope, network);
    let tower = network.tower(&scope, variables, &feeds, Phase::Evaluation)?;
    Ok(Evaluation { feeds, loss: tower.loss, accuracy: tower.accuracy, updates: tower.updates })
}

/// The mean of values of several towers.
fn mean(g: &Graph, values: &[Output]) -> Output {
    match values {
        [one] => *one,
        many => (g.add_n(many) * (1.0 / many.len() as f64)).output(),
    }
}

/// One training step: every replica moves its own variables by the mean of all gradients.
fn replicated(
    replicas: &[Graph],
    variables: &[Variables],
    built: &[Built],
    rate: Output,
    options: &TrainingOptions,
) -> Result<Updates, GraphError> {
    let home = &replicas[0];
    let of_towers: Vec<&[Output]> = built.iter().map(|built| built.gradients.as_slice()).collect();
    let averages: Vec<Graph> = replicas.iter().map(|g| g.scope("average")).collect();
    let means = replicas::average(&averages, &of_towers, &variables[0].trained())?;
    // The first one has more: those of the tower that judges.
    let n_variables = variables.iter().map(|variables| variables.all().len()).min().unwrap_or(0);
    let (mut all, mut init, mut first, mut alike) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (i, (g, means)) in replicas.iter().zip(&means).enumerate() {
        let (trained, mut slots) = (variables[i].trained(), Slots::default());
        let grads = clipped(g, options, &trained, means)?;
        let training = options.optimizer.apply(g, &trained, &grads, rate, &mut slots)?;
        all.extend(built[i].tower.updates.iter().copied().chain([training.op]));
        init.extend(training.init);
        alike.push(variables[i].all()[..n_variables].iter().map(|v| v.var).chain(slots.all()).collect());
        if i == 0 {
            first = grads;
        }
    }
    let loss = mean(&averages[0], &built.iter().map(|b| b.tower.loss).collect::<Vec<_>>());
    let (op, alike) = (home.group("train_step", &all), Some(replicas::alike(replicas, &alike)));
    let accuracy = built[0].tower.accuracy;
    Ok(Updates { train_ops: vec![op], losses: vec![loss], accuracy, gradients: first, init, alike, pushes: None })
}

/// The training steps of towers on the same variables.
fn updates(
    home: &Graph,
    variables: &Variables,
    built: &[Built],
    rate: Output,
    options: &TrainingOptions,
) -> Result<Updates, GraphError> {
    let (trained, accuracy) = (variables.trained(), built[0].tower.accuracy);
    let mut slots = Slots::default();
    let mut apply = |grads: &[Output], updates: Vec<NodeId>| {
        let grads = clipped(home, options, &trained, grads)?;
        let training = options.optimizer.apply(home, &trained, &grads, rate, &mut slots)?;
        let mut all = updates;
        all.push(training.op);
        let op = if all.len() == 1 { training.op } else { home.group("train_step", &all) };
        Ok::<_, GraphError>((op, grads, training.init))
    };
    if options.parallelism == Parallelism::Asynchronous {
        let (mut ops, mut first, mut init) = (Vec::new(), Vec::new(), Vec::new());
        for tower in built {
            let (op, grads, own) = apply(&tower.gradients, tower.tower.updates.clone())?;
            ops.push(op);
            init.extend(own);
            if first.is_empty() {
                first = grads;
            }
        }
        let losses = built.iter().map(|b| b.tower.loss).collect();
        return Ok(Updates { train_ops: ops, losses, accuracy, gradients: first, init, alike: None, pushes: None });
    }
    let average = home.scope("average");
    let of_variable = |i: usize| built.iter().map(|b| b.gradients[i]).collect::<Vec<_>>();
    let means = trained.iter().enumerate().map(|(i, var)| mean_gradient(&average, &of_variable(i), *var));
    let grads: Vec<Output> = means.collect::<Result<_, _>>()?;
    let loss = mean(&average, &built.iter().map(|b| b.tower.loss).collect::<Vec<_>>());
    let all: Vec<NodeId> = built.iter().flat_map(|b| b.tower.updates.iter().copied()).collect();
    let (op, gradients, init) = apply(&grads, all)?;
    Ok(Updates { train_ops: vec![op], losses: vec![loss], accuracy, gradients, init, alike: None, pushes: None })
}
