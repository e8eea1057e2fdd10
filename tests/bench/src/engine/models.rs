//! The graphs of `tensorflow_peer.py`, built by us: the same ops, shapes and optimizer.

use ::engine::graph::{Graph, GraphError, NodeId, Output, Padding, Value, Var, WhileOptions};
use ::engine::optimizer::Optimizer;
use ::engine::{DType, PartialShape, Tensor};

use super::case::{Case, Unit};
use super::setup::{graphs, scaled, values};
use crate::report::BenchError;

type Built<T> = Result<T, BenchError>;

/// All cases that both sides have.
pub(super) fn cases() -> Built<Vec<Case>> {
    let mut cases = Vec::new();
    for (name, graph, target) in graphs()? {
        if name != "AddV2 chain of [4]" {
            cases.push(Case { unit: Unit::NsPerNode, repeat: 40, ..Case::new(name, graph, target) });
        }
    }
    cases.extend(trivial()?);
    for n in [64usize, 128, 256, 512, 1024, 2048] {
        cases.push(matmul(n)?);
    }
    for shape in [[64, 28, 1, 5, 32], [64, 14, 32, 5, 64], [32, 28, 128, 3, 128], [32, 28, 256, 1, 64]] {
        cases.push(conv(shape)?);
    }
    cases.extend(trained_models()?);
    Ok(cases)
}

/// The models whose training steps are compared, and whose tracing is measured.
pub(crate) fn trained_models() -> Built<Vec<Case>> {
    Ok(vec![mlp()?, convnet()?, lstm_unrolled()?, lstm_while()?])
}

fn trivial() -> Built<[Case; 2]> {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [0usize; 0]);
    g.add_node("AddV2").name("y").input(x).input(x.number(1.0)).value();
    g.group("nothing", &[]);
    let nothing =
        Case { unit: Unit::UsPerStep, inner: 200, ..Case::new("prepared no-op", g.clone(), "nothing".into()) };
    let add = Case {
        feeds: vec![("x".into(), Tensor::scalar(1.0f32))],
        fetches: vec!["y".into()],
        targets: Vec::new(),
        unit: Unit::UsPerStep,
        inner: 200,
        ..Case::new("prepared x -> x + 1", g, String::new())
    };
    Ok([nothing, add])
}

fn matmul(n: usize) -> Built<Case> {
    let g = Graph::new();
    let (a, b) = (g.variable("a", values(&[n, n])?), g.variable("b", values(&[n, n])?));
    let product = g.value(a.value).matmul(b.value);
    let init = group(&g, &[a, b])?;
    Ok(Case {
        init: Some(init),
        inner: ((256 / n) * (256 / n)).max(1),
        unit: Unit::Gflops(2.0 * (n as f64).powi(3)),
        ..Case::new(&format!("matmul {n}"), g.clone(), node_name(&g, product.node())?)
    })
}

fn conv([batch, size, depth, kernel, filters]: [usize; 5]) -> Built<Case> {
    let g = Graph::new();
    let x = g.variable("x", values(&[batch, size, size, depth])?);
    let w = g.variable("w", values(&[kernel, kernel, depth, filters])?);
    let y = g.value(x.value).conv2d(w.value, [1, 1], Padding::Same);
    let init = group(&g, &[x, w])?;
    let flops = 2.0 * (batch * size * size * kernel * kernel * depth * filters) as f64;
    let name = format!("conv {batch}x{size}x{size}x{depth} {kernel}x{kernel}x{filters}");
    Ok(Case { init: Some(init), unit: Unit::Gflops(flops), ..Case::new(&name, g.clone(), node_name(&g, y.node())?) })
}

fn node_name(g: &Graph, id: NodeId) -> Built<String> {
    Ok(g.node(id)?.name.to_string())
}

fn output_name(g: &Graph, output: Output) -> Built<String> {
    Ok(format!("{}:{}", node_name(g, output.node)?, output.port))
}

fn group(g: &Graph, vars: &[Var]) -> Built<String> {
    let inits: Vec<NodeId> = vars.iter().map(|v| v.init).collect();
    node_name(g, g.group("init", &inits))
}

/// A model's trained variables, while it is built.
struct Model<'g> {
    g: &'g Graph,
    vars: Vec<Var>,
}

impl<'g> Model<'g> {
    fn new(g: &'g Graph) -> Model<'g> {
        Model { g, vars: Vec::new() }
    }

    fn variable(&mut self, name: &str, shape: &[usize], deviation: f32) -> Built<Output> {
        // Uniform numbers of this deviation.
        let var = self.g.variable(name, scaled(shape, deviation * 3f32.sqrt())?);
        self.vars.push(var);
        Ok(var.value)
    }

    fn dense(&mut self, x: Value<'g>, n_in: usize, n_out: usize, name: &str) -> Built<Value<'g>> {
        let w = self.variable(&format!("{name}w"), &[n_in, n_out], (2.0 / n_in as f32).sqrt())?;
        let b = self.variable(&format!("{name}b"), &[n_out], 0.0)?;
        Ok(x.matmul(w).bias_add(b))
    }

    /// A step that fetches the loss and trains by gradient descent.
    fn trained(self, name: &str, loss: Value<'g>, feeds: Vec<(String, Tensor)>, repeat: usize) -> Built<Case> {
        let g = self.g;
        let rate = g.named_constant("rate", 0.01f32);
        let training = Optimizer::GradientDescent.minimize(loss, &self.vars, rate)?;
        Ok(Case {
            init: Some(group(g, &self.vars)?),
            feeds,
            fetches: vec![output_name(g, loss.output())?],
            repeat,
            ..Case::new(name, g.clone(), node_name(g, training.op)?)
        })
    }
}

fn labels(n: usize) -> Built<Tensor> {
    Ok(Tensor::from_vec([n], (0..n as i64).map(|i| i * 7 % 10).collect())?)
}

fn mlp() -> Built<Case> {
    let g = Graph::new();
    let mut m = Model::new(&g);
    let x = g.placeholder("x", DType::F32, [128, 784]);
    let y = g.placeholder("y", DType::I64, [128]);
    let h = m.dense(x, 784, 512, "1")?.relu();
    let h = m.dense(h, 512, 512, "2")?.relu();
    let loss = m.dense(h, 512, 10, "3")?.sparse_cross_entropy(y).mean_all();
    let feeds = vec![("x".into(), values(&[128, 784])?), ("y".into(), labels(128)?)];
    m.trained("mlp", loss, feeds, 40)
}

fn convnet() -> Built<Case> {
    let g = Graph::new();
    let mut m = Model::new(&g);
    let mut h = g.placeholder("x", DType::F32, [64, 28, 28, 1]);
    let y = g.placeholder("y", DType::I64, [64]);
    for (name, depth, filters) in [("1", 1usize, 32usize), ("2", 32, 64)] {
        let w = m.variable(&format!("c{name}"), &[5, 5, depth, filters], (2.0 / (25 * depth) as f32).sqrt())?;
        let b = m.variable(&format!("cb{name}"), &[filters], 0.0)?;
        h = h.conv2d(w, [1, 1], Padding::Same).bias_add(b).relu().max_pool([2, 2], [2, 2], Padding::Same);
    }
    let h = m.dense(h.reshape([64, 7 * 7 * 64]), 7 * 7 * 64, 1024, "3")?.relu();
    let loss = m.dense(h, 1024, 10, "4")?.sparse_cross_entropy(y).mean_all();
    let feeds = vec![("x".into(), values(&[64, 28, 28, 1])?), ("y".into(), labels(64)?)];
    m.trained("convnet", loss, feeds, 10)
}

const UNITS: usize = 256;
const TIME: usize = 32;
const BATCH: usize = 32;

/// The weights of two layers: input and state to the four gates.
fn lstm_weights(m: &mut Model<'_>) -> Built<Vec<(Output, Output)>> {
    let layer = |i: usize| {
        let w = m.variable(&format!("w{i}"), &[2 * UNITS, 4 * UNITS], 0.05)?;
        Ok((w, m.variable(&format!("b{i}"), &[4 * UNITS], 0.0)?))
    };
    (0..2).map(layer).collect()
}

/// A cell out of primitives; gives the next state `(c, h)`.
fn cell(g: &Graph, x: Output, (c, h): (Output, Output), (w, b): (Output, Output)) -> (Output, Output) {
    let one = g.constant(Tensor::scalar(1i32));
    let xh = g.add_node("ConcatV2").inputs(&[x, h]).input(one).value();
    let gates = xh.matmul(w).bias_add(b);
    let split = g.add_node("Split").input(one).input(gates).attr("num_split", 4i64).value();
    let c = split.port(2).sigmoid() * c + split.port(0).sigmoid() * split.port(1).tanh();
    let h = split.port(3).sigmoid() * c.tanh();
    (c.output(), h.output())
}

fn lstm_unrolled() -> Built<Case> {
    let g = Graph::new();
    let mut m = Model::new(&g);
    let x = g.placeholder("x", DType::F32, [TIME, BATCH, UNITS]);
    let weights = lstm_weights(&mut m)?;
    let zero = g.constant(scaled(&[BATCH, UNITS], 0.0)?).output();
    let steps = g.add_node("Unpack").input(x).attr("num", TIME as i64).value();
    let mut state = [(zero, zero); 2];
    let mut outputs = Vec::new();
    for step in 0..TIME as u32 {
        let mut h = steps.port(step).output();
        for (state, weights) in state.iter_mut().zip(&weights) {
            *state = cell(&g, h, *state, *weights);
            h = state.1;
        }
        outputs.push(h);
    }
    let loss = g.add_node("Pack").inputs(&outputs).value().square().mean_all();
    let feeds = vec![("x".into(), values(&[TIME, BATCH, UNITS])?)];
    m.trained("lstm unrolled", loss, feeds, 6)
}

/// A tensor array of the parts of a text.
struct Array {
    handle: Output,
    flow: Output,
    indices: Output,
}

impl Array {
    fn new(g: &Graph) -> Array {
        let size = g.constant(Tensor::scalar(TIME as i32));
        let node = g.add_node("TensorArrayV3").input(size).attr("dtype", DType::F32);
        let array = node.attr("element_shape", PartialShape::from([BATCH, UNITS])).value();
        let indices = g.ints(&(0..TIME as i32).collect::<Vec<_>>());
        Array { handle: array.output(), flow: array.port(1).output(), indices: indices.output() }
    }
}

fn lstm_while() -> Built<Case> {
    let g = Graph::new();
    let mut m = Model::new(&g);
    let x = g.placeholder("x", DType::F32, [TIME, BATCH, UNITS]);
    let weights = lstm_weights(&mut m)?;
    let zero = g.constant(scaled(&[BATCH, UNITS], 0.0)?).output();
    let (steps, outputs) = (Array::new(&g), Array::new(&g));
    let scatter = g.add_node("TensorArrayScatterV3").input(steps.handle).input(steps.indices).input(x);
    let filled = scatter.input(steps.flow).value();
    let n = g.constant(Tensor::scalar(TIME as i32));
    let start = [g.constant(Tensor::scalar(0i32)).output(), outputs.flow, zero, zero, zero, zero];
    let done = g.while_loop::<GraphError>(
        &start,
        |g, vars| Ok(g.value(vars[0]).less(n).output()),
        |g, vars| {
            let read = g.add_node("TensorArrayReadV3").input(steps.handle).input(vars[0]).input(filled);
            let x = read.attr("dtype", DType::F32).value().output();
            let (c0, h0) = cell(g, x, (vars[2], vars[3]), weights[0]);
            let (c1, h1) = cell(g, h0, (vars[4], vars[5]), weights[1]);
            let next = g.value(vars[0]) + 1.0;
            let write = g.add_node("TensorArrayWriteV3").input(outputs.handle).input(vars[0]).input(h1);
            Ok(vec![next.output(), write.input(vars[1]).value().output(), c0, h0, c1, h1])
        },
        &WhileOptions::default(),
    )?;
    let gather = g.add_node("TensorArrayGatherV3").input(outputs.handle).input(outputs.indices).input(done[1]);
    let all = gather.attr("dtype", DType::F32).attr("element_shape", PartialShape::from([BATCH, UNITS])).value();
    let loss = all.square().mean_all();
    let feeds = vec![("x".into(), values(&[TIME, BATCH, UNITS])?)];
    m.trained("lstm while", loss, feeds, 6)
}
