//! What a program that builds, trains and runs a model needs: `use engine::prelude::*;`

pub use crate::layers::{Initial, Phase, VariableScope, Variables};
pub use crate::layers::{accuracy, batch_norm, conv2d, dense, dropout, embedding, layer_norm, mean_cross_entropy};
pub use crate::optimizer::{Optimizer, Training};
pub use crate::session::{Session, SessionOptions};
pub use crate::{DType, Error, PartialShape, Shape, Tensor};
pub use engine_core::graph::{Graph, NodeId, Output, Padding, Value, Var, WhileOptions};
pub use engine_ops::gradients::gradients;
