//! An Inception-style net (Szegedy et al. 2015, third version): modules of parallel convolutions whose results are joined,
//! each with batch normalisation out of primitives. Trained on four devices its graph has 44,000 nodes; the white paper
//! tells of 36,000 for its own Inception.

use super::layers::{Padding, accuracy, avg_pool, batch_norm, concat, dense, max_pool, mean_cross_entropy, reshape};
use super::{Initial, Input, Network, Phase, Tower, Variables};
use crate::dtype::DType;
use crate::graph::{Built, Graph, GraphError, NodeId, Output};
use crate::shape::PartialShape;

/// The net's sizes.
#[derive(Debug, Clone)]
pub struct Inception {
    /// Pixels along an edge of the images, which have one channel; at least 75.
    pub edge: usize,
    /// The published numbers of channels are divided by this.
    pub divisor: usize,
    /// Classes.
    pub n_classes: usize,
}

impl Default for Inception {
    fn default() -> Inception {
        Inception { edge: 75, divisor: 16, n_classes: 10 }
    }
}

/// A convolution of a branch: height, width, published number of filters, stride, padding.
type Step = (usize, usize, usize, i64, Padding);
use Padding::{Same, Valid};

/// A tower while it is built.
struct Building<'a> {
    net: &'a Inception,
    g: &'a Graph,
    variables: &'a mut Variables,
    phase: Phase,
    updates: Vec<NodeId>,
}

/// Feature maps: the output and its number of channels.
type Maps = (Output, usize);

impl Building<'_> {
    /// Convolution, batch normalisation, rectified linear unit; `path` names the variables and, without its first part,
    /// the scope within `g`.
    fn conv(&mut self, g: &Graph, (x, n_in): Maps, path: &str, step: Step) -> Result<Maps, GraphError> {
        let (height, width, filters, stride, padding) = step;
        let n_out = (filters / self.net.divisor).max(4);
        let shape = [height, width, n_in, n_out];
        let scope = g.scope(path.rsplit('/').next().unwrap_or(path));
        let w = self.variables.get(&format!("{path}/filters"), &shape, Initial::he(height * width * n_in))?;
        let y = super::layers::conv(&scope, x, w.value, stride, padding)?;
        let y = batch_norm(&scope, self.variables, y, path, (n_out, self.phase), &mut self.updates)?;
        Ok((scope.relu(y)?, n_out))
    }

    /// Convolutions one after the other.
    fn chain(&mut self, g: &Graph, mut maps: Maps, path: &str, steps: &[Step]) -> Result<Maps, GraphError> {
        for (i, step) in steps.iter().enumerate() {
            maps = self.conv(g, maps, &format!("{path}_{i}"), *step)?;
        }
        Ok(maps)
    }

    fn join(g: &Graph, branches: &[Maps]) -> Result<Maps, GraphError> {
        let outputs: Vec<Output> = branches.iter().map(|(output, _)| *output).collect();
        Ok((concat(g, &outputs, 3)?, branches.iter().map(|(_, n)| n).sum()))
    }

    /// 35x35 in the paper: 1x1, 5x5, two 3x3, and a pool with a projection.
    fn module_a(&mut self, name: &str, x: Maps, pool: usize) -> Result<Maps, GraphError> {
        let g = &self.g.scope(name);
        let one = self.chain(g, x, &format!("{name}/one"), &[(1, 1, 64, 1, Same)])?;
        let five = self.chain(g, x, &format!("{name}/five"), &[(1, 1, 48, 1, Same), (5, 5, 64, 1, Same)])?;
        let three = self.chain(
            g,
            x,
            &format!("{name}/three"),
            &[(1, 1, 64, 1, Same), (3, 3, 96, 1, Same), (3, 3, 96, 1, Same)],
        )?;
        let pooled = (avg_pool(g, x.0, 3, 1, Same)?, x.1);
        let pool = self.chain(g, pooled, &format!("{name}/pool"), &[(1, 1, pool, 1, Same)])?;
        Self::join(g, &[one, five, three, pool])
    }

    fn reduction_a(&mut self, name: &str, x: Maps) -> Result<Maps, GraphError> {
        let g = &self.g.scope(name);
        let three = self.chain(g, x, &format!("{name}/three"), &[(3, 3, 384, 2, Valid)])?;
        let double = self.chain(
            g,
            x,
            &format!("{name}/double"),
            &[(1, 1, 64, 1, Same), (3, 3, 96, 1, Same), (3, 3, 96, 2, Valid)],
        )?;
        Self::join(g, &[three, double, (max_pool(g, x.0, 3, 2, Valid)?, x.1)])
    }

    /// 17x17 in the paper: convolutions of 7x7 as 1x7 and 7x1.
    fn module_b(&mut self, name: &str, x: Maps, n: usize) -> Result<Maps, GraphError> {
        let g = &self.g.scope(name);
        let one = self.chain(g, x, &format!("{name}/one"), &[(1, 1, 192, 1, Same)])?;
        let seven = [(1, 1, n, 1, Same), (1, 7, n, 1, Same), (7, 1, 192, 1, Same)];
        let seven = self.chain(g, x, &format!("{name}/seven"), &seven)?;
        let double =
            [(1, 1, n, 1, Same), (7, 1, n, 1, Same), (1, 7, n, 1, Same), (7, 1, n, 1, Same), (1, 7, 192, 1, Same)];
        let double = self.chain(g, x, &format!("{name}/double"), &double)?;
        let pooled = (avg_pool(g, x.0, 3, 1, Same)?, x.1);
        let pool = self.chain(g, pooled, &format!("{name}/pool"), &[(1, 1, 192, 1, Same)])?;
        Self::join(g, &[one, seven, double, pool])
    }

    fn reduction_b(&mut self, name: &str, x: Maps) -> Result<Maps, GraphError> {
        let g = &self.g.scope(name);
        let three = self.chain(g, x, &format!("{name}/three"), &[(1, 1, 192, 1, Same), (3, 3, 320, 2, Valid)])?;
        let seven = [(1, 1, 192, 1, Same), (1, 7, 192, 1, Same), (7, 1, 192, 1, Same), (3, 3, 192, 2, Valid)];
        let seven = self.chain(g, x, &format!("{name}/seven"), &seven)?;
        Self::join(g, &[three, seven, (max_pool(g, x.0, 3, 2, Valid)?, x.1)])
    }

    /// 8x8 in the paper: branches that split once more.
    fn module_c(&mut self, name: &str, x: Maps) -> Result<Maps, GraphError> {
        let g = &self.g.scope(name);
        let one = self.chain(g, x, &format!("{name}/one"), &[(1, 1, 320, 1, Same)])?;
        let three = self.chain(g, x, &format!("{name}/three"), &[(1, 1, 384, 1, Same)])?;
        let double = self.chain(g, x, &format!("{name}/double"), &[(1, 1, 448, 1, Same), (3, 3, 384, 1, Same)])?;
        let mut branches = vec![one];
        for (branch, from) in [("three", three), ("double", double)] {
            branches.push(self.conv(g, from, &format!("{name}/{branch}_wide"), (1, 3, 384, 1, Same))?);
            branches.push(self.conv(g, from, &format!("{name}/{branch}_high"), (3, 1, 384, 1, Same))?);
        }
        let pooled = (avg_pool(g, x.0, 3, 1, Same)?, x.1);
        branches.push(self.chain(g, pooled, &format!("{name}/pool"), &[(1, 1, 192, 1, Same)])?);
        Self::join(g, &branches)
    }

    fn body(&mut self, images: Output) -> Result<Maps, GraphError> {
        let stem = &self.g.scope("stem");
        let x = self.chain(
            stem,
            (images, 1),
            "stem/a",
            &[(3, 3, 32, 2, Valid), (3, 3, 32, 1, Valid), (3, 3, 64, 1, Same)],
        )?;
        let x = (max_pool(stem, x.0, 3, 2, Valid)?, x.1);
        let x = self.chain(stem, x, "stem/b", &[(1, 1, 80, 1, Valid), (3, 3, 192, 1, Valid)])?;
        let mut x = (max_pool(stem, x.0, 3, 2, Valid)?, x.1);
        for (i, pool) in [32, 64, 64].into_iter().enumerate() {
            x = self.module_a(&format!("mixed_a{i}"), x, pool)?;
        }
        x = self.reduction_a("reduction_a", x)?;
        for (i, n) in [128, 160, 160, 192].into_iter().enumerate() {
            x = self.module_b(&format!("mixed_b{i}"), x, n)?;
        }
        x = self.reduction_b("reduction_b", x)?;
        for i in 0..2 {
            x = self.module_c(&format!("mixed_c{i}"), x)?;
        }
        Ok(x)
    }
}

impl Network for Inception {
    fn name(&self) -> &'static str {
        "inception"
    }

    fn inputs(&self) -> Vec<Input> {
        let shape = PartialShape::from([None, Some(self.edge), Some(self.edge), Some(1)]);
        vec![
            Input { name: "images", dtype: DType::F32, shape },
            Input { name: "labels", dtype: DType::I64, shape: PartialShape::from([None]) },
        ]
    }

    fn has_phases(&self) -> bool {
        true
    }

    fn tower(
        &self,
        g: &Graph,
        variables: &mut Variables,
        inputs: &[Output],
        phase: Phase,
    ) -> Result<Tower, GraphError> {
        let mut building = Building { net: self, g, variables, phase, updates: Vec::new() };
        let (maps, n) = building.body(inputs[0])?;
        let updates = building.updates;
        let pooled: Built = g.mean(maps, g.int_vector(&[1, 2])?);
        let flat = reshape(g, pooled?, &[-1, i32::try_from(n).unwrap_or(i32::MAX)])?;
        let scope = g.scope("logits");
        let sizes = (n, self.n_classes);
        let logits = dense(&scope, variables, flat, "logits", sizes, Initial::glorot(sizes.0, sizes.1))?;
        let loss = mean_cross_entropy(g, logits, inputs[1])?;
        let accuracy = accuracy(g, logits, inputs[1])?;
        Ok(Tower { loss, accuracy: Some(accuracy), images: Vec::new(), updates })
    }
}
