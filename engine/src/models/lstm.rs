//! A language model: words to vectors, layers of long short-term memory (Hochreiter and Schmidhuber 1997), and a guess
//! at each next word. The state carries over from one batch to the next, in variables.

use super::layers::{concat, reshape};
use super::{Initial, Input, Network, Phase, Tower, Variables};
use crate::dtype::DType;
use crate::graph::{Graph, GraphError, NodeId, Output, Var, WhileOptions};
use crate::shape::PartialShape;
use crate::tensor::Tensor;

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

impl LanguageModel {
    /// Weights of each layer: input and former output to the four gates (input, new value, forget, output).
    fn weights(&self, variables: &mut Variables) -> Result<Vec<(Output, Output)>, GraphError> {
        let n = self.units;
        let layer = |i: usize| {
            let w = variables.get(&format!("lstm{i}/weights"), &[2 * n, 4 * n], Initial::glorot(2 * n, n))?;
            let b = variables.get(&format!("lstm{i}/biases"), &[4 * n], Initial::Constant(0.0))?;
            Ok((w.value, b.value))
        };
        (0..self.layers).map(layer).collect()
    }

    /// The state that the last step left, for each layer.
    fn carried(&self, g: &Graph, variables: &mut Variables) -> Result<Vec<(Var, Var)>, GraphError> {
        let scope = g.scope_name();
        let prefix = if scope.is_empty() { String::new() } else { format!("{scope}/") };
        let mut state = |part: &str, i: usize| {
            variables.state(&format!("{prefix}state/{part}{i}"), &[self.batch, self.units], Initial::Constant(0.0))
        };
        (0..self.layers).map(|i| Ok((state("c", i)?, state("h", i)?))).collect()
    }

    /// All layers, one step of time; gives the new states, whose last output is the result.
    fn step(
        &self,
        g: &Graph,
        x: Output,
        states: &[State],
        weights: &[(Output, Output)],
    ) -> Result<Vec<State>, GraphError> {
        let mut h = x;
        let mut new = Vec::with_capacity(states.len());
        for (i, (state, weights)) in states.iter().zip(weights).enumerate() {
            let state = cell(&g.scope(&format!("lstm{i}")), h, *state, *weights)?;
            h = state.1;
            new.push(state);
        }
        Ok(new)
    }

    fn unrolled(
        &self,
        g: &Graph,
        x: Output,
        start: &[State],
        weights: &[(Output, Output)],
    ) -> Result<Through, GraphError> {
        let steps = g.add_node("Unpack").input(x).attr("num", self.time as i64).attr("axis", 0i64).build()?;
        let mut states = start.to_vec();
        let mut outputs = Vec::with_capacity(self.time);
        for t in 0..self.time {
            let x = Output { node: steps, port: t as u32 };
            states = self.step(&g.scope(&format!("t{t}")), x, &states, weights)?;
            outputs.extend(states.last().map(|(_, h)| *h));
        }
        Ok(Through { outputs: g.add_node("Pack").inputs(&outputs).attr("axis", 0i64).output()?, states })
    }

    fn looped(
        &self,
        g: &Graph,
        x: Output,
        start: &[State],
        weights: &[(Output, Output)],
    ) -> Result<Through, GraphError> {
        let inputs = Array::of(g, "inputs", x, self.time)?;
        let outputs = Array::new(g, "outputs", self.time)?;
        let mut vars = vec![g.constant(Tensor::scalar(0i32))?, outputs.flow];
        vars.extend(start.iter().flat_map(|(c, h)| [*c, *h]));
        let n = g.constant(Tensor::scalar(self.time as i32))?;
        let done = g.while_loop(
            &vars,
            |g, vars| g.add_node("Less").input(vars[0]).input(n).output(),
            |g, vars| {
                let states: Vec<State> = vars[2..].as_chunks::<2>().0.iter().map(|[c, h]| (*c, *h)).collect();
                let new = self.step(g, inputs.read(g, vars[0])?, &states, weights)?;
                let mut next = vec![g.add(vars[0], g.constant(Tensor::scalar(1i32))?)?];
                let h = new.last().map_or(vars[1], |(_, h)| *h);
                next.push(outputs.write(g, vars[0], h, vars[1])?);
                next.extend(new.iter().flat_map(|(c, h)| [*c, *h]));
                Ok::<_, GraphError>(next)
            },
            &WhileOptions { name: "while".to_owned(), ..WhileOptions::default() },
        )?;
        let states = done[2..].as_chunks::<2>().0.iter().map(|[c, h]| (*c, *h)).collect();
        Ok(Through { outputs: outputs.gather(g, done[1], [self.batch, self.units])?, states })
    }
}

/// A tensor array in a graph: its handle, and the flow that orders what is done to it.
struct Array {
    handle: Output,
    flow: Output,
    indices: Output,
}

impl Array {
    fn new(g: &Graph, name: &str, n: usize) -> Result<Array, GraphError> {
        let size = g.constant(Tensor::scalar(n as i32))?;
        let node = g.add_node("TensorArrayV3").name(name).input(size).attr("dtype", DType::F32).build()?;
        let indices = g.int_vector(&(0..n as i32).collect::<Vec<_>>())?;
        Ok(Array { handle: node.into(), flow: Output { node, port: 1 }, indices })
    }

    /// An array of the parts of `x` along its first axis.
    fn of(g: &Graph, name: &str, x: Output, n: usize) -> Result<Array, GraphError> {
        let array = Array::new(g, name, n)?;
        let scatter = g.add_node("TensorArrayScatterV3").input(array.handle).input(array.indices).input(x);
        Ok(Array { flow: scatter.input(array.flow).output()?, ..array })
    }

    fn read(&self, g: &Graph, i: Output) -> Result<Output, GraphError> {
        let read = g.add_node("TensorArrayReadV3").input(self.handle).input(i).input(self.flow);
        read.attr("dtype", DType::F32).output()
    }

    fn write(&self, g: &Graph, i: Output, value: Output, flow: Output) -> Result<Output, GraphError> {
        g.add_node("TensorArrayWriteV3").input(self.handle).input(i).input(value).input(flow).output()
    }

    /// All parts along a new first axis, when `flow` says that they are there.
    fn gather(&self, g: &Graph, flow: Output, part: [usize; 2]) -> Result<Output, GraphError> {
        let gather = g.add_node("TensorArrayGatherV3").input(self.handle).input(self.indices).input(flow);
        gather.attr("dtype", DType::F32).attr("element_shape", PartialShape::from(part)).output()
    }
}

/// What comes of a text.
struct Through {
    /// The last layer's outputs, f32 `[time, batch, units]`.
    outputs: Output,
    /// The states at the end.
    states: Vec<State>,
}

/// One cell, one step of time: `c = f * c + i * tanh(j); h = o * tanh(c)`, the forget gate biased by 1 (Jozefowicz et al. 2015).
fn cell(g: &Graph, x: Output, (c, h): State, (w, b): (Output, Output)) -> Result<State, GraphError> {
    let gates = g.bias_add(g.matmul(concat(g, &[x, h], 1)?, w)?, b)?;
    let axis = g.constant(Tensor::scalar(1i32))?;
    let split = g.add_node("Split").input(axis).input(gates).attr("num_split", 4i64).build()?;
    let gate = |port| Output { node: split, port };
    let forget = g.sigmoid(g.add(gate(2), g.constant(1f32)?)?)?;
    let kept = g.mul(forget, c)?;
    let new = g.mul(g.sigmoid(gate(0))?, g.tanh(gate(1))?)?;
    let c = g.add(kept, new)?;
    Ok((c, g.mul(g.sigmoid(gate(3))?, g.tanh(c)?)?))
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
        let vectors = variables.get("embedding/vectors", &[self.n_words, n], Initial::Normal(0.1))?;
        let weights = self.weights(variables)?;
        let carried = self.carried(g, variables)?;
        let start: Vec<State> = carried.iter().map(|(c, h)| (c.value, h.value)).collect();
        let scope = g.scope("embedding");
        let by_time = scope.transpose(inputs[0], scope.int_vector(&[1, 0])?)?;
        let x = scope.add_node("GatherV2").input(vectors.value).input(by_time);
        let x = x.input(scope.constant(Tensor::scalar(0i32))?).output()?;
        let scope = g.scope("time");
        let through = match self.unrolling {
            Unrolling::Unrolled => self.unrolled(&scope, x, &start, &weights)?,
            Unrolling::While => self.looped(&scope, x, &start, &weights)?,
        };
        let scope = g.scope("loss");
        let w = variables.get("softmax/weights", &[n, self.n_words], Initial::glorot(n, self.n_words))?;
        let b = variables.get("softmax/biases", &[self.n_words], Initial::Constant(0.0))?;
        let flat = reshape(&scope, through.outputs, &[-1, i32::try_from(n).unwrap_or(i32::MAX)])?;
        let logits = scope.bias_add(scope.matmul(flat, w.value)?, b.value)?;
        let next = scope.transpose(inputs[1], scope.int_vector(&[1, 0])?)?;
        let loss = scope.mean_all(scope.sparse_cross_entropy(logits, reshape(&scope, next, &[-1])?)?)?;
        let mut updates: Vec<NodeId> = Vec::new();
        for ((c, h), (new_c, new_h)) in carried.iter().zip(&through.states) {
            updates.push(Variables::assign(&scope, *c, *new_c)?);
            updates.push(Variables::assign(&scope, *h, *new_h)?);
        }
        Ok(Tower { loss, accuracy: None, images: Vec::new(), updates })
    }
}
