//! A language model: words to vectors, layers of long short-term memory (Hochreiter and Schmidhuber 1997), and a guess
//! at each next word. The state carries over from one batch to the next, in variables.

use super::{Input, Network, Tower};
use crate::layers::{Initial, Phase, Variables, dense, embedding};
use engine_core::dtype::DType;
use engine_core::graph::{Graph, GraphError, NodeId, Output, Var, WhileOptions};
use engine_core::shape::PartialShape;
use engine_core::tensor::Tensor;

/// How the graph goes through time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unrolling {
    /// A copy of the cells for each step of time.
    Unrolled,
    /// One copy in a loop.
    While,
}

/// The model's sizes.
#[derive(Debug, Clone)]
pub struct LanguageModel {
    /// Different words.
    pub n_words: usize,
    /// Units of a layer, and the length of a word's vector.
    pub units: usize,
    /// Layers.
    pub layers: usize,
    /// Words of a text that a step looks at.
    pub time: usize,
    /// Texts read at once.
    pub batch: usize,
    /// How the graph goes through time.
    pub unrolling: Unrolling,
}

/// A cell's state: memory and output, f32 `[batch, units]`.
type State = (Output, Output);
/// A layer's weights and biases.
type Weights = (Output, Output);

impl LanguageModel {
    /// Weights of each layer: input and former output to the four gates (input, new value, forget, output).
    fn weights(&self, variables: &mut Variables) -> Vec<Weights> {
        let n = self.units;
        // Of the four gates each has as many outputs as the layer.
        let initial = Initial::Normal((2.0 / (3 * n).max(1) as f32).sqrt());
        let layer = |i: usize| {
            let mut variables = variables.at(&format!("lstm{i}"));
            let w = variables.get("weights", &[2 * n, 4 * n], initial);
            (w.value, variables.get("biases", &[4 * n], Initial::Constant(0.0)).value)
        };
        (0..self.layers).map(layer).collect()
    }

    /// The state that the last step left, for each layer.
    fn carried(&self, g: &Graph, variables: &mut Variables) -> Vec<(Var, Var)> {
        let scope = g.scope_name();
        let prefix = if scope.is_empty() { String::new() } else { format!("{scope}/") };
        let mut state = |part: &str, i: usize| {
            variables.state(&format!("{prefix}state/{part}{i}"), &[self.batch, self.units], Initial::Constant(0.0))
        };
        (0..self.layers).map(|i| (state("c", i), state("h", i))).collect()
    }

    /// All layers, one step of time; gives the new states, whose last output is the result.
    fn step(&self, g: &Graph, x: Output, states: &[State], weights: &[Weights]) -> Vec<State> {
        let mut h = x;
        let mut new = Vec::with_capacity(states.len());
        for (i, (state, weights)) in states.iter().zip(weights).enumerate() {
            let state = cell(&g.scope(&format!("lstm{i}")), h, *state, *weights);
            h = state.1;
            new.push(state);
        }
        new
    }

    fn unrolled(&self, g: &Graph, x: Output, start: &[State], weights: &[Weights]) -> Through {
        let steps = g.add_node("Unpack").input(x).attr("num", self.time as i64).attr("axis", 0i64).value();
        let mut states = start.to_vec();
        let mut outputs = Vec::with_capacity(self.time);
        for t in 0..self.time {
            let x = steps.port(t as u32).output();
            states = self.step(&g.scope(&format!("t{t}")), x, &states, weights);
            outputs.extend(states.last().map(|(_, h)| *h));
        }
        Through { outputs: g.stack(&outputs, 0).output(), states }
    }

    fn looped(&self, g: &Graph, x: Output, start: &[State], weights: &[Weights]) -> Result<Through, GraphError> {
        let inputs = Array::of(g, "inputs", x, self.time);
        let outputs = Array::new(g, "outputs", self.time);
        let mut vars = vec![g.constant(Tensor::scalar(0i32)).output(), outputs.flow];
        vars.extend(start.iter().flat_map(|(c, h)| [*c, *h]));
        let n = g.constant(Tensor::scalar(self.time as i32)).output();
        let done = g.while_loop(
            &vars,
            |g, vars| Ok(g.value(vars[0]).less(n).output()),
            |g, vars| {
                let states: Vec<State> = vars[2..].as_chunks::<2>().0.iter().map(|[c, h]| (*c, *h)).collect();
                let new = self.step(g, inputs.read(g, vars[0]), &states, weights);
                let mut next = vec![(g.value(vars[0]) + 1.0).output()];
                let h = new.last().map_or(vars[1], |(_, h)| *h);
                next.push(outputs.write(g, vars[0], h, vars[1]));
                next.extend(new.iter().flat_map(|(c, h)| [*c, *h]));
                Ok::<_, GraphError>(next)
            },
            &WhileOptions { name: "while".to_owned(), ..WhileOptions::default() },
        )?;
        let states = done[2..].as_chunks::<2>().0.iter().map(|[c, h]| (*c, *h)).collect();
        Ok(Through { outputs: outputs.gather(g, done[1], [self.batch, self.units]), states })
    }
}

/// A tensor array in a graph: its handle, and the flow that orders what is done to it.
struct Array {
    handle: Output,
    flow: Output,
    indices: Output,
}

impl Array {
    fn new(g: &Graph, name: &str, n: usize) -> Array {
        let size = g.constant(Tensor::scalar(n as i32));
        let handle = g.add_node("TensorArrayV3").name(name).input(size).attr("dtype", DType::F32).value();
        let indices = g.ints(&(0..n as i32).collect::<Vec<_>>()).output();
        Array { handle: handle.output(), flow: handle.port(1).output(), indices }
    }

    /// An array of the parts of `x` along its first axis.
    fn of(g: &Graph, name: &str, x: Output, n: usize) -> Array {
        let array = Array::new(g, name, n);
        let scatter = g.add_node("TensorArrayScatterV3").input(array.handle).input(array.indices).input(x);
        Array { flow: scatter.input(array.flow).value().output(), ..array }
    }

    fn read(&self, g: &Graph, i: Output) -> Output {
        let read = g.add_node("TensorArrayReadV3").input(self.handle).input(i).input(self.flow);
        read.attr("dtype", DType::F32).value().output()
    }

    fn write(&self, g: &Graph, i: Output, value: Output, flow: Output) -> Output {
        g.add_node("TensorArrayWriteV3").input(self.handle).input(i).input(value).input(flow).value().output()
    }

    /// All parts along a new first axis, when `flow` says that they are there.
    fn gather(&self, g: &Graph, flow: Output, part: [usize; 2]) -> Output {
        let gather = g.add_node("TensorArrayGatherV3").input(self.handle).input(self.indices).input(flow);
        gather.attr("dtype", DType::F32).attr("element_shape", PartialShape::from(part)).value().output()
    }
}

/// What comes of a text.
struct Through {
    /// The last layer's outputs, f32 `[time, batch, units]`.
    outputs: Output,
    /// The states at the end.
    states: Vec<State>,
}

/// One cell, one step of time; the forget gate is biased by 1 (Jozefowicz et al. 2015).
fn cell(g: &Graph, x: Output, (c, h): State, (w, b): Weights) -> State {
    let gates = g.concat(&[x, h], 1).matmul(w).bias_add(b);
    let axis = g.constant(Tensor::scalar(1i32));
    let split = g.add_node("Split").input(axis).input(gates).attr("num_split", 4i64).value();
    let [input, new, forget, output] = [0, 1, 2, 3].map(|gate| split.port(gate));
    let kept = (forget + 1.0).sigmoid() * c;
    let c = kept + input.sigmoid() * new.tanh();
    (c.output(), (output.sigmoid() * c.tanh()).output())
}

impl Network for LanguageModel {
    fn name(&self) -> &'static str {
        match self.unrolling {
            Unrolling::Unrolled => "lstm",
            Unrolling::While => "lstm-while",
        }
    }

    fn inputs(&self) -> Vec<Input> {
        let shape = PartialShape::from([self.batch, self.time]);
        vec![
            Input { name: "words", dtype: DType::I32, shape: shape.clone() },
            Input { name: "next_words", dtype: DType::I32, shape },
        ]
    }

    /// Evaluation reads another text, with a state of its own.
    fn has_phases(&self) -> bool {
        true
    }

    fn tower(&self, g: &Graph, variables: &mut Variables, inputs: &[Output], _: Phase) -> Result<Tower, GraphError> {
        let n = self.units;
        let scope = g.scope("embedding");
        let by_time = scope.value(inputs[0]).transpose([1, 0]);
        let x = embedding(by_time, &mut variables.at("embedding"), self.n_words, n, Initial::Normal(0.1)).output();
        let weights = self.weights(variables);
        let carried = self.carried(g, variables);
        let start: Vec<State> = carried.iter().map(|(c, h)| (c.value, h.value)).collect();
        let scope = g.scope("time");
        let through = match self.unrolling {
            Unrolling::Unrolled => self.unrolled(&scope, x, &start, &weights),
            Unrolling::While => self.looped(&scope, x, &start, &weights)?,
        };
        let scope = g.scope("loss");
        let outputs = scope.value(through.outputs).reshape([-1, n as i64]);
        let logits = dense(outputs, &mut variables.at("softmax"), self.n_words, Initial::Glorot);
        let next = scope.value(inputs[1]).transpose([1, 0]).reshape([-1]);
        let loss = logits.sparse_cross_entropy(next).mean_all().output();
        let mut updates: Vec<NodeId> = Vec::new();
        for ((c, h), (new_c, new_h)) in carried.iter().zip(&through.states) {
            updates.push(c.assign(scope.value(*new_c)));
            updates.push(h.assign(scope.value(*new_h)));
        }
        g.check()?;
        Ok(Tower { loss, accuracy: None, images: Vec::new(), updates })
    }
}
