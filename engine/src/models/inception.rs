//! An Inception-style net (Szegedy et al. 2015, third version): modules of parallel convolutions whose results are joined,
//! each with batch normalisation out of primitives. Trained on four devices its graph has 44,000 nodes; the white paper
//! reports 36,000 for its own Inception.

use super::{Input, Network, Tower};
use crate::layers::{Initial, Phase, Variables, accuracy, batch_norm, dense, mean_cross_entropy};
use engine_core::dtype::DType;
use engine_core::graph::Padding::{self, Same, Valid};
use engine_core::graph::{Graph, GraphError, NodeId, Output};
use engine_core::shape::PartialShape;

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
type Step = (usize, usize, usize, usize, Padding);

/// A tower while it is built.
struct Building<'a> {
    net: &'a Inception,
    g: &'a Graph,
    variables: &'a mut Variables,
    phase: Phase,
    updates: Vec<NodeId>,
}

impl Building<'_> {
    /// Convolution, batch normalisation, rectified linear unit; `path` names the variables and, without its first part,
    /// the scope within `g`.
    fn conv(&mut self, g: &Graph, x: Output, path: &str, (height, width, filters, stride, padding): Step) -> Output {
        let n_out = (filters / self.net.divisor).max(4);
        let scope = g.scope(path.rsplit('/').next().unwrap_or(path));
        let x = scope.value(x);
        let mut variables = self.variables.at(path);
        let w = variables.get("filters", &[height, width, x.last_dim(), n_out], Initial::He);
        let maps = x.conv2d(w.value, [stride; 2], padding);
        batch_norm(maps, &mut variables, self.phase, &mut self.updates).relu().output()
    }

    /// Convolutions one after the other.
    fn chain(&mut self, g: &Graph, mut maps: Output, path: &str, steps: &[Step]) -> Output {
        for (i, step) in steps.iter().enumerate() {
            maps = self.conv(g, maps, &format!("{path}_{i}"), *step);
        }
        maps
    }

    /// The branch of a module that begins with a pool.
    fn pooled(&mut self, g: &Graph, x: Output, path: &str, filters: usize) -> Output {
        let pooled = g.value(x).avg_pool([3, 3], [1, 1], Same).output();
        self.chain(g, pooled, path, &[(1, 1, filters, 1, Same)])
    }

    /// 35x35 in the paper: 1x1, 5x5, two 3x3, and a pool with a projection.
    fn module_a(&mut self, name: &str, x: Output, pool: usize) -> Output {
        let g = &self.g.scope(name);
        let one = self.chain(g, x, &format!("{name}/one"), &[(1, 1, 64, 1, Same)]);
        let five = self.chain(g, x, &format!("{name}/five"), &[(1, 1, 48, 1, Same), (5, 5, 64, 1, Same)]);
        let three = [(1, 1, 64, 1, Same), (3, 3, 96, 1, Same), (3, 3, 96, 1, Same)];
        let three = self.chain(g, x, &format!("{name}/three"), &three);
        let pool = self.pooled(g, x, &format!("{name}/pool"), pool);
        g.concat(&[one, five, three, pool], 3).output()
    }

    fn reduction_a(&mut self, name: &str, x: Output) -> Output {
        let g = &self.g.scope(name);
        let three = self.chain(g, x, &format!("{name}/three"), &[(3, 3, 384, 2, Valid)]);
        let double = [(1, 1, 64, 1, Same), (3, 3, 96, 1, Same), (3, 3, 96, 2, Valid)];
        let double = self.chain(g, x, &format!("{name}/double"), &double);
        g.concat(&[three, double, g.value(x).max_pool([3, 3], [2, 2], Valid).output()], 3).output()
    }

    /// 17x17 in the paper: convolutions of 7x7 as 1x7 and 7x1.
    fn module_b(&mut self, name: &str, x: Output, n: usize) -> Output {
        let g = &self.g.scope(name);
        let one = self.chain(g, x, &format!("{name}/one"), &[(1, 1, 192, 1, Same)]);
        let seven = [(1, 1, n, 1, Same), (1, 7, n, 1, Same), (7, 1, 192, 1, Same)];
        let seven = self.chain(g, x, &format!("{name}/seven"), &seven);
        let double =
            [(1, 1, n, 1, Same), (7, 1, n, 1, Same), (1, 7, n, 1, Same), (7, 1, n, 1, Same), (1, 7, 192, 1, Same)];
        let double = self.chain(g, x, &format!("{name}/double"), &double);
        let pool = self.pooled(g, x, &format!("{name}/pool"), 192);
        g.concat(&[one, seven, double, pool], 3).output()
    }

    fn reduction_b(&mut self, name: &str, x: Output) -> Output {
        let g = &self.g.scope(name);
        let three = self.chain(g, x, &format!("{name}/three"), &[(1, 1, 192, 1, Same), (3, 3, 320, 2, Valid)]);
        let seven = [(1, 1, 192, 1, Same), (1, 7, 192, 1, Same), (7, 1, 192, 1, Same), (3, 3, 192, 2, Valid)];
        let seven = self.chain(g, x, &format!("{name}/seven"), &seven);
        g.concat(&[three, seven, g.value(x).max_pool([3, 3], [2, 2], Valid).output()], 3).output()
    }

    /// 8x8 in the paper: branches that split once more.
    fn module_c(&mut self, name: &str, x: Output) -> Output {
        let g = &self.g.scope(name);
        let one = self.chain(g, x, &format!("{name}/one"), &[(1, 1, 320, 1, Same)]);
        let three = self.chain(g, x, &format!("{name}/three"), &[(1, 1, 384, 1, Same)]);
        let double = self.chain(g, x, &format!("{name}/double"), &[(1, 1, 448, 1, Same), (3, 3, 384, 1, Same)]);
        let mut branches = vec![one];
        for (branch, from) in [("three", three), ("double", double)] {
            branches.push(self.conv(g, from, &format!("{name}/{branch}_wide"), (1, 3, 384, 1, Same)));
            branches.push(self.conv(g, from, &format!("{name}/{branch}_high"), (3, 1, 384, 1, Same)));
        }
        branches.push(self.pooled(g, x, &format!("{name}/pool"), 192));
        g.concat(&branches, 3).output()
    }

    fn body(&mut self, images: Output) -> Output {
        let stem = &self.g.scope("stem");
        let begin = [(3, 3, 32, 2, Valid), (3, 3, 32, 1, Valid), (3, 3, 64, 1, Same)];
        let x = self.chain(stem, images, "stem/a", &begin);
        let x = stem.value(x).max_pool([3, 3], [2, 2], Valid).output();
        let x = self.chain(stem, x, "stem/b", &[(1, 1, 80, 1, Valid), (3, 3, 192, 1, Valid)]);
        let mut x = stem.value(x).max_pool([3, 3], [2, 2], Valid).output();
        for (i, pool) in [32, 64, 64].into_iter().enumerate() {
            x = self.module_a(&format!("mixed_a{i}"), x, pool);
        }
        x = self.reduction_a("reduction_a", x);
        for (i, n) in [128, 160, 160, 192].into_iter().enumerate() {
            x = self.module_b(&format!("mixed_b{i}"), x, n);
        }
        x = self.reduction_b("reduction_b", x);
        for i in 0..2 {
            x = self.module_c(&format!("mixed_c{i}"), x);
        }
        x
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
        let maps = g.value(building.body(inputs[0]));
        let updates = building.updates;
        let flat = maps.mean([1, 2]).flatten();
        let logits = dense(flat, &mut variables.at("logits"), self.n_classes, Initial::Glorot);
        let loss = mean_cross_entropy(logits, inputs[1]).output();
        let accuracy = accuracy(logits, inputs[1]).try_output()?;
        Ok(Tower { loss, accuracy: Some(accuracy), images: Vec::new(), updates })
    }
}
